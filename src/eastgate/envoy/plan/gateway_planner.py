"""The plan of a gateway for one port: the destination of each request, and the layers that it must pass.

Routing comes first, and is the same for all callers: the host and the matches of routes choose a rule, and a draw by
weight one of its backends. Rule and backend are the *destination*. The layers that a request must pass follow from the
points on its way: the Gateway, the route, the backend.

The name of a destination is a digest of all inputs of its routing. After a change, a request that earlier routes sent
somewhere meets decisions that do not know its destination, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from typing import TypeAlias

from eastgate.basics.collection import no_collection
from eastgate.cluster import World
from eastgate.cluster.points import DeadEnd, Point, RuleNamed
from eastgate.cluster.routing import BackendRef, Candidate, ListenerGroup, Routed
from eastgate.cluster.routing.hostnames import named_by
from eastgate.cluster.routing.journey import beyond, points_of, server_of
from eastgate.cluster.targets import GatewayNamed
from eastgate.envoy.plan.callers import ByCaller
from eastgate.envoy.plan.combining import TooManyEnds, noting, or_else, then, unread, without
from eastgate.envoy.plan.decisions import ASK, NO_AUDIT, Node, ProxyVerdict, policy_name
from eastgate.envoy.plan.fields import RequestField, looked_at
from eastgate.envoy.plan.flow import ENCODED_CHARACTER, ENCODED_SLASH, Flow
from eastgate.envoy.plan.gateway import (
    DESTINATION,
    MESSAGE,
    NO_SESSION,
    NO_SUCH_SESSION,
    NOWHERE,
    UNCLEAR_ROUTE,
    UNREAD_MESSAGE,
    GatewayDestination,
    GatewayPlan,
    TlsStream,
    chooses,
    replaced_prefix,
)
from eastgate.envoy.plan.ports import CLOSED, UNOPPOSED, PortPlan, Requests
from eastgate.envoy.plan.vantage import AT_GATEWAY
from eastgate.ir import (
    ALWAYS,
    AuthorizerName,
    Computed,
    Is,
    Layer,
    Not,
    OneOf,
    Predicate,
    Refusal,
    Unroutable,
    atoms,
    authorizers_in,
)
from eastgate.ir.attributes import BACKEND, HOST, MCP_METHOD, MCP_TOOL, PATH, SNI, Attribute
from eastgate.ir.paths import is_sensitive
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import AnonymousCell, CallerCell
from eastgate.ir.symbolic.trees import choice
from eastgate.settings import Settings

_MCP = frozenset({MCP_METHOD, MCP_TOOL})
_IS_UNCLEAR = Is(DESTINATION, OneOf(frozenset({UNCLEAR_ROUTE})))
_UNKNOWN: Node = ProxyVerdict(False, int(Refusal.NOT_FOUND), "unknown-destination")
_NO_STREAM = ProxyVerdict(False, int(Refusal.CLOSED), "no-stream")
_UNCLEAR: Node = ProxyVerdict(False, int(Refusal.BAD_REQUEST), "unclear-route")


def _message_is(state: str) -> Predicate:
    return Is(MESSAGE, OneOf(frozenset({state})))


def _is_about_messages(atom: Is | Computed) -> bool:
    return not _MCP.isdisjoint((atom.attribute,) if isinstance(atom, Is) else atom.attributes)


def _is_about_path(atom: Is | Computed) -> bool:
    return PATH in ((atom.attribute,) if isinstance(atom, Is) else atom.attributes)


_UNREAD = ProxyVerdict(False, int(Refusal.BAD_REQUEST), UNREAD_MESSAGE)
# Verdicts about messages before any rule, if a layer looks at messages.
_OF_MESSAGES: tuple[tuple[Predicate, Node], ...] = (
    (_message_is("bad-session"), ProxyVerdict(False, int(Refusal.NOT_FOUND), NO_SUCH_SESSION)),
    (_message_is("no-session"), ProxyVerdict(False, 405, NO_SESSION)),
    (_message_is("batch"), ASK),
)
LayersAt: TypeAlias = Callable[[Point], Sequence[Layer]]
Decide: TypeAlias = Callable[[Flow, CallerCell], Node]


def plan_gateway_port(
    gateway: GatewayNamed,
    group: ListenerGroup,
    layers_at: LayersAt,
    world: World,
    settings: Settings,
    known: Iterable[str],
) -> GatewayPlan:
    """Plan a port of a gateway; every known identity gets a decision of its own."""
    with no_collection():
        return _GatewayPlanner(gateway, group, layers_at, world, settings, known).plan()


def plan_destinations(
    gateway: GatewayNamed, group: ListenerGroup, layers_at: LayersAt, world: World, settings: Settings
) -> dict[str, GatewayDestination]:
    """Return the destinations of a port by their ids, without decisions."""
    planner = _GatewayPlanner(gateway, group, layers_at, world, settings, ())
    planner.route()
    return planner.by_id()


class _GatewayPlanner:
    def __init__(
        self,
        gateway: GatewayNamed,
        group: ListenerGroup,
        layers_at: LayersAt,
        world: World,
        settings: Settings,
        known: Iterable[str],
    ) -> None:
        self._gateway = gateway
        self._group = group
        self._hosts = group.virtual_hosts()
        self._layers_at = layers_at
        self._world = world
        self._callers = CallerCells(settings)
        self._known = frozenset(known)
        self._rules: dict[str, tuple[GatewayDestination, ...]] = {}
        self._flows: dict[tuple[Point, str | None], list[Flow]] = {}
        self._combined: dict[tuple[int, ...], tuple[Sequence[Node], Node]] = {}  # keeps the ids valid
        self._readable: dict[int, tuple[Node, Node]] = {}

    def by_id(self) -> dict[str, GatewayDestination]:
        return {destination.id: destination for of_rule in self._rules.values() for destination in of_rule}

    def plan(self) -> GatewayPlan:
        routing = self.route()
        port = self._group.port
        cells = self._callers.cells((), self._known)
        plan = PortPlan(
            port,
            ByCaller.of(cells, dict.fromkeys(cells, UNOPPOSED)),
            ByCaller.of(cells, dict.fromkeys(cells, CLOSED)),
            self._requests(),
            None,
            frozenset(policy_name(policy) for flow in self._every_flow() for policy in flow.policies),
        )
        name = f"gateway:{self._gateway.namespace}/{self._gateway.name}"
        fields, streams = self._routing_fields(), tuple(self._streams())
        return GatewayPlan(name, self._group.tls, plan, routing, self._rules, self.by_id(), fields, streams)

    # Passed-through TLS

    def _streams(self) -> Iterator[TlsStream]:
        for host in self._group.streams():
            destinations: tuple[GatewayDestination, ...] = ()
            verdict = _NO_STREAM
            if host.candidates and host.listener.passes_tls_through:
                routed = host.candidates[0].routed
                destinations = tuple(self._destinations(f"{routed.route.namespace}/{routed.route.name}", routed, None))
                verdicts = [self._stream_verdict(destination) for destination in destinations]
                verdict = next((each for each in verdicts if not each.allowed), verdicts[0])
            yield TlsStream(host.hostname, destinations, verdict)

    def _stream_verdict(self, destination: GatewayDestination) -> ProxyVerdict:
        """Decide about unread bytes of a caller without a certificate."""
        decided = self._joined(
            [unread(flow.decision(AnonymousCell(), http=False)) for flow in self._flows_on_way(destination)]
        )
        return decided if isinstance(decided, ProxyVerdict) and decided != ASK else _NO_STREAM

    # Routing

    def route(self) -> Node:
        """Return the tree that ends in the names of rules, and note the destinations of each."""
        nowhere, unclear = ProxyVerdict(True, 200, NOWHERE), ProxyVerdict(True, 200, UNCLEAR_ROUTE)
        tests: list[tuple[Predicate, Node]] = []
        otherwise: Node = nowhere
        for host in self._hosts:
            rules = choice(((each.when, self._rule_verdict(each)) for each in host.candidates), nowhere)
            if self._is_guarded_by_path(host.candidates):
                rules = choice([(ENCODED_SLASH, unclear)], rules)
            if self._group.tls:
                names = [listener.hostname for listener in self._group.listeners]
                chosen = chooses(SNI, host.listener.hostname, names)
                rules = choice([(Not(chosen), nowhere)] if chosen != ALWAYS else [], rules)
            if host.hostname is None:
                otherwise = rules
            else:
                tests.append((named_by(host.hostname, HOST), rules))
        self._rules[NOWHERE] = (self._nowhere(),)
        routing = choice(tests, otherwise)
        if not any(map(is_sensitive, self._routing_atoms())):
            return routing
        return choice([(ENCODED_CHARACTER, unclear)], routing)

    def _is_guarded_by_path(self, candidates: Sequence[Candidate]) -> bool:
        """Return whether the path chooses among ways to one server that have different policies.

        Then a path that servers disagree about could take one way to the gateway, and another to the server.
        """
        if len({frozenset(filter(_is_about_path, atoms(each.when))) for each in candidates}) < 2:
            return False
        guards: dict[object, tuple[object, ...]] = {}
        for name in dict.fromkeys(self._rule(each.routed, replaced_prefix(each)) for each in candidates):
            for destination in self._rules[name]:
                server = server_of(destination.backend, self._world) if destination.backend is not None else None
                guarded = self._guards(destination)
                if server is not None and guards.setdefault(server, guarded) != guarded:
                    return True
        return False

    def _guards(self, destination: GatewayDestination) -> tuple[object, ...]:
        """Return a key of the policies on a way.

        These are the points with policies; for rules of routes their layers, which many rules may share. The key of the
        backend distinguishes ways with the same policies.
        """
        guarded: list[object] = []
        for point in destination.points:
            layers = self._layers_at(point)
            if layers:
                guarded.append(tuple(layers) if isinstance(point, RuleNamed) else point)
        return (*guarded, destination.backend_key) if guarded else ()

    def _routing_atoms(self) -> Iterator[Is | Computed]:
        return (atom for host in self._hosts for each in host.candidates for atom in atoms(each.when))

    def _routing_fields(self) -> tuple[RequestField, ...]:
        asked = list(self._routing_atoms())
        attributes = (a for atom in asked for a in ((atom.attribute,) if isinstance(atom, Is) else atom.attributes))
        return looked_at(asked, attributes)

    def _rule_verdict(self, candidate: Candidate) -> Node:
        return ProxyVerdict(True, 200, self._rule(candidate.routed, replaced_prefix(candidate)))

    def _rule(self, routed: Routed, prefix: str | None) -> str:
        """Return the name of a rule, which covers all inputs of its destinations, and note these."""
        guarded = routed.point if self._is_guarded(routed.point) else None
        digest = _digest(routed, prefix, guarded)
        name = f"{routed.route.namespace}/{routed.route.name}#{routed.rule}~{digest}"
        if name not in self._rules:
            self._rules[name] = tuple(self._destinations(name, routed, prefix))
        return name

    def _destinations(self, rule: str, routed: Routed, prefix: str | None) -> Iterator[GatewayDestination]:
        ends = list(beyond(routed, self._world))
        backends: Sequence[BackendRef | None] = routed.backends if len(ends) == len(routed.backends) else [None]
        for index, (backend, (_, point, key, _)) in enumerate(zip(backends, ends, strict=True)):
            points = (self._gateway, *points_of(routed, self._is_guarded), *(() if point is None else (point,)))
            weight = backend.weight if backend is not None else 1
            yield self._destination(f"{rule}.{index}", weight, points, routed, backend, key, prefix)

    def _is_guarded(self, rule: RuleNamed) -> bool:
        return bool(self._layers_at(rule))

    def _nowhere(self) -> GatewayDestination:
        return self._destination(NOWHERE, 1, (self._gateway, DeadEnd(Unroutable.NO_ROUTE)), None, None, None)

    def _destination(
        self,
        name: str,
        weight: int,
        points: tuple[Point, ...],
        routed: Routed | None,
        backend: BackendRef | None,
        key: str | None,
        prefix: str | None = None,
    ) -> GatewayDestination:
        layers = [layer for point in points for layer in self._layers_at(point)]
        looks_at = frozenset[Attribute]().union(*(layer.looks_at for layer in layers))
        looks, tells = bool(looks_at & _MCP), MCP_TOOL in looks_at
        reads = looks or (key is not None and bool(layers))
        asked = (ask.authorizer for layer in layers for ask in layer.asks)
        shows = looks or any(isinstance(name, AuthorizerName) and name.external.max_body > 0 for name in asked)
        schemes = bool(authorizers_in(layers))
        return GatewayDestination(name, weight, points, routed, backend, key, prefix, reads, tells, shows, schemes)

    # Deciding

    def _flows_on_way(self, destination: GatewayDestination) -> list[Flow]:
        return [flow for point in destination.points for flow in self._flows_at(point, destination.backend_key)]

    def _flows_at(self, point: Point, key: str | None) -> list[Flow]:
        if (point, key) not in self._flows:
            vantage = AT_GATEWAY.knowing({BACKEND: key})
            self._flows[point, key] = [
                Flow(layer, self._group.port, self._callers, vantage) for layer in self._layers_at(point)
            ]
        return self._flows[point, key]

    def _every_flow(self) -> list[Flow]:
        return [flow for flows in self._flows.values() for flow in flows]

    def _requests(self) -> Requests:
        flows_to = {destination: self._flows_on_way(destination) for destination in self.by_id().values()}
        flows = self._every_flow()
        cells = self._callers.cells(atom for flow in flows for atom in flow.asked if isinstance(atom, Is))
        looks_at = frozenset[Attribute]().union(*(flow.layer.looks_at for flow in flows))
        decided, refused, respelled = (
            {cell: self._decision(flows_to, cell, decide) for cell in cells} for decide in (_decide, _refuse, _respell)
        )
        return Requests(
            ByCaller.of(cells, decided),
            ByCaller.of(cells, refused) if refused != decided else None,
            ByCaller.of(cells, respelled) if respelled != decided else None,
            self._audit(flows_to, cells),
            looked_at((atom for flow in flows for atom in flow.asked), looks_at),
        )

    def _decision(
        self, flows_to: Mapping[GatewayDestination, Sequence[Flow]], cell: CallerCell, decide: Decide
    ) -> Node:
        """Return the decision for callers of a cell, by destination."""
        decisions = (
            (_leads_to(destination), self._joined([self._of_readable(flow, decide(flow, cell)) for flow in flows]))
            for destination, flows in flows_to.items()
        )
        return choice([*decisions, (_IS_UNCLEAR, _UNCLEAR)], _UNKNOWN)

    def _joined(self, decisions: Sequence[Node]) -> Node:
        """Combine the layers on a way: ALL must allow. With too many ends, the authorizer decides."""
        key = tuple(map(id, decisions))
        if key not in self._combined:
            try:
                combined = reduce(then, decisions, UNOPPOSED)
            except TooManyEnds:
                combined = ASK
            self._combined[key] = decisions, combined
        return self._combined[key][1]

    def _of_readable(self, flow: Flow, node: Node) -> Node:
        """Add the decision about unreadable messages, if a layer looks at messages: every message must be allowed."""
        if not flow.layer.looks_at & _MCP:
            return node
        if id(node) not in self._readable:
            unread_message = without(node, _is_about_messages, lambda _: _UNREAD)
            tests = [*_OF_MESSAGES, (_message_is("unread"), unread_message)]
            self._readable[id(node)] = node, choice(tests, node)
        return self._readable[id(node)][1]

    def _audit(
        self, flows_to: Mapping[GatewayDestination, Sequence[Flow]], cells: Sequence[CallerCell]
    ) -> ByCaller[Node] | None:
        """Return the decision with audited policies in force, or the matching observed rule, by destination."""
        audits: dict[CallerCell, Node] = {}
        for cell in cells:
            tests: list[tuple[Predicate, Node]] = []
            for destination, flows in flows_to.items():
                observed = [node for flow in flows if (node := flow.audit(cell, http=True)) is not None]
                matches = reduce(or_else, observed) if observed else None
                if any(flow.layer.audit is not None for flow in flows):
                    would = self._would(destination, flows, cell)
                    tests.append((_leads_to(destination), would if matches is None else noting(would, matches)))
                elif matches is not None:
                    tests.append((_leads_to(destination), matches))
            if tests:
                audits[cell] = choice(tests, NO_AUDIT)
        return ByCaller.of(cells, {cell: audits.get(cell, NO_AUDIT) for cell in cells}) if audits else None

    def _would(self, destination: GatewayDestination, flows: Sequence[Flow], cell: CallerCell) -> Node:
        """Return the would-be decision on a way. Audited policies about messages have no result if none are read."""
        in_force = [flow.in_force for flow in flows]
        unread_by = [flow for flow in in_force if flow.layer.looks_at & _MCP and not destination.reads_messages]
        if unread_by:
            return unread_by[0].untold
        return self._joined([self._of_readable(flow, flow.would(cell, http=True)) for flow in in_force])


def _decide(flow: Flow, cell: CallerCell) -> Node:
    return flow.decision(cell, http=True)


def _refuse(flow: Flow, cell: CallerCell) -> Node:
    return flow.refusal(cell)


def _respell(flow: Flow, cell: CallerCell) -> Node:
    return flow.respelled(cell)


def _leads_to(destination: GatewayDestination) -> Predicate:
    return Is(DESTINATION, OneOf(frozenset({destination.id})))


def _digest(routed: Routed, prefix: str | None, guarded: RuleNamed | None) -> str:
    """Return a digest of all inputs of routing to the backends of a rule, and of the rule if policies target it."""
    parts = (routed.spec, routed.backends, prefix, *(() if guarded is None else (guarded,)))
    return blake2b(repr(parts).encode(), digest_size=4).hexdigest()
