"""The sites of sidecars and Gateways in a cluster, from its world.

A pod has a sidecar in two cases: its label or container says so (`proxy_presence`) and it has its own address, or its
proxy has authenticated. Labels can change, and a running proxy must not keep outdated policies. A label alone opens
nothing: other proxies use mTLS to such a pod and verify its account, and only the pod's own credentials get its
certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from eastgate.cluster import Change, Workload, World
from eastgate.cluster.proxies import (
    BOUND,
    GATEWAY_CLASS,
    GATEWAY_LABEL,
    PROXY_LABEL,
    ProxyPresence,
    excluded_inbound_ports,
    gateway_of_pod,
    proxy_presence,
)
from eastgate.cluster.targets import GatewayNamed, PodsMatching
from eastgate.control.capturing import pod_site
from eastgate.control.fleet import SiteChange
from eastgate.control.gateway_nodes import gateway_node, ports_of_gateway
from eastgate.control.gateways import GatewaySite
from eastgate.control.planning import is_routing
from eastgate.control.sites import ProxySite, ports_of
from eastgate.controller.gateways.pods import RESERVED_PORTS
from eastgate.controller.proxies.tracking import GATEWAY_PREFIX
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.ir.labels import Operator, Requirement, Selector

_Site = TypeVar("_Site", ProxySite, GatewaySite)
_OF_GATEWAYS: Final = Selector.of(expressions=[Requirement(GATEWAY_LABEL, Operator.EXISTS)])
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a Gateway accepts connections at every address of its pod


def sidecar_site(world: World, key: str, *, connected: bool = False) -> ProxySite | None:
    """Return the site of a pod's sidecar, or None. `connected`: its proxy has authenticated.

    The pod redirects all its connections to the sidecar, unless its label says that the sidecar opens the ports itself.
    """
    pod = _pod_with_proxy(world, key, connected=connected)
    if pod is None:
        return None
    if pod.labels.get(PROXY_LABEL) == BOUND:
        return bound_site(world, key, connected=connected)
    return pod_site(world, pod, excluded_inbound_ports(pod.annotations))


def _pod_with_proxy(world: World, key: str, *, connected: bool) -> Workload | None:
    pod = world.workloads.get(key)
    if pod is None or not pod.is_pod or pod.derived or not pod.ips or gateway_of_pod(world, pod) is not None:
        return None
    has_proxy = proxy_presence(world, pod) in (ProxyPresence.PRESENT, ProxyPresence.UNPROVEN)
    return pod if connected or has_proxy else None


def bound_site(world: World, key: str, *, connected: bool = False, app_host: str | None = None) -> ProxySite | None:
    """Return the site of a manually run proxy that opens the ports of its pod itself, or None.

    The application is reached at `app_host`, by default at the address of the pod, not on its loopback.
    """
    pod = _pod_with_proxy(world, key, connected=connected)
    if pod is None:
        return None
    address, ports = pod.ips[0], sorted(ports_of(world, pod))
    apps = {port: SocketAddress(app_host or address, port) for port in ports}
    return ProxySite(key, address, {port: port for port in ports}, apps, calls_out=True, in_pod=True)


def gateway_site(world: World, key: str) -> GatewaySite | None:
    """Return the site of a Gateway, shared by all its pods, or None if it has another class."""
    gateway = world.gateways.get(key)
    if gateway is None or gateway.gateway_class != GATEWAY_CLASS:
        return None
    ports = {port: port for port in sorted(ports_of_gateway(world, gateway)) if port not in RESERVED_PORTS}
    return GatewaySite(GatewayNamed(gateway.namespace, gateway.name), _ANY_ADDRESS, ports, in_pod=True)


def proxies_of(world: World, node: str) -> tuple[str, ...]:
    """Return the names of all proxies that a node should have. A Gateway has one for each of its pods."""
    if not node.startswith(GATEWAY_PREFIX):
        return (node,)
    namespace = node.removeprefix(GATEWAY_PREFIX).partition("/")[0]
    pods = (world.workloads[key] for key in sorted(world.select(PodsMatching(namespace, _OF_GATEWAYS))))
    return tuple(f"{node}/{pod.name}" for pod in pods if _node_of(world, pod) == node)


def _node_of(world: World, pod: Workload) -> str | None:
    gateway = gateway_of_pod(world, pod) if not pod.derived else None
    return gateway_node(gateway.namespace, gateway.name) if gateway is not None else None


class Sites:
    """The sites of a world after the changes in `take`. `site_of` returns the site of a pod."""

    def __init__(self, world: World, site_of: Callable[..., ProxySite | None] = sidecar_site) -> None:
        self._world = world
        self._site_of = site_of
        self._connected: set[str] = set()  # pods whose proxies have authenticated
        self._new: set[str] = set()  # those of them without a site before
        self.sidecars: dict[str, ProxySite] = {}
        self.gateways: dict[str, GatewaySite] = {}

    def connect(self, proxy: str) -> None:
        """Record that a proxy has authenticated. Its pod is then a site, independent of labels."""
        if not proxy.startswith(GATEWAY_PREFIX) and proxy not in self._connected:
            self._connected.add(proxy)
            if proxy not in self.sidecars:
                self._new.add(proxy)

    @property
    def has_new(self) -> bool:
        """Return whether a proxy without a site has authenticated since the last change."""
        return bool(self._new)

    def take(self, change: Change) -> SiteChange:
        """Apply a change of the world and newly authenticated proxies; return the change of the sites."""
        new, self._new = self._new, set()
        sidecars = self._update(self.sidecars, self._affected_pods(change) | new, self._sidecar)
        named: set[str] = set()
        if is_routing(change):
            named = {*self.gateways, *(gateway_node(*key.split("/")) for key in self._world.gateways)}
        gateways = self._update(self.gateways, named, self._gateway)
        self._connected -= {key for key in change.removed if key not in self._world.workloads}
        return SiteChange(sidecars[0], gateways[0], removed=sidecars[1] | gateways[1])

    def _affected_pods(self, change: Change) -> set[str]:
        """Return the pods whose sites may have changed: because of their own changes, or those of their Services."""
        behind = (key for service in change.services for key in self._world.pods_of(service))
        named = {f"{name.namespace}/" for name in change.objects if name.kind == "Gateway"}
        of_gateways = (key for key in self.sidecars if any(map(key.startswith, named)))
        return {*change.workloads, *behind, *of_gateways}

    def _sidecar(self, key: str) -> ProxySite | None:
        return self._site_of(self._world, key, connected=key in self._connected)

    def _gateway(self, node: str) -> GatewaySite | None:
        return gateway_site(self._world, node.removeprefix(GATEWAY_PREFIX))

    @staticmethod
    def _update(
        known: dict[str, _Site], keys: Iterable[str], site_of: Callable[[str], _Site | None]
    ) -> tuple[dict[str, _Site], frozenset[str]]:
        changed: dict[str, _Site] = {}
        removed: set[str] = set()
        for key in sorted(keys):
            site = site_of(key)
            if site is None:
                removed |= {key} if known.pop(key, None) is not None else set()
            elif known.get(key) != site:
                known[key] = changed[key] = site
        return changed, frozenset(removed)
