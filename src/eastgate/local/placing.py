"""The places of proxies and applications in a local mesh: an address for each workload and Gateway, and its ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from eastgate.authority.authority import Authority
from eastgate.cluster import Change
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.ambient import needs_waypoint, waypoint_name
from eastgate.control.fleet import SiteChange
from eastgate.control.gateway_nodes import gateway_node, ports_of_gateway
from eastgate.control.gateways import GatewaySite
from eastgate.control.sites import ProxySite, WaypointEntrance, WaypointSite, identity_of, ports_of, waypoint_identity
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.hbone import PORT as TUNNEL_PORT
from eastgate.local.machine.addresses import Addresses
from eastgate.settings import MeshMode

_NODE = "node:local"  # no workload can have this name


class LocalPlacement:
    """Places workloads and Gateways. `apps` are applications of the user (see `MeshOptions`).

    `built_in_app` returns the address of the built-in application for a workload's port.
    """

    def __init__(
        self,
        addresses: Addresses,
        apps: Mapping[str, SocketAddress],
        built_in_app: Callable[[str, int], SocketAddress],
    ) -> None:
        self._addresses = addresses
        self._apps = apps
        self._built_in_app = built_in_app

    def place(self, authority: Authority, *, prove: bool) -> tuple[SiteChange, Change]:
        """Assign addresses to all workloads with an identity, to Gateways and to waypoints; return their sites, and
        the changes.

        `prove`: addresses prove callers.
        """
        world = authority.world
        keys = [key for key, each in world.workloads.items() if identity_of(each, authority.settings) is not None]
        of_gateways = {gateway_node(each.namespace, each.name): each for each in world.gateways.values()}
        is_ambient = authority.settings.mesh_mode is MeshMode.AMBIENT
        behind = {key: waypoint_name(world.workloads[key].namespace) for key in keys} if is_ambient else {}
        behind = {key: name for key, name in behind.items() if needs_waypoint(authority, key)}
        addresses = self._addresses.assign([*keys, *of_gateways, *behind.values()])
        (tunnel,) = self._bind([TUNNEL_PORT]).values() if is_ambient else (0,)
        change = authority.assign_addresses({key: addresses[key] for key in keys}, prove=prove)
        sites = {}
        domain = authority.settings.trust_domain
        waypoints = {
            name: WaypointEntrance(name, SocketAddress(addresses[name], tunnel), waypoint_identity(domain, namespace))
            for key, name in behind.items()
            for namespace in [world.workloads[key].namespace]
        }
        for key in keys:
            bound = self._bind(ports_of(world, world.workloads[key]))
            apps = {port: self.own_app(key, port) or self._built_in_app(key, port) for port in bound}
            has_app = any(app.partition(":")[0] == key for app in self._apps)
            node = _NODE if is_ambient else ""
            sites[key] = ProxySite(
                key,
                addresses[key],
                bound,
                apps,
                calls_out=has_app and not is_ambient,
                node=node,
                tunnel=tunnel,
                waypoint=waypoints.get(behind.get(key, "")),
            )
        gateways = {
            node: GatewaySite(
                GatewayNamed(gateway.namespace, gateway.name),
                addresses[node],
                self._bind(ports_of_gateway(world, gateway)),
            )
            for node, gateway in of_gateways.items()
        }
        served = {
            name: WaypointSite(waypoint, tuple(sorted(key for key, other in behind.items() if other == name)))
            for name, waypoint in waypoints.items()
        }
        return SiteChange(sites, gateways, served), change

    def own_app(self, workload: str, port: int) -> SocketAddress | None:
        """Return the application of the user behind a port, or None."""
        return self._apps.get(f"{workload}:{port}") or self._apps.get(workload)

    def _bind(self, ports: Iterable[int]) -> dict[int, int]:
        """Return the port to open for each of these."""
        return {port: bound.port for port, bound in self._addresses.bind_ports(ports).items()}


def listening(
    sites: Mapping[str, ProxySite], gateways: Mapping[str, GatewaySite], waypoints: Mapping[str, WaypointSite]
) -> Iterator[tuple[str, str, int, tuple[str, int]]]:
    """Yield where proxies listen: the proxy, the workload or gateway, its port, and the address with the bound port."""
    for site in sites.values():
        yield from ((site.proxy, site.workload, port, (site.address, bound)) for port, bound in site.ports.items())
        if site.node:
            yield site.proxy, site.workload, site.tunnel, (site.address, site.tunnel)
    for node, gateway in gateways.items():
        yield from ((node, node, port, (gateway.address, bound)) for port, bound in gateway.ports.items())
    for node, served in waypoints.items():
        address = served.waypoint.address
        yield node, node, address.port, (address.host, address.port)
