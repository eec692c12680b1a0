"""Texts of warnings: each names in one short line what a change opens, closes or leaves unknown. No code parses them.

Kubernetes recommends lines of at most 120 characters, and cuts off all warnings together after 4096 bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from eastgate.basics.diagnostics.printable import printable
from eastgate.cluster import World
from eastgate.reach.destinations import DestinationKind
from eastgate.reports.diff.model import ChangedPorts, DiffReport, VerdictChange
from eastgate.reports.diff.words import unproven_text

MAX_LINE_CHARS = 120
MAX_WARNING_BYTES = 4096
_RESERVED_BYTES = 160  # for the line with the number of omitted warnings
_MAX_NAMES = 3


def warnings_of(report: DiffReport, world: World, doubts: Iterable[str] = ()) -> Iterator[str]:
    """Yield warnings: the openings of a change, unproven parts and `doubts`, closings, and new destinations."""
    opening = [change for change in report.changes if change.is_wider]
    closing = [change for change in report.changes if not change.is_wider]
    yield from (_reaching(change, "can now reach", world) for change in opening)
    yield from (line(f"not proven: {doubt}") for doubt in doubts)
    yield from (line(f"not proven: {unproven_text(unproven)}") for unproven in report.unproven)
    yield from (_reaching(change, "can no longer reach", world) for change in closing)
    new = [name for name in report.added if not name.startswith(f"{DestinationKind.POD}:")]
    if new:
        yield line(f"new, and not compared with anything: {_listed(new, _MAX_NAMES)}")


def _reaching(change: VerdictChange, verb: str, world: World) -> str:
    """Return the longest of several texts that fits into a line."""
    requests = change.requests
    callers = [word.removeprefix("sa:") for word in requests.caller_words]
    destinations = _destinations(requests.destinations, world)
    ports = _ports(requests.ports)
    beside = " and other ports" if ports and requests.ports.others else ""
    condition = f", {requests.condition}" if requests.condition is not None else ""
    short = ", for some requests" if condition else ""
    texts = [
        f"{_listed(callers, names)} {verb} {_listed(destinations, names, ports)}{beside}{when}"
        for when in dict.fromkeys((condition, short))
        for names in range(_MAX_NAMES, 0, -1)
    ]
    return next((text for text in map(printable, texts) if len(text) <= MAX_LINE_CHARS), line(texts[-1]))


def _listed(names: Sequence[str], most: int, suffix: str = "") -> str:
    shown = [f"{name}{suffix}" for name in names[: most if len(names) > most else len(names)]]
    more = len(names) - len(shown)
    return f"{', '.join(shown)} and {more} more" if more else ", ".join(shown)


def _ports(ports: ChangedPorts) -> str:
    if ports.every or not ports.numbers:
        return ""
    return f":{','.join(map(str, ports.numbers))}"


def _destinations(names: Iterable[str], world: World) -> list[str]:
    """Return short names of destinations: a Service for all its pods, `namespace/*` for all pods of a namespace."""
    pods = [
        name.removeprefix(f"{DestinationKind.POD}:") for name in names if name.startswith(f"{DestinationKind.POD}:")
    ]
    others = [name for name in names if not name.startswith(f"{DestinationKind.POD}:")]
    words: dict[str, None] = {}
    left = dict.fromkeys(pods)
    sizes = Counter(key.partition("/")[0] for key in world.workloads) if len(pods) > 1 else Counter[str]()
    for namespace, number in Counter(key.partition("/")[0] for key in pods).items():
        mine = [key for key in left if key.partition("/")[0] == namespace]
        if 1 < number == sizes[namespace]:
            words[f"{namespace}/*"] = None
        else:
            words |= dict.fromkeys(_by_service(mine, world))
    return [*words, *others]


def _by_service(pods: Sequence[str], world: World) -> Iterator[str]:
    """Yield the Services whose pods are all among these, and the other pods."""
    left = dict.fromkeys(pods)
    for pod in pods:
        if pod not in left:
            continue
        whole = (key for key in sorted(world.services_of(pod)) if all(other in left for other in world.pods_of(key)))
        service = next(whole, None)
        yield service if service is not None else pod
        for member in world.pods_of(service) if service is not None else (pod,):
            left.pop(member, None)


def line(text: str) -> str:
    """Return a text as one line, cut to the maximum length."""
    text = " ".join(printable(text).split())
    return text if len(text) <= MAX_LINE_CHARS else f"{text[: MAX_LINE_CHARS - 1]}…"


def limited(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that an API server passes on, with the number of omitted ones."""
    kept: list[str] = []
    given = list(dict.fromkeys(warnings))
    size = 0
    for number, warning in enumerate(given):
        size += len(warning.encode())
        if size > MAX_WARNING_BYTES - _RESERVED_BYTES:
            return (*kept, f"and {len(given) - number} more; eastgate diff lists all of them")
        kept.append(warning)
    return tuple(kept)
