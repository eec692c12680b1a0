"""The rows of the conformance suite, and what Eastgate evaluates for each: which scheme, on which request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eastgate.authconfig import evaluate as evaluating
from eastgate.authconfig.facts import RequestFacts, Services
from eastgate.authconfig.judgement import Judgement
from eastgate.authconfig.model import Scheme
from eastgate.convert.authconfigs import auth_config
from eastgate.dialects.kuadrant import meaning
from eastgate.settings import Settings
from eastgate.sources.node import Node
from eastgate.tables import Case, Table, read_tables, run_tables

SUITE = Path(__file__).parents[2] / "conformance" / "AuthPolicy"


@dataclass(frozen=True)
class Evaluated:
    """One scheme, evaluated on one request."""

    scheme: Scheme
    facts: RequestFacts
    judgement: Judgement


@dataclass(frozen=True)
class Row:
    """One case, and every scheme that was evaluated for it."""

    table: Table
    case: Case
    evaluated: tuple[Evaluated, ...]

    @property
    def name(self) -> str:
        return f"{self.table.name}: {self.case.name}"


@dataclass
class Recorder:
    """Records evaluations, and the nodes that schemes are read from."""

    patch: pytest.MonkeyPatch
    nodes: dict[object, Node] = field(default_factory=dict)
    _pending: list[Evaluated] = field(default_factory=list)

    def rows(self) -> Iterator[Row]:
        """Run every table."""
        self._listen()
        tables, reporter = read_tables([SUITE], Settings())
        assert reporter.errors == []
        for table in tables:
            recorded: list[tuple[Evaluated, ...]] = []

            def keep(_done: int, _total: int, recorded: list[tuple[Evaluated, ...]] = recorded) -> None:
                recorded.append(tuple(self._pending))
                self._pending.clear()

            run_tables([table], on_case=keep)
            for case, evaluated in zip(table.cases, recorded, strict=True):
                yield Row(table, case, _completed(evaluated))

    def spec(self, scheme: Scheme) -> dict[str, Any]:
        """The AuthConfig for a scheme."""
        plain = self.nodes[scheme.span].plain()
        assert isinstance(plain, dict)
        return auth_config(plain)

    def _listen(self) -> None:
        read_scheme, evaluate = meaning.read_scheme, evaluating.evaluate

        def reading(node: Node, namespace: str) -> Scheme:
            self.nodes[node.span] = node
            return read_scheme(node, namespace)

        def evaluated(scheme: Scheme, facts: RequestFacts, services: Services) -> Judgement:
            judgement = evaluate(scheme, facts, services)
            self._pending.append(Evaluated(scheme, facts, judgement))
            return judgement

        self.patch.setattr(meaning, "read_scheme", reading)
        self.patch.setattr(evaluating, "evaluate", evaluated)


def _completed(evaluated: tuple[Evaluated, ...]) -> tuple[Evaluated, ...]:
    """Without evaluations that were done again, with nothing left open that a question never gives."""
    schemes = {id(one.scheme): [two for two in evaluated if two.scheme is one.scheme] for one in evaluated}
    return tuple(one for each in schemes.values() for one in (each if len(each) == 1 else each[1:]))
