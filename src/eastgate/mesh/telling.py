"""Events in words: a line for people, an object for programs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict

from eastgate.authority import Authority
from eastgate.diagnostics import render_all
from eastgate.mesh.deciders import Decider, Deciders, caller_name
from eastgate.mesh.events import Broken, Decided, Enforced, Event, Noted, NotEnforced, PartlyEnforced, Ready
from eastgate.mesh.records import Observed
from eastgate.printable import composed, printable

__all__ = ["Repeats", "Teller", "described", "milliseconds"]

_REMEMBERED = 10_000


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
            case Decided(seen):
                return {"event": "decided", **self.seen_to_json(seen)}
            case Enforced():
                return {"event": "enforced", **asdict(event)}
            case PartlyEnforced():
                return {"event": "partlyEnforced", **asdict(event)}
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
            case Decided(seen):
                return self._decided(seen)
            case Enforced(took, touched, changed):
                return printable(f"enforced in {milliseconds(took)}: {_changed(changed)}; {_touched(touched)}")
            case PartlyEnforced(took, touched, changed, closed, missing):
                lacking = f"closed: {', '.join(closed)}" if closed else f"not accepted: {', '.join(missing)}"
                said = f"{_changed(changed)}; {_touched(touched)}; {lacking}"
                return printable(f"PARTLY enforced in {milliseconds(took)}: {said}")
            case Broken(diagnostics):
                said = render_all(diagnostics, color=color)
                return f"broken: kept the last good policy\n{said}"
            case NotEnforced(message=message):
                return f"NOT ENFORCED: {printable(message)}"
            case Noted(message):
                return composed(message)

    def _decided(self, seen: Observed) -> str:
        decider = self.decider(seen)
        place = f"  ({decider.place})" if decider.place else ""
        verdict = "allow" if seen.allowed else "deny"
        status = f" {seen.status}" if seen.status else ""
        return printable(
            f"{seen.time[11:23]}  {verdict}{status}  {self.caller(seen)} -> {seen.workload}:{seen.port} "
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


def _changed(changed: tuple[str, ...]) -> str:
    if not changed:
        return "no policy has another meaning"
    shown = ", ".join(changed[:3])
    return shown if len(changed) <= 3 else f"{shown} and {len(changed) - 3} more"


def _touched(touched: tuple[str, ...]) -> str:
    if not touched:
        return "no proxy needed to be told"
    return f"told {', '.join(touched)}" if len(touched) <= 3 else f"told {len(touched)} proxies"


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
