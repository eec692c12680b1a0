"""Every AuthConfig of Authorino's documentation and tests, on drawn requests: Eastgate decides as Authorino does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eastgate.reports.tables import Table
from tests.authorino.asking import ask
from tests.authorino.deciding import decided, table_of
from tests.authorino.differences import Comparison, read_explanations
from tests.authorino.documented import Documented, documented
from tests.authorino.drawn_questions import questions
from tests.authorino.requests import Issuers
from tests.authorino.running import Authorino
from tests.authorino.serving import serving

pytestmark = pytest.mark.authorino


def table_about(written: Documented, folder: Path) -> Table:
    """Return what Eastgate decides. Metadata that nobody answers with denies, by ruling 53."""
    cases = questions(written.config, written.secrets)
    table = decided(table_of(written.origin, [written.config, *written.secrets], cases, folder))
    cites = "ruling 53" if "metadata" in written.config["spec"] else None
    return replace(table, cases=tuple(replace(case, cites=cites) for case in table.cases))


def test_documented_configs_are_decided_alike(authorino: Authorino, issuers: Issuers, tmp_path: Path) -> None:
    comparison = Comparison(read_explanations())
    for written in documented():
        table = table_about(written, tmp_path)
        with serving(table, authorino, issuers) as served:
            comparison.add_rejections(table, served)
            for case in table.cases:
                comparison.add(table, case, ask(case.question, served, authorino), served)
    comparison.finish()
    print("".join(f"\n{number:6} {what}" for what, number in comparison.counts.items()))
    assert comparison.counts["equal"]
    assert comparison.problems == [], "\n".join(comparison.problems)
