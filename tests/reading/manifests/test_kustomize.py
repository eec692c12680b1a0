"""Kustomizations are rendered and never read as they are; nothing is fetched and nothing else is run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from eastgate.authority.reading import Manifests, read_manifests
from eastgate.reading.manifests import Bounds, Kustomized, inputs, rendering
from tests.missing import give_up
from tests.programs import find
from tests.programs.building import are_missing

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\n"
PATCH = "apiVersion: v1\nkind: Pod\nmetadata: {name: base, labels: {tier: front}}\n"

# A stand-in that prints `<folder>/rendered`, and says how it was called.
FAKE = f"""#!{sys.executable}
import os, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
(folder / "called").write_text(repr((sys.argv[1:], sorted(os.environ), os.environ.get("PATH"))))
exec((folder / "program").read_text()) if (folder / "program").exists() else None
sys.stdout.write((folder / "rendered").read_text())
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose kustomizations a stand-in renders."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kustomize").write_text(FAKE)
    (programs / "kustomize").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _kustomization(*resources: str, more: str = "") -> str:
    return "resources:\n" + "".join(f"- {one}\n" for one in resources) + more


def _names(manifests: Manifests) -> list[str]:
    return sorted(one.name for one in manifests.objects)


def _codes(manifests: Manifests) -> list[str]:
    return [one.code.id for one in manifests.reporter]


@pytest.mark.parametrize("file", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kustomization_is_rendered_and_not_read(file: str, here: Path) -> None:
    _write(here / "m", {file: _kustomization("pod.yaml"), "pod.yaml": POD, "rendered": POD.replace("NAME", "made")})
    manifests = read_manifests(["m"])
    assert (_names(manifests), _codes(manifests)) == (["made"], [])
    assert manifests.objects[0].span is not None
    assert manifests.objects[0].span.file == "<kustomize build m>"


def test_the_program_gets_a_path_and_no_flags_no_programs_and_no_way_out(here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml"), "pod.yaml": POD, "rendered": POD})
    read_manifests(["m"])
    words, variables, path = eval((here / "m/called").read_text())  # noqa: S307 - the stand-in wrote it
    assert words == ["build", "--", str(here / "m")]
    assert {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} <= set(variables)
    assert path != str(here / "bin")


def test_what_others_take_in_is_not_rendered_by_itself(here: Path) -> None:
    _write(
        here / "m",
        {
            "base/kustomization.yaml": _kustomization("pod.yaml"),
            "base/pod.yaml": POD.replace("NAME", "base"),
            "overlay/kustomization.yaml": _kustomization("../base", more="patches: [{path: patch.yaml}]\n"),
            "overlay/patch.yaml": PATCH,
            "overlay/rendered": PATCH,
            "plain/pod.yaml": POD.replace("NAME", "plain"),
        },
    )
    manifests = read_manifests(["m"])
    assert (_names(manifests), _codes(manifests)) == (["base", "plain"], [])
    assert not (here / "m/base/called").exists()


def test_many_overlays_of_the_same_base_are_a_choice(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = _kustomization("../base")
    _write(here / "m", {"base/kustomization.yaml": _kustomization("pod.yaml"), "base/pod.yaml": POD})
    _write(here / "m", {f"{name}/kustomization.yaml": overlay for name in ("dev", "prod")})
    monkeypatch.setattr(inputs, "_MOST_RIVALS", 1)
    (finding,) = read_manifests(["m"]).reporter.errors
    assert (finding.code.id, finding.help) == ("EG1051", "choose: -k m/dev")
    assert "`m/dev` and `m/prod`" in finding.message
    _write(here / "m", {"prod/rendered": POD.replace("NAME", "prod"), "dev/rendered": POD.replace("NAME", "dev")})
    assert _names(read_manifests([Kustomized("m/prod")])) == ["prod"]
    assert _names(read_manifests([Kustomized("m/prod"), Kustomized("m/dev")])) == ["dev", "prod"]
    excluded = read_manifests(["m"], bounds=Bounds.of(["m"], exclude=["dev"]))
    assert (_names(excluded), excluded.excluded) == (["prod"], 1)


def test_a_few_overlays_are_rendered_and_must_not_differ(here: Path) -> None:
    overlay = _kustomization("../base")
    _write(here / "m", {"base/kustomization.yaml": _kustomization("pod.yaml"), "base/pod.yaml": POD})
    for name, output in (("dev", POD.replace("NAME", "dev")), ("prod", POD.replace("NAME", "prod"))):
        _write(here / "m", {f"{name}/kustomization.yaml": overlay, f"{name}/rendered": output})
    assert _names(read_manifests(["m"])) == ["dev", "prod"]
    _write(here / "m", {"dev/rendered": PATCH, "prod/rendered": PATCH.replace("front", "back")})
    (finding,) = read_manifests(["m"]).reporter.errors
    help_ = "the first one is in <kustomize build m/dev>; choose what to render with -k"
    assert (finding.code.id, finding.help) == ("EG1036", help_)


def test_files_that_no_kustomization_names_are_told(here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml"), "pod.yaml": POD, "rendered": PATCH})
    _write(here / "m", {"policy.yaml": POD, "sub/other.yaml": POD})
    (finding,) = read_manifests(["m"]).reporter.diagnostics
    assert (finding.code.id, finding.is_error) == ("EG1044", False)
    assert "`m/policy.yaml`, `m/sub/other.yaml`" in finding.message


def test_a_component_that_nobody_takes_in_is_told(here: Path) -> None:
    component = _kustomization("policy.yaml") + "kind: Component\n"
    _write(here / "m", {"kustomization.yaml": component, "policy.yaml": POD})
    (finding,) = read_manifests(["m"]).reporter.diagnostics
    assert (finding.code.id, finding.is_error) == ("EG1044", False)
    assert "`m/policy.yaml`" in finding.message


def test_only_what_takes_a_kustomization_in_stands_for_it(here: Path) -> None:
    other = "namePrefix: ../b\ncommonLabels: {x: ../b}\n"
    _write(here / "m", {"a/kustomization.yaml": other, "b/kustomization.yaml": _kustomization("pod.yaml")})
    _write(
        here / "m", {"b/pod.yaml": POD, "a/rendered": POD.replace("NAME", "a"), "b/rendered": POD.replace("NAME", "b")}
    )
    assert _names(read_manifests(["m"])) == ["a", "b"]


def test_a_circle_of_kustomizations_is_rendered_for_its_error(here: Path) -> None:
    _write(here / "m", {"a/kustomization.yaml": _kustomization("../b"), "b/kustomization.yaml": _kustomization("../a")})
    _write(here / "m", {"a/rendered": POD.replace("NAME", "a")})
    assert _names(read_manifests(["m"])) == ["a"]


def test_without_a_program_there_is_one_error_that_names_the_command(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(here / "m", {f"{n}/kustomization.yaml": _kustomization("x.yaml") for n in "abc"})
    monkeypatch.setenv("PATH", str(here))
    (finding,) = read_manifests(["m"]).reporter.errors
    assert finding.code.id == "EG1041"
    assert finding.help == "run, where one of them is: kustomize build m/a | eastgate ... -f -"


@pytest.mark.parametrize(
    "entry",
    [
        "https://example.com/x.yaml",
        "github.com/owner/repo/path?ref=v1",
        "git@example.com:owner/repo.git",
        "git::https://example.com/repo",
        "example.com/owner/repo//path?ref=main",
        "ssh://git@example.com/repo",
    ],
)
def test_nothing_is_fetched(entry: str, here: Path) -> None:
    _write(here / "m", {"base/kustomization.yaml": _kustomization(entry), "kustomization.yaml": _kustomization("base")})
    (finding,) = read_manifests(["m"]).reporter.errors
    assert finding.code.id == "EG1043"
    assert entry in finding.message
    assert not (here / "m/called").exists()


def test_a_base_outside_of_the_repository_is_not_read(here: Path) -> None:
    _write(here, {"base/kustomization.yaml": _kustomization("x.yaml"), "r/.git/HEAD": "x"})
    _write(here / "r/m", {"kustomization.yaml": _kustomization("../../base"), "rendered": POD})
    assert _codes(read_manifests(["r/m"])) == ["EG1023"]
    assert _codes(read_manifests(["r/m"], bounds=Bounds.of(["r/m"], follow=True))) != ["EG1023"]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("sys.stderr.write('Error: no such thing\\n'); sys.exit(1)", "fails: no such thing"),
        (
            "sys.stderr.write('level=INFO x\\nError: a.yaml:1:2\\n  at <.x>:\\n    no x\\nUse --debug'); sys.exit(1)",
            "fails: a.yaml:1:2 at <.x>: no x",
        ),
        (
            'sys.stderr.write(\'E1119 16:10:54.42   23 run.go:72] "command failed" err=<\\n\\tno such\\n'
            "\\tthing\\n >\\n'); sys.exit(1)",
            "fails: no such thing",
        ),
        ("import time; time.sleep(60)", "takes longer than"),
        ("sys.stdout.write('#' * 3000000)", "writes more than"),
    ],
)
def test_a_program_that_fails_is_an_error(program: str, says: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("x"), "program": program, "rendered": ""})
    monkeypatch.setattr(rendering, "_SECONDS", 1 if "sleep" in program else 60)
    monkeypatch.setattr(rendering, "_MOST_BYTES", 1000 * 1000)
    (finding,) = read_manifests(["m"]).reporter.errors
    assert finding.code.id == "EG1042"
    assert says in finding.message


def test_a_kustomization_is_given_by_its_folder(here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml"), "pod.yaml": POD, "rendered": POD})
    (finding,) = read_manifests(["m/kustomization.yaml"]).reporter.errors
    assert (finding.code.id, finding.help) == ("EG1049", "give its folder, which is rendered: -k m")
    assert _names(read_manifests(["m/pod.yaml"])) == []  # NAME is no name
    _write(here / "empty", {"x": ""})
    assert _codes(read_manifests([Kustomized("empty")])) == ["EG1042"]


def test_an_object_of_another_api_may_be_in_a_file_of_that_name(here: Path) -> None:
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n"
    _write(here / "m", {"kustomization.yaml": flux, "pod.yaml": POD.replace("NAME", "read")})
    assert _names(read_manifests(["m"])) == ["read"]


def test_the_real_program_renders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(map(shutil.which, ("kustomize", "kubectl"))):
        if are_missing("kubectl"):
            give_up("kustomize and kubectl", "install one of them, or Go to build kubectl")
        monkeypatch.setenv("PATH", f"{find('kubectl').parent}{os.pathsep}{os.environ['PATH']}")
    _write(
        tmp_path,
        {
            "base/kustomization.yaml": _kustomization("pod.yaml"),
            "base/pod.yaml": POD.replace("NAME", "base"),
            "overlay/kustomization.yaml": _kustomization(
                "../base", more="namespace: shop\nnamePrefix: my-\npatches: [{path: patch.yaml}]\n"
            ),
            "overlay/patch.yaml": PATCH,
        },
    )
    monkeypatch.chdir(tmp_path)
    manifests = read_manifests(["."])
    assert _codes(manifests) == []
    assert [(one.id.namespace, one.id.name) for one in manifests.objects] == [("shop", "my-base")]
    _write(tmp_path, {"overlay/kustomization.yaml": _kustomization("../base", "nothing.yaml")})
    (finding,) = read_manifests(["."]).reporter.errors
    assert finding.code.id == "EG1042"
