"""Events in words: a line for people, an object for programs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from eastgate.authority import Authority
from eastgate.diagnostics import render_all
from eastgate.dialects import registered
from eastgate.mesh.deciders import Decider, Deciders, caller_name
from eastgate.mesh.events import Broken, Decided, Enforced, Event, Noted, NotEnforced, PartlyEnforced, Ready
from eastgate.mesh.modes import Mode
from eastgate.mesh.records import Observed
from eastgate.printable import composed, printable

__all__ = ["Repeats", "Teller", "changes_in_words", "described", "milliseconds"]

_REMEMBERED = 10_000
_SHOWN = 8  # names of workloads in a line


class Teller:
    """Puts events into words. `authority` gives what is in force, to name rules by their lines."""

    def __init__(self, authority: Callable[[], Authority]) -> None:
        self._authority = authority
        self._deciders = Deciders()

    def decider(self, seen: Observed) -> Decider:
        """Who decided."""
        return self._deciders.of(seen, self._authority())

    def caller(self, seen: Observed) -> str:
        """Who called. In a handshake that failed nobody has proved anything."""
        if seen.level == "handshake":
            return "unknown"
        return caller_name(seen.peer, self._authority().settings)

    def to_json(self, event: Event) -> dict[str, object]:
        """The event as plain data."""
        match event:
            case Ready():
                return {"event": "ready", **asdict(event)}
            case Decided(seen, number):
                return {"event": "decided", "number": number, **self.seen_to_json(seen)}
            case Enforced():
                return {"event": "enforced", **_enforced_to_json(event)}
            case PartlyEnforced(closed=closed, missing=missing):
                return {"event": "partlyEnforced", **_enforced_to_json(event), "closed": closed, "missing": missing}
            case Broken(diagnostics):
                return {"event": "broken", "diagnostics": [one.to_json() for one in diagnostics]}
            case NotEnforced():
                return {"event": "notEnforced", **asdict(event)}
            case Noted():
                return {"event": "noted", **asdict(event)}

    def seen_to_json(self, seen: Observed) -> dict[str, object]:
        """A decision of a proxy, and who made it."""
        decider = self.decider(seen)
        return {
            "time": seen.time,
            "level": seen.level,
            "from": self.caller(seen),
            "peer": seen.peer,
            "source": seen.source,
            "to": seen.workload,
            "port": seen.port,
            "verdict": "allow" if seen.allowed else "deny",
            "status": seen.status,
            "method": seen.method,
            "host": seen.host,
            "path": seen.path,
            "decision": seen.decision,
            "policy": decider.policy,
            "rule": decider.rule,
            "file": decider.file,
            "line": decider.line,
            "reason": decider.text,
            "audit": list(seen.audit),
            "detail": seen.detail,
        }

    def line(self, event: Event, *, color: bool = False) -> str:
        """The event as text: one line, and what is wrong in full below it."""
        match event:
            case Ready(workloads, policies, took):
                return f"ready: {_count(workloads, 'workload')}, {_count(policies, 'policy')}, in {milliseconds(took)}"
            case Decided(seen, number):
                return self._decided(seen, number)
            case Enforced(took):
                return printable(f"enforced in {milliseconds(took)}: {'; '.join(_said(event))}")
            case PartlyEnforced(took, closed=closed, missing=missing):
                lacking = f"closed: {', '.join(closed)}" if closed else f"not accepted: {', '.join(missing)}"
                return printable(f"PARTLY enforced in {milliseconds(took)}: {'; '.join([*_said(event), lacking])}")
            case Broken(diagnostics):
                said = render_all(diagnostics, color=color)
                return f"broken: kept the last good policy\n{said}"
            case NotEnforced(message=message):
                return f"NOT ENFORCED: {printable(message)}"
            case Noted(message):
                return composed(message)

    def _decided(self, seen: Observed, number: int) -> str:
        decider = self.decider(seen)
        place = f"  ({decider.place})" if decider.place else ""
        verdict = "allow" if seen.allowed else "deny"
        status = f" {seen.status}" if seen.status else ""
        return printable(
            f"{number:>4}  {seen.time[11:23]}  {verdict}{status}  {self.caller(seen)} -> {seen.workload}:{seen.port} "
            f"{described(seen)}  {decider.text}{place}"
        )


class Repeats:
    """Knows the connections whose requests were told of, so that each call is told of once."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, None] = OrderedDict()

    def is_one(self, seen: Observed) -> bool:
        """Whether this only tells that a connection was let in, of which requests have told more."""
        if seen.source is None:
            return False
        if seen.level == "request":
            self._told[seen.source] = None
            while len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
            return False
        return seen.level == "connection" and seen.allowed and self._told.pop(seen.source, 0) is None


def described(seen: Observed) -> str:
    """What was asked for."""
    if seen.level == "request":
        return f"{seen.method or '?'} {seen.path or '?'}"
    return seen.level


def milliseconds(took: float) -> str:
    """A time that people can read."""
    return f"{took:.0f} ms" if took < 10_000 else f"{took / 1000:.1f} s"


_MODES = {
    Mode.OPEN: "now open to anyone",
    Mode.OPEN_EXCEPT: "now open to anyone whom no policy denies",
    Mode.ALLOW_LIST: "now open only to what a policy allows",
}


def _enforced_to_json(event: Enforced | PartlyEnforced) -> dict[str, object]:
    return {
        "milliseconds": event.milliseconds,
        "touched": event.touched,
        "changed": event.changes.every,
        "added": event.changes.added,
        "removed": event.changes.removed,
        "modes": {workload: {"before": before, "now": now} for workload, (before, now) in event.modes.items()},
    }


def _said(event: Enforced | PartlyEnforced) -> Iterator[str]:
    """What was changed, and for whom."""
    yield from changes_in_words(event)
    yield _touched(event.touched)


def changes_in_words(event: Enforced | PartlyEnforced) -> Iterator[str]:
    """What was added, changed and removed, and whom that lets in or keeps out."""
    changes = event.changes
    for done, names in (("added", changes.added), ("changed", changes.changed), ("removed", changes.removed)):
        if names:
            yield f"{done} {_counted(names)}"
    if not changes.every:
        yield "no policy has another meaning"
    for mode, words in _MODES.items():
        workloads = sorted(workload for workload, (_, now) in event.modes.items() if now is mode)
        if workloads:
            yield f"{words}: {_some(workloads)}"


def _counted(names: Sequence[str]) -> str:
    if len(names) <= 2:
        return ", ".join(names)
    policies = sum(name.partition("/")[0] in registered().policy_kinds for name in names)
    counts = ((policies, "policy"), (len(names) - policies, "object"))
    return " and ".join(_count(number, noun) for number, noun in counts if number)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _touched(touched: tuple[str, ...]) -> str:
    if not touched:
        return "no proxy needed to be told"
    return f"told {', '.join(touched)}" if len(touched) <= 3 else f"told {len(touched)} proxies"


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
