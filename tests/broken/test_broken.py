"""Every broken manifest gets exactly the diagnostics of its golden. `pytest tests/broken --update` writes goldens."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from eastgate.basics.diagnostics import Diagnostic, render_all
from tests.broken.corpus import HERE, MANIFESTS, expected, findings

# Codes whose diagnostics do not (always) have a help. Shorten this list; lengthen it only for a good reason.
HELPLESS = {
    "EG1022": "nothing is to be written: the rest was not read",
}

# Manifests in which one mistake is reported twice: the reader replaces a value that it cannot read, and the
# replacement is then reported, too.
ECHOES = {"manifests/yaml/too-many-findings.yaml"}  # intended: the last finding, and the note that it is the last


@pytest.fixture(autouse=True)
def _paths_start_in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_broken_manifest_gets_the_diagnostics_of_its_golden(manifest: str, update: bool) -> None:
    rendered = render_all(findings(manifest)) + "\n"
    golden = expected(manifest)
    if update:
        golden.write_text(rendered, encoding="utf-8")
    assert golden.exists(), "there is no golden: run pytest tests/broken --update, and read the new file"
    assert rendered == golden.read_text(encoding="utf-8")


def test_every_golden_has_its_manifest() -> None:
    goldens = sorted(HERE.glob("manifests/*/*.expected"))
    assert goldens == sorted(expected(manifest) for manifest in MANIFESTS)


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_every_diagnostic_has_its_code_an_underlined_text_and_a_help(manifest: str) -> None:
    found = findings(manifest)
    assert found, "nothing is wrong with this manifest"
    for diagnostic in found:
        assert re.fullmatch(r"EG\d{4}", diagnostic.code.id)
        assert diagnostic.message
        assert diagnostic.span is not None
        assert diagnostic.span.file == manifest
        assert diagnostic.span.underlined
        assert diagnostic.help or diagnostic.code.id in HELPLESS, render_all([diagnostic])


def test_the_codes_without_a_help_are_those_that_are_listed() -> None:
    helpless = {
        diagnostic.code.id for manifest in MANIFESTS for diagnostic in findings(manifest) if not diagnostic.help
    }
    assert helpless == HELPLESS.keys()


def test_one_mistake_gets_one_diagnostic() -> None:
    assert {manifest for manifest in MANIFESTS if _is_reported_twice(findings(manifest))} == ECHOES


def _is_reported_twice(found: tuple[Diagnostic, ...]) -> bool:
    places = Counter((d.span.line, d.span.column) for d in found if d.span is not None)
    return any(count > 1 for count in places.values())
