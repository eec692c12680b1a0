"""Every broken Invariant gets exactly the diagnostics of its golden; `pytest tests/reports --update` rewrites these."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Code, Severity, render_all
from eastgate.reports.invariants import codes
from eastgate.reports.tables import read_tables, run_tables
from eastgate.settings import Settings

HERE = Path(__file__).parent / "broken"
DOCUMENTS = sorted(path.name for path in HERE.glob("*.yaml"))

# Diagnostics of a valid document that depend on the world: tests/cli/test_invariants.py
OF_THE_WORLD = {codes.NAMES_NOTHING, codes.SELECTS_NOTHING}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_broken_document_gets_the_diagnostics_of_its_golden(
    document: str, update: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    tables, reporter = read_tables([document], Settings())
    told = render_all(reporter) + "\n"
    golden = Path(document).with_suffix(".expected")
    if update:
        golden.write_text(told, encoding="utf-8")
    assert told == golden.read_text(encoding="utf-8")
    assert all(diagnostic.span is not None and diagnostic.help for diagnostic in reporter)
    assert run_tables(tables).passed == 0


def test_every_code_is_shown() -> None:
    goldens = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.expected"))
    every = {value for value in vars(codes).values() if isinstance(value, Code)}
    silent = {code.id for code in every - OF_THE_WORLD if f"{Severity.ERROR}[{code.id}]" not in goldens}
    assert silent == set()
