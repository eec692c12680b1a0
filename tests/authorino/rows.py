"""The rows of the conformance suite, and the schemes and requests that Eastgate evaluates for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eastgate.authority.decisions import Decision
from eastgate.convert.authconfigs import auth_config
from eastgate.dialects.kuadrant import schemes
from eastgate.dialects.kuadrant.authorino import evaluate as evaluating
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.dialects.kuadrant.proposal import meaning
from eastgate.dialects.kuadrant.schemes import read_scheme, scheme_from
from eastgate.reading.manifests.node import Node
from eastgate.reports.tables import Case, Table, read_tables, run_tables
from eastgate.settings import Settings
from tests.authorino.effective import effective_config

SUITE = Path(__file__).parents[2] / "conformance" / "AuthPolicy"


@dataclass(frozen=True)
class Evaluated:
    """One scheme, evaluated on one request."""

    scheme: Scheme
    facts: RequestFacts
    judgement: Judgement


@dataclass(frozen=True)
class Row:
    """One case, and every scheme that is evaluated for it."""

    table: Table
    case: Case
    evaluated: tuple[Evaluated, ...]
    decision: Decision

    @property
    def name(self) -> str:
        return f"{self.table.name}: {self.case.name}"

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Return the manifests of the table."""
        plain = self.table.objects.plain() if self.table.objects is not None else []
        return [one for one in plain if isinstance(one, dict)] if isinstance(plain, list) else []

    def secrets(self, namespace: str) -> list[dict[str, Any]]:
        """Return the Secrets of a namespace, to be copied to another."""
        own = [one for one in self.objects if one["kind"] == "Secret" and one["metadata"].get("namespace") == namespace]
        return [{**one, "metadata": {n: v for n, v in one["metadata"].items() if n != "namespace"}} for one in own]


@dataclass
class Recorder:
    """Records evaluations, and the nodes that schemes are read from."""

    patch: pytest.MonkeyPatch
    suite: Path = SUITE
    nodes: dict[object, Node] = field(default_factory=dict)
    _effective: dict[int, tuple[Scheme, Mapping[tuple[str, str], Node]]] = field(default_factory=dict)
    _pending: list[Evaluated] = field(default_factory=list)

    def rows(self) -> Iterator[Row]:
        """Run every table."""
        self._listen()
        tables, reporter = read_tables([self.suite], Settings())
        assert reporter.errors == []
        for table in tables:
            recorded: list[tuple[Evaluated, ...]] = []

            def keep(_done: int, _total: int, recorded: list[tuple[Evaluated, ...]] = recorded) -> None:
                recorded.append(tuple(self._pending))
                self._pending.clear()

            results = run_tables([table], on_case=keep).results
            for case, evaluated, result in zip(
                table.cases, recorded, results[len(results) - len(recorded) :], strict=True
            ):
                assert result.passed, result.problem
                assert result.decision is not None
                yield Row(table, case, _completed(evaluated), result.decision)

    def spec(self, scheme: Scheme) -> dict[str, Any]:
        """Return the AuthConfig for a scheme, or for the effective rules of several policies."""
        if id(scheme) in self._effective:
            return effective_config(self._effective[id(scheme)][1])
        plain = self.nodes[scheme.span].plain()
        assert isinstance(plain, dict)
        return auth_config(plain)

    def _listen(self) -> None:
        evaluate = evaluating.evaluate

        def reading(node: Node, namespace: str) -> Scheme:
            self.nodes[node.span] = node
            return read_scheme(node, namespace)

        def building(parts: Mapping[tuple[str, str], Node], namespace: str, **options: Any) -> Scheme:
            scheme = scheme_from(parts, namespace, **options)
            self._effective[id(scheme)] = (scheme, parts)
            return scheme

        def evaluated(scheme: Scheme, facts: RequestFacts, services: Services, **options: Any) -> Judgement:
            judgement = evaluate(scheme, facts, services, **options)
            self._pending.append(Evaluated(scheme, facts, judgement))
            return judgement

        self.patch.setattr(meaning, "read_scheme", reading)
        self.patch.setattr(schemes, "scheme_from", building)
        self.patch.setattr(evaluating, "evaluate", evaluated)


def in_namespace(spec: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return the AuthConfig for Secrets that have moved to another namespace."""
    compared = '"selector": "auth.identity.metadata.namespace", "operator": "eq", "value": '
    moved: dict[str, Any] = json.loads(json.dumps(spec).replace(f'{compared}"{old}"', f'{compared}"{new}"'))
    return moved


def _completed(evaluated: tuple[Evaluated, ...]) -> tuple[Evaluated, ...]:
    """Return the evaluations without repetitions, and with all attributes known that no question contains."""
    schemes = {id(one.scheme): [two for two in evaluated if two.scheme is one.scheme] for one in evaluated}
    return tuple(one for each in schemes.values() for one in (each if len(each) == 1 else each[1:]))
