"""A comparison as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.diff.model import DiffReport
from eastgate.reports.diff.words import cause, example, headline, summary, unproven_text, workloads_text


def lines(report: DiffReport) -> Iterator[str]:
    """Yield the lines, the summary last."""
    for change in report.changes:
        yield printable(headline(change))
        yield printable(f"  by {cause(change.new)}") if change.new.policy else printable(f"  {cause(change.new)}")
        yield printable(f"  before: {cause(change.old)}")
        yield printable(f"  example: {example(change, report)}")
        yield ""
    for unproven in report.unproven:
        yield printable(f"not proven: {unproven_text(unproven)}")
    for line in workloads_text(report):
        yield printable(line)
    yield printable(summary(report))
