"""Findings for a reader: those with one cause are one, and of very many of one code the rest are only counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from eastgate.dialects.linting import Finding, enumerated
from eastgate.records import dataclass

_MOST_OF_ONE_CODE: Final = 10
_MOST_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """A finding, and others that are shown with it."""

    first: Finding
    others: tuple[Finding, ...] = ()

    @property
    def also(self) -> str | None:
        """Return how many others there are, and where the first few of them are."""
        if not self.others:
            return None
        count = len(self.others)
        return f"{count:,} more: {enumerated([_place(finding) for finding in self.others], _MOST_PLACES)}"


def _place(finding: Finding) -> str:
    where = f" ({finding.span.location})" if finding.span is not None else ""
    return f"{finding.subjects[0]}{where}" if finding.subjects else where.strip(" ()") or finding.message


def group_findings(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Group findings, in the order of the first of each group."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    seen: Counter[str] = Counter()
    for finding in findings:
        if finding.cause is not None:
            key: tuple[object, ...] = (finding.code.id, finding.cause)
        else:
            seen[finding.code.id] += 1
            key = (finding.code.id, None, min(seen[finding.code.id], _MOST_OF_ONE_CODE))
        groups.setdefault(key, []).append(finding)
    return [FindingGroup(first, tuple(others)) for first, *others in groups.values()]


def singly(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Return each finding as a group of its own."""
    return [FindingGroup(finding) for finding in findings]
