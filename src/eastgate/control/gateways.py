"""Gateways of the local mesh: where each runs, what it decides at each port, and the servers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eastgate.authority.authority import Authority
from eastgate.authority.questions import ends
from eastgate.basics.records import dataclass
from eastgate.cluster import Backend, Gateway, World, service_account_id
from eastgate.cluster.points import Point
from eastgate.cluster.routing import ListenerGroup, RoutingTable
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.sites import ProxySite, endpoints_of
from eastgate.engine.compiled import Program
from eastgate.envoy.config.clusters import Upstream
from eastgate.envoy.config.gateway_routes import ExternalHost, Leg
from eastgate.envoy.plan.gateway import GatewayDestination, GatewayPlan
from eastgate.envoy.plan.gateway_planner import plan_gateway_port
from eastgate.ir import Layer
from eastgate.settings import Settings

_PREFIX = f"{ends.Gateway.kind}:"


@dataclass(frozen=True, slots=True)
class GatewaySite:
    """The proxy that is a Gateway, or all of them if it has several.

    `ports` maps each port of its listeners to the one that could be bound for it. `in_pod`: see `ProxySite`.
    """

    gateway: GatewayNamed
    address: str
    ports: Mapping[int, int]
    in_pod: bool = False

    @property
    def source(self) -> str | None:
        """Return the address that it calls from; None: any that it has."""
        return None if self.in_pod else self.address

    @property
    def key(self) -> str:
        """Return its name among the world's gateways."""
        return f"{self.gateway.namespace}/{self.gateway.name}"

    @property
    def node(self) -> str:
        """Return its name among the proxies."""
        return gateway_node(self.gateway.namespace, self.gateway.name)


def gateway_node(namespace: str, name: str) -> str:
    """Return the name of a gateway among the proxies: as questions name it."""
    return f"{_PREFIX}{namespace}/{name}"


def gateway_of(node: str, world: World) -> Gateway | None:
    """Return the gateway that a proxy is; None where it is that of a workload."""
    return world.gateways.get(node.removeprefix(_PREFIX)) if node.startswith(_PREFIX) else None


def gateway_identity(gateway: GatewayNamed | Gateway, settings: Settings) -> str:
    """Return the SPIFFE ID of a gateway: that of a service account with its name."""
    return service_account_id(settings.trust_domain, gateway.namespace, gateway.name)


def ports_of_gateway(world: World, gateway: Gateway) -> dict[int, ListenerGroup]:
    """Return the routes of each port that a gateway can open."""
    by_port: dict[int, ListenerGroup] = {}
    for group in RoutingTable.of(world, gateway).groups:
        by_port.setdefault(group.port, group)
    return by_port


def plan_gateway(
    authority: Authority,
    site: GatewaySite,
    group: ListenerGroup,
    identities: frozenset[str],
    programs: dict[Point, Program] | None = None,
) -> GatewayPlan:
    """Plan a port of a gateway; note in `programs` what was decided by."""
    noted = {} if programs is None else programs

    def layers_at(point: Point) -> Sequence[Layer]:
        program = noted[point] = authority.programs.program(point)
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
    """Yield the last leg to each destination. One that leads to no server has none."""
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
