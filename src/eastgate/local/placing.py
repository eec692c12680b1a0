"""The places of proxies and applications in a local mesh: an address for each workload and Gateway, and its ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from eastgate.authority.authority import Authority
from eastgate.cluster import Change
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.gateway_nodes import gateway_node, ports_of_gateway
from eastgate.control.gateways import GatewaySite
from eastgate.control.sites import ProxySite, identity_of, ports_of
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.machine.addresses import Addresses


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

    def place(
        self, authority: Authority, *, prove: bool
    ) -> tuple[dict[str, ProxySite], dict[str, GatewaySite], Change]:
        """Assign addresses to all workloads with an identity, and to Gateways; return their sites, and the changes.

        `prove`: addresses prove callers.
        """
        world = authority.world
        keys = [key for key, each in world.workloads.items() if identity_of(each, authority.settings) is not None]
        of_gateways = {gateway_node(each.namespace, each.name): each for each in world.gateways.values()}
        addresses = self._addresses.assign([*keys, *of_gateways])
        change = authority.assign_addresses({key: addresses[key] for key in keys}, prove=prove)
        sites = {}
        for key in keys:
            bound = self._bind(ports_of(world, world.workloads[key]))
            apps = {port: self.own_app(key, port) or self._built_in_app(key, port) for port in bound}
            has_app = any(app.partition(":")[0] == key for app in self._apps)
            sites[key] = ProxySite(key, addresses[key], bound, apps, calls_out=has_app)
        gateways = {
            node: GatewaySite(
                GatewayNamed(gateway.namespace, gateway.name),
                addresses[node],
                self._bind(ports_of_gateway(world, gateway)),
            )
            for node, gateway in of_gateways.items()
        }
        return sites, gateways, change

    def own_app(self, workload: str, port: int) -> SocketAddress | None:
        """Return the application of the user behind a port, or None."""
        return self._apps.get(f"{workload}:{port}") or self._apps.get(workload)

    def _bind(self, ports: Iterable[int]) -> dict[int, int]:
        """Return the port to open for each of these."""
        return {port: bound.port for port, bound in self._addresses.bind_ports(ports).items()}
