"""Changes in sentences. No code reads them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from eastgate.dialects import HOSTS
from eastgate.reach.comparison import DoubtReason
from eastgate.reach.endings import Spelling
from eastgate.reports.diff.model import (
    SPELLINGS,
    ChangedPorts,
    ChangedRequests,
    DiffReport,
    SideVerdict,
    Unproven,
    VerdictChange,
)

_MOST_NAMES = 4


def _names(names: Sequence[str], most: int = _MOST_NAMES) -> str:
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
    SPELLINGS[Spelling.BAD_HOST]: "with a host that is none",
}


def requests_text(requests: ChangedRequests) -> str:
    """Name callers, destinations, ports and the condition."""
    condition = f", {requests.condition}" if requests.condition is not None else ""
    also = [_ALSO[spelling] for spelling in requests.spellings if spelling in _ALSO]
    too = f" (also {' and '.join(also)})" if also and len(also) < len(requests.spellings) and condition else ""
    return f"{_names(requests.caller_words)} to {_names(requests.destinations)}{_ports(requests.ports)}{condition}{too}"


def headline(change: VerdictChange) -> str:
    """Say what changes."""
    return f"now {'allowed' if change.is_wider else 'denied'}: {requests_text(change.requests)}"


def cause(side: SideVerdict) -> str:
    """Name the rule that decides, or say that none does."""
    if side.policy is None:
        return side.reason
    location = f" ({side.span.location})" if side.span is not None else ""
    return f"{side.policy} rule {side.rule}{location}"


def example(change: VerdictChange, report: DiffReport) -> str:
    """Return the example as a command that can be pasted."""
    return shlex.join(["eastgate", "check", *report.source, *change.example])


def unproven_text(unproven: Unproven) -> str:
    """Say what is not proven, and why."""
    requests = "" if unproven.requests is None else requests_text(unproven.requests)
    subject = unproven.subject
    match unproven.reason:
        case DoubtReason.TOO_MANY:
            return f"{subject}: there are more cases than are looked at"
        case DoubtReason.SHARED_SERVER:
            return f"several routes of {subject} lead to one server, which may read an encoded slash as another's path"
        case DoubtReason.NOT_CONFIRMED:
            now = "allowed" if unproven.now_allowed else "denied"
            return f"may be {now} now: {requests}; no example was found"
        case DoubtReason.SCHEME:
            return f"{subject} has changed, or is asked otherwise, and decides: {requests}"
        case DoubtReason.REJECTED:
            return f"{subject} cannot be read; what it targets is taken as closed"
        case DoubtReason.UNREAD:
            return f"{subject} is of a kind that is not read"
        case DoubtReason.NETWORK:
            return f"network policies treat other connections differently, such as {subject}"
        case DoubtReason.DERIVED:
            return f"{subject}: other tokens are accepted there, or its address is another; what it changes is unknown"
        case DoubtReason.HOST:
            return f"{subject}: its {HOSTS.kind} is another one now, has changed, or is on one side alone"
        case DoubtReason.TIME:
            return "there was no time left to compare the rest"
        case DoubtReason.LABELS:
            return f"pod:{subject}: policies select it by labels that only a cluster adds"


def summary(report: DiffReport) -> str:
    """Say in one sentence what came out."""
    if report.equal and not report.common:
        return "nothing is on both sides that requests could go to: there is nothing to compare"
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
    """Say what is on one side alone."""
    if report.added:
        yield f"only in the new: {_names(report.added, 10)}"
    if report.removed:
        yield f"only in the old: {_names(report.removed, 10)}"
