"""Conversions as users see them: `x-in.yaml` becomes `x-out.yaml`, with the losses in `x-losses.txt`.

The first line of each input has the arguments of the conversion. `pytest tests/convert --update` rewrites the other
files.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from eastgate.cli import main
from tests.convert.istio_semantics import problems

HERE = Path(__file__).parent / "goldens"
INPUTS = sorted(path.name.removesuffix("-in.yaml") for path in HERE.glob("*-in.yaml"))


def _settle(path: Path, text: str, *, update: bool) -> None:
    if update:
        path.write_text(text, encoding="utf-8") if text else path.unlink(missing_ok=True)
    assert (path.read_text(encoding="utf-8") if path.exists() else "") == text


@pytest.mark.parametrize("name", INPUTS)
def test_golden(name: str, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("NO_COLOR", "1")
    source = f"{name}-in.yaml"
    words = shlex.split((HERE / source).read_text(encoding="utf-8").splitlines()[0].removeprefix("# "))
    result = CliRunner().invoke(main, ["convert", *words, "-f", source], catch_exceptions=False)
    _settle(HERE / f"{name}-out.yaml", result.stdout, update=update)
    _settle(HERE / f"{name}-losses.txt", result.stderr, update=update)
    assert result.exit_code == (1 if result.stderr else 0)
    for manifest in yaml.safe_load_all(result.stdout):
        if manifest["apiVersion"] == "security.istio.io/v1":
            assert problems(manifest) == []


def test_the_proposal_is_followed_to_the_letter() -> None:
    _, config = yaml.safe_load_all((HERE / "authpolicy-to-istio-out.yaml").read_text(encoding="utf-8"))
    given = list(yaml.safe_load_all((HERE / "authpolicy-to-istio-in.yaml").read_text(encoding="utf-8")))[-1]
    assert (config["apiVersion"], config["kind"]) == ("authorino.kuadrant.io/v1beta3", "AuthConfig")
    assert (config["metadata"]["name"], config["metadata"]["namespace"]) == ("default-toystore-1", "gateways")
    (scheme,) = given["spec"]["authSchemes"]
    written, token = config["spec"]["authorization"].values()
    assert config["spec"]["hosts"] == scheme["hosts"]
    assert written["patternMatching"]["patterns"] == scheme["authorization"][0]["json"]["rules"]
    assert token["patternMatching"]["patterns"][0]["value"] == scheme["identity"][0]["oidc"]["endpoint"]


def test_the_pages_show_what_really_comes_out() -> None:
    guides = HERE.parents[2] / "docs" / "guides"
    page = "".join(page.read_text(encoding="utf-8") for page in guides.glob("converting*.md"))
    shown_files = ("gep-to-istio-out.yaml", "gep-to-istio-losses.txt", "authpolicy-to-istio-out.yaml")
    for shown in (*shown_files, "istio-to-gep-out.yaml", "istio-to-gep-losses.txt"):
        assert (HERE / shown).read_text(encoding="utf-8").rstrip() in page, shown
