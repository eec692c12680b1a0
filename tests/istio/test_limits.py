"""Eastgate and Istio agree on all rows, except for the listed limits."""

from __future__ import annotations

from pathlib import Path

from eastgate import Settings
from eastgate.reports.tables import read_tables, run_tables
from tests.istio.differences import read_limits

OWN = Path(__file__).with_name("tables")


def test_eastgate_decides_every_row_but_those_of_its_limits() -> None:
    tables, reporter = read_tables([OWN], Settings())
    assert reporter.errors == [], [error.message for error in reporter.errors]
    results = run_tables(tables).results
    failed = {(result.table.name, result.name) for result in results if not result.passed}
    assert failed == read_limits()
    assert len(results) > 10 * len(failed)
