"""Where the proxies stand: an address for each workload, its ports, and the application behind each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eastgate.settings import Settings
from eastgate.world import Service, Workload, World, service_account_id
from eastgate.xds.clusters import Address, Upstream

__all__ = ["Site", "identity_of", "known_identities", "ports_of", "upstreams"]


@dataclass(frozen=True, slots=True)
class Site:
    """The proxy of a workload. `ports` maps each port of the workload to the one that could be had for it.

    `calls_out`: it has an application that may call others. Whoever can reach the way out is that workload, so that
    there is one only where it is needed.
    """

    workload: str
    address: str
    ports: Mapping[int, int]
    apps: Mapping[int, Address]
    calls_out: bool = False


def identity_of(workload: Workload, settings: Settings) -> str | None:
    """The SPIFFE ID of a workload; None for one outside of the cluster that has none."""
    if workload.kind == "ExternalWorkload":
        return workload.mesh_name if (workload.mesh_name or "").startswith("spiffe://") else None
    return service_account_id(settings.trust_domain, workload.namespace, workload.service_account)


def known_identities(world: World, settings: Settings) -> frozenset[str]:
    """Everyone whom the world knows: the accounts of all workloads, and all accounts that are declared."""
    found = {identity_of(workload, settings) for workload in world.workloads.values()}
    found |= {service_account_id(settings.trust_domain, *key.split("/")) for key in world.service_accounts}
    return frozenset(identity for identity in found if identity is not None)


def ports_of(world: World, workload: Workload) -> frozenset[int]:
    """The ports of a workload: those it declares, and those that Services lead to."""
    found = {port.number for port in workload.ports if port.protocol == "TCP"}
    for service in world.services.values():
        if workload.key in world.pods_of(f"{service.namespace}/{service.name}"):
            found |= set(world.target_ports(service, None, workload))
    return frozenset(found)


def upstreams(world: World, sites: Mapping[str, Site], settings: Settings, namespace: str) -> Iterator[Upstream]:
    """Every port of every Service, as callers of a namespace name and reach it."""
    for key in sorted(world.services):
        service = world.services[key]
        pods = [world.workloads[pod] for pod in sorted(world.pods_of(key)) if pod in sites]
        first = True
        for port in (one.port for one in service.ports if one.protocol == "TCP"):
            endpoints: list[Address] = []
            identities: set[str] = set()
            for pod in pods:
                site, identity = sites[pod.key], identity_of(pod, settings)
                bound = [site.ports[n] for n in world.target_ports(service, port, pod) if n in site.ports]
                endpoints += [Address(site.address, number) for number in bound]
                identities |= {identity} if identity is not None else set()
            hosts = tuple(_hosts(service, port, namespace, settings, bare=first))
            first = False
            if endpoints and identities:
                yield Upstream(f"service/{key}/{port}", hosts, tuple(endpoints), frozenset(identities))


def _hosts(service: Service, port: int, namespace: str, settings: Settings, *, bare: bool) -> Iterator[str]:
    """The names of a Service; without a port they mean the first."""
    name = f"{service.name}.{service.namespace}"
    names = [name, f"{name}.svc", f"{name}.svc.{settings.cluster_domain}"]
    if service.namespace == namespace:
        names.append(service.name)
    for one in names:
        yield f"{one}:{port}"
        if bare:
            yield one
