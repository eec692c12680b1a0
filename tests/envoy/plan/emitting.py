"""From manifests to the configuration of one port, and the verdicts of interpreter and engine about a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from eastgate import Authority, Question
from eastgate.authority.authority import programs_of
from eastgate.control.sites import KnownIdentities
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.sidecar import inbound_resources, shared_resources
from eastgate.envoy.plan import PortPlan, plan_port
from eastgate.envoy.server.resources import XdsResource
from tests.differential.asking import Ask
from tests.differential.judging import expected_name, outcomes
from tests.envoy.plan.interpreter import Interpreter, Said, Sent

__all__ = ["difference", "emitted", "plan_of", "sent_of"]

Manifest = dict[str, Any]
_REFUSED = ("unclear-values", "cannot-be-enforced")  # see the table of intended differences


def plan_of(authority: Authority, workload: str, port: int) -> PortPlan:
    known = KnownIdentities(authority.world, authority.settings).all
    return plan_port(programs_of(authority).program(workload).layers, port, authority.settings, known)


def emitted(authority: Authority, workload: str, port: int) -> list[XdsResource]:
    door, plan = InboundPort(workload, "127.0.0.1", port, port), plan_of(authority, workload, port)
    return list(inbound_resources(door, plan, SocketAddress("/app"), shared_resources(plan)))


def sent_of(ask: Ask) -> Sent:
    """Bytes beyond ASCII in the first line are not HTTP to Envoy's inspector."""
    if ask.http is None or not ask.is_plain:
        return Sent(ask.caller.identity, ask.caller.address)
    http = ask.http
    headers = tuple((name, value) for name, value in http.headers if name.lower() != "host")
    return Sent(ask.caller.identity, ask.caller.address, http.method, http.target, http.hosts, headers)


def difference(authority: Authority, question: Question, proxy_outcome: Said, *, http: bool) -> str | None:
    """The difference between interpreter and engine, or None."""
    decision = authority.decide(question)
    if proxy_outcome.allowed != decision.allowed:
        meant = not proxy_outcome.allowed and (
            proxy_outcome.who in _REFUSED or not proxy_outcome.names or not (question.path or "").isascii()
        )
        return None if meant else f"interpreted: {proxy_outcome}, decided: {decision.verdict}, {decision.reason}"
    if not http or proxy_outcome.who in _REFUSED or not proxy_outcome.names:
        return None
    expected = outcomes(decision)
    if (
        not proxy_outcome.allowed
        and proxy_outcome.status
        and proxy_outcome.status not in {one.status or proxy_outcome.status for one in expected}
    ):
        return f"interpreted: {proxy_outcome}, decided: {decision.status}"
    if not any(re.fullmatch(expected_name(one), proxy_outcome.who) for one in expected):
        return f"interpreted: {proxy_outcome.who}, decided by: {expected_name(decision.outcome)}"
    return None


def interpreters(authority: Authority, workloads: Sequence[str], ports: Sequence[int]) -> dict[Any, Interpreter]:
    return {(one, port): Interpreter(emitted(authority, one, port), port) for one in workloads for port in ports}
