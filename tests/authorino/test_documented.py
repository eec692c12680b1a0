"""Eastgate and Authorino decide drawn requests alike, for documented AuthConfigs and for those of the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.reports.tables import Table, read_tables
from eastgate.settings import Settings
from tests.authorino.asking import ask
from tests.authorino.deciding import decided, table_of
from tests.authorino.differences import DRAWN, Comparison, read_explanations
from tests.authorino.documented import documented
from tests.authorino.drawn_questions import questions
from tests.authorino.requests import Issuers
from tests.authorino.running import Authorino, Manifest
from tests.authorino.serving import is_config, manifests, name_of, serving

pytestmark = pytest.mark.authorino


SUITE = Path(__file__).parents[2] / "conformance" / "AuthConfig"


def table_about(name: str, configs: list[Manifest], secrets: tuple[Manifest, ...], folder: Path) -> Table:
    """Return Eastgate's decisions about drawn requests. Metadata without an answer denies, by ruling 53."""
    cases = [case for config in configs for case in questions(config, secrets)]
    table = decided(table_of(name, [*configs, *secrets], cases, folder))
    fetching = {f"authconfig:{name_of(config)}" for config in configs if "metadata" in config["spec"]}
    cited = (
        replace(case, cites="ruling 53" if str(case.question.destination) in fetching else None) for case in table.cases
    )
    return replace(table, cases=tuple(cited))


def compare(tables: Iterable[Table], authorino: Authorino, issuers: Issuers) -> Comparison:
    comparison = Comparison(read_explanations())
    for table in tables:
        with serving(table, authorino, issuers) as served:
            comparison.add_rejections(table, served)
            for case in table.cases:
                comparison.add(table, case, ask(case.question, served, authorino), served)
    comparison.finish()
    print("".join(f"\n{number:6} {what}" for what, number in comparison.counts.items()))
    assert comparison.counts["equal"]
    return comparison


def test_documented_configs_are_decided_alike(authorino: Authorino, issuers: Issuers, tmp_path: Path) -> None:
    tables = (table_about(each.origin, [each.config], each.secrets, tmp_path) for each in documented())
    comparison = compare(tables, authorino, issuers)
    assert comparison.problems == [], "\n".join(comparison.problems)


def test_configs_of_tables_are_decided_alike(authorino: Authorino, issuers: Issuers, tmp_path: Path) -> None:
    comparison = compare(tables_of_the_suite(tmp_path), authorino, issuers)
    assert comparison.problems == [], "\n".join(comparison.problems)


def tables_of_the_suite(folder: Path) -> Iterator[Table]:
    """Yield the AuthConfigs of the conformance suite, with drawn requests instead of those of their tables.

    AuthConfigs with a cache are left out, because a cached answer would decide the next request.
    """
    for table in read_tables([SUITE], Settings())[0]:
        objects = manifests(table)
        secrets = tuple(each for each in objects if each["kind"] == "Secret")
        superseding = table.settings.section(KuadrantSettings).allow_superseding_host_subsets
        if not (table.rejects or superseding or '"cache"' in json.dumps(objects)):
            yield table_about(f"{DRAWN}{table.name}", list(filter(is_config, objects)), secrets, folder)
