"""Assemble Linkerd's resources to the only layer of a workload.

A request selects its port, then its Server, then its best route.

Each port has an owner: the oldest Server that selects it, or else the default policy. A request is allowed if any
authorization that applies there matches, so every chain is

    [Observe(audit), AllowAny]

A route adds its own authorizations to those of its Server. If a Server has routes, a request that matches none of them
is not found (404). A request that matches a route but no authorization is forbidden (403).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.dialects.base import Scene
from eastgate.dialects.linkerd import authorizations
from eastgate.dialects.linkerd.authorizations import Authorizations
from eastgate.dialects.linkerd.model import HttpRoute, InboundRoute, LinkerdResource, Protocol, Server
from eastgate.dialects.linkerd.provenance import (
    INBOUND,
    LOCALHOST,
    PROBE_ROUTE,
    AccessPolicy,
    DataPlaneReading,
    DefaultPolicy,
    InboundScope,
    StageName,
)
from eastgate.dialects.linkerd.routes import match_predicates, route_cases, usable_routes
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.dialects.linkerd.stance import Stance
from eastgate.ir import (
    ALWAYS,
    AllowAny,
    And,
    Attachment,
    Chain,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Origin,
    Predicate,
    Present,
    Reading,
    Refusal,
    Rule,
    ScopeKind,
    SelectorCase,
    Stage,
    Unroutable,
)
from eastgate.ir.attributes import METHOD, PORT
from eastgate.settings import Networks, Settings

_NOT_HTTP = Not(Is(METHOD, Present()))
_FROM_ITSELF = Origin(None, 0, derived=LOCALHOST)
_WITH_IDENTITY = {
    InboundPolicy.ALL_UNAUTHENTICATED: InboundPolicy.ALL_AUTHENTICATED,
    InboundPolicy.CLUSTER_UNAUTHENTICATED: InboundPolicy.CLUSTER_AUTHENTICATED,
}


def layers(attached: Sequence[Attachment[LinkerdResource]], scene: Scene) -> list[Layer]:
    """Return the inbound layer of a workload, or no layer if Linkerd does not govern it."""
    stance = scene.stance
    if not isinstance(stance, Stance):
        return []
    inbound = _Inbound([attachment.policy for attachment in attached], stance, scene.settings)
    return [inbound.layer()]


@dataclass(frozen=True, slots=True)
class _Port:
    """Ports with the same decisions: the ports of one Server, or the ports of the default policy."""

    server: Server | None
    observed: tuple[Server, ...]  # audited Servers that would own it if they were enforced
    protocol: Protocol
    identity_required: bool
    probed: tuple[str, ...]  # paths

    def scope(self, kind: ScopeKind, route: InboundRoute | None = None) -> InboundScope:
        """Return the scope of one part of the requests to the ports."""
        owner = None if self.server is None else self.server.ref
        return InboundScope(owner, self.protocol, kind, None if route is None else route.ref)


class _Inbound:
    def __init__(self, resources: list[LinkerdResource], stance: Stance, settings: Settings) -> None:
        self.stance = stance
        self.settings = settings
        self.predicates = match_predicates(settings.data_plane)
        self.authorizations = Authorizations(resources, stance.cluster)
        self.routes = (*stance.routes, *(resource.route for resource in resources if isinstance(resource, HttpRoute)))
        # The oldest first. A Server without a creation time is older than all others.
        self.servers = sorted(
            (resource for resource in resources if isinstance(resource, Server)),
            key=lambda server: (server.created is not None, server.created or "", server.ref.name),
        )

    def layer(self) -> Layer:
        """Assemble a case for each port that is special, and the default for all others."""
        ports: dict[_Port, list[int]] = {}
        for number in sorted(self._special_ports()):
            ports.setdefault(self._port(number), []).append(number)
        cases = [
            replace(case, when=_at_ports(case.when, numbers))
            for port, numbers in ports.items()
            for case in self._cases(port)
        ]
        *others, last = self._cases(_Port(None, (), Protocol.UNKNOWN, False, ()))
        return Layer(INBOUND, last.chain, (*cases, *others))

    # Ports

    def _special_ports(self) -> set[int]:
        stance = self.stance
        ports = {probe.port for probe in stance.probes} | stance.opaque | stance.identity_required
        return ports.union(*(stance.numbers(server.port) for server in self.servers))

    def _port(self, number: int) -> _Port:
        stance = self.stance
        matching = [server for server in self.servers if number in stance.numbers(server.port)]
        owner = next((server for server in matching if not server.audit), None)
        opaque = Protocol.OPAQUE if number in stance.opaque else Protocol.UNKNOWN
        probes = stance.probes if owner is None else (*stance.probes, *stance.proxy_probes)
        return _Port(
            server=owner,
            observed=tuple(server for server in matching if server.audit),
            protocol=owner.protocol if owner else opaque,
            identity_required=owner is None and number in stance.identity_required,
            probed=tuple(sorted({self.predicates.comparable(probe.path) for probe in probes if probe.port == number})),
        )

    # Cases: the last one is for all other requests to the port

    def _cases(self, port: _Port) -> Iterator[SelectorCase]:
        match port.protocol:
            case Protocol.OPAQUE | Protocol.TLS:
                yield SelectorCase(ALWAYS, self._chain(port, Refusal.CLOSED))
            case Protocol.GRPC:
                yield from self._routed_cases(port, "GRPCRoute")
            case Protocol.HTTP_1 | Protocol.HTTP_2:
                yield from self._routed_cases(port, "HTTPRoute")
            case Protocol.UNKNOWN:
                if not self._allows_all(port) or self._routes(port, "HTTPRoute"):
                    yield SelectorCase(_NOT_HTTP, self._chain(port, Refusal.CLOSED))
                yield from self._routed_cases(port, "HTTPRoute")

    def _routed_cases(self, port: _Port, kind: str) -> Iterator[SelectorCase]:
        routes = self._routes(port, kind)
        if routes:
            chains = {route: self._chain(port, Refusal.FORBIDDEN, route=route) for route in routes}
            for case in route_cases(routes, self.predicates):
                yield SelectorCase(case.when, chains[case.route])
            no_route = AllowAny(Unroutable.NO_INBOUND_ROUTE, (), Refusal.NOT_FOUND)
            yield SelectorCase(ALWAYS, Chain((no_route,), self._readings, port.scope(ScopeKind.UNROUTED)))
            return
        if kind == "HTTPRoute" and port.probed and self._probe_networks and not self._allows_all(port):
            asks = (Is(METHOD, OneOf(frozenset({"GET"}))), Is(self.predicates.path, OneOf(frozenset(port.probed))))
            yield SelectorCase(And(asks), self._chain(port, Refusal.FORBIDDEN, probe=True), synthetic=True)
        yield SelectorCase(ALWAYS, self._chain(port, Refusal.FORBIDDEN))

    @property
    def _readings(self) -> tuple[Reading, ...]:
        return (DataPlaneReading(self.settings.data_plane),)

    def _routes(self, port: _Port, kind: str) -> list[InboundRoute]:
        return usable_routes(self.routes, port.server.ref.name, kind) if port.server is not None else []

    def _allows_all(self, port: _Port) -> bool:
        return any(rule.when == ALWAYS for rule in self._rules(port))

    # Rules

    def _chain(self, port: _Port, refusal: Refusal, *, route: InboundRoute | None = None, probe: bool = False) -> Chain:
        rules = [*self.authorizations.on_route(route, audit=False), *self._rules(port)]
        if probe:
            rules.append(self._probe_rule())
        if self.stance.itself and not any(rule.when == ALWAYS for rule in rules):
            rules.append(Rule(authorizations.in_networks(self.stance.itself), _FROM_ITSELF))
        observed = [
            *self.authorizations.on_route(route, audit=True),
            *self._server_rules(port.server, audit=True),
            *self.authorizations.on_workload(audit=True),
        ]
        for server in port.observed:
            observed += [*self._server_rules(server, audit=False), *self._access_rules(server)]
        stages: list[Stage] = [AllowAny(StageName.AUTHORIZED, tuple(rules), refusal)]
        if observed:
            stages.insert(0, Observe(StageName.AUDIT, tuple(observed), ("allow",) * len(observed)))
        kind = ScopeKind.ROUTE if route else ScopeKind.PROBE if probe else ScopeKind.OTHERS
        readings = self._readings if route or probe else ()
        return Chain(tuple(stages), readings, port.scope(kind, route))

    def _rules(self, port: _Port) -> list[Rule]:
        """Return the rules of a port for any route: those of its Server and workload, or of the default policy."""
        on_workload = list(self.authorizations.on_workload(audit=False))
        if port.server is not None:
            return [*self._server_rules(port.server, audit=False), *on_workload, *self._access_rules(port.server)]
        return on_workload or self._default_rules(port)

    def _server_rules(self, server: Server | None, *, audit: bool) -> Iterator[Rule]:
        if server is not None:
            yield from self.authorizations.on_server(server, audit=audit)

    def _access_rules(self, server: Server) -> Iterator[Rule]:
        client = authorizations.default_client(server.access, self.stance.cluster)
        if client is not None:
            yield Rule(client, Origin(server.ref, 0, server.access_span, derived=AccessPolicy(server.access)))

    def _default_rules(self, port: _Port) -> list[Rule]:
        default = self.stance.default
        policy = _WITH_IDENTITY.get(default.policy, default.policy) if port.identity_required else default.policy
        client = authorizations.default_client(policy, self.stance.cluster)
        derived = DefaultPolicy(policy, default.source)
        return [] if client is None else [Rule(client, Origin(None, 0, default.span, derived=derived))]

    @property
    def _probe_networks(self) -> Networks:
        return self.settings.section(LinkerdSettings).linkerd_probe_networks

    def _probe_rule(self) -> Rule:
        when = authorizations.in_networks(self._probe_networks)
        return Rule(when, Origin(None, 0, derived=PROBE_ROUTE))


def _at_ports(when: Predicate, numbers: Iterable[int]) -> Predicate:
    parts = when.parts if isinstance(when, And) else (when,)
    return And((Is(PORT, OneOf(frozenset(numbers))), *parts))
