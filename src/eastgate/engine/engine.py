"""The engine: a world and policies in, decisions out.

A point of enforcement is a workload, a Gateway, a route, a Backend, or a dead end of the way to one. Workloads that the
same policies target form a class and share one program. Programs are compiled when they are first needed, or all at
once by `compile_all`; a change forgets only the programs of the points that it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import ClassVar, Generic, TypeVar
from weakref import WeakValueDictionary

from eastgate.basics.collection import no_collection
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    GATEWAY_NAME_LABEL,
    ROUTE_KINDS,
    Change,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodsMatching,
    RouteNamed,
    Selector,
    Workload,
    World,
)
from eastgate.cluster.installations import INSTALLATIONS
from eastgate.cluster.points import DeadEnd, Direction, NamedPoint, NetworkEnd, Point, RuleNamed, UnseenHop
from eastgate.engine.attachment import Attachments, Targeting
from eastgate.engine.compiled import Finder, Program, VerdictNumber, compile_layers
from eastgate.ir import (
    AllowAny,
    Attachment,
    Chain,
    Layer,
    Placement,
    PolicyRef,
    Refusal,
    Request,
    ScopeKind,
    Site,
    Stances,
    Unroutable,
    labels_of,
)

P = TypeVar("P", bound=Targeting)

_AT_HOPS = Placement(Site.NETWORK, "unseen")
# Settings of a mesh are in a ConfigMap or an installation, and a Gateway may be a waypoint of any workload
_ANYWHERE_KINDS = frozenset({"ConfigMap", "Gateway", *(kind for _, kind in INSTALLATIONS)})
_AT_ROUTES = Placement(Site.GATEWAY, "route")
_AT_HOSTS = Placement(None, "authorino")


class Engine(Generic[P]):
    """Decides. Some parts are the dialects': `assemble` makes layers of the policies on a point, and `stances` tells
    what else about a workload those depend on. Policies that are `on_network` are enforced at the ends of connections,
    `assemble_end` makes their layers, and only the proxies of a local mesh know them.
    """

    def __init__(
        self,
        world: World,
        policies: Iterable[P],
        assemble: Callable[[Sequence[Attachment[P]], Stances], Sequence[Layer]],
        stances: Callable[[Workload, Sequence[Attachment[P]]], Stances] = lambda _workload, _attached: (),
        on_network: Callable[[P], bool] = lambda _policy: False,
        assemble_end: Callable[
            [Sequence[Attachment[P]], Direction], Sequence[Layer]
        ] = lambda _attached, _direction: (),
    ) -> None:
        self.world = world
        self._assemble = assemble
        self._stances = stances
        self._on_network = on_network
        self._assemble_end = assemble_end
        with no_collection():
            self._attachments: Attachments[P] = Attachments(world, policies)
        self._network = {policy.ref for policy in self._attachments.policies.values() if on_network(policy)}
        self._programs: dict[Point, Program] = {}
        self._elsewhere: set[Point] = set()  # those of them that are no workloads
        self._finders: dict[Point, Finder] = {}  # program.finder of each point: saves an attribute lookup
        self._ends: dict[NetworkEnd, Program] = {}
        self._classes: WeakValueDictionary[tuple[object, ...], Program] = WeakValueDictionary()
        self._serving = self._gateway_pods()
        self._shows_proxies = self._is_proxy_asked_for()
        self.touched: set[Point] = set()  # since somebody cleared it
        self.version = 0  # grows with every change of policies or of the world
        world.watch(self.world_changed)

    def decide(self, point: Point, request: Request) -> VerdictNumber:
        """Decide a request at a point: an odd number allows it. The point's program says why."""
        try:
            finder = self._finders[point]
        except KeyError:
            finder = self.program(point).finder
        return finder.find(request)

    def program(self, point: Point) -> Program:
        """Return the program that decides at a point. Raises KeyError where there is no such workload."""
        if isinstance(point, NetworkEnd):
            return self._program_at(point)
        program = self._programs.get(point)
        if program is None:
            attached = self.attached(point)
            match point:
                case str():
                    program = self._shared(self.world.workloads[point], attached)
                case DeadEnd(why):
                    program = compile_layers([_refusing(why)])
                case UnseenHop():
                    program = compile_layers([Layer(_AT_HOPS, Chain((), scope=UnseenScope(str(point))))])
                case RuleNamed():
                    program = self._with_same_policies(attached)
                case _:
                    program = compile_layers(self._assemble(attached, ()))
            self._programs[point] = program
            self._finders[point] = program.finder
            if not isinstance(point, str):
                self._elsewhere.add(point)
        return program

    def _shared(self, workload: Workload, attached: Sequence[Attachment[P]]) -> Program:
        """Return the program of a workload's class."""
        stances = self._stances(workload, attached)
        same = (stances, *(part for attachment in attached for part in (attachment.policy, attachment.service)))
        program = self._classes.get(same)
        if program is None:
            program = self._classes[same] = compile_layers(self._assemble(attached, stances))
        return program

    def _with_same_policies(self, attached: Sequence[Attachment[P]]) -> Program:
        """Return the program of a rule of a route, which all rules share that the same policies target."""
        same = (RuleNamed, *(part for attachment in attached for part in (attachment.policy, attachment.perhaps)))
        program = self._classes.get(same)
        if program is None:
            program = self._classes[same] = compile_layers(self._assemble(attached, ()))
        return program

    def _program_at(self, end: NetworkEnd) -> Program:
        """Return the program of an end, which all ends share that the same policies of the network target."""
        program = self._ends.get(end)
        if program is None:
            attached = self.attached(end)
            same = (end.direction, *(attachment.policy for attachment in attached))
            program = self._classes.get(same)
            if program is None:
                program = self._classes[same] = compile_layers(self._assemble_end(attached, end.direction))
            self._ends[end] = program
        return program

    def is_guarded(self, rule: RuleNamed) -> bool:
        """Return whether policies target a rule of a route."""
        return bool(self._attachments.at_rule(rule))

    def host_point(self, host: str) -> HostNamed | None:
        """Return the point where an authorizer that finds policies by host decides; None where it finds none."""
        return self._attachments.host_point(host)

    @property
    def host_refs(self) -> Set[PolicyRef]:
        """Return the names of the policies for hosts, which an authorizer decides by that other proxies ask."""
        return self._attachments.about_hosts

    @property
    def has_hosts(self) -> bool:
        """Return whether any policy is for hosts."""
        return bool(self.host_refs)

    def hosts_of(self, ref: PolicyRef) -> tuple[str, ...] | None:
        """Return the hosts that a policy is for; None where there is no such policy."""
        policy = self._attachments.policies.get(ref)
        return None if policy is None else tuple(each.host for each in policy.targets if isinstance(each, HostNamed))

    @property
    def network_policies(self) -> list[P]:
        """Return the policies that the network applies."""
        return [self._attachments.policies[ref] for ref in self._network if ref in self._attachments.policies]

    def layers_of(self, policy: P, direction: Direction) -> Sequence[Layer]:
        """Return what a policy of the network does by itself at the ends that it targets."""
        return self._assemble_end([Attachment(policy)], direction)

    @property
    def network_refs(self) -> Set[PolicyRef]:
        """Return the names of the policies that the network applies."""
        return self._network

    @property
    def has_network_policies(self) -> bool:
        """Return whether the two ends of a connection have to be looked at."""
        return bool(self._network)

    def compile_all(self) -> int:
        """Compile the programs of all workloads now; tells how many classes they form."""
        with no_collection():
            for workload in self.world.workloads:
                self.program(workload)
        return len(self._classes)

    @property
    def policies(self) -> Sequence[P]:
        """Return every policy, in the order of their names."""
        return sorted(self._attachments.policies.values(), key=lambda policy: str(policy.ref))

    def count(self, kind: type) -> int:
        """Count the policies of a type."""
        return self._attachments.types[kind]

    def points_of(self, ref: PolicyRef) -> frozenset[Point]:
        """Return the points that a policy, or one that refers to it, targets."""
        return self._attachments.points_of(ref)

    def points_targeted(self, policy: P) -> frozenset[Point]:
        """Return the points that the targets of a policy mean, or of one that refers to a policy of its name."""
        return self._attachments.points_targeted(policy)

    def uncertain(self, point: Point) -> list[P]:
        """Return the policies that may target a point or not: they select by labels that a cluster adds to pods."""
        key = point.workload if isinstance(point, NetworkEnd) else point
        workload = self.world.workloads.get(key) if isinstance(key, str) else None
        uncertain = self._attachments.uncertain(workload) if workload is not None else []
        return [policy for policy in uncertain if (policy.ref in self._network) == isinstance(point, NetworkEnd)]

    def attached(self, point: Point) -> tuple[Attachment[P], ...]:
        """Return the policies that target a point, in the order of their names."""
        match point:
            case str():
                attached = self._attachments.of(self.world.workloads[point])
                if not self._network:
                    return attached
                return tuple(each for each in attached if each.policy.ref not in self._network)
            case NetworkEnd():
                attached = self._attachments.of(self._pod_at(point))
                return tuple(each for each in attached if each.policy.ref in self._network)
            case DeadEnd() | UnseenHop():
                return ()
            case RuleNamed():
                return self._attachments.at_rule(point)
            case HostNamed():
                return self._attachments.at_host(point)
            case _:
                return self._attachments.at(point)

    def _pod_at(self, end: NetworkEnd) -> Workload:
        if end.labels is None:
            return self.world.workloads[end.workload]
        namespace, _, name = end.workload.partition("/")
        return Workload(end.workload, namespace, name, labels_of(end.labels))

    def put_policy(self, policy: P) -> frozenset[Point]:
        """Add or replace a policy; tells which points it touches."""
        if self._on_network(policy):
            self._network.add(policy.ref)
        else:
            self._network.discard(policy.ref)
        anywhere = self._anywhere(policy.ref)
        return self._forget(self._attachments.put(policy) | anywhere | self._anywhere(policy.ref))

    def remove_policy(self, ref: PolicyRef) -> frozenset[Point]:
        """Remove a policy, if it is there; tells which points it touched."""
        self._network.discard(ref)
        anywhere = self._anywhere(ref)
        return self._forget(self._attachments.remove(ref) | anywhere)

    def _anywhere(self, ref: PolicyRef) -> set[Point]:
        """Return the gateways, routes and backends that were looked at, declared or not, if a policy is about any."""
        policy = self._attachments.policies.get(ref)
        if self._attachments.is_about_rules(ref):
            return {point for point in self._elsewhere if isinstance(point, RuleNamed)}
        if self._attachments.is_about_hosts(ref):
            return {point for point in self._elsewhere if isinstance(point, HostNamed)}
        if policy is None or not any(isinstance(target, Everything | GatewaysMatching) for target in policy.targets):
            return set()
        return self._named_points()

    def _named_points(self) -> set[Point]:
        return {point for point in self._elsewhere if isinstance(point, NamedPoint | RuleNamed | HostNamed)}

    def world_changed(self, change: Change) -> frozenset[Point]:
        """Forget the programs that a change of the world touches; return their points. The world calls this itself."""
        touched: set[Point] = set(change.workloads)
        for changed in change.objects:
            if changed.kind in ROUTE_KINDS:  # a workload may have a say in which routes lead to it
                touched |= self.world.select(PodsMatching(changed.namespace, Selector.of()))
                touched |= self.world.select(ExternalsMatching(changed.namespace, Selector.of()))
                touched.add(RouteNamed(changed.namespace, changed.name, changed.kind))
            elif changed.kind == "Gateway":  # policies may select its pods by their labels
                touched.add(GatewayNamed(changed.namespace, changed.name))
            elif changed.kind == "Namespace":  # whether it is declared matters too
                touched |= self.world.select(Everything(changed.name))
        namespaces = {key.partition("/")[0] for key in change.workloads}
        touched |= {  # policies may select the pods of Gateways
            GatewayNamed(gateway.namespace, gateway.name)
            for gateway in self.world.gateways.values()
            if gateway.namespace in namespaces
        }
        if any(changed.kind == "ReferenceGrant" for changed in change.objects):
            touched |= self._named_points()  # they may refer to authorizers
        for service in change.services:  # its labels may lead traffic to its pods another way
            touched.update(self.world.pods_of(service))
        serves_gateways, showed_proxies = self._serve_gateways(change), self._shows_proxies
        self._shows_proxies = self._is_proxy_asked_for()
        is_anywhere = serves_gateways or showed_proxies is not self._shows_proxies
        if is_anywhere or any(changed.kind in _ANYWHERE_KINDS for changed in change.objects):
            touched |= set(self._programs)
        return self._forget(touched)

    def _is_proxy_asked_for(self) -> bool:
        """Return whether a namespace, or a pod other than those of Gateways, asks a mesh for proxies.

        One that does shows how all other pods get theirs.
        """
        return bool(self.world.meshed_namespaces) or any(key not in self._serving for key in self.world.meshed)

    def _serve_gateways(self, change: Change) -> bool:
        """Return whether a pod of a Gateway has changed: others may see its identity instead of their callers'."""
        before = self._serving
        if any(changed.kind == "Gateway" for changed in change.objects):
            self._serving = self._gateway_pods()
        else:
            now = {key for key in change.workloads if self._is_gateway_pod(self.world.workloads.get(key))}
            self._serving = (before - change.workloads) | now
        return not change.workloads.isdisjoint(before | self._serving)

    def _gateway_pods(self) -> set[str]:
        return {key for key, workload in self.world.workloads.items() if self._is_gateway_pod(workload)}

    def _is_gateway_pod(self, workload: Workload | None) -> bool:
        if workload is None or GATEWAY_NAME_LABEL in workload.labels:
            return workload is not None
        selectors = (gateway.selector for gateway in self.world.mesh_gateways.values())
        return any(selector and selector.items() <= workload.labels.items() for selector in selectors)

    def _forget(self, touched: set[Point]) -> frozenset[Point]:
        for point in touched:
            self._programs.pop(point, None)
            self._finders.pop(point, None)
            self._elsewhere.discard(point)
        self._ends.clear()
        self.touched |= touched
        self.version += 1  # last: whoever sees it must not meet a program from before
        return frozenset(touched)


@dataclass(frozen=True, slots=True)
class UnseenScope:
    """The reason for which nothing is asked on a part of the way: the pods at its ends are in no manifest."""

    hop: str
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        return f"from {self.hop}: no manifest has these pods, so that network policies are not considered there"


def _refusing(why: Unroutable) -> Layer:
    at = _AT_HOSTS if why is Unroutable.NO_AUTH_CONFIG else _AT_ROUTES
    return Layer(at, Chain((AllowAny(why, (), Refusal.NOT_FOUND),)))
