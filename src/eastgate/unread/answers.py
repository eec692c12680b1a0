"""Which objects that are not read could change an answer, what that makes of it, and how it is told."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field

from eastgate.cluster import (
    ROUTE_KINDS,
    BackendNamed,
    Everything,
    GatewayNamed,
    PodsAcross,
    PodsOfService,
    RouteNamed,
    Target,
    Workload,
    World,
)
from eastgate.cluster.points import DeadEnd, NamedPoint, Point, WorkloadKey
from eastgate.diagnostics import Diagnostic
from eastgate.records import dataclass
from eastgate.unread import codes
from eastgate.unread.model import By, Influence, Met, Plane, Side, Standing, Unconsidered, Unread, UnreadKind

__all__ = [
    "Callers",
    "Handling",
    "UnreadObjects",
    "could_change",
    "counted",
    "diagnosed",
    "is_policy_like",
    "standing",
    "told",
]

_Located = WorkloadKey | NamedPoint  # a point at which an object can act
_MOST = 3  # places that are named


class Handling(enum.StrEnum):
    """What becomes of an answer that an object of an unread kind could change: the values of `--unread`.

    By default (BY_KIND) it is the kind that tells: no answer where an allow could be a deny and nobody can tell where
    the object acts; otherwise an answer about what was read, which says so.
    """

    BY_KIND = "by-kind"
    ERROR = "error"
    WARN = "warn"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Callers:
    """The pods that a question comes from; `namespace` is that of a pod which no manifest declares.

    `anybody`: it is about all callers that there may be.
    """

    workloads: tuple[Workload, ...] = ()
    namespace: str | None = None
    anybody: bool = False


@dataclass(slots=True)
class UnreadObjects:
    """All objects of kinds that are not read."""

    found: list[Unread] = field(default_factory=list)
    _filed: dict[str | None, list[int]] = field(default_factory=dict, repr=False)
    _totals: Counter[UnreadKind] = field(default_factory=Counter, repr=False)
    _size: int = field(default=0, repr=False)  # how many of them are filed and counted

    def about(self, points: Iterable[Point], callers: Callers, world: World, *, rejected: int = 0) -> Unconsidered:
        """What an answer about these points of enforcement, for these callers, could not consider."""
        if not self.found:
            return Unconsidered(rejected=rejected)
        self._file()
        places = tuple(point for point in points if not isinstance(point, DeadEnd))
        near = self.found if callers.anybody else self._near(places, callers, world)
        met = tuple(Met(one, side) for one in near if (side := _side(one, places, callers, world)) is not None)
        return Unconsidered(met, self._totals, rejected)

    def _file(self) -> None:
        """File what has come since by the namespaces that it acts in; None stands for any."""
        for place in range(self._size, len(self.found)):
            one = self.found[place]
            self._totals[one.kind] += 1
            for namespace in {_namespace_of(target) for target in (*one.reach.destinations, *one.reach.callers)}:
                self._filed.setdefault(namespace, []).append(place)
        self._size = len(self.found)

    def _near(self, points: Iterable[_Located], callers: Callers, world: World) -> list[Unread]:
        """Those that act in the namespaces of the two ends, or anywhere."""
        homes: set[str | None] = {None, callers.namespace, *(one.namespace for one in callers.workloads)}
        homes |= {world.workloads[point].namespace if isinstance(point, str) else point.namespace for point in points}
        return [self.found[place] for place in sorted({place for home in homes for place in self._filed.get(home, ())})]


def _namespace_of(target: Target) -> str | None:
    """The namespace that a target is in; None where it may be about any."""
    return None if isinstance(target, PodsAcross) else target.namespace


def _side(unread: Unread, points: tuple[_Located, ...], callers: Callers, world: World) -> Side | None:
    if unread.kind.influence is Influence.NONE:
        return None
    reach = unread.reach
    if any(_arrives(target, point, unread.kind.plane, world) for target in reach.destinations for point in points):
        return Side.DESTINATION
    if unread.kind.plane is not Plane.GATEWAY and any(_leaves(target, callers, world) for target in reach.callers):
        return Side.SOURCE
    return None


def _arrives(target: Target, point: _Located, plane: Plane, world: World) -> bool:
    """Whether a target is, or may be, a point of enforcement. The pods of a Gateway are in no manifest."""
    if isinstance(point, str):
        workload = world.workloads[point]
        return any(world.target_matches(one, workload) for one in _at_proxies(target, plane, world))
    match target:
        case GatewayNamed() | RouteNamed() | BackendNamed():
            return target == point
        case Everything(None):
            return True
        case PodsAcross():
            return isinstance(point, GatewayNamed)
        case Everything(where):
            return where == point.namespace
        case _:
            return isinstance(point, GatewayNamed) and target.namespace == point.namespace


def _at_proxies(target: Target, plane: Plane, world: World) -> Iterator[Target]:
    """What a target means beside workloads: of kinds that act at gateways, Services, and routes that lead to one."""
    if plane is not Plane.GATEWAY or isinstance(target, PodsOfService):
        yield target
    elif isinstance(target, RouteNamed):
        routes = (world.routes.get(f"{kind}/{target.namespace}/{target.name}") for kind in ROUTE_KINDS)
        parents = (parent for route in routes if route is not None for parent in route.parents)
        yield from (PodsOfService(one.namespace, one.name) for one in parents if one.kind == "Service")


def _leaves(target: Target, callers: Callers, world: World) -> bool:
    if callers.anybody or any(world.target_matches(target, workload) for workload in callers.workloads):
        return True
    namespace = callers.namespace
    match target:
        case _ if namespace is None:
            return False
        case Everything(where):
            return where in (None, namespace)
        case PodsAcross(namespaces):
            return namespaces.matches(world.namespace(namespace).labels)
        case _:
            return target.namespace == namespace


def could_change(found: Unconsidered, *, allowed: bool) -> tuple[Met, ...]:
    """Those objects that could make the other verdict of this one."""
    enough = (Influence.DENY, Influence.CHANGE) if allowed else (Influence.CHANGE,)
    return tuple(one for one in found.met if one.unread.kind.influence in enough)


def standing(found: Unconsidered, handling: Handling, *, allowed: bool) -> Standing:
    """How far an answer stands. A deny stays one where everything that was left out can only deny more."""
    decisive = could_change(found, allowed=allowed)
    if not decisive or handling is Handling.IGNORE:
        return Standing.WHOLE
    lost = allowed and any(not one.unread.reach.located for one in decisive)
    if handling is Handling.ERROR or (handling is Handling.BY_KIND and lost):
        return Standing.UNDECIDED
    return Standing.PARTIAL


# In words


def told(found: Unconsidered, handling: Handling = Handling.WARN) -> Iterator[str]:
    """Say what was not considered: a line for each kind that has a part in it, and one for policies elsewhere."""
    by_kind: dict[UnreadKind, list[Met]] = {}
    for one in found.met if handling is not Handling.IGNORE else ():
        by_kind.setdefault(one.unread.kind, []).append(one)
    for kind, met in by_kind.items():
        parts = [
            f"{len(some)} {_does(kind, side, some)}: {_where([one.unread for one in some])}"
            for side in Side
            if (some := [one for one in met if one.side is side])
        ]
        yield f"not considered: {_of(found.totals[kind], kind)}, of which {', and '.join(parts)}"
    if found.rejected:
        what = "manifest" if found.rejected == 1 else "manifests"
        yield f"not considered: {found.rejected} {what} about something else cannot be read"


def diagnosed(found: Iterable[Unread], handling: Handling) -> Iterator[Diagnostic]:
    """What `lint` says of each object: an error where it is a policy like those that are read, if nothing else is said.

    Its answers are about all of the manifests, so that every object counts.
    """
    for one in found:
        kind = one.kind
        if kind.influence is Influence.NONE or handling is Handling.IGNORE:
            continue
        is_error = handling is Handling.ERROR or (handling is Handling.BY_KIND and is_policy_like(one))
        yield Diagnostic(
            codes.UNREAD_POLICY if is_error else codes.UNREAD_BESIDE,
            f"{kind.group} {kind.kind} is not read: {_CAN[kind.influence]}",
            one.document.locate("kind"),
            "decide without it with --unread warn, or leave it out of -f" if is_error else None,
        )


def is_policy_like(unread: Unread) -> bool:
    """Whether an object is a policy of the sort that is read: one that says who may call, at proxies."""
    return unread.kind.influence is Influence.DENY and unread.kind.plane is not Plane.NETWORK


_CAN = {
    Influence.DENY: "it may deny what is allowed here",
    Influence.CHANGE: "it may change what a request is, or what decides it",
}


def counted(found: Iterable[Unread]) -> Iterator[str]:
    """Say how many there are of each kind, and where, without regard to a question."""
    by_kind: dict[UnreadKind, list[Unread]] = {}
    for one in found:
        if one.kind.influence is not Influence.NONE:
            by_kind.setdefault(one.kind, []).append(one)
    for kind, some in by_kind.items():
        yield f"not considered: {_of(len(some), kind)}: {_where(some)}"


def _of(number: int, kind: UnreadKind) -> str:
    shared = kind.kind in ("AuthorizationPolicy", "AuthConfig", "AuthPolicy", "NetworkPolicy", "ClusterNetworkPolicy")
    group = f" ({kind.group})" if shared and kind.group != "networking.k8s.io" else ""
    return f"{number} {kind.kind if number == 1 else kind.plural}{group}"


def _does(kind: UnreadKind, side: Side, met: list[Met]) -> str:
    if not all(one.unread.reach.located for one in met):
        return "may apply, nobody can tell to what"
    if kind.plane is not Plane.NETWORK or kind.by in (By.CLUSTER, By.NAMESPACE):
        return f"{'applies' if len(met) == 1 else 'apply'} {'here' if side is Side.DESTINATION else 'to the caller'}"
    return f"{'selects' if len(met) == 1 else 'select'} {'this pod' if side is Side.DESTINATION else 'the caller'}"


def _where(some: list[Unread]) -> str:
    named = ", ".join(one.span.place for one in some[:_MOST])
    return named + (f" and {len(some) - _MOST} more" if len(some) > _MOST else "")
