"""The programs of an engine. They decide requests in a world with policies.

An enforcement point is a workload, a Gateway, a route, a Backend, or a dead end of the path to one. Workloads with the
same policies form a class and share one program. A program is compiled when it is first needed; `compile_all` compiles
all of them at once. A change forgets only the programs of the points that it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import ClassVar, Generic, TypeVar
from weakref import WeakValueDictionary

from eastgate.basics.collection import no_collection
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    HostNamed,
    Workload,
    World,
)
from eastgate.cluster.points import DeadEnd, Direction, NetworkEnd, Point, RuleNamed, UnseenHop
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
    labels_of,
)

P = TypeVar("P", bound=Targeting)

_AT_HOPS = Placement(Site.NETWORK, "unseen")


class Programs(Generic[P]):
    """The program of each point, and the policies that the program is made of. This class is for reading.

    Dialects provide some parts. `assemble` makes layers from the policies at a point. `stances` returns the other
    properties of a workload that its layers depend on. Policies that are `on_network` are enforced at the ends of
    connections, and `assemble_end` makes their layers. Of all proxies, only those of a local mesh enforce them.
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
        self._other_points: set[Point] = set()  # the points with programs that are not workloads
        self._finders: dict[Point, Finder] = {}  # program.finder of each point: this saves an attribute lookup
        self._ends: dict[NetworkEnd, Program] = {}
        self._classes: WeakValueDictionary[tuple[object, ...], Program] = WeakValueDictionary()
        self.version = 0  # grows with every change of policies or of the world

    def decide(self, point: Point, request: Request) -> VerdictNumber:
        """Decide a request at a point. An odd number allows it. The program of the point has the outcome."""
        try:
            finder = self._finders[point]
        except KeyError:
            finder = self.program(point).finder
        return finder.find(request)

    def program(self, point: Point) -> Program:
        """Return the program that decides at a point. Raises KeyError if there is no such workload."""
        if isinstance(point, NetworkEnd):
            return self._program_at(point)
        program = self._programs.get(point)
        if program is None:
            attached = self.attached(point)
            match point:
                case str():
                    program = self._shared(self.world.workloads[point], attached)
                case DeadEnd(why, at):
                    program = compile_layers([Layer(at, Chain((AllowAny(why, (), Refusal.NOT_FOUND),)))])
                case UnseenHop():
                    program = compile_layers([Layer(_AT_HOPS, Chain((), scope=UnseenScope(str(point))))])
                case RuleNamed():
                    program = self._with_same_policies(attached)
                case _:
                    program = compile_layers(self._assemble(attached, ()))
            self._programs[point] = program
            self._finders[point] = program.finder
            if not isinstance(point, str):
                self._other_points.add(point)
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
        """Return the program of a rule of a route. All rules with the same policies share it."""
        same = (RuleNamed, *(part for attachment in attached for part in (attachment.policy, attachment.perhaps)))
        program = self._classes.get(same)
        if program is None:
            program = self._classes[same] = compile_layers(self._assemble(attached, ()))
        return program

    def _program_at(self, end: NetworkEnd) -> Program:
        """Return the program of an end. All ends with the same network policies share it."""
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
        """Return the point where an authorizer that finds policies by host decides, or None if no policy is found."""
        return self._attachments.host_point(host)

    @property
    def host_refs(self) -> Set[PolicyRef]:
        """Return the names of the policies for hosts. Eastgate's authorizer decides by them for other proxies."""
        return self._attachments.about_hosts

    @property
    def has_hosts(self) -> bool:
        """Return whether any policy is for hosts."""
        return bool(self.host_refs)

    def hosts_of(self, ref: PolicyRef) -> tuple[str, ...] | None:
        """Return the hosts that a policy is for, or None if there is no such policy."""
        policy = self._attachments.policies.get(ref)
        return None if policy is None else tuple(each.host for each in policy.targets if isinstance(each, HostNamed))

    @property
    def network_policies(self) -> list[P]:
        """Return the policies that the network enforces."""
        return [self._attachments.policies[ref] for ref in self._network if ref in self._attachments.policies]

    def layers_of(self, policy: P, direction: Direction) -> Sequence[Layer]:
        """Return the layers of one network policy alone, at the ends that it targets."""
        return self._assemble_end([Attachment(policy)], direction)

    @property
    def network_refs(self) -> Set[PolicyRef]:
        """Return the names of the policies that the network enforces."""
        return self._network

    @property
    def has_network_policies(self) -> bool:
        """Return whether layers exist at the two ends of a connection."""
        return bool(self._network)

    def compile_all(self) -> int:
        """Compile the programs of all workloads now, and return the number of their classes."""
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
        """Return the points that a policy touches: its targets, and those of policies that refer to it."""
        return self._attachments.points_of(ref)

    def points_targeted(self, policy: P) -> frozenset[Point]:
        """Return the points that a policy would touch: its targets, and those of policies that refer to its name."""
        return self._attachments.points_targeted(policy)

    def uncertain(self, point: Point) -> list[P]:
        """Return the policies that may target a point, depending on labels that a cluster adds to pods."""
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


@dataclass(frozen=True, slots=True)
class UnseenScope:
    """The reason why a part of the path has no network layers: the pods at its ends are in no manifest."""

    hop: str
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        return f"from {self.hop}: no manifest has these pods, so that network policies are not considered there"
