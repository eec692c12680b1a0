"""How rows of tables differ from what Istio answers, and which differences are explained, by which ruling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.istio.judging import Answer
from tests.istio.oracle import Answers
from tests.istio.tables import Manifest

FILE = Path(__file__).with_name("differences.yaml")


@dataclass
class Comparison:
    """Compares tables with answers. Every explanation must be needed."""

    explanations: list[dict[str, Any]]
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _used: set[tuple[str, str]] = field(default_factory=set)

    def add(self, answers: Answers) -> None:
        """Compare all rows of a table."""
        table = answers.table
        self.counts["tables"] += 1
        for case, answer in zip(table.cases, answers.cases, strict=True):
            self._note(table.name, case["name"], difference(case, answer), f"{table.origin} {answer.detail}")
        for name, problem in _rejection_differences(answers):
            self._note(table.name, name, problem, table.origin)

    def finish(self, tables: set[str]) -> None:
        """Note the explanations of these tables that nothing needs."""
        for each in self.explanations:
            key = (each["table"], each["case"])
            if each["table"] in tables and key not in self._used:
                self.problems.append(f"{FILE.name}: {each['table']}: {each['case']}: this is not needed any more")

    def _note(self, table: str, row: str, problem: str | None, detail: str) -> None:
        self.counts["rows"] += 1
        if problem is None:
            self.counts["equal"] += 1
        elif any((each["table"], each["case"]) == (table, row) for each in self.explanations):
            self._used.add((table, row))
            self.counts["explained"] += 1
        else:
            self.counts["different"] += 1
            self.problems.append(f"{table}: {row}: {problem} ({detail})")


def read_explanations() -> list[dict[str, Any]]:
    """Read the list of explained differences."""
    explanations: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8")) or []
    assert all(each.keys() == {"table", "case", "ruling", "because"} for each in explanations)
    return explanations


def difference(case: Manifest, answer: Answer) -> str | None:
    """Return how a row differs from an answer; None where it does not."""
    if answer.verdict is None:
        return "Istio cannot be asked"
    if case["expect"] != answer.verdict:
        return f"{case['expect']}, and Istio answers {answer.verdict}"
    if case.get("status", answer.status) != answer.status:
        return f"status {case['status']}, and Istio's is {answer.status}"
    if "by" in case and not answer.is_by(case["by"]):
        return f"{answer.verdict} by {case['by']}, and in Istio by {' or '.join(answer.by)}"
    return None


def _rejection_differences(answers: Answers) -> Iterator[tuple[str, str | None]]:
    """Yield for every policy that one of the two rejects how they differ."""
    expected = {_short(policy) for policy in answers.table.rejects}
    for policy in sorted(expected | answers.rejections.keys()):
        if policy not in answers.rejections:
            yield f"{policy} is rejected", "Istio accepts it"
        elif policy not in expected:
            yield f"{policy} is accepted", f"Istio rejects it: {'; '.join(answers.rejections[policy])}"
        else:
            yield f"{policy} is rejected", None


def _short(policy: str) -> str:
    """Return Kind/namespace/name without the group that a kind may be given with."""
    kind, _, rest = policy.partition("/")
    return f"{kind.partition('.')[0]}/{rest}"
