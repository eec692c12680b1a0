"""Changes as sentences. No code parses them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.printable import printable
from eastgate.dialects import HOSTS
from eastgate.dialects.linting import Finding
from eastgate.reach.comparison import DoubtReason
from eastgate.reach.endings import Spelling
from eastgate.reports.diff import codes
from eastgate.reports.diff.model import (
    SPELLINGS,
    ChangedPorts,
    ChangedRequests,
    DiffReport,
    SideVerdict,
    Unproven,
    VerdictChange,
)

_MAX_NAMES = 4


def _names(names: Sequence[str], most: int = _MAX_NAMES) -> str:
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def _ports(ports: ChangedPorts) -> str:
    if ports.every:
        return ""
    numbers = ", ".join(map(str, ports.numbers))
    if not numbers:
        return " any other port" if ports.others else ""
    text = f"{'port' if len(ports.numbers) == 1 else 'ports'} {numbers}"
    return f" {text} and any other" if ports.others else f" {text}"


_ALSO = {
    SPELLINGS[Spelling.ENCODED_SLASH]: "with encoded slashes",
    SPELLINGS[Spelling.RESPELLED]: "with oddly spelled paths",
    SPELLINGS[Spelling.BAD_HOST]: "with an invalid host",
}


def requests_text(requests: ChangedRequests) -> str:
    """Name callers, destinations, ports and the condition."""
    condition = f", {requests.condition}" if requests.condition is not None else ""
    also = [_ALSO[spelling] for spelling in requests.spellings if spelling in _ALSO]
    too = f" (also {' and '.join(also)})" if also and len(also) < len(requests.spellings) and condition else ""
    return f"{_names(requests.caller_words)} to {_names(requests.target_words)}{_ports(requests.ports)}{condition}{too}"


def headline(change: VerdictChange) -> str:
    """Return the sentence that says which requests change."""
    return f"now {'allowed' if change.is_wider else 'denied'}: {requests_text(change.requests)}"


def cause(side: SideVerdict) -> str:
    """Name the rule that decides, or say that no rule does."""
    if side.policy is None:
        return side.reason
    location = f" ({side.span.location})" if side.span is not None else ""
    return f"{side.policy} rule {side.rule}{location}"


def example(change: VerdictChange, report: DiffReport) -> str:
    """Return the example as a command for a shell."""
    return shlex.join(["eastgate", "check", *report.source, *change.example])


_DOUBTS = {
    DoubtReason.REJECTED: "cannot be read; its targets are taken as closed",
    DoubtReason.UNREAD: "is of a kind that is not read",
    DoubtReason.TIME: "there was no time left to compare the rest",
    DoubtReason.NO_TARGET: "has changed, and its targets are not in the manifests",
}


def unproven_text(unproven: Unproven) -> str:
    """Return a sentence with the part that is not proven, and the reason."""
    requests = "" if unproven.requests is None else requests_text(unproven.requests)
    subject = unproven.subject
    match unproven.reason:
        case DoubtReason.TOO_MANY:
            return f"{subject}: there are too many cases to compare"
        case DoubtReason.SHARED_SERVER:
            return f"several routes of {subject} lead to one server, which may read an encoded slash as another's path"
        case DoubtReason.NOT_CONFIRMED:
            now = "allowed" if unproven.now_allowed else "denied"
            return f"may be {now} now: {requests}; no example was found"
        case DoubtReason.SCHEME:
            return f"{subject} has changed, or gets other questions, and decides: {requests}"
        case DoubtReason.LEFT_OUT:
            return f"left out: {subject}"
        case DoubtReason.NETWORK:
            return f"network policies treat other connections differently, such as {subject}"
        case DoubtReason.DERIVED:
            return f"{subject}: it accepts other tokens, or has another address; the effect is unknown"
        case DoubtReason.HOST:
            return f"{subject}: its {HOSTS.kind} is another one now, has changed, or is on one side alone"
        case DoubtReason.LABELS:
            return f"pod:{subject}: policies select it by labels that only a cluster adds"
        case DoubtReason.REJECTED | DoubtReason.UNREAD | DoubtReason.NO_TARGET | DoubtReason.TIME:
            return f"{subject} {_DOUBTS[unproven.reason]}".strip()


def summary(report: DiffReport) -> str:
    """Return the result in one sentence."""
    if report.is_void:
        return "no destination is on both sides: there is nothing to compare"
    if report.equal and report.invented:
        number = f"{report.common} invented workload{'' if report.common == 1 else 's'}"
        return f"no request changes its verdict: proven for every caller and every request to {number}"
    if report.equal:
        number = f"the {report.common} destinations" if report.common != 1 else "the one destination"
        return f"no request changes its verdict: proven for every caller and every request to {number} of both sides"
    parts = []
    if report.changes:
        count = len(report.changes)
        split = f"{report.wider} wider, {report.narrower} narrower"
        parts.append(f"{count} change{'' if count == 1 else 's'}: {split}")
    else:
        parts.append("no change was found")
    if not report.proven:
        parts.append("not proven" if not report.changes else "not proven that these are all")
    return "; ".join(parts)


def workloads_text(report: DiffReport) -> Iterator[str]:
    """Yield a line for the workloads that only one side has."""
    if report.added:
        yield f"only in the new: {_names(report.added, 10)}"
    if report.removed:
        yield f"only in the old: {_names(report.removed, 10)}"


def invented_text(report: DiffReport) -> Iterator[str]:
    """Yield lines for the invented workloads, and for the numbers of their named ports."""
    if not report.invented:
        return
    yield f"no workload is declared: compared on invented ones: {_names(report.invented.names, 6)}"
    for number, name in report.invented.ports:
        yield f"port {number} is the number for the port name {printable(name)}"


# Output for terminals


def lines(report: DiffReport) -> Iterator[str]:
    """Yield the lines. The summary comes last."""
    for change in report.changes:
        yield printable(headline(change))
        yield printable(f"  by {cause(change.new)}") if change.new.policy else printable(f"  {cause(change.new)}")
        yield printable(f"  before: {cause(change.old)}")
        if not report.invented:
            yield printable(f"  example: {example(change, report)}")
        yield ""
    for unproven in report.unproven:
        yield printable(f"not proven: {unproven_text(unproven)}")
    for line in (*workloads_text(report), *invented_text(report)):
        yield printable(line)
    yield printable(summary(report))


# Output as findings, for SARIF and for the annotations of a workflow


def diff_codes() -> dict[str, Code]:
    """Return every code of the findings of a comparison."""
    return {code.id: code for code in (codes.WIDER, codes.NARROWER, codes.NOT_PROVEN)}


def findings(report: DiffReport) -> list[Finding]:
    """Return a finding for each change, at the rule that decides now, or else at the rule that decided before."""
    changes = [_finding(change, report) for change in report.changes]
    return [*changes, *(Finding(codes.NOT_PROVEN, unproven_text(unproven)) for unproven in report.unproven)]


def _finding(change: VerdictChange, report: DiffReport) -> Finding:
    code = codes.WIDER if change.is_wider else codes.NARROWER
    message = f"{headline(change)}; by {cause(change.new)}; before: {cause(change.old)}"
    command = None if report.invented else example(change, report)
    return Finding(code, message, change.new.span, None, change.requests.destinations, command)


# Output as Markdown, for a comment on a pull request


MARK = "<!-- eastgate diff -->"
"""The first line. It marks the comment that the next run replaces."""
_MAX_CHANGES = 50  # changes in a comment


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
        for change in report.changes[:_MAX_CHANGES]:
            yield _row(change)
        if len(report.changes) > _MAX_CHANGES:
            yield ""
            yield f"{len(report.changes) - _MAX_CHANGES} more are left out here."
    if report.changes and not report.invented:
        yield ""
        yield "<details><summary>Examples</summary>"
        yield ""
        for change in report.changes[:_MAX_CHANGES]:
            yield f"- now {'allowed' if change.is_wider else 'denied'}: {_code(example(change, report))}"
        yield ""
        yield "</details>"
    if report.unproven:
        yield ""
        for unproven in report.unproven[:_MAX_CHANGES]:
            yield f"- not proven: {_text(unproven_text(unproven))}"
    for line in (*workloads_text(report), *invented_text(report)):
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
    """Escape markup: names come from manifests of untrusted authors."""
    return "".join(f"&#{ord(c)};" if c in _SPECIAL else c for c in printable(text))


def _code(text: str) -> str:
    """Return a text as code."""
    return f"<code>{_text(text)}</code>"
