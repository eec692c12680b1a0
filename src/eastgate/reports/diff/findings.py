"""A comparison as findings, for SARIF and for the annotations of a workflow."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code
from eastgate.dialects.linting import Finding
from eastgate.reports.diff import codes
from eastgate.reports.diff.model import DiffReport, VerdictChange
from eastgate.reports.diff.words import cause, example, headline, unproven_text


def diff_codes() -> dict[str, Code]:
    """Return every code that a comparison can have."""
    return {code.id: code for code in (codes.WIDER, codes.NARROWER, codes.NOT_PROVEN)}


def findings(report: DiffReport) -> list[Finding]:
    """Return a finding for each change, at the rule that decides now, or else at the one that did."""
    changes = [_finding(change, report) for change in report.changes]
    return [*changes, *(Finding(codes.NOT_PROVEN, unproven_text(unproven)) for unproven in report.unproven)]


def _finding(change: VerdictChange, report: DiffReport) -> Finding:
    code = codes.WIDER if change.is_wider else codes.NARROWER
    message = f"{headline(change)}; by {cause(change.new)}; before: {cause(change.old)}"
    return Finding(code, message, change.new.span, None, change.requests.destinations, example(change, report))
