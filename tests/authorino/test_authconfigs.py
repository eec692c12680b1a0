"""A real Authorino gives every row about AuthConfigs the same verdict and status, or the difference is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.reports.tables import read_tables
from eastgate.settings import Settings
from tests.authorino.asking import ask
from tests.authorino.differences import DRAWN, Comparison, read_explanations
from tests.authorino.documented import documented
from tests.authorino.requests import Issuers
from tests.authorino.running import Authorino
from tests.authorino.serving import serving

pytestmark = pytest.mark.authorino

SUITE = Path(__file__).parents[2] / "conformance" / "AuthConfig"


def test_every_row_is_as_authorino_answers_or_explained(either_authorino: Authorino, issuers: Issuers) -> None:
    tables, reporter = read_tables([SUITE], Settings())
    assert reporter.errors == []
    authorino = either_authorino
    comparison = Comparison(read_explanations())
    for table in tables:
        if table.settings.section(KuadrantSettings).allow_superseding_host_subsets != authorino.supersedes:
            continue
        with serving(table, authorino, issuers) as served:
            comparison.add_rejections(table, served)
            for case in table.cases:
                comparison.add(table, case, ask(case.question, served, authorino), served)
    comparison.finish()
    print("".join(f"\n{number:6} {what}" for what, number in comparison.counts.items()))
    assert comparison.counts["equal"]
    assert comparison.problems == [], "\n".join(comparison.problems)


def test_every_explanation_is_about_a_row() -> None:
    tables = {table.name: table for table in read_tables([SUITE], Settings())[0]}
    others = {written.origin for written in documented()}
    for name, row in read_explanations().rows:
        if name in others:
            continue
        cases = {case.name for case in tables[name.removeprefix(DRAWN)].cases}
        assert row in cases or row.endswith((" is rejected", " is accepted")), (name, row)
