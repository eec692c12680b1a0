"""Differences between rows of tables and Authorino's answers, and the rulings that explain them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from eastgate.reports.tables import Case, Table
from tests.authorino.asking import Answer
from tests.authorino.serving import Served

FILE = Path(__file__).with_name("differences.yaml")
DRAWN = "drawn "
"""The prefix of names of tables with drawn requests."""
_NOT_FOUND = 404


@dataclass(frozen=True)
class Explanations:
    """The rulings that explain a denial or an approval by Eastgate, and single rows with their own explanation."""

    stricter: frozenset[str]
    wider: frozenset[str]
    codes: frozenset[str]
    rows: frozenset[tuple[str, str]]


def read_explanations() -> Explanations:
    """Read the explained differences."""
    written = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    rows = written["rows"]
    assert all(row.keys() == {"table", "case", "because"} for row in rows)
    return Explanations(
        frozenset(map(str, written["stricter"])),
        frozenset(map(str, written["wider"])),
        frozenset(written["codes"]),
        frozenset((row["table"], row["case"]) for row in rows),
    )


@dataclass
class Comparison:
    """Compares tables with answers. Every explanation of a single row must be needed."""

    explanations: Explanations
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _tables: set[str] = field(default_factory=set)
    _needed: set[tuple[str, str]] = field(default_factory=set)

    def add(self, table: Table, case: Case, answer: Answer, served: Served) -> None:
        """Compare a row. An AuthConfig that Authorino does not serve denies."""
        self._tables.add(table.name)
        self.counts["rows"] += 1
        problem = difference(case, answer)
        if case.expect == "deny" and answer.status == _NOT_FOUND and _asked(case) in refusals(served):
            self.counts["denied, and Authorino has no such AuthConfig"] += 1
            return
        ruling = self._ruling(case, answer) if problem is not None else None
        if ruling is not None:
            self.counts[f"explained by ruling {ruling}"] += 1
        else:
            self._note(table, case.name, problem, answer.detail)

    def add_rejections(self, table: Table, served: Served) -> None:
        """Compare the AuthConfigs that each side refuses."""
        self._tables.add(table.name)
        codes = {each.policy.partition("/")[2]: each.code for each in table.rejects}
        refused = refusals(served)
        for name in sorted(served.configs):
            if codes.get(name) in self.explanations.codes and name not in refused:
                self.counts[f"refused as {codes[name]}"] += 1
            elif name in codes:
                self._note(table, f"{name} is rejected", None if name in refused else "Authorino serves it", "")
            else:
                self._note(table, f"{name} is accepted", refused.get(name), "")

    def finish(self) -> None:
        """Record the explanations of rows in these tables that are not needed."""
        for table, row in sorted(self.explanations.rows - self._needed):
            if table in self._tables:
                self.problems.append(f"{FILE.name}: {table}: {row}: this is not needed any more")

    def _ruling(self, case: Case, answer: Answer) -> str | None:
        """Return the ruling that a differing row cites. An unknown value may be denied, and never allowed."""
        cited: list[str] = re.findall(r"\bruling ([A-Z]\d*|\d+)\b", case.cites or "")
        if answer.status is None:
            return "A" if "A" in cited and case.expect == "deny" else None
        rulings = self.explanations.stricter if case.expect == "deny" else self.explanations.wider
        return next((each for each in cited if each in rulings), None)

    def _note(self, table: Table, row: str, problem: str | None, detail: str) -> None:
        if problem is None:
            self.counts["equal"] += 1
        elif (table.name, row) in self.explanations.rows:
            self._needed.add((table.name, row))
            self.counts["explained for a row"] += 1
        else:
            self.counts["different"] += 1
            self.problems.append(f"{table.name}: {row}: {problem} ({detail})")


def refusals(served: Served) -> dict[str, str]:
    """Return the AuthConfigs that are not served, with the reason. An AuthConfig with some linked hosts is served."""
    return {name: why for name, why in served.problems.items() if not why.startswith("HostsNotLinked")}


def _asked(case: Case) -> str:
    return str(case.question.destination).partition(":")[2]


def difference(case: Case, answer: Answer) -> str | None:
    """Return the difference between a row and an answer, or None."""
    if answer.status is None:
        return "Authorino cannot be asked"
    verdict = "allow" if answer.status == 200 else "deny"
    if case.expect != verdict:
        return f"{case.expect}, and Authorino answers {answer.status}"
    if case.status is not None and case.status != answer.status:
        return f"status {case.status}, and Authorino's is {answer.status}"
    if answer.served_by is not None and case.by is not None and case.by != f"AuthConfig/{answer.served_by}":
        return f"by {case.by}, and in Authorino by {answer.served_by}"
    if case.by == "none" and answer.status != _NOT_FOUND:
        return f"by none, and Authorino answers {answer.status}"
    return None
