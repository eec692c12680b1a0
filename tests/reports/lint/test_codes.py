"""Every code is provoked by a minimal manifest, with the text of its golden, and not by a slightly different one."""

from __future__ import annotations

import re

import pytest

from eastgate.reports.lint.inventory import lint_codes
from tests.reports.lint.corpus import CASES, HERE, findings

# A list of tools also provokes the readings of unlistedCaller. A mistake may also close its target.
COMPANIONS = {"EG6026": {"EG6044"}, "EG6125-closed": {"EG6115"}, "EG6126": {"EG6040"}}


@pytest.fixture(autouse=True)
def _paths_start_in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


@pytest.mark.parametrize("case", CASES)
def test_a_manifest_provokes_its_code_and_nothing_else(case: str, update: bool) -> None:
    found = findings(case, "found.yaml")
    said = "\n\n".join(finding.render() for finding in found) + "\n"
    golden = HERE / "cases" / case / "expected.txt"
    if update:
        golden.write_text(said, encoding="utf-8")
    # the reader may have reported its own findings
    ours = {finding.code.id for finding in found if finding.code.id in lint_codes()}
    assert ours - COMPANIONS.get(case, set()) == {case[:6]}
    assert said == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
def test_a_near_miss_does_not(case: str) -> None:
    assert [finding.render() for finding in findings(case, "near-miss.yaml") if finding.code.id == case[:6]] == []


@pytest.mark.parametrize("case", CASES)
def test_a_finding_has_an_underlined_text_a_help_and_subjects(case: str) -> None:
    for finding in findings(case, "found.yaml"):
        assert finding.message
        assert finding.help
        assert finding.span is not None
        assert finding.span.underlined.strip()
        assert finding.subjects
        assert finding.example is None or re.match(r"eastgate check --from \S+ --to \S+", finding.example)


def test_every_code_has_a_case() -> None:
    assert {case[:6] for case in CASES} == set(lint_codes())
