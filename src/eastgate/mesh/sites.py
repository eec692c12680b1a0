"""Describes where proxies run: the address of each workload, its ports, and the application behind each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.cluster import Service, Workload, World, service_account_id
from eastgate.envoy.config.clusters import SocketAddress, Upstream
from eastgate.records import dataclass
from eastgate.settings import Settings

__all__ = ["ProxySite", "endpoints_of", "identity_of", "known_identities", "ports_of", "upstreams"]


@dataclass(frozen=True, slots=True)
class ProxySite:
    """The proxy of a workload. `ports` maps each port of the workload to the one that could be bound for it.

    `calls_out`: it has an outbound listener. Anyone who can reach that acts as this workload, so it exists only where
    the workload has an application of the user's.

    `captured`: it is in a pod that redirects all connections to it, of which `ports` are only those that are known.
    `addresses` are all of that pod's, `address` the first; `uncaptured` ports it does not redirect.
    """

    workload: str
    address: str
    ports: Mapping[int, int]
    apps: Mapping[int, SocketAddress]
    calls_out: bool = False
    captured: bool = False
    addresses: tuple[str, ...] = ()
    uncaptured: frozenset[int] = frozenset()


def identity_of(workload: Workload, settings: Settings) -> str | None:
    """Return the SPIFFE ID of a workload; None for one outside of the cluster that has none."""
    return workload.identity_in(settings.trust_domain)


def known_identities(world: World, settings: Settings) -> frozenset[str]:
    """Return the identities of all workloads and of all declared ServiceAccounts."""
    identities = {identity_of(workload, settings) for workload in world.workloads.values()}
    identities |= {service_account_id(settings.trust_domain, *key.split("/")) for key in world.service_accounts}
    return frozenset(identity for identity in identities if identity is not None)


def ports_of(world: World, workload: Workload) -> frozenset[int]:
    """Return the TCP ports that a workload declares, and those that Services lead to."""
    ports = {port.number for port in workload.ports if port.protocol == "TCP"}
    for service in world.services.values():
        if workload.key in world.pods_of(f"{service.namespace}/{service.name}"):
            ports |= set(world.target_ports(service, None, workload))
    return frozenset(ports)


def upstreams(world: World, sites: Mapping[str, ProxySite], settings: Settings, namespace: str) -> Iterator[Upstream]:
    """Yield every port of every Service, as callers of a namespace name and reach it."""
    for key in sorted(world.services):
        service = world.services[key]
        first = True
        for port in (service_port.port for service_port in service.ports if service_port.protocol == "TCP"):
            endpoints, identities = endpoints_of(service, port, world, sites, settings)
            hosts = tuple(_hosts(service, port, namespace, settings, bare=first))
            first = False
            if endpoints and identities:
                yield Upstream(f"service/{key}/{port}", hosts, endpoints, identities)


def endpoints_of(
    service: Service, port: int, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> tuple[tuple[SocketAddress, ...], frozenset[str]]:
    """Return the sidecars behind a port of a Service, and their identities."""
    endpoints: list[SocketAddress] = []
    identities: set[str] = set()
    for key in sorted(world.pods_of(f"{service.namespace}/{service.name}")):
        if key not in sites:
            continue
        pod, site = world.workloads[key], sites[key]
        bound = [site.ports[number] for number in world.target_ports(service, port, pod) if number in site.ports]
        endpoints += [SocketAddress(site.address, number) for number in bound]
        identity = identity_of(pod, settings)
        identities |= {identity} if identity is not None else set()
    return tuple(endpoints), frozenset(identities)


def _hosts(service: Service, port: int, namespace: str, settings: Settings, *, bare: bool) -> Iterator[str]:
    """Yield the host names of a Service; those without a port (`bare`) mean its first."""
    name = f"{service.name}.{service.namespace}"
    names = [name, f"{name}.svc", f"{name}.svc.{settings.cluster_domain}"]
    if service.namespace == namespace:
        names.append(service.name)
    for host in names:
        yield f"{host}:{port}"
        if bare:
            yield host
