"""Differences between rows of tables and Istio's answers, and the rulings that explain them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.istio.judging import Answer
from tests.istio.oracle import Answers
from tests.istio.tables import Manifest

FILE = Path(__file__).with_name("differences.yaml")


@dataclass(frozen=True)
class Explanations:
    """The rulings that rows may cite for a difference, and single rows, by table and case."""

    rulings: frozenset[str]
    rows: frozenset[tuple[str, str]]


def read_limits() -> frozenset[tuple[str, str]]:
    """Return the rows, by table and case, with another decision of Eastgate than of Istio."""
    limits = yaml.safe_load(FILE.read_text(encoding="utf-8"))["limits"]
    assert all(row.keys() == {"table", "case", "because"} for row in limits)
    return frozenset((row["table"], row["case"]) for row in limits)


def read_explanations() -> Explanations:
    """Read the explained differences."""
    written = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    rows = written["rows"]
    assert all(row.keys() == {"table", "case", "ruling", "because"} for row in rows)
    return Explanations(frozenset(written["rulings"]), frozenset((row["table"], row["case"]) for row in rows))


@dataclass
class Comparison:
    """Compares tables with answers. Every explanation of a single row must be needed."""

    explanations: Explanations
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _tables: set[str] = field(default_factory=set)
    _needed: set[tuple[str, str]] = field(default_factory=set)

    def add(self, answers: Answers) -> None:
        """Compare all rows of a table."""
        table = answers.table
        self._tables.add(table.name)
        for case, answer in zip(table.cases, answers.cases, strict=True):
            problem = difference(case, answer)
            ruling = explaining_ruling(case, answer) if problem is not None else None
            if ruling in self.explanations.rulings:
                self.counts[f"explained by ruling {ruling}"] += 1
            else:
                self._note(table.name, case["name"], problem, f"{table.origin} {answer.detail}")
        for name, problem in _rejection_differences(answers):
            self._note(table.name, name, problem, table.origin)

    def finish(self) -> None:
        """Record the unused explanations of rows of these tables."""
        for table, row in sorted(self.explanations.rows - self._needed):
            if table in self._tables:
                self.problems.append(f"{FILE.name}: {table}: {row}: this is not needed any more")

    def _note(self, table: str, row: str, problem: str | None, detail: str) -> None:
        if problem is None:
            self.counts["equal"] += 1
        elif (table, row) in self.explanations.rows:
            self._needed.add((table, row))
            self.counts["explained for a row"] += 1
        else:
            self.counts["different"] += 1
            self.problems.append(f"{table}: {row}: {problem} ({detail})")


def difference(case: Manifest, answer: Answer) -> str | None:
    """Return the difference between a row and an answer, or None."""
    if answer.verdict is None:
        return "Istio cannot be asked"
    if case["expect"] != answer.verdict:
        return f"{case['expect']}, and Istio answers {answer.verdict}"
    if case.get("status", answer.status) != answer.status:
        return f"status {case['status']}, and Istio's is {answer.status}"
    if "by" in case and not answer.is_by(case["by"]):
        return f"{answer.verdict} by {case['by']}, and in Istio by {' or '.join(answer.by)}"
    return None


def explaining_ruling(case: Manifest, answer: Answer) -> str | None:
    """Return the ruling that a differing row cites. An unknown verdict may become a denial, but never an allow."""
    cited: list[str] = re.findall(r"\bruling ([A-Z]\d*)\b", case.get("cites") or "")
    if "A" in cited and (answer.verdict is None or case["expect"] == "deny"):
        return "A"
    return next((ruling for ruling in cited if ruling != "A"), None)


def _rejection_differences(answers: Answers) -> Iterator[tuple[str, str | None]]:
    """Yield the difference for every policy that only one of the two rejects."""
    expected = {_short(policy) for policy in answers.table.rejects}
    for policy in sorted(expected | answers.rejections.keys()):
        if policy not in answers.rejections:
            yield f"{policy} is rejected", "Istio accepts it"
        elif policy not in expected:
            yield f"{policy} is accepted", f"Istio rejects it: {'; '.join(answers.rejections[policy])}"
        else:
            yield f"{policy} is rejected", None


def _short(policy: str) -> str:
    """Return Kind/namespace/name without the optional group of the kind."""
    kind, _, rest = policy.partition("/")
    return f"{kind.partition('.')[0]}/{rest}"
