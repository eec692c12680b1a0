"""Findings for machines: JSON, and the annotations of a GitHub workflow. SARIF is in `sarif`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from eastgate.basics.diagnostics import Severity
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.dialects.linting import Finding, enumerated
from eastgate.reading.manifests.codes import DUPLICATE_OBJECT

# Findings for a reader: those with one cause are merged. Of many findings with one code, most are only counted.


_MAX_GROUPS_PER_CODE: Final = 10
_MAX_PLACES: Final = 3
_MAX_OBJECTS: Final = 5  # objects in the sentence about variants


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """A finding, and the others that are shown with it."""

    first: Finding
    others: tuple[Finding, ...] = ()

    @property
    def where(self) -> str | None:
        """Return the environments that have a finding of the group; none if all have it."""
        findings = (self.first, *self.others)
        if not all(finding.environments for finding in findings):
            return None
        names = dict.fromkeys(name for finding in findings for name in finding.environments)
        return enumerated(list(names), _MAX_PLACES)

    @property
    def also(self) -> str | None:
        """Return the number of the others, and the places of the first of them."""
        if not self.others:
            return None
        count = len(self.others)
        return f"{count:,} more: {enumerated([_place(finding) for finding in self.others], _MAX_PLACES)}"

    @property
    def shown(self) -> Finding:
        """Return the finding that represents the group. For variants of files, it names the files and the objects."""
        if self.first.code is not DUPLICATE_OBJECT or not self.others:
            return self.first
        findings = (self.first, *self.others)
        files = list(dict.fromkeys(name for finding in findings for name in _files_of(finding)))
        objects = list(dict.fromkeys(finding.about or "" for finding in findings))
        count = f"{len(objects)} object{'s' if len(objects) > 1 else ''}"
        named = [f"`{printable(name)}`" for name in files]
        where = " and ".join(named) if len(named) == 2 else enumerated(named)
        hold = "hold" if len(named) > 1 else "holds"
        message = f"{where} {hold} variants of {count}: {enumerated(objects, _MAX_OBJECTS)}"
        return replace(self.first, message=message, help=f"{self.first.help}, or read the files apart: --exclude")


def _files_of(finding: Finding) -> list[str]:
    """Return the files of both copies of an object."""
    second = finding.span.file if finding.span is not None else ""
    return [finding.cause or second, second]


def _place(finding: Finding) -> str:
    where = f" ({finding.span.location})" if finding.span is not None else ""
    subject = finding.subjects[0] if finding.subjects else finding.about
    return f"{subject}{where}" if subject else where.strip(" ()") or finding.message


def _causes(findings: Iterable[Finding]) -> dict[str, str]:
    """Return the cause of the variants in each file, which is a file. Variants that share a file have one cause."""
    first: dict[str, str] = {}

    def root(name: str) -> str:
        while (above := first.setdefault(name, name)) != name:
            name = above
        return name

    for finding in findings:
        if finding.code is DUPLICATE_OBJECT:
            one, other = _files_of(finding)
            first[root(other)] = root(one)
    return {name: root(name) for name in first}


def group_findings(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Group findings with one cause, or with the same text, in the order of the first of each group."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    shown: dict[str, list[tuple[str, str]]] = {}  # the groups of each code
    causes = _causes(findings)
    for finding in findings:
        cause = finding.cause or finding.message
        key = (finding.code.id, causes.get(cause, cause) if finding.code is DUPLICATE_OBJECT else cause)
        if key not in groups:
            of_code = shown.setdefault(finding.code.id, [])
            if len(of_code) == _MAX_GROUPS_PER_CODE:
                key = of_code[-1]
            else:
                of_code.append(key)
        groups.setdefault(key, []).append(finding)
    return [FindingGroup(first, tuple(others)) for first, *others in groups.values()]


def singly(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Return each finding as a group of its own."""
    return [FindingGroup(finding) for finding in findings]


# Environments: a finding that several environments have is shown once.


def merge_findings(found: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Return the findings of several environments, each once, with the environments that have it unless all do."""
    merged: dict[object, tuple[Finding, list[str]]] = {}
    for name, findings in found.items():
        for finding in findings:
            span = finding.span
            extent = (span.end_line, span.end_column) if span is not None else None
            about = (finding.sort_key, extent, finding.help, finding.subjects, finding.cause)
            _, names = merged.setdefault(about, (finding, []))
            names += [name] if name not in names else []
    marked = (
        finding if len(names) == len(found) else replace(finding, environments=tuple(names))
        for finding, names in merged.values()
    )
    return sorted(marked, key=lambda finding: finding.sort_key)


# Baselines: a file of accepted findings. Only new findings count. A finding is recognized by its code, its object and
# the text of its lines. The lines may move.


_VERSION = 1

Baseline = Counter[str]
"""The number of findings with each fingerprint."""


class BaselineError(ValueError):
    """Error: a file is not a baseline."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Findings compared with a baseline: the new ones, the accepted ones, and the number of accepted ones
    that are gone.
    """

    new: tuple[Finding, ...]
    known: tuple[Finding, ...]
    gone: int

    @classmethod
    def of(cls, findings: Sequence[Finding], baseline: Baseline) -> BaselineComparison:
        """Compare findings with a baseline.

        If several have one fingerprint, the baseline accepts as many as it counts.
        """
        left = Baseline(baseline)
        new: list[Finding] = []
        known: list[Finding] = []
        for finding in findings:
            print_ = fingerprint(finding)
            (known if left[print_] > 0 else new).append(finding)
            left[print_] -= 1
        return cls(tuple(new), tuple(known), sum(count for count in left.values() if count > 0))


def fingerprint(finding: Finding) -> str:
    """Return a hash of the subject of a finding. It does not change when other lines change."""
    text = " ".join(finding.span.covered.split()) if finding.span is not None else finding.message
    parts = "\n".join((finding.code.id, *finding.subjects[:1], text))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def write_baseline(findings: Sequence[Finding]) -> str:
    """Return a baseline of findings as JSON. It is sorted, so that its changes are readable."""
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
        raise BaselineError(f"it is not a baseline of version {_VERSION}")
    baseline = Baseline()
    for entry in content.get("findings", []):
        print_, count = (entry.get("fingerprint"), entry.get("count")) if isinstance(entry, dict) else (None, None)
        if not isinstance(print_, str) or not isinstance(count, int):
            raise BaselineError("an entry has no fingerprint, or no count")
        baseline[print_] += count
    return baseline


_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def counted(groups: Sequence[FindingGroup]) -> str:
    """Return the counts of groups for each severity as text, and the number of findings if it is larger."""
    counts = Counter(group.first.severity for group in groups)
    words = ", ".join(_plural(counts[severity], severity) for severity in Severity if counts[severity])
    places = sum(1 + len(group.others) for group in groups)
    return (words or "no findings") + (f", in {places:,} places" if places > len(groups) else "")


def _plural(count: int, severity: Severity) -> str:
    return f"{count} {severity}" + ("s" if count != 1 and severity is not Severity.INFO else "")


def to_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Return all findings, and the number for each severity."""
    counts = Counter(str(finding.severity) for finding in findings)
    return {
        "findings": [{**finding.to_json(), "fingerprint": fingerprint(finding)} for finding in findings],
        "summary": {str(severity): counts[str(severity)] for severity in Severity},
    }


def github(findings: Sequence[Finding], *, grouped: bool = False) -> Iterator[str]:
    """Yield one workflow command for each finding or group. Characters that would end a command are escaped."""
    for group in group_findings(findings) if grouped else singly(findings):
        finding, span = group.shown, group.first.span
        fields = {}
        if span is not None:
            fields = {"file": span.file, "line": str(span.line), "col": str(span.column)}
            if span.end_line == span.line:
                fields["endColumn"] = str(span.end_column)
        fields["title"] = f"{finding.code.id} {finding.code.title}"
        properties = ",".join(f"{name}={_property(value)}" for name, value in fields.items())
        where = group.where and f"in: {group.where}"
        lines = [finding.message, where, group.also and f"also: {group.also}", finding.help, finding.example]
        data = "%0A".join(_data(line) for line in lines if line)
        yield f"::{_LEVELS[finding.severity]} {properties}::{data}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
