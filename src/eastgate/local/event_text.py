"""Renders events: as a line for people, or as an object for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from eastgate.authority.auditing import Audited
from eastgate.authority.authority import Authority
from eastgate.basics.diagnostics import render_all
from eastgate.basics.diagnostics.printable import composed, printable
from eastgate.control.access_log import Observation
from eastgate.control.capturing import PortMode
from eastgate.control.deciders import DecidedBy, Deciders, caller_of
from eastgate.control.events import (
    BrokenChange,
    Decided,
    Enforced,
    MeshEvent,
    Noted,
    NotEnforced,
    PartlyEnforced,
    Ready,
)
from eastgate.dialects import registered

_MAX_NAMES = 8  # names of workloads in a line


class EventText:
    """Renders events. `authority` returns the authority in force, to name rules by their lines."""

    def __init__(self, authority: Callable[[], Authority]) -> None:
        self._authority = authority
        self._deciders = Deciders()

    def find_decider(self, observation: Observation) -> DecidedBy:
        return self._deciders.decider_of(observation, self._authority())

    def find_audited(self, observation: Observation) -> list[Audited]:
        """Return the effects that audited policies would have had."""
        return self._deciders.audited(observation, self._authority())

    def find_caller(self, observation: Observation) -> str:
        """Return the caller. In a failed handshake, the caller has proved no identity."""
        if observation.level == "handshake":
            return "unknown"
        return str(caller_of(observation.peer, self._authority().settings))

    def to_json(self, event: MeshEvent) -> dict[str, object]:
        match event:
            case Ready():
                return {"event": "ready", **asdict(event)}
            case Decided(observation, number):
                return {"event": "decided", "number": number, **self.observation_to_json(observation)}
            case Enforced():
                return {"event": "enforced", **_enforced_to_json(event)}
            case PartlyEnforced(closed=closed, missing=missing):
                return {"event": "partlyEnforced", **_enforced_to_json(event), "closed": closed, "missing": missing}
            case BrokenChange(diagnostics):
                return {"event": "broken", "diagnostics": [diagnostic.to_json() for diagnostic in diagnostics]}
            case NotEnforced():
                return {"event": "notEnforced", **asdict(event)}
            case Noted():
                return {"event": "noted", **asdict(event)}

    def observation_to_json(self, observation: Observation) -> dict[str, object]:
        decider = self.find_decider(observation)
        return {
            "time": observation.time,
            "level": observation.level,
            "from": self.find_caller(observation),
            "peer": observation.peer,
            "source": observation.source,
            "to": observation.workload,
            "port": observation.port,
            "verdict": "allow" if observation.allowed else "deny",
            "status": observation.status,
            "method": observation.method,
            "host": observation.host,
            "path": observation.path,
            "destination": observation.destination,
            "mcpMethod": observation.mcp_method,
            "tool": observation.tool,
            "asked": observation.asked,
            "decision": observation.decision,
            "policy": decider.policy,
            "rule": decider.rule,
            "file": decider.file,
            "line": decider.line,
            "reason": decider.text,
            "audit": list(observation.audit),
            "audited": [each.to_json() for each in self.find_audited(observation)],
            "detail": observation.detail,
        }

    def line(self, event: MeshEvent, *, color: bool = False) -> str:
        """Render an event as one line, with diagnostics in full below it."""
        match event:
            case Ready(workloads, policies, took, gateways):
                return f"ready: {describe_size(workloads, gateways, policies)}, in {format_milliseconds(took)}"
            case Decided(observation, number):
                return self._decided_line(observation, number)
            case Enforced(took):
                return printable(f"enforced in {format_milliseconds(took)}: {'; '.join(_describe_enforced(event))}")
            case PartlyEnforced(took, closed=closed, missing=missing):
                lacking = f"closed: {', '.join(closed)}" if closed else f"not accepted: {', '.join(missing)}"
                parts = [*_describe_enforced(event), lacking]
                return printable(f"PARTLY enforced in {format_milliseconds(took)}: {'; '.join(parts)}")
            case BrokenChange(diagnostics):
                text = render_all(diagnostics, color=color)
                return f"broken: kept the last good policy\n{text}"
            case NotEnforced(message=message):
                return f"NOT ENFORCED: {printable(message)}"
            case Noted(message):
                return composed(message)

    def _decided_line(self, observation: Observation, number: int) -> str:
        decider = self.find_decider(observation)
        position = f"  ({decider.position})" if decider.position else ""
        verdict = "allow" if observation.allowed else "deny"
        status = f" {observation.status}" if observation.status else ""
        line = printable(
            f"{number:>4}  {observation.time[11:23]}  {verdict}{status}  {self.find_caller(observation)} -> "
            f"{observation.workload}:{observation.port} {describe_call(observation)}  {decider.text}{position}"
        )
        return "\n".join([line, *(printable(f"      {each.line}") for each in self.find_audited(observation))])


def describe_call(observation: Observation) -> str:
    """Describe the called method and path, with the MCP message of a gateway, or the level."""
    if observation.level == "request":
        http = f"{observation.method or '?'} {observation.path or '?'}"
        return " ".join([http, *(part for part in (observation.mcp_method, observation.tool) if part)])
    return observation.level


def describe_size(workloads: int, gateways: int, policies: int) -> str:
    """Describe the numbers of objects in a mesh."""
    counts = [(workloads, "workload"), *([(gateways, "gateway")] if gateways else []), (policies, "policy")]
    return ", ".join(_count(number, noun) for number, noun in counts)


def format_milliseconds(took: float) -> str:
    return f"{took:.0f} ms" if took < 10_000 else f"{took / 1000:.1f} s"


_MODES = {
    PortMode.OPEN: "now open to all callers",
    PortMode.OPEN_EXCEPT: "now open to all callers that no policy denies",
    PortMode.ALLOW_LIST: "now open only to callers that a policy allows",
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


def _describe_enforced(event: Enforced | PartlyEnforced) -> Iterator[str]:
    """Describe the changes, and the proxies that enforce them."""
    yield from describe_changes(event)
    yield _describe_touched(event.touched)


def describe_changes(event: Enforced | PartlyEnforced) -> Iterator[str]:
    """Describe added, changed and removed policies, and ports that are now open to more or fewer callers."""
    changes = event.changes
    for done, names in (("added", changes.added), ("changed", changes.changed), ("removed", changes.removed)):
        if names:
            yield f"{done} {_count_names(names)}"
    if not changes.every:
        yield "no policy changed its meaning"
    for mode, words in _MODES.items():
        workloads = sorted(workload for workload, (_, now) in event.modes.items() if now is mode)
        if workloads:
            yield f"{words}: {_shorten(workloads)}"


def _count_names(names: Sequence[str]) -> str:
    if len(names) <= 2:
        return ", ".join(names)
    policies = sum(name.partition("/")[0] in registered().policy_kinds for name in names)
    counts = ((policies, "policy"), (len(names) - policies, "object"))
    return " and ".join(_count(number, noun) for number, noun in counts if number)


def _shorten(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _describe_touched(touched: tuple[str, ...]) -> str:
    if not touched:
        return "no proxy needed an update"
    return f"updated {', '.join(touched)}" if len(touched) <= 3 else f"updated {len(touched)} proxies"


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("cy") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
