"""Ends open requests when the policies no longer allow them: a websocket, a long answer, a long upload.

A proxy decides a request once, when it begins. While the request is open, the proxy logs it twice a second. A request
that began before the policies changed is decided again here, by the current policies. If it is denied now, the
connections with requests of its caller at that port are closed.

A gateway decides an MCP request when its body has arrived, by the rules at the time of its headers. If they changed
meanwhile, the request is decided here, for every possible message.

These log lines are never shown or kept: they may hold secrets.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from eastgate.authority.authority import programs_of
from eastgate.authority.live import LiveArrivals, LiveQuestion
from eastgate.authority.questions import EntryPoint, Question, QuestionError, arrivals, ends
from eastgate.basics.records import dataclass
from eastgate.control.deciders import caller_of
from eastgate.control.enforcement import Enforcement
from eastgate.control.events import Enforced, MeshEvent, Noted, OnEvent, PartlyEnforced, Ready
from eastgate.envoy.config.values import noted_values
from eastgate.envoy.plan.decisions import NO_NAME, NOBODY
from eastgate.ir import AssumedConsent, GatheredAnswers, Known, Pending, Request
from eastgate.ir.attributes import BACKEND, MCP_METHOD, MCP_TOOL, PORT, Attribute
from eastgate.ir.symbolic.callers import CallerCell

_UPTAKE_SECONDS = 1.0  # after its ACK, until all threads of a proxy use a change
_CLOSING_SECONDS = 3.0  # for a proxy to close connections, before the next request to do so
_MAX_STILL_ALLOWED = 100_000
_FIELDS = (
    *("peer", "source", "identity", "method", "host", "path", "asked"),
    *("originalHost", "originalPath", "destination", "waiting", "decision", "message", "mcpMethod", "mcpName"),
)
_CLOCK_JUMP_SECONDS = 0.5  # a larger difference means that the clock was set, and times of requests are unknown


@dataclass(frozen=True, slots=True)
class _Settled:
    """The time when a proxy began to decide by the current policies, and the number of their change.

    `clock` is the offset of the wall clock, by which requests begin, from the monotonic one.
    """

    change: int
    at: float
    clock: float


class OpenRequestMonitor:
    """Finds requests that a proxy decided by older policies than the current ones, and decides them again."""

    def __init__(self, enforcement: Enforcement, on_event: OnEvent) -> None:
        self._enforcement = enforcement
        self._on_event = on_event
        self._settled: dict[str, _Settled] = {}
        self._rules_settled: dict[str, _Settled] = {}
        self._ended: dict[tuple[str, int, CallerCell], float] = {}
        self._still_allowed: set[int] = set()

    def on_event(self, event: MeshEvent) -> None:
        """Note which proxies have settled."""
        match event:
            case Ready():
                nodes = self._enforcement.nodes
            case Enforced(touched=touched) | PartlyEnforced(touched=touched):
                nodes = (*touched, *self._enforcement.gateways)
            case _:
                return
        now, clock = time.time(), _clock_offset()
        for node in (each for proxy in nodes for each in self._enforcement.guarded_by(proxy)):
            change, of_rules = self._enforcement.changes_of(node)
            self._settled[node] = _Settled(change, now, clock)
            if node not in self._rules_settled or self._rules_settled[node].change != of_rules:
                self._rules_settled[node] = _Settled(of_rules, now, clock)

    def on_record(self, on_record: Mapping[str, Any]) -> None:
        """Process a record of a proxy's log, and end the request if it is open and no longer allowed."""
        decided = str(on_record.get("decision") or "")
        waits = not decided and bool(on_record.get("waiting"))
        if on_record.get("eastgate") != "open" or not (waits or decided.startswith("200:")):
            return
        node, port, began = str(on_record["workload"]), int(on_record["port"]), float(on_record["began"])
        if node not in self._enforcement.fleet or self._is_current(node, began, waits=waits):
            return
        plan = self._enforcement.plans.of_port(node, port)
        fingerprint = (node, port, self._enforcement.changes_of(node), *(on_record.get(field) for field in _FIELDS))
        if plan.requests is None or hash(fingerprint) in self._still_allowed:
            return
        if self._allowed(on_record, node, port, waits=waits):
            if len(self._still_allowed) >= _MAX_STILL_ALLOWED:
                self._still_allowed.clear()
            self._still_allowed.add(hash(fingerprint))
            return
        peer = _peer(on_record)
        caller = plan.connect.cell(peer)
        ended = self._ended.get((node, port, caller))
        now = time.time()
        if ended is not None and began <= ended and now - ended < _CLOSING_SECONDS:
            return  # it ends already, with all open requests of the caller there
        self._ended[node, port, caller] = now
        self._enforcement.end_requests(node, port, caller)
        settings = self._enforcement.authority.settings
        who = str(caller_of(peer, settings))
        self._on_event(
            Noted(f"the connections of {who} for requests to {node} port {port} were closed: one is no longer allowed")
        )

    def _is_current(self, node: str, began: float, *, waits: bool) -> bool:
        settled = (self._rules_settled if waits else self._settled).get(node)
        change, of_rules = self._enforcement.changes_of(node)
        if settled is None or settled.change != (of_rules if waits else change):
            return False
        return began > settled.at + _UPTAKE_SECONDS and abs(_clock_offset() - settled.clock) < _CLOCK_JUMP_SECONDS

    def _allowed(self, on_record: Mapping[str, Any], node: str, port: int, *, waits: bool) -> bool:
        """Decide by the current policies. Values that the proxy did not note at the begin are unknown."""
        if node in self._enforcement.gateways:
            return self._allowed_at_gateway(on_record, node, port, waits=waits)
        authority = self._enforcement.authority
        workload = authority.world.workloads[node]
        question = self._question(on_record, ends.Pod(workload.namespace, workload.name), port)
        try:
            request = arrivals(question, authority.world, authority.settings)[0].request
        except QuestionError:
            return False
        request = Request({**request.values, **noted_values(str(on_record.get("asked") or ""))}, request.answers)
        return bool(programs_of(authority).decide(node, request) & 1)

    def _allowed_at_gateway(self, on_record: Mapping[str, Any], node: str, port: int, *, waits: bool) -> bool:
        """Decide again about a request through a gateway. Authorizers allowed it when it began, and are not asked
        again.

        For a request that waits for its body, no authorizer has answered yet.
        """
        led_to = str(on_record.get("waiting" if waits else "destination") or "")
        destination = self._enforcement.plans.find_destination(node, port, led_to)
        if destination is None:
            return False
        noted = noted_values(str(on_record.get("asked") or ""))
        values: dict[Attribute, Known] = {**noted, PORT: port, BACKEND: destination.backend_key}
        if on_record.get("message") in ("read", "none"):
            values |= {MCP_METHOD: on_record.get("mcpMethod"), MCP_TOOL: on_record.get("mcpName")}
        entry = EntryPoint(node, destination.points, values)
        live = LiveQuestion(self._question(on_record, entry, port), values, shown_headers=frozenset())
        try:
            answers = GatheredAnswers() if waits else AssumedConsent()
            return LiveArrivals(self._enforcement.authority, live).decide(answers).allowed
        except (Pending, QuestionError):
            return False

    def _question(self, on_record: Mapping[str, Any], to: ends.Destination, port: int) -> Question:
        source = str(on_record.get("source") or "")
        return Question(
            caller_of(_peer(on_record) or on_record.get("identity"), self._enforcement.authority.settings),
            to,
            port,
            method=on_record.get("method"),
            path=on_record.get("originalPath") or on_record.get("path"),
            host=on_record.get("originalHost") or on_record.get("host"),
            source_ip=source.rpartition(":")[0].strip("[]") or None,
        )


def _clock_offset() -> float:
    return time.time() - time.monotonic()


def _peer(on_record: Mapping[str, Any]) -> str | None:
    peer = on_record.get("peer")
    return None if peer in (None, NOBODY, NO_NAME) else str(peer)
