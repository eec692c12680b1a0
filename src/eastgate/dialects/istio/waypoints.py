"""The waypoint of traffic to a workload, by the labels of Services, pods and namespaces.

A waypoint sees the caller and the request, and decides by the policies that target it, its class or the Service. It
then calls the workload itself. The workload's ztunnel sees the waypoint's identity and address instead of the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster import (
    GATEWAY_GROUP,
    GATEWAY_NAME_LABEL,
    AllowedRoutes,
    Gateway,
    PodsAcross,
    PodsMatching,
    RoutesFrom,
    Selector,
    Service,
    Target,
    Workload,
    World,
    service_account_id,
)
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.dialects.istio.planes import injected_namespaces
from eastgate.dialects.istio.targets import WAYPOINT_CLASS
from eastgate.ir import AccountsOf, And, InNetwork, Is, OneOf, Or, Predicate, rewrite
from eastgate.ir.attributes import ADDRESS, DESTINATION_ADDRESS, IDENTITY, PORT, Attribute, AttributeKind
from eastgate.ir.matchers import Known, Matcher
from eastgate.ir.predicates import ALWAYS, NEVER, Computed

# Gateways as callers: Istio's own bypass waypoints, unless a label of a Service turns that off.


_INGRESS: Final = "istio.io/ingress-use-waypoint"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_CLASSES: Final = "istio"  # the prefix of the classes of Istio's gateways


def do_gateways_use_waypoint(service: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
    """Return whether the labels of a Service, or else of its namespace, make gateways use its waypoint."""
    return (service if _INGRESS in service else namespace).get(_INGRESS) in _TRUE


def gateway_identities(world: World, trust_domain: str) -> frozenset[str]:
    """Return the identities of Istio's gateways. If no manifest has a gateway's pods, istiod names their account."""
    accounts = frozenset(_accounts(world))
    return frozenset(service_account_id(trust_domain, namespace, name) for namespace, name in accounts)


def _accounts(world: World) -> Iterator[tuple[str, str]]:
    for gateway in world.gateways.values():
        if gateway.gateway_class != WAYPOINT_CLASS and gateway.gateway_class.startswith(_CLASSES):
            pods = list(_pods(world, PodsMatching(gateway.namespace, Selector.of({GATEWAY_NAME_LABEL: gateway.name}))))
            yield from pods or [(gateway.namespace, f"{gateway.name}-{gateway.gateway_class}")]
    for declared in world.mesh_gateways.values():
        if declared.selector:
            yield from _pods(world, PodsAcross(Selector.of(), Selector.of(declared.selector)))


def _pods(world: World, target: Target) -> Iterator[tuple[str, str]]:
    pods = (world.workloads[key] for key in sorted(world.select(target)))
    yield from ((pod.namespace, pod.service_account) for pod in pods)


_USE_WAYPOINT_LABEL: Final = "istio.io/use-waypoint"
_USE_WAYPOINT_NAMESPACE_LABEL: Final = "istio.io/use-waypoint-namespace"
_FOR: Final = "istio.io/waypoint-for"
_MANAGED: Final = "gateway.istio.io/managed"
_MESH_CONTROLLERS: Final = frozenset({"istio.io-mesh-controller", "istio.io-eastwest-controller"})
_SERVICES: Final = frozenset({"service", "all"})
_WORKLOADS: Final = frozenset({"workload", "all"})
_HBONE, _HBONE_PORT = "HBONE", 15008


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A waypoint, with the identity and address of its pods. `address` is None if it is unknown, or not unique."""

    namespace: str
    name: str
    identity: str
    address: str | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Binding:
    """The waypoint of traffic that is addressed to a Service or, if `service` is None, to the workload itself.

    `ports` are those of the Service, each with the ports of the workload that it leads to. `passing` are the identities
    of gateways that bypass the waypoint. `sidecars` bypass it, too: all accounts of namespaces whose pods have
    sidecars. If `only` is not empty, only these identities use the waypoint. `headless` are headless Services: a call
    to one addresses the workload itself. `address` is that of the Service, if it is known.
    """

    service: str | None
    waypoint: Waypoint
    ports: tuple[tuple[int, tuple[int, ...]], ...] = ()
    passing: frozenset[str] = frozenset()
    sidecars: tuple[AccountsOf, ...] = ()
    only: frozenset[str] = frozenset()
    headless: frozenset[str] = frozenset()
    address: str | None = None


def bindings_of(
    workload: Workload, world: World, trust_domain: str, *, by_labels: bool = False, native: bool = True
) -> tuple[Binding, ...]:
    """Return the waypoints of traffic to a workload. Traffic without a waypoint goes to the workload directly.

    `by_labels`: labels decide which callers have sidecars; without it none has one. `native`: the proxy is ztunnel,
    which recognizes a Service by its address, so that only gateways use the waypoint of a headless Service. Eastgate's
    proxies know the Service.
    """
    bindings = tuple(_bindings(workload, world, trust_domain, native=native))
    if not bindings or not by_labels:
        return bindings
    sidecars = tuple(AccountsOf(trust_domain, namespace) for namespace in injected_namespaces(world))
    return tuple(replace(binding, sidecars=sidecars) for binding in bindings)


def _bindings(workload: Workload, world: World, trust_domain: str, *, native: bool) -> Iterator[Binding]:
    if workload.labels.get(_MANAGED) in _MESH_CONTROLLERS or GATEWAY_NAME_LABEL in workload.labels:
        return  # the workload is a waypoint or a gateway itself
    keys = world.services_of(workload.key)
    headless = frozenset(key for key in keys if native and world.services[key].is_headless)
    nobody = frozenset[str]()
    for key in keys:
        service = world.services[key]
        gateway = _waypoint_of_service(service, world)
        is_led = do_gateways_use_waypoint(service.labels, world.namespace(service.namespace).labels)
        gateways = gateway_identities(world, trust_domain) if gateway is not None else nobody
        if gateway is None or (key in headless and not (is_led and gateways)):
            continue
        ports = sorted({port.port for port in service.ports})
        targets = tuple((port, world.target_ports(service, port, workload)) for port in ports)
        passing, only = (nobody if is_led else gateways), (gateways if key in headless else nobody)
        yield Binding(
            key, _waypoint(gateway, world, trust_domain), targets, passing, only=only, address=service.address
        )
    gateway = _waypoint_by_labels(workload.labels, workload.namespace, world)
    if gateway is not None and _traffic(gateway) in _WORKLOADS:
        passing = gateway_identities(world, trust_domain)
        yield Binding(None, _waypoint(gateway, world, trust_domain), passing=passing, headless=headless)


def is_waypoint_pod(workload: Workload, world: World) -> bool:
    """Return whether a workload is the proxy of a waypoint."""
    gateway = world.gateways.get(f"{workload.namespace}/{workload.labels.get(GATEWAY_NAME_LABEL)}")
    of_class = gateway is not None and gateway.gateway_class == WAYPOINT_CLASS
    return of_class or workload.labels.get(_MANAGED) in _MESH_CONTROLLERS


def _waypoint_of_service(service: Service, world: World) -> Gateway | None:
    if service.labels.get(_MANAGED) in _MESH_CONTROLLERS:
        return None
    gateway = _waypoint_by_labels(service.labels, service.namespace, world)
    return gateway if gateway is not None and _traffic(gateway) in _SERVICES else None


def _waypoint_by_labels(labels: Mapping[str, str], namespace: str, world: World) -> Gateway | None:
    """Return the Gateway that labels name, or else those of the namespace, if it accepts clients of the namespace."""
    of_namespace = world.namespace(namespace).labels
    chosen = labels if _USE_WAYPOINT_LABEL in labels else of_namespace
    name = chosen.get(_USE_WAYPOINT_LABEL)
    if name is None or name == "none":
        return None
    gateway = world.gateways.get(f"{chosen.get(_USE_WAYPOINT_NAMESPACE_LABEL, namespace)}/{name}")
    if gateway is None:
        return None
    return gateway if _accepts(gateway, namespace, of_namespace) else None


def _accepts(gateway: Gateway, namespace: str, labels: Mapping[str, str]) -> bool:
    allowed = next(
        (each.allowed_routes for each in gateway.listeners if (each.protocol, each.port) == (_HBONE, _HBONE_PORT)),
        AllowedRoutes(),
    )
    match allowed.namespaces:
        case RoutesFrom.ALL:
            return True
        case RoutesFrom.SELECTOR:
            return allowed.selector is not None and allowed.selector.matches(labels)
        case RoutesFrom.SAME:
            return gateway.namespace == namespace


def _traffic(gateway: Gateway) -> str:
    return gateway.labels.get(_FOR, "service")


def _waypoint(gateway: Gateway, world: World, trust_domain: str) -> Waypoint:
    """Return a waypoint as workloads see it. Its pods have their own account, with the waypoint's name."""
    selected = world.select(PodsMatching(gateway.namespace, Selector.of({GATEWAY_NAME_LABEL: gateway.name})))
    pods = [world.workloads[key] for key in sorted(selected)]
    account = pods[0].service_account if pods else gateway.name
    address = world.address_of(pods[0]) if len(pods) == 1 else None
    identity = service_account_id(trust_domain, gateway.namespace, account)
    return Waypoint(gateway.namespace, gateway.name, identity, address)


def is_bound(policy: IstioPolicy, binding: Binding) -> bool:
    """Return whether a waypoint enforces a policy on this traffic. It never enforces a policy without targets."""
    waypoint = binding.waypoint
    for ref in policy.refs:
        match ref.group, ref.kind:
            case "", "Service":
                bound = binding.service == f"{policy.namespace}/{ref.name}"
            case group, "Gateway" if group == GATEWAY_GROUP:
                bound = (policy.namespace, ref.name) == (waypoint.namespace, waypoint.name)
            case group, "GatewayClass" if group == GATEWAY_GROUP:
                bound = policy.in_root and ref.name == WAYPOINT_CLASS
            case _:
                bound = False
        if bound:
            return True
    return False


# Attributes that no question contains, so that they are unknown
_SERVICE_ADDRESS: Final = Attribute(AttributeKind.DESTINATION_ADDRESS, "of the Service")
_SERVICE_PORT: Final = Attribute(AttributeKind.PORT, "of the Service")


def seen_by(binding: Binding, predicate: Predicate) -> Predicate:
    """Return a predicate of a waypoint's rules: the address and the port that it sees are those of the Service."""
    if binding.service is None:
        return predicate

    def seen(atom: Is | Computed) -> Predicate:
        match atom:
            case Is(attribute, matcher) if attribute is DESTINATION_ADDRESS:
                if binding.address is None:
                    return Is(_SERVICE_ADDRESS, matcher)
                return ALWAYS if matcher.contains(binding.address) else NEVER
            case Is(attribute, matcher) if attribute is PORT:
                return _leading_from(matcher, binding.ports)
            case _:
                return atom

    return rewrite(predicate, seen)


def _leading_from(matcher: Matcher, ports: Sequence[tuple[int, tuple[int, ...]]]) -> Predicate:
    """Return a predicate on a workload's ports to which matching ports of its Service lead, several possibly to one."""
    matching = {target for port, targets in ports if matcher.contains(port) for target in targets}
    others = {target for port, targets in ports if not matcher.contains(port) for target in targets}
    sure, unsure = Is(PORT, OneOf(frozenset(matching - others))), matching & others
    if not unsure:
        return sure
    return Or((sure, And((Is(PORT, OneOf(frozenset(unsure))), Is(_SERVICE_PORT, matcher)))))


_WAYPOINT_ADDRESS: Final = Attribute(AttributeKind.SOURCE_ADDRESS, "of the waypoint")  # always unknown


def seen_from(waypoint: Waypoint, predicate: Predicate) -> Predicate:
    """Return a predicate on connections from a waypoint, with its identity and address instead of the caller's."""

    def seen(atom: Is | Computed) -> Predicate:
        attributes = {atom.attribute} if isinstance(atom, Is) else atom.attributes
        known: dict[Attribute, Known] = {IDENTITY: waypoint.identity}
        if waypoint.address is not None:
            known[ADDRESS] = waypoint.address
        if attributes <= known.keys():
            holds = atom.accepts(known[atom.attribute]) if isinstance(atom, Is) else atom.holds(known)
            return ALWAYS if holds else NEVER
        if isinstance(atom, Is) and isinstance(atom.matcher, InNetwork) and atom.attribute is ADDRESS:
            return Is(_WAYPOINT_ADDRESS, atom.matcher)
        return atom

    return rewrite(predicate, seen)
