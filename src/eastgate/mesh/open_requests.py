"""Ends requests that are open when the policies stop allowing them: a websocket, a long answer, a long upload.

A proxy decides a request once, when it begins. While it is open the proxy logs it twice a second, and what began before
the policies changed is decided again here, under those that are in force. Where it is denied now, the connections on
which its caller makes requests at that port are closed.

What a proxy logs for this is never shown or kept: it may hold secrets.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eastgate.mesh.deciders import caller_name
from eastgate.mesh.enforcement import Enforcement
from eastgate.mesh.events import Enforced, Event, Noted, OnEvent, PartlyEnforced, Ready
from eastgate.policy import Request
from eastgate.policy.spiffe import spiffe_problem, trust_domain_of
from eastgate.questions import Question, QuestionError, arrivals
from eastgate.symbolic.callers import CallerCell
from eastgate.xds.values import noted_values

__all__ = ["OpenRequests"]

_UPTAKE = 1.0  # seconds from a proxy's word that it took a change until all of its threads decide by it, at most
_CLOSING = 3.0  # seconds that a proxy is given to close connections, before it is told once more
_REMEMBERED = 100_000
_DECIDED_BY = ("peer", "source", "token", "method", "host", "path", "asked")
_CLOCK_SET = 0.5  # seconds; more, and somebody has set the clock: what began when is not known any more


@dataclass(frozen=True, slots=True)
class _Settled:
    """Since when a proxy has decided by what is in force, and the number of the change that brought it.

    `clock` is how far the clock of the day, by which requests begin, was ahead of one that nobody sets.
    """

    change: int
    at: float
    clock: float


class OpenRequests:
    """Knows which requests a proxy has decided by older policies than those in force, and decides them again."""

    def __init__(self, enforcement: Enforcement, on_event: OnEvent) -> None:
        self._enforcement = enforcement
        self._on_event = on_event
        self._settled: dict[str, _Settled] = {}
        self._ended: dict[tuple[str, int, CallerCell], float] = {}
        self._still_allowed: set[int] = set()

    def heard(self, event: Event) -> None:
        """Note that proxies have settled."""
        match event:
            case Ready():
                nodes = tuple(self._enforcement.sites)
            case Enforced(touched=touched) | PartlyEnforced(touched=touched):
                nodes = touched
            case _:
                return
        changes, now, clock = self._enforcement.changes, time.time(), _clock()
        self._settled.update({node: _Settled(changes[node], now, clock) for node in nodes})

    def record(self, record: Mapping[str, Any]) -> None:
        """Take a line of a proxy's log; those that are not about an open request are none of ours."""
        if record.get("eastgate") != "open" or not str(record.get("decision") or "").startswith("200:"):
            return
        node, port, began = str(record["workload"]), int(record["port"]), float(record["began"])
        if node not in self._enforcement.sites or self._decided_by_what_is_in_force(node, began):
            return
        plan = self._enforcement.plan(node, port)
        said = (node, port, self._enforcement.changes[node], *(record.get(one) for one in _DECIDED_BY))
        if plan.requests is None or hash(said) in self._still_allowed:
            return
        if self._allowed(record, node, port):
            if len(self._still_allowed) >= _REMEMBERED:
                self._still_allowed.clear()
            self._still_allowed.add(hash(said))
            return
        peer = _peer(record)
        caller = plan.connect.cell(peer)
        ended = self._ended.get((node, port, caller))
        now = time.time()
        if ended is not None and began <= ended and now - ended < _CLOSING:
            return  # it ends already, with all that the caller has open there
        self._ended[node, port, caller] = now
        self._enforcement.end_requests(node, port, caller)
        settings = self._enforcement.authority.settings
        who = caller_name(peer, settings)
        self._on_event(
            Noted(
                f"the connections of {who} for requests to {node} port {port} were closed: one is not allowed any more"
            )
        )

    def _decided_by_what_is_in_force(self, node: str, began: float) -> bool:
        settled = self._settled.get(node)
        if settled is None or settled.change != self._enforcement.changes[node]:
            return False
        return began > settled.at + _UPTAKE and abs(_clock() - settled.clock) < _CLOCK_SET

    def _allowed(self, record: Mapping[str, Any], node: str, port: int) -> bool:
        """Decide by the policies in force. What the proxy did not note when the request began is unknown."""
        authority = self._enforcement.authority
        workload = authority.world.workloads[node]
        source = str(record.get("source") or "")
        question = Question(
            source=caller_name(_peer(record) or self._claimed(record), authority.settings),
            to=f"pod:{workload.namespace}/{workload.name}",
            port=port,
            method=record.get("method"),
            path=record.get("path"),
            host=record.get("host"),
            source_ip=source.rpartition(":")[0].strip("[]") or None,
        )
        try:
            request = arrivals(question, authority.world, authority.settings)[0].request
        except QuestionError:
            return False
        request = Request({**request.values, **noted_values(str(record.get("asked") or ""))}, request.answers)
        return bool(authority.engine.decide(node, request) & 1)

    def _claimed(self, record: Mapping[str, Any]) -> str | None:
        """Whom a token names, of callers without a certificate."""
        tokens, claimed = self._enforcement.tokens, str(record.get("token") or "")
        if tokens is None or spiffe_problem(claimed) is not None:
            return None
        return claimed if trust_domain_of(claimed) == tokens.trust_domain else None


def _clock() -> float:
    return time.time() - time.monotonic()


def _peer(record: Mapping[str, Any]) -> str | None:
    peer = record.get("peer")
    return None if peer in (None, "none") else str(peer)
