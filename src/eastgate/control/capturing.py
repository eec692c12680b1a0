"""Sites and outbound configuration of proxies in pods, from the state of the cluster."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from eastgate.cluster import GATEWAY_NAME_LABEL, Service, Workload, World
from eastgate.control.gateways import gateway_identity
from eastgate.control.sites import ProxySite, identity_of, ports_of
from eastgate.envoy.config.capture import CapturedAccount, CapturedOutbound, CapturedService, join_accounts
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import ANY_PORT, Capture
from eastgate.envoy.config.probes import PROBE_PORT
from eastgate.ir import ALWAYS, NEVER, Layer
from eastgate.ir.symbolic.stages import OrderedStage, order_chain
from eastgate.settings import Settings

# Computes the mode of a port: the verdict for callers that no rule matches, with the names that `get` prints.


class PortMode(enum.StrEnum):
    """The modes, from the widest to the narrowest."""

    OPEN = "open"  # no rule can deny a request
    OPEN_EXCEPT = "open-except"  # a request that no rule denies is allowed
    ALLOW_LIST = "allow-list"  # a request that no rule allows is denied


_ORDER = list(PortMode)


def mode_of(layers: Iterable[Layer]) -> PortMode:
    """Return the narrowest mode of these layers: ALL of them must allow."""
    stages = (stage for layer in layers for chain in layer.chains for stage in order_chain(chain))
    return max(map(_mode, stages), key=_ORDER.index, default=PortMode.OPEN)


def changed_modes(
    workload: str, before: Mapping[int, PortMode] | None, now: Mapping[int, PortMode]
) -> dict[str, tuple[PortMode | None, PortMode]]:
    """Return the changed modes of a workload's ports as (before, now), or one entry for the workload if all changed
    alike.

    For a new workload, only ports without an allow-list are reported.
    """
    was = before or {}
    changed = {
        port: (was.get(port), mode)
        for port, mode in now.items()
        if mode is not was.get(port) and (port in was or mode is not PortMode.ALLOW_LIST)
    }
    if len(changed) == len(now) and len(set(changed.values())) == 1:
        return {workload: next(iter(changed.values()))}
    return {f"{workload}:{port}": modes for port, modes in changed.items()}


def _mode(stage: OrderedStage) -> PortMode:
    if stage.denies_by_default:
        return PortMode.OPEN if any(arm.when == ALWAYS for arm in stage.accepting) else PortMode.ALLOW_LIST
    denying = [arm for arm in stage.denying if arm.when != NEVER]
    if not stage.ranked and any(arm.when == ALWAYS and arm.authorizer is None for arm in denying):
        return PortMode.ALLOW_LIST
    return PortMode.OPEN_EXCEPT if denying else PortMode.OPEN


_NO_GATEWAYS: Final[Mapping[str, Collection[int]]] = MappingProxyType({})


def pod_site(world: World, pod: Workload, excluded: Iterable[int] = ()) -> ProxySite | None:
    """Return the site of the sidecar in a pod that redirects all ports except `excluded`, or None without a pod
    address.

    The caller of this function knows whether the pod has a sidecar.
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
    """Return the capture of connections to a port of a site, or None if the port is bound."""
    if not site.captured:
        return None
    # A port that is not redirected never gets here, unless the pod was created with other annotations.
    known = tuple(sorted({*ports, *site.uncaptured} - {ANY_PORT})) if port == ANY_PORT else ()
    return Capture(site.addresses or (site.address,), known)


def captured_outbound(
    world: World,
    sites: Mapping[str, ProxySite],
    settings: Settings,
    gateways: Mapping[str, Collection[int]] = _NO_GATEWAYS,
) -> CapturedOutbound:
    """Return the Services and pods of these sites to which proxies speak mTLS.

    `gateways` are the gateways in pods, by namespace and name, with their ports without TLS. At these ports, a caller
    in a pod is known by its account.
    """
    services = [world.services[key] for key in sorted(world.services)]
    of_gateways = (each for service in services for each in _gateway_service(service, world, gateways, settings))
    return CapturedOutbound(
        (*(each for service in services for each in _service(service, world, sites, settings)), *of_gateways),
        join_accounts(_accounts(world, sites, settings)),
    )


def _gateway_service(
    service: Service, world: World, gateways: Mapping[str, Collection[int]], settings: Settings
) -> Iterator[CapturedService]:
    """Yield the ports of a Service whose pods all belong to one Gateway, and the ports of these pods."""
    if not gateways:
        return
    running = _running(service, world)
    keys = {_gateway_of(pod) for pod in running}
    key = keys.pop() if len(keys) == 1 else None
    if key is None or key not in gateways:
        return
    identities = frozenset({gateway_identity(world.gateways[key], settings)})
    addresses = tuple(sorted({address for pod in running for address in pod.ips}))
    for port in dict.fromkeys(each.port for each in service.ports if each.protocol == "TCP"):
        targets = {number for pod in running for number in world.target_ports(service, port, pod, "TCP")}
        if targets and targets.issubset(gateways[key]):
            if service.addresses:
                yield CapturedService(service.key, service.addresses, port, identities)
            yield from (CapturedService(f"{service.key}/pods", addresses, each, identities) for each in sorted(targets))


def _gateway_of(pod: Workload) -> str | None:
    """Return the Gateway of a pod: the name of its account, since the label may hold a shortened name."""
    return f"{pod.namespace}/{pod.service_account}" if GATEWAY_NAME_LABEL in pod.labels else None


def _running(service: Service, world: World) -> list[Workload]:
    pods = (world.workloads[key] for key in world.pods_of(service.key))
    return [pod for pod in pods if pod.ips and not pod.derived]


def _service(
    service: Service, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> Iterator[CapturedService]:
    """Yield the ports of a Service, if every pod with an address has a sidecar that answers there."""
    running = _running(service, world)
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
