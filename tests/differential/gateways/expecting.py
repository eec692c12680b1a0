"""The expected result of a request: its route, the engine's decision there, and the request at the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eastgate import Authority, Decision, Question
from eastgate.authority.authority import programs_of
from eastgate.authority.live import LiveArrivals, LiveQuestion
from eastgate.authority.questions import EntryPoint, request_values
from eastgate.cluster.points import DeadEnd
from eastgate.cluster.routing import Routed, RoutingTable
from eastgate.cluster.routing.journey import beyond, points_of, server_of
from eastgate.cluster.targets import GatewayNamed
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.ir import AssumedConsent, GatheredAnswers, Known, Pending, Request, Unroutable
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import BACKEND, PORT, SNI, Attribute, header, query
from tests.cluster.routing.building import possible_routes
from tests.differential.gateways.asking import GatewayAsk
from tests.differential.gateways.world import GATEWAY

__all__ = ["Expected", "denied_elsewhere", "expect", "may_call", "route_of"]

_POINT = GatewayNamed("n", "g")
_KEY = "n/g"


@dataclass(frozen=True, slots=True)
class Expected:
    """The decision that counts: the first denial, or the last allow. `routed` is the rule that routes the request."""

    decision: Decision
    routed: Routed | None


def route_of(authority: Authority, question: Question) -> Routed | None:
    """Return the rule that routes a request, in the engine's routing."""
    gateway = authority.world.gateways[_KEY]
    routes = possible_routes(authority.world, gateway, _request(authority, question))
    assert len(routes) == 1, f"all is known of {question}, and {len(routes)} ways are possible"
    return routes[0]


def _request(authority: Authority, question: Question) -> Request:
    values = {**request_values(question), PORT: question.port}
    if question.sni is None:
        values[SNI] = None
    for attribute in _looked_at(authority):
        values.setdefault(attribute, None)  # no other attribute is sent
    return Request(values)


def _looked_at(authority: Authority) -> list[Attribute]:
    matches = [match for route in authority.world.routes.values() for rule in route.rules for match in rule.matches]
    calls = [match for route in authority.world.routes.values() for rule in route.grpc_rules for match in rule.matches]
    named = [header(value.name) for match in matches for value in match.headers]
    named += [header(value.name) for match in calls for value in match.headers]
    return [*named, *(query(value.name) for match in matches for value in match.query)]


def denied_elsewhere(authority: Authority, ask: GatewayAsk, taken: GatewayDestination) -> str | None:
    """Return why a request with an unknown path is denied on another route to the same server, or None."""
    questions, world = ask.questions(), authority.world
    server = server_of(taken.backend, world) if taken.backend is not None else None
    table = RoutingTable.of(world, world.gateways[_KEY])
    for routed in table.possible_whatever_the_path(_request(authority, questions[0])):
        if routed == taken.routed:
            continue  # the weights choose its other backends, for any path
        entries = _entries(authority, routed, ask)
        for (entry, _), ref in zip(entries, routed.backends, strict=False):
            if len(entries) == len(routed.backends) and server_of(ref, world) == server:
                decision = _decide_all(authority, questions, entry)
                if not decision.allowed:
                    return decision.reason
    return None


def expect(authority: Authority, ask: GatewayAsk, drawn: GatewayDestination | None) -> list[Expected]:
    """Return the engine's decision for each destination that weights may choose, or for the chosen one."""
    questions = ask.questions()
    routed = route_of(authority, questions[0])
    expected = []
    for entry, index in _entries(authority, routed, ask):
        if drawn is None or drawn.routed is None or drawn.id.endswith(f".{index}"):
            expected.append(Expected(_decide_all(authority, questions, entry), routed))
    return expected


def may_call(authority: Authority, ask: GatewayAsk, tool: str, drawn: GatewayDestination) -> bool:
    """Return whether the engine allows the caller to call a tool at that destination if every authorizer allows."""
    [question] = ask.questions()
    [entry] = [entry for entry, index in _entries(authority, drawn.routed, ask) if drawn.id.endswith(f".{index}")]
    call = replace(question, destination=entry, mcp_method="tools/call", tool=tool)
    return LiveArrivals(authority, LiveQuestion(call)).decide(AssumedConsent()).allowed


def _entries(authority: Authority, routed: Routed | None, ask: GatewayAsk) -> list[tuple[EntryPoint, int]]:
    values: dict[Attribute, Known] = {PORT: ask.port}
    if ask.sni is None:
        values[SNI] = comparable_host(ask.http.hosts)
    if routed is None:
        return [(EntryPoint(GATEWAY, (_POINT, DeadEnd(Unroutable.NO_ROUTE)), {**values, BACKEND: None}), 0)]
    taken = points_of(routed, programs_of(authority).is_guarded)
    return [
        (EntryPoint(GATEWAY, (_POINT, *taken, *([] if point is None else [point])), {**values, BACKEND: key}), index)
        for index, (_, point, key, _) in enumerate(beyond(routed, authority.world))
    ]


def _decide_all(authority: Authority, questions: Sequence[Question], entry: EntryPoint) -> Decision:
    decisions = [_decide(authority, question, entry) for question in questions]
    return next((decision for decision in decisions if not decision.allowed), decisions[-1])


def _decide(authority: Authority, question: Question, entry: EntryPoint) -> Decision:
    """Return the engine's decision at one entry. Authorizers answer as the request's headers demand."""
    gathered = GatheredAnswers()
    while True:
        try:
            return LiveArrivals(authority, LiveQuestion(replace(question, destination=entry))).decide(gathered)
        except Pending as pending:
            if pending.authorizer is not None:
                gathered.add(pending, pending.authorizer.answer(pending.request, question.raw))
            else:
                gathered.add(pending, question.external_auth[str(pending.name)])
