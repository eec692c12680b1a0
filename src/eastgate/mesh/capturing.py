"""Proxies in pods: where they stand, and what they know of each other, from what the cluster says of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.cluster import Service, Workload, World
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import ANY_PORT, Capture
from eastgate.envoy.config.outbound_capture import CapturedAccount, CapturedOutbound, CapturedService, join_accounts
from eastgate.envoy.config.probes import PROBE_PORT
from eastgate.mesh.sites import ProxySite, identity_of, ports_of
from eastgate.settings import Settings

__all__ = ["capture_of", "captured_outbound", "pod_site"]


def pod_site(world: World, pod: Workload, excluded: Iterable[int] = ()) -> ProxySite | None:
    """Return the site of the sidecar in a pod, to which all is redirected but `excluded` ports.

    None where the pod has no address of its own yet. Whether it has a sidecar is for others to know.
    """
    if pod.derived or not pod.is_pod or not pod.ips:
        return None
    uncaptured = frozenset({PROBE_PORT, *excluded})
    ports = sorted(ports_of(world, pod) - uncaptured)
    address = pod.ips[0]
    return ProxySite(
        pod.key,
        address,
        {port: port for port in ports},
        {port: SocketAddress(address, port) for port in ports},
        calls_out=True,
        in_pod=True,
        captured=True,
        addresses=pod.ips,
        uncaptured=uncaptured,
    )


def capture_of(site: ProxySite, port: int, ports: Mapping[int, int]) -> Capture | None:
    """Return how connections get to a port of a site; None where it is bound."""
    if not site.captured:
        return None
    # What is not redirected never gets here. Where it does, the pod was made otherwise than it says now.
    known = tuple(sorted({*ports, *site.uncaptured} - {ANY_PORT})) if port == ANY_PORT else ()
    return Capture(site.addresses or (site.address,), known)


def captured_outbound(world: World, sites: Mapping[str, ProxySite], settings: Settings) -> CapturedOutbound:
    """Return the Services and pods that proxies speak mTLS to, of these sites."""
    return CapturedOutbound(
        tuple(
            captured
            for key in sorted(world.services)
            for captured in _service(world.services[key], world, sites, settings)
        ),
        join_accounts(_accounts(world, sites, settings)),
    )


def _service(
    service: Service, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> Iterator[CapturedService]:
    """Yield the ports of a Service of which every pod with an address has a sidecar, which answers there."""
    pods = [world.workloads[key] for key in world.pods_of(service.key)]
    running = [pod for pod in pods if pod.ips and not pod.derived]
    identities = frozenset(identity for pod in running if (identity := identity_of(pod, settings)) is not None)
    if not service.addresses or not running or not all(_is_captured(pod, sites) for pod in running):
        return
    for port in dict.fromkeys(each.port for each in service.ports if each.protocol == "TCP"):
        targets = ((sites[pod.key], world.target_ports(service, port, pod, "TCP")) for pod in running)
        if all(site.uncaptured.isdisjoint(numbers) for site, numbers in targets):
            yield CapturedService(service.key, service.addresses, port, identities)


def _is_captured(pod: Workload, sites: Mapping[str, ProxySite]) -> bool:
    return pod.key in sites and sites[pod.key].captured


def _accounts(world: World, sites: Mapping[str, ProxySite], settings: Settings) -> Iterator[CapturedAccount]:
    for key, site in sorted(sites.items()):
        identity = identity_of(world.workloads[key], settings) if site.captured else None
        if identity is not None:
            yield CapturedAccount(identity, site.addresses or (site.address,), tuple(sorted(site.uncaptured)))
