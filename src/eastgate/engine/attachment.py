"""The index of policies by enforcement point (workload, gateway, backend). It follows changes of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Generic, Never, Protocol, TypeAlias, TypeVar, assert_never

from eastgate.cluster import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
    Target,
    Workload,
    World,
    is_added_label,
)
from eastgate.cluster.hosts import find_host, hosts_meaning
from eastgate.cluster.points import ANY_LISTENER, NamedPoint, Point, RuleNamed, is_rule_of
from eastgate.ir import Attachment, PolicyRef


class Targeting(Protocol):
    """A policy as the engine reads it: its name, its targets and its references. Dialects read the rest."""

    @property
    def ref(self) -> PolicyRef:
        """Return the name of the policy."""
        ...

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return the targets of the policy. It applies to ANY of them."""
        ...

    @property
    def references(self) -> tuple[PolicyRef, ...]:
        """Return the policies that it refers to. They are attached at the same points."""
        ...


P = TypeVar("P", bound=Targeting)


class Attachments(Generic[P]):
    """An index of policies. It finds the policies of one workload without a scan of all policies."""

    def __init__(self, world: World, policies: Iterable[P] = ()) -> None:
        self._world = world
        self.policies: dict[PolicyRef, P] = {}
        self.types: Counter[type] = Counter()  # the number of policies of each type
        self._shelves: dict[_ShelfKey, _Shelf[P]] = {}
        self._referring: dict[PolicyRef, set[PolicyRef]] = {}
        self._by_added_labels: dict[PolicyRef, P] = {}
        self._about_rules: set[PolicyRef] = set()
        self._about_hosts: set[PolicyRef] = set()
        for policy in policies:
            self._file(policy)

    def put(self, policy: P) -> set[Point]:
        """Add or replace a policy, and return the points that it touches."""
        touched = self._touched(self._file(policy))
        return touched | self._touched(policy)

    def remove(self, ref: PolicyRef) -> set[Point]:
        """Remove a policy, and return the points that it touched. A missing policy touches none."""
        return self._touched(self._unfile(ref))

    def points_of(self, ref: PolicyRef) -> frozenset[Point]:
        """Return the points that a policy touches; none if it does not exist."""
        return frozenset(self._touched(self.policies.get(ref)))

    def points_targeted(self, policy: P) -> frozenset[Point]:
        """Return the points that a policy would touch. It need not be in the index."""
        return frozenset(self._touched(policy))

    def uncertain(self, workload: Workload) -> list[P]:
        """Return the policies that may select the pods of a template, depending on labels that only a cluster adds."""
        if not self._by_added_labels or not workload.derived:
            return []
        return [
            policy
            for policy in self._by_added_labels.values()
            if any(_may_select(target, workload, self._world) for target in policy.targets)
        ]

    def _touched(self, policy: P | None) -> set[Point]:
        if policy is None:
            return set()
        referring = (self.policies[ref] for ref in self._referring.get(policy.ref, ()))
        targets = (target for affected in (policy, *referring) for target in affected.targets)
        return {point for target in targets for point in self._points(target)}

    def _points(self, target: Target) -> Iterable[Point]:
        if isinstance(target, Everything):
            return (*self._world.select(target), *self._named_in(target.namespace))
        if isinstance(target, GatewaysMatching):
            return self._world.select_gateways(target)
        if isinstance(target, RulesOfGateway):
            return (target.gateway,)
        if isinstance(target, RulesOfRoute):
            return (target.route,)
        return (target,) if isinstance(target, NamedPoint | HostNamed) else self._world.select(target)

    def _named_in(self, namespace: str | None) -> set[NamedPoint]:
        """Return the gateways, routes and backends of a namespace; None: of all namespaces."""
        world = self._world
        gateways = (GatewayNamed(gateway.namespace, gateway.name) for gateway in world.gateways.values())
        routes = (RouteNamed(route.namespace, route.name, route.kind) for route in world.routes.values())
        backends = (BackendNamed(backend.namespace, backend.name) for backend in world.backends.values())
        points: list[NamedPoint] = [*gateways, *routes, *backends]
        return {point for point in points if namespace in (None, point.namespace)}

    def of(self, workload: Workload) -> tuple[Attachment[P], ...]:
        """Return the attachments of a workload, sorted by policy name, then those of policies that they refer to."""
        matches = self._world.target_matches
        attached = {
            order: attachment
            for key in self._shelf_keys(workload)
            for target, order, attachment in self._shelves.get(key, _EMPTY).values()
            if attachment.service is not None or matches(target, workload)
        }
        return self._with_references(tuple(attached[order] for order in sorted(attached)))

    def at(self, point: NamedPoint) -> tuple[Attachment[P], ...]:
        """Return the attachments of a Gateway, route or Backend, sorted by policy name."""
        attached = {order: attachment for _, order, attachment in self._shelves.get(point, _EMPTY).values()}
        for key in ((point.namespace, None), (None, None)):
            shelf = self._shelves.get(key, _EMPTY).values()
            attached |= {order: attachment for target, order, attachment in shelf if isinstance(target, Everything)}
        if isinstance(point, GatewayNamed):
            attached |= self._at_gateway(point)
        return self._with_references(tuple(attached[order] for order in sorted(attached)))

    def at_rule(self, point: RuleNamed) -> tuple[Attachment[P], ...]:
        """Return the attachments of one rule of a route behind one listener, sorted by policy name."""
        if not self._about_rules:
            return ()
        route, gateway = point.route, point.gateway
        targets: list[RulesOfRoute | RulesOfGateway] = [RulesOfRoute(*route)]
        if point.rule_name is not None:
            targets.append(RulesOfRoute(*route, point.rule_name))
        if gateway is not None:
            targets.append(RulesOfGateway(gateway.namespace, gateway.name))
            targets.append(RulesOfGateway(gateway.namespace, gateway.name, point.listener))
        shelves = (self._shelves.get(target, _EMPTY).values() for target in targets if is_rule_of(point, target))
        attached = {order: attachment for shelf in shelves for _, order, attachment in shelf}
        attached |= self._at_any_listener(point)
        return self._with_references(tuple(attached[order] for order in sorted(attached)))

    def _at_any_listener(self, point: RuleNamed) -> dict[_Order, Attachment[P]]:
        """Return the attachments by listeners of an undeclared Gateway. Requests may arrive through any listener."""
        gateway = point.gateway
        if gateway is None or point.listener != ANY_LISTENER:
            return {}
        if f"{gateway.namespace}/{gateway.name}" in self._world.gateways:
            return {}
        return {
            _order(ref, None): Attachment(self.policies[ref], perhaps=True)
            for ref in self._about_rules
            for target in self.policies[ref].targets
            if isinstance(target, RulesOfGateway)
            and target.listener is not None
            and is_rule_of(point._replace(listener=target.listener), target)
        }

    def at_host(self, point: HostNamed) -> tuple[Attachment[P], ...]:
        """Return the attachments of policies for a host, or for a wildcard that covers it, sorted by policy name."""
        shelves = (self._shelves.get(HostNamed(host), _EMPTY).values() for host in hosts_meaning(point.host))
        attached = {order: attachment for shelf in shelves for _, order, attachment in shelf}
        anywhere = self._shelves.get((None, None), _EMPTY).values()
        attached |= {order: attachment for target, order, attachment in anywhere if isinstance(target, Everything)}
        return tuple(Attachment(attached[order].policy, host=point.host) for order in sorted(attached))

    def host_point(self, host: str) -> HostNamed | None:
        """Return the point where requests to a host are decided, or None if no policy is for the host."""
        closest = find_host(host, lambda known: HostNamed(known) in self._shelves)
        return HostNamed(closest) if closest is not None else None

    def is_about_hosts(self, ref: PolicyRef) -> bool:
        """Return whether a policy targets hosts."""
        return ref in self._about_hosts

    @property
    def about_hosts(self) -> Set[PolicyRef]:
        """Return the names of the policies that target hosts."""
        return self._about_hosts

    def is_about_rules(self, ref: PolicyRef) -> bool:
        """Return whether a policy targets rules of routes."""
        return ref in self._about_rules

    def _at_gateway(self, point: GatewayNamed) -> dict[_Order, Attachment[P]]:
        """Return the attachments of a Gateway by the labels of its pods."""
        pods = self._world.gateway_labels(point.namespace, point.name)
        return {
            order: attachment
            for namespace in (point.namespace, None)
            for label in (None, *{label for labels in pods for label in labels.items()})
            for target, order, attachment in self._shelves.get((namespace, label), _EMPTY).values()
            if isinstance(target, GatewaysMatching) and any(map(target.selector.matches, pods))
        }

    def _with_references(self, attached: tuple[Attachment[P], ...]) -> tuple[Attachment[P], ...]:
        if not self._referring:
            return attached
        wanted = {ref for attachment in attached for ref in attachment.policy.references if ref in self.policies}
        return (*attached, *(Attachment(self.policies[ref]) for ref in sorted(wanted, key=_name)))

    def _shelf_keys(self, workload: Workload) -> Iterator[_ShelfKey]:
        """Yield the keys of all shelves with policies that may target a workload."""
        for namespace in (workload.namespace, None):
            yield namespace, None
            for label in workload.labels.items():
                yield namespace, label
        yield from self._world.services_of(workload.key)

    def _file(self, policy: P) -> P | None:
        """Add a policy to its shelves, and return the policy that it replaces."""
        ref = policy.ref
        before = self._unfile(ref)
        self.policies[ref] = policy
        self.types[type(policy)] += 1
        for number, target in enumerate(policy.targets):
            service = f"{target.namespace}/{target.service}" if isinstance(target, PodsOfService) else None
            filed = (target, _order(ref, service), Attachment(policy, service))
            self._shelves.setdefault(_shelf_key(target), {})[ref, number] = filed
        for other in policy.references:
            self._referring.setdefault(other, set()).add(ref)
        if any(is_added_label(key) for target in policy.targets for key in _labels(target)):
            self._by_added_labels[ref] = policy
        if any(isinstance(target, RulesOfGateway | RulesOfRoute) for target in policy.targets):
            self._about_rules.add(ref)
        if any(isinstance(target, HostNamed) for target in policy.targets):
            self._about_hosts.add(ref)
        return before

    def _unfile(self, ref: PolicyRef) -> P | None:
        policy = self.policies.pop(ref, None)
        self._by_added_labels.pop(ref, None)
        self._about_rules.discard(ref)
        self._about_hosts.discard(ref)
        self.types[type(policy)] -= 1
        for number, target in enumerate(policy.targets if policy is not None else ()):
            key = _shelf_key(target)
            del self._shelves[key][ref, number]
            if not self._shelves[key]:
                del self._shelves[key]
        for other in set(policy.references) if policy is not None else ():
            self._referring[other].discard(ref)
            if not self._referring[other]:
                del self._referring[other]
        return policy


# A target is filed under its own name, its Service, or its namespace and a label that all its pods have. The label is
# None if its pods need no label, and the namespace is None if it selects pods of any namespace.
_ShelfKey: TypeAlias = (
    str | NamedPoint | RulesOfGateway | RulesOfRoute | HostNamed | tuple[str | None, tuple[str, str] | None]
)
_Order: TypeAlias = tuple[str, str, str, str, str]  # the sort key of a policy and a Service
_Shelf: TypeAlias = dict[tuple[PolicyRef, int], tuple[Target, _Order, Attachment[P]]]
_EMPTY: Mapping[tuple[PolicyRef, int], tuple[Target, _Order, Attachment[Never]]] = {}


def _shelf_key(target: Target) -> _ShelfKey:
    match target:
        case PodsOfService(namespace, service):
            return f"{namespace}/{service}"
        case PodsMatching(namespace, selector) | GatewaysMatching(namespace, selector):
            return namespace, selector.anchor
        case PodsAcross(pods=pods):
            return None, pods.anchor
        case PodsOwnedBy(namespace) | PodsOfAccount(namespace) | PodNamed(namespace) | ExternalsMatching(namespace):
            return namespace, None
        case Everything(namespace):
            return namespace, None
        case GatewayNamed() | RouteNamed() | BackendNamed() | RulesOfGateway() | RulesOfRoute() | HostNamed():
            return target
        case _:
            assert_never(target)


def _labels(target: Target) -> Iterable[str]:
    match target:
        case PodsMatching(_, selector) | PodsAcross(_, selector):
            return selector.keys
        case GatewaysMatching():
            return ()
        case PodsOfService() | PodsOwnedBy() | PodsOfAccount() | PodNamed() | ExternalsMatching() | Everything():
            return ()
        case GatewayNamed() | RouteNamed() | BackendNamed() | RulesOfGateway() | RulesOfRoute() | HostNamed():
            return ()
        case _:
            assert_never(target)


def _may_select(target: Target, workload: Workload, world: World) -> bool:
    match target:
        case PodsMatching(namespace, selector):
            return namespace == workload.namespace and selector.may_match(workload.labels)
        case PodsAcross(namespaces, pods):
            labels = world.namespace(workload.namespace).labels
            return namespaces.matches(labels) and pods.may_match(workload.labels)
        case PodsOfService() | PodsOwnedBy() | PodsOfAccount() | PodNamed() | ExternalsMatching() | Everything():
            return False  # these targets do not read labels of pods
        case GatewaysMatching() | GatewayNamed() | RouteNamed() | BackendNamed() | HostNamed():
            return False
        case RulesOfGateway() | RulesOfRoute():
            return False
        case _:
            assert_never(target)


def _name(ref: PolicyRef) -> tuple[str, str, str, str]:
    return ref.kind, ref.namespace or "", ref.name, ref.group


def _order(ref: PolicyRef, service: str | None) -> _Order:
    return *_name(ref), service or ""
