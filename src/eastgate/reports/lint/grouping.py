"""Findings for a reader: those with one cause are one, and of very many of one code the rest are only counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.linting import Finding, enumerated

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
    """Group findings with one cause, or of the same words, in the order of the first of each group."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    shown: dict[str, list[tuple[str, str]]] = {}  # the groups of each code
    for finding in findings:
        key = (finding.code.id, finding.cause or finding.message)
        if key not in groups:
            of_code = shown.setdefault(finding.code.id, [])
            if len(of_code) == _MOST_OF_ONE_CODE:
                key = of_code[-1]
            else:
                of_code.append(key)
        groups.setdefault(key, []).append(finding)
    return [FindingGroup(first, tuple(others)) for first, *others in groups.values()]


def singly(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Return each finding as a group of its own."""
    return [FindingGroup(finding) for finding in findings]
