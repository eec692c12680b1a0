"""Findings for machines: JSON, and the annotations of a GitHub workflow. SARIF is in `sarif`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from eastgate.basics.diagnostics import Severity
from eastgate.basics.diagnostics.printable import printable
from eastgate.dialects.linting import Finding
from eastgate.reports.lint.baseline import fingerprint
from eastgate.reports.lint.grouping import FindingGroup, group_findings, singly

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def counted(groups: Sequence[FindingGroup]) -> str:
    """Count the groups of each severity, in words, and the findings if these are more."""
    counts = Counter(group.first.severity for group in groups)
    words = ", ".join(_plural(counts[severity], severity) for severity in Severity if counts[severity])
    places = sum(1 + len(group.others) for group in groups)
    return (words or "no findings") + (f", in {places:,} places" if places > len(groups) else "")


def _plural(count: int, severity: Severity) -> str:
    return f"{count} {severity}" + ("s" if count != 1 and severity is not Severity.INFO else "")


def to_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Return all findings, and how many there are of each severity."""
    counts = Counter(str(finding.severity) for finding in findings)
    return {
        "findings": [{**finding.to_json(), "fingerprint": fingerprint(finding)} for finding in findings],
        "summary": {str(severity): counts[str(severity)] for severity in Severity},
    }


def github(findings: Sequence[Finding], *, grouped: bool = False) -> Iterator[str]:
    """Yield one workflow command for each finding or group, with whatever would end a command early escaped."""
    for group in group_findings(findings) if grouped else singly(findings):
        finding, span = group.first, group.first.span
        fields = {}
        if span is not None:
            fields = {"file": span.file, "line": str(span.line), "col": str(span.column)}
            if span.end_line == span.line:
                fields["endColumn"] = str(span.end_column)
        fields["title"] = f"{finding.code.id} {finding.code.title}"
        properties = ",".join(f"{name}={_property(value)}" for name, value in fields.items())
        lines = [finding.message, group.also and f"also: {group.also}", finding.help, finding.example]
        data = "%0A".join(_data(line) for line in lines if line)
        yield f"::{_LEVELS[finding.severity]} {properties}::{data}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
