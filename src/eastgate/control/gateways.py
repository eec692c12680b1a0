"""The sites of gateways, the plans of their ports, and the servers behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import Backend, Gateway, Listener, TlsReference, World, service_account_id
from eastgate.cluster.points import Point
from eastgate.cluster.routing import ListenerGroup
from eastgate.cluster.routing.attachment import is_http
from eastgate.cluster.routing.certificates import (
    CertificateProblem,
    ClientAuthority,
    client_authorities,
    listener_certificates,
)
from eastgate.cluster.routing.hostnames import comparable
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.gateway_nodes import gateway_node
from eastgate.control.sites import ProxySite, endpoints_of
from eastgate.engine.compiled import Program
from eastgate.envoy.config.client_certificates import certificate_secret, client_ca_secret
from eastgate.envoy.config.clusters import Upstream
from eastgate.envoy.config.gateway_routes import ExternalHost, Leg
from eastgate.envoy.config.inbound_port import Handshake
from eastgate.envoy.plan.gateway import GatewayDestination, GatewayPlan, TlsStream
from eastgate.envoy.plan.gateway_planner import plan_gateway_port
from eastgate.envoy.server.resources import XdsResource
from eastgate.ir import Layer
from eastgate.settings import Settings

# TLS of a gateway's port: the certificate for each name, and connections that are passed through.


def handshakes_of(
    gateway: Gateway,
    group: ListenerGroup,
    streams: Iterable[TlsStream],
    legs: Mapping[GatewayDestination, Leg],
    world: World,
    *,
    whole: bool = False,
) -> Iterator[Handshake]:
    """Yield the handling of each server name in a handshake; nothing for a port without TLS.

    `whole`: an object that the world does not have does not exist. Manifests often leave Secrets out; a cluster does
    not.
    """
    if not group.tls:
        return
    for listener in group.listeners:
        if is_http(listener):
            yield _terminated(gateway, listener, world, group.port, whole=whole)
    for stream in streams:
        named = [(legs[destination].cluster, destination.weight) for destination in stream.destinations]
        known = tuple((cluster, weight) for cluster, weight in named if cluster is not None)
        is_open = stream.verdict.allowed and len(known) == len(stream.destinations) > 0
        yield Handshake(stream.hostname, clusters=known if is_open else (), closed=not is_open)


def _terminated(gateway: Gateway, listener: Listener, world: World, port: int, *, whole: bool) -> Handshake:
    """Return a handshake that the gateway terminates. A missing Secret counts as valid, unless the world is whole."""
    hostname = comparable(listener.hostname)
    if why_closed(gateway, listener, world, whole=whole) is not None:
        return Handshake(hostname, closed=True)
    named = listener_certificates(world, gateway, listener)
    cas = client_authorities(world, gateway, listener)
    certificates = tuple(_secret_name("tls", port, each.reference) for each in named if each.problem is None)
    return Handshake(hostname, certificates, _authority_name(port, cas[0]) if cas else None)


def why_closed(gateway: Gateway, listener: Listener, world: World, *, whole: bool = False) -> str | None:
    """Return why a listener that terminates TLS accepts no connection, or None if it does."""
    if listener.tls is None:
        return "it has no TLS settings"
    if not is_http(listener):
        return "only TLS of HTTP can be terminated here"
    for named in listener_certificates(world, gateway, listener):
        if named.problem is not None and (whole or named.problem is not CertificateProblem.NOT_DECLARED):
            return f"the certificate {named.reference.namespace}/{named.reference.name} cannot be used: {named.problem}"
    for ca in client_authorities(world, gateway, listener):
        if ca.problem is not None:
            return f"the client CA {ca.reference.namespace}/{ca.reference.name} cannot be used: {ca.problem}"
    return None


def secrets_of(gateway: Gateway, group: ListenerGroup, world: World) -> Iterable[XdsResource]:
    """Return the secrets that the handshakes of a port use, each once: listeners may share a secret."""
    found: dict[str, XdsResource] = {}
    for listener in group.listeners:
        for named in listener_certificates(world, gateway, listener):
            if named.problem is None:
                name = _secret_name("tls", group.port, named.reference)
                found[name] = certificate_secret(name, named.chain, named.key)
        for ca in client_authorities(world, gateway, listener)[:1]:
            if ca.problem is None:
                name = _authority_name(group.port, ca)
                found[name] = client_ca_secret(name, ca.roots)
    return found.values()


def _secret_name(kind: str, port: int, ref: TlsReference) -> str:
    """Return the name of a secret for one port. Each port has its own copy: a rejected secret closes its port."""
    return f"{kind}/{port}/{ref.namespace}/{ref.name}"


def _authority_name(port: int, authority: ClientAuthority) -> str:
    """Return the name of a client CA, which depends on its content: a changed CA closes the old connections."""
    roots = blake2b(authority.roots, digest_size=6).hexdigest()
    return f"{_secret_name('clients', port, authority.reference)}/{roots}"


@dataclass(frozen=True, slots=True)
class GatewaySite:
    """The proxies of a Gateway: one or several.

    `ports` maps each port of its listeners to the port that is bound for it. `in_pod`: see `ProxySite`.
    """

    gateway: GatewayNamed
    address: str
    ports: Mapping[int, int]
    in_pod: bool = False

    @property
    def source(self) -> str | None:
        """Return the source address of its calls; None: any of its addresses."""
        return None if self.in_pod else self.address

    @property
    def key(self) -> str:
        """Return its key among the gateways of the world."""
        return f"{self.gateway.namespace}/{self.gateway.name}"

    @property
    def node(self) -> str:
        """Return the name of its proxies."""
        return gateway_node(self.gateway.namespace, self.gateway.name)


def gateway_identity(gateway: GatewayNamed | Gateway, settings: Settings) -> str:
    """Return the SPIFFE ID of a gateway: that of a service account with its name."""
    return service_account_id(settings.trust_domain, gateway.namespace, gateway.name)


def plan_gateway(
    authority: Authority,
    site: GatewaySite,
    group: ListenerGroup,
    identities: frozenset[str],
    programs: dict[Point, Program] | None = None,
) -> GatewayPlan:
    """Return the plan of a gateway's port, and put the programs that it depends on into `programs`."""
    noted = {} if programs is None else programs

    def layers_at(point: Point) -> Sequence[Layer]:
        program = noted[point] = programs_of(authority).program(point)
        return program.layers

    return plan_gateway_port(
        site.gateway,
        group,
        layers_at,
        authority.world,
        authority.settings,
        identities,
    )


def services_behind(plan: GatewayPlan, world: World) -> Iterator[str]:
    """Yield the Services that the destinations of a port lead to, declared or not."""
    for destination in plan.every_destination:
        if destination.backend is not None and destination.backend.kind == "Service":
            yield f"{destination.backend.namespace}/{destination.backend.name}"
        backend = world.backends.get(destination.backend_key or "")
        if backend is not None:
            yield f"{backend.namespace}/{backend.service_name}"


def legs_of(plan: GatewayPlan, world: World, sites: Mapping[str, ProxySite], settings: Settings) -> Iterator[Leg]:
    """Yield the leg from the gateway to each destination, also if no server is behind it."""
    for destination in plan.every_destination:
        yield Leg(destination, _servers(destination, world, sites, settings), http2=destination.speaks_grpc)


def _servers(
    destination: GatewayDestination, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> Upstream | ExternalHost | None:
    ref = destination.backend
    if ref is None or not ref.granted:
        return None
    if (ref.group, ref.kind) == ("", "Service"):
        return _service(f"{ref.namespace}/{ref.name}", ref.port, world, sites, settings)
    backend = world.backends.get(destination.backend_key or "")
    return _backend_servers(backend, world, sites, settings) if backend is not None else None


def _backend_servers(
    backend: Backend, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> Upstream | ExternalHost | None:
    if backend.hostname is not None:
        return ExternalHost(backend.hostname, backend.port)
    return _service(f"{backend.namespace}/{backend.service_name}", backend.port, world, sites, settings)


def _service(
    key: str, port: int | None, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> Upstream | None:
    service = world.services.get(key)
    if service is None or port is None:
        return None
    endpoints, identities = endpoints_of(service, port, world, sites, settings)
    return Upstream(f"service/{key}/{port}", (), endpoints, identities) if endpoints else None
