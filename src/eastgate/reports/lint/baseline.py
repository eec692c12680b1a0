"""Baselines: the findings that a project has accepted, in a file. Only new ones count.

A finding is recognized by its code, the object that it is about and the text that it is about, all lines of it. Lines
may move.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from eastgate.basics.records import dataclass
from eastgate.dialects.linting import Finding

_VERSION = 1

Baseline = Counter[str]
"""How many findings have each fingerprint."""


class BaselineError(ValueError):
    """A file that is not a baseline."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Findings beside a baseline: the new ones, those that it has, and how many of its own are gone."""

    new: tuple[Finding, ...]
    known: tuple[Finding, ...]
    gone: int

    @classmethod
    def of(cls, findings: Sequence[Finding], baseline: Baseline) -> BaselineComparison:
        """Compare findings with a baseline. Of several with one fingerprint, as many are known as it has."""
        left = Baseline(baseline)
        new: list[Finding] = []
        known: list[Finding] = []
        for finding in findings:
            print_ = fingerprint(finding)
            (known if left[print_] > 0 else new).append(finding)
            left[print_] -= 1
        return cls(tuple(new), tuple(known), sum(count for count in left.values() if count > 0))


def fingerprint(finding: Finding) -> str:
    """Return a hash of what a finding is about, which stays the same when other things change."""
    text = " ".join(finding.span.covered.split()) if finding.span is not None else finding.message
    parts = "\n".join((finding.code.id, *finding.subjects[:1], text))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def write_baseline(findings: Sequence[Finding]) -> str:
    """Return a baseline of findings as JSON: sorted, so that a change of it can be read."""
    entries = sorted(((finding.code.id, *finding.subjects[:1]), fingerprint(finding)) for finding in findings)
    counted = Counter(entries)
    listed = [
        {"code": about[0], "object": " ".join(about[1:]), "fingerprint": print_, "count": count}
        for (about, print_), count in sorted(counted.items())
    ]
    return json.dumps({"version": _VERSION, "findings": listed}, indent=2) + "\n"


def read_baseline(text: str) -> Baseline:
    """Read a baseline. Raises BaselineError."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise BaselineError("it is not JSON") from error
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise BaselineError(f"it is no baseline of version {_VERSION}")
    baseline = Baseline()
    for entry in content.get("findings", []):
        print_, count = (entry.get("fingerprint"), entry.get("count")) if isinstance(entry, dict) else (None, None)
        if not isinstance(print_, str) or not isinstance(count, int):
            raise BaselineError("an entry has no fingerprint, or no count")
        baseline[print_] += count
    return baseline
