"""The conformance suites of every dialect, and the examples: every row has the expected answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import Outcome
from eastgate.ir import in_force as in_force_layers
from eastgate.reports.invariants import Statement
from eastgate.reports.tables import Case, Rejection, Run, Table, read_tables, run_tables
from eastgate.reports.tables import run as running
from eastgate.settings import Settings

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "conformance"
FEATURES = (
    "AccessPolicy",
    "AuthConfig",
    "AuthPolicy",
    "Kuadrant",
    "AuthConfig",
    "Istio",
    "Linkerd",
    "AuthorizationPolicyCoreFeatures",
    "AuthorizationPolicyDeny",
    "AuthorizationPolicyHTTP",
    "ClusterAuthorizationPolicy",
    "NetworkPolicy",
    "ClusterNetworkPolicy",
    "AdminNetworkPolicy",
    "Invariant",
)
FILES = sorted(SUITE.rglob("*.yaml"))
EXAMPLES = [path for name in ("*.test.yaml", "*.invariants.yaml") for path in sorted((ROOT / "examples").rglob(name))]
TABLES = [*FILES, *EXAMPLES]

# Ruling 14 is about commands, ruling 27 about how batches are enforced.
RULINGS = (
    frozenset("ABCDEF")
    | {"B2", "B3", "B5"}
    | {
        str(number)
        for number in (
            *range(1, 14),
            *range(20, 27),
            28,
            29,
            *range(30, 35),
            *range(40, 54),
            *range(60, 69),
            *range(70, 77),
        )
    }
)


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


# The scope puts all tests of a file one after the other, so that it is read and decided once for them.
each_file = pytest.mark.parametrize("path", FILES, ids=short, scope="module")
each_table_file = pytest.mark.parametrize("path", TABLES, ids=short, scope="module")


@cache
def tables_in(path: Path) -> tuple[Table, ...]:
    tables, reporter = read_tables([path], Settings())
    assert [str(finding) for finding in reporter] == []
    return tuple(tables)


def rows(path: Path) -> Iterator[tuple[Table, Case | Rejection | Statement]]:
    for table in tables_in(path):
        yield from ((table, case) for case in table.cases)
        yield from [(table, table._statement)] if table._statement is not None else []
        yield from ((table, rejection) for rejection in table.rejects)


@lru_cache(maxsize=4)
def run_of(path: Path) -> Run:
    return run_tables(tables_in(path))


def decisions(path: Path) -> Iterator[tuple[str, Decision]]:
    for result in run_of(path).results:
        if result.decision is not None:
            yield f"{result.span}: {result.table.name}: {result.name}", result.decision


@each_table_file
def test_every_row_is_as_the_documents_demand(path: Path) -> None:
    run = run_of(path)
    failures = [
        f"{result.span}: {result.table.name}: {result.name}\n  {result.problem}\n  it checks: {result.cites}"
        for result in run.results
        if not result.passed
    ]
    assert not failures, "\n" + "\n".join(failures)
    assert len(run.results) == sum(1 for _ in rows(path)) > 0


@each_file
def test_every_row_cites_its_source(path: Path) -> None:
    silent = [f"{row.span}: {table.name}" for table, row in rows(path) if not row.cites]
    assert silent == []


@each_file
def test_every_citation_names_a_document_or_a_ruling(path: Path) -> None:
    known = re.compile(r"(000|001|002|003|004|upstream)[ :].+|ruling ([A-F]|B2|B3|B5|\d+)|“[^“”]+”")
    strange = [
        f"{row.span}: {part}"
        for _, row in rows(path)
        for part in re.split(r"; (?=000 |001 |002 |003 |004 |upstream|ruling |“)", row.cites or "")
        if not known.fullmatch(part)
    ]
    assert strange == []


@each_table_file
def test_the_reference_evaluator_agrees_with_the_engine(path: Path) -> None:
    differing = []
    for name, decision in decisions(path):
        expected = reference.decide(decision.layers, decision.arrival.request)
        if expected.allowed != decision.allowed:
            differing.append(f"{name}: the engine says {decision.verdict}, the reference {expected}")
    assert differing == []


@each_table_file
def test_the_reference_evaluator_names_the_same_rule(path: Path) -> None:
    """Compare the rules of requests without unknown attributes. Other requests may name the rule of any completion."""
    differing = []
    for name, decision in decisions(path):
        request = decision.arrival.request
        if all(layer.looks_at <= request.values.keys() for layer in decision.layers):
            expected = reference.decide(decision.layers, request)
            if expected.rule != decision.outcome.rule:
                differing.append(f"{name}: the engine names {decision.outcome.rule}, the reference {expected.rule}")
    assert differing == []


class Auditing(Authority):
    """An authority with all policies in audit mode."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for policy in self.policies:
            if not isinstance(policy, RejectedPolicy):
                self.update([replace(policy, audit=True)])


@each_table_file
def test_audited_policies_would_decide_as_they_do_in_force(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_force = {name: decision for name, decision in decisions(path) if not is_audited(decision)}
    monkeypatch.setattr(running, "Authority", Auditing)
    audited = run_tables(tables_in(path)).results
    differing = []
    for result in audited:
        name, decision = f"{result.span}: {result.table.name}: {result.name}", result.decision
        if decision is not None and name in in_force:
            expected, would = in_force[name].outcome, decision.would_be
            if (expected.allowed, expected.status, by(expected)) != (would.allowed, would.status, by(would)):
                differing.append(f"{name}: in force {expected}, audited {would}")
            layers, request = in_force_layers(decision.layers), decision.arrival.request
            by_engine = compile_layers(layers).decide(request) & 1 == 1
            if reference.decide(layers, request).allowed is not by_engine:
                differing.append(f"{name}: the engine and the reference differ about policies in audit mode")
    assert differing == []


def is_audited(decision: Decision) -> bool:
    """Return whether a row has policies in audit mode already, or two readings of one request."""
    return any(layer.audit is not None for layer in decision.layers)


def by(outcome: Outcome) -> str | None:
    return None if outcome.rule is None else str(outcome.rule.origin)


@each_file
def test_names_tell_rows_apart(path: Path) -> None:
    names = Counter((table.name, row.name) for table, row in rows(path) if isinstance(row, Case))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_ruling_on_this_api_is_cited() -> None:
    cited = {
        ruling for path in FILES for _, row in rows(path) for ruling in re.findall(r"ruling (\w+)", row.cites or "")
    }
    assert RULINGS - cited == set()
    assert cited - RULINGS == set()


def test_names_tell_tables_apart() -> None:
    names = Counter(table.name for path in FILES for table in tables_in(path))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_feature_has_its_folder() -> None:
    assert {path.relative_to(SUITE).parts[0] for path in FILES} == set(FEATURES)
    readme = (SUITE / "README.md").read_text(encoding="utf-8")
    assert all(feature in readme for feature in FEATURES)
