"""Every row of the Istio tables, answered by real Istio: the same verdict, status and policy, or an explanation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.istio.differences import Comparison, read_explanations
from tests.istio.oracle import Oracle
from tests.istio.tables import read_decision_tables

pytestmark = pytest.mark.istio

ROOT = Path(__file__).parents[2]
OWN = Path(__file__).with_name("tables")
SUITE = ROOT / "conformance" / "Istio"


def compare(oracle: Oracle, folder: Path) -> Comparison:
    comparison = Comparison(read_explanations())
    for answers in oracle.answer(read_decision_tables([folder])):
        comparison.add(answers)
    comparison.finish()
    print("".join(f"\n{number:6} {what}" for what, number in comparison.counts.items()))
    return comparison


@pytest.mark.parametrize("folder", [OWN, SUITE], ids=["own", "conformance"])
def test_every_row_is_as_istio_answers_or_explained(oracle: Oracle, folder: Path) -> None:
    if not folder.is_dir():
        pytest.skip(f"there is no {folder.name}")
    comparison = compare(oracle, folder)
    assert comparison.counts["equal"]
    assert comparison.problems == [], "\n".join(comparison.problems)


def test_every_explanation_is_about_a_row() -> None:
    tables = {table.name: table for table in read_decision_tables(each for each in (OWN, SUITE) if each.is_dir())}
    for name, row in read_explanations().rows:
        cases = {case["name"] for case in tables[name].cases}
        assert row in cases or row.endswith((" is rejected", " is accepted")), (name, row)
