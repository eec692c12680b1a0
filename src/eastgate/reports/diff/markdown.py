"""A comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.diff.model import DiffReport, VerdictChange
from eastgate.reports.diff.words import cause, example, requests_text, summary, unproven_text, workloads_text

MARK = "<!-- eastgate diff -->"
"""The first line, by which a comment is found again that is to be replaced."""
_MOST = 50  # changes that a comment shows


def markdown(report: DiffReport) -> str:
    """Return the whole text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: DiffReport) -> Iterator[str]:
    yield MARK
    yield "### Which requests change their verdict"
    yield ""
    yield f"{_icon(report)} {_text(summary(report))}"
    if report.changes:
        yield ""
        yield "| | requests | now | before |"
        yield "|---|---|---|---|"
        for change in report.changes[:_MOST]:
            yield _row(change)
        if len(report.changes) > _MOST:
            yield ""
            yield f"{len(report.changes) - _MOST} more are left out here."
        yield ""
        yield "<details><summary>Examples</summary>"
        yield ""
        for change in report.changes[:_MOST]:
            yield f"- now {'allowed' if change.is_wider else 'denied'}: {_code(example(change, report))}"
        yield ""
        yield "</details>"
    if report.unproven:
        yield ""
        for unproven in report.unproven[:_MOST]:
            yield f"- not proven: {_text(unproven_text(unproven))}"
    for line in workloads_text(report):
        yield ""
        yield _text(line)


def _icon(report: DiffReport) -> str:
    return ":white_check_mark:" if report.equal else ":warning:"


def _row(change: VerdictChange) -> str:
    verdict = "**allowed**" if change.is_wider else "**denied**"
    cells = (requests_text(change.requests), cause(change.new), cause(change.old))
    return f"| {verdict} | {' | '.join(map(_text, cells))} |"


_SPECIAL = frozenset("\\`*_{}[]<>#|~@!&$")


def _text(text: str) -> str:
    """Return a text in which nothing is markup: names come from manifests that anybody may have proposed."""
    return "".join(f"&#{ord(c)};" if c in _SPECIAL else c for c in printable(text))


def _code(text: str) -> str:
    """Return a text as code."""
    return f"<code>{_text(text)}</code>"
