"""Objects of unread kinds that could change an answer: find them, rate the answer, and describe them."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    BackendNamed,
    Everything,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodsAcross,
    PodsOfService,
    RouteNamed,
    Target,
    Workload,
    World,
)
from eastgate.cluster.points import NamedPoint, Point, WorkloadKey
from eastgate.cluster.unread import codes
from eastgate.cluster.unread.left_out import describe_left_out
from eastgate.cluster.unread.model import (
    ISOLATING,
    EnforcementPlane,
    QuestionEnd,
    Standing,
    TargetField,
    Unconsidered,
    Unread,
    UnreadEffect,
    UnreadKind,
    UnreadMatch,
    UnreadTargets,
)
from eastgate.ir.addresses import comparable_host
from eastgate.reading.manifests.placeholders import could_be

_Located = WorkloadKey | NamedPoint  # a point at which an object can act
_MAX_SPANS = 3  # spans that are shown


class Handling(enum.StrEnum):
    """The ways to treat an answer that an object of an unread kind could change: the values of `--unread`.

    The default (BY_KIND) depends on the kind. There is no answer if an allow could be a deny and the object's place of
    effect is unknown. Otherwise the answer is about the objects that were read, and tells so.
    """

    BY_KIND = "by-kind"
    ERROR = "error"
    WARN = "warn"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Callers:
    """The pods that a question comes from; `namespace` is that of a pod that no manifest declares.

    `anybody`: the question is about all possible callers.
    """

    workloads: tuple[Workload, ...] = ()
    namespace: str | None = None
    anybody: bool = False


@dataclass(slots=True)
class UnreadObjects:
    """All objects of unread kinds."""

    objects: list[Unread] = field(default_factory=list)
    _filed: dict[str | None, list[int]] = field(default_factory=dict, repr=False)
    _totals: Counter[UnreadKind] = field(default_factory=Counter, repr=False)
    _size: int = field(default=0, repr=False)  # number of objects that are filed and counted

    def about(
        self, points: Iterable[Point], callers: Callers, world: World, *, rejected: int = 0, host: str | None = None
    ) -> Unconsidered:
        """Return the objects that an answer about these points of enforcement and callers could not consider.

        Without a `host`, the answer is about any host. An empty host means that hosts do not matter.
        """
        if not self.objects:
            return Unconsidered(rejected=rejected)
        self._file()
        located = tuple(point for point in points if isinstance(point, WorkloadKey | NamedPoint))
        near = self.objects if callers.anybody else self._near(located, callers, world)
        near = [unread for unread in near if host is None or not unread.hosts or _could_be_any(host, unread.hosts)]
        ends = ((unread, _end(unread, located, callers, world)) for unread in near)
        matches = tuple(UnreadMatch(unread, end) for unread, end in ends if end is not None)
        return Unconsidered(matches, self._totals, rejected)

    def _file(self) -> None:
        """File new objects by the namespaces in which they act; None means any."""
        for position in range(self._size, len(self.objects)):
            unread = self.objects[position]
            self._totals[unread.kind] += 1
            for namespace in {
                _namespace_of(target) for target in (*unread.targets.destinations, *unread.targets.callers)
            }:
                self._filed.setdefault(namespace, []).append(position)
        self._size = len(self.objects)

    def _near(self, points: Iterable[_Located], callers: Callers, world: World) -> list[Unread]:
        """Return the objects that act in the namespaces of the two ends, or in any namespace."""
        homes: set[str | None] = {None, callers.namespace, *(workload.namespace for workload in callers.workloads)}
        homes |= {world.workloads[point].namespace if isinstance(point, str) else point.namespace for point in points}
        positions = {position for home in homes for position in self._filed.get(home, ())}
        return [self.objects[position] for position in sorted(positions)]


def _could_be_any(host: str, patterns: Iterable[str]) -> bool:
    """Return whether a host could equal a pattern with variables. A host with the same variables certainly does."""
    if not host:
        return False
    name = host if "{" in host else comparable_host(host)
    others = (pattern for pattern in patterns if not name.endswith(pattern.removeprefix("*")) or pattern == "*")
    return any(could_be(name.lower(), pattern.lower()) for pattern in others)


def _namespace_of(target: Target) -> str | None:
    """Return the namespace of a target; None if it may be in any."""
    return None if isinstance(target, PodsAcross | HostNamed) else target.namespace


def _end(unread: Unread, points: tuple[_Located, ...], callers: Callers, world: World) -> QuestionEnd | None:
    if unread.kind.effect is UnreadEffect.NONE:
        return None
    targets = unread.targets
    if unread.kind.target_field in ISOLATING and _is_inside(targets, points, callers, world):
        return None
    if any(
        _covers_point(target, point, unread.kind.plane, world) for target in targets.destinations for point in points
    ):
        return QuestionEnd.DESTINATION
    if unread.kind.plane is not EnforcementPlane.GATEWAY and any(
        _covers_caller(target, callers, world) for target in targets.callers
    ):
        return QuestionEnd.SOURCE
    return None


def _is_inside(targets: UnreadTargets, points: tuple[_Located, ...], callers: Callers, world: World) -> bool:
    """Return whether all callers and all points are in one group, whose members reach each other."""
    if not targets.located or callers.anybody or not (callers.workloads or callers.namespace) or not points:
        return False
    homes = {workload.namespace for workload in callers.workloads} | {callers.namespace} - {None}
    homes |= {world.workloads[point].namespace if isinstance(point, str) else point.namespace for point in points}
    return all(any(_holds(target, home, world) for target in targets.destinations) for home in homes if home)


def _holds(target: Target, namespace: str, world: World) -> bool:
    """Return whether a target is a whole namespace, or namespaces including this one."""
    if isinstance(target, PodsAcross):
        return target.namespaces.matches(world.namespace(namespace).labels)
    return isinstance(target, Everything) and target.namespace in (None, namespace)


def _covers_point(target: Target, point: _Located, plane: EnforcementPlane, world: World) -> bool:
    """Return whether a target is, or may be, a point of enforcement. The pods of a Gateway are in no manifest."""
    if isinstance(point, str):
        workload = world.workloads[point]
        return any(world.target_matches(guarded, workload) for guarded in _at_proxies(target, plane, world))
    match target:
        case GatewayNamed() | RouteNamed() | BackendNamed():
            return target == point
        case Everything(None):
            return True
        case PodsAcross() | GatewaysMatching(None):
            return isinstance(point, GatewayNamed)
        case HostNamed():
            return False
        case Everything(where):
            return where == point.namespace
        case _:
            return isinstance(point, GatewayNamed) and target.namespace == point.namespace


def _at_proxies(target: Target, plane: EnforcementPlane, world: World) -> Iterator[Target]:
    """Yield the targets at proxies of workloads. For gateway kinds, only Services and parents of routes count."""
    if plane is not EnforcementPlane.GATEWAY or isinstance(target, PodsOfService):
        yield target
    elif isinstance(target, RouteNamed):
        route = world.routes.get(f"{target.kind}/{target.namespace}/{target.name}")
        parents = route.parents if route is not None else ()
        services = (parent for parent in parents if parent.kind == "Service")
        yield from (PodsOfService(service.namespace, service.name) for service in services)


def _covers_caller(target: Target, callers: Callers, world: World) -> bool:
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
        case HostNamed():
            return False
        case _:
            return target.namespace == namespace


def could_change(unconsidered: Unconsidered, *, allowed: bool) -> tuple[UnreadMatch, ...]:
    """Return the objects that could turn this verdict into the other."""
    enough = (UnreadEffect.DENY, UnreadEffect.CHANGE) if allowed else (UnreadEffect.CHANGE,)
    return tuple(each for each in unconsidered.matches if each.unread.kind.effect in enough)


def standing(unconsidered: Unconsidered, handling: Handling, *, allowed: bool) -> Standing:
    """Return how far an answer is valid. A deny stays valid if all objects that were left out can only deny more."""
    decisive = could_change(unconsidered, allowed=allowed)
    if handling is Handling.IGNORE:
        decisive = tuple(each for each in decisive if each.unread.part is not None)
    if not decisive:
        return Standing.WHOLE
    lost = allowed and any(not each.unread.targets.located for each in decisive)
    if handling is Handling.ERROR or (handling is Handling.BY_KIND and lost):
        return Standing.UNDECIDED
    return Standing.PARTIAL


# Texts


def describe_unconsidered(unconsidered: Unconsidered, handling: Handling = Handling.WARN) -> Iterator[str]:
    """Describe the objects that were not considered, in complete lines."""
    yield from describe_left_out(unconsidered)
    yield from (f"not considered: {line}" for line in list_unconsidered(unconsidered, handling))


def list_unconsidered(
    unconsidered: Unconsidered, handling: Handling = Handling.WARN, *, about_one: bool = True
) -> Iterator[str]:
    """List the objects that were not considered: a line for each kind, and a line for policies with errors elsewhere.

    `describe_left_out` lists parts that cannot be read.

    `about_one`: the answer is about one pod and its caller, so that a line can name the selected one.
    """
    by_kind: dict[UnreadKind, list[UnreadMatch]] = {}
    for each in unconsidered.matches if handling is not Handling.IGNORE else ():
        if each.unread.part is not None:
            continue
        by_kind.setdefault(each.unread.kind, []).append(each)
    for kind, of_kind in by_kind.items():
        total = unconsidered.totals[kind]
        objects = list(dict.fromkeys(each.unread for each in of_kind))
        if not about_one and all(unread.targets.located for unread in objects):
            share = f"{len(objects)} of " if len(objects) < total else ""
            yield f"{share}{_count_text(total, kind)}: {_locations(objects)}"
            continue
        parts = [
            f"{len(at_end)} {_effect_text(kind, end, at_end)}: {_locations([each.unread for each in at_end])}"
            for end in QuestionEnd
            if (at_end := [each for each in of_kind if each.end is end])
        ]
        yield f"{_count_text(total, kind)}, of which {', and '.join(parts)}"
    if unconsidered.rejected:
        what = "manifest" if unconsidered.rejected == 1 else "manifests"
        yield f"{unconsidered.rejected} {what} about something else cannot be read"


def diagnose_unread(objects: Iterable[Unread], handling: Handling) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each object: by default, an error for a kind of policy that Eastgate could read elsewhere.

    Answers are about all of the manifests, so that every object counts.
    """
    for unread in objects:
        kind = unread.kind
        if unread.part is not None or not unread.acts or not kind.is_deployed or handling is Handling.IGNORE:
            continue
        is_error = handling is Handling.ERROR or (handling is Handling.BY_KIND and is_policy_like(unread))
        yield Diagnostic(
            codes.UNREAD_POLICY if is_error else codes.UNREAD_BESIDE,
            f"{kind.group} {kind.kind} is not read: {' and '.join(filter(None, (kind.note, _CAN[kind.effect])))}",
            unread.document.locate("kind"),
            "decide without it with --unread warn, or leave it out of -f" if is_error else None,
        )


def is_policy_like(unread: Unread) -> bool:
    """Return whether an object is like the policies that Eastgate reads: it decides about callers, at proxies."""
    return (
        unread.kind.effect is UnreadEffect.DENY
        and unread.part is None
        and unread.kind.is_deployed
        and unread.kind.plane is not EnforcementPlane.NETWORK
    )


_CAN = {
    UnreadEffect.DENY: "it may deny requests that are allowed here",
    UnreadEffect.CHANGE: "it may change requests, or the policies that decide",
}


def describe_unread(objects: Iterable[Unread]) -> Iterator[str]:
    """Describe the number of objects of each kind, and their places, for all questions."""
    by_kind: dict[UnreadKind, list[Unread]] = {}
    for unread in objects:
        if unread.part is None and (unread.acts or (unread.kind.effect is UnreadEffect.NONE and unread.kind.note)):
            by_kind.setdefault(unread.kind, []).append(unread)
    for kind, of_kind in by_kind.items():
        what = "left aside" if kind.effect is UnreadEffect.NONE else "not considered"
        yield f"{what}: {_count_text(len(of_kind), kind)}: {_locations(of_kind)}"


def _count_text(number: int, kind: UnreadKind) -> str:
    shared = kind.kind in ("AuthorizationPolicy", "AuthConfig", "AuthPolicy", "NetworkPolicy", "ClusterNetworkPolicy")
    group = f" ({kind.group})" if shared and kind.group != "networking.k8s.io" else ""
    note = f" ({kind.note})" if kind.note else ""
    return f"{number} {kind.kind if number == 1 else kind.plural}{group}{note}"


def _effect_text(kind: UnreadKind, end: QuestionEnd, objects: list[UnreadMatch]) -> str:
    if not all(each.unread.targets.located for each in objects):
        return "may apply, with unknown targets"
    single = len(objects) == 1
    whole = (TargetField.CLUSTER, TargetField.NAMESPACE, *ISOLATING)
    if kind.plane is not EnforcementPlane.NETWORK or kind.target_field in whole:
        return f"{'applies' if single else 'apply'} {'here' if end is QuestionEnd.DESTINATION else 'to the caller'}"
    return f"{'selects' if single else 'select'} {'this pod' if end is QuestionEnd.DESTINATION else 'the caller'}"


def _locations(objects: list[Unread]) -> str:
    locations = ", ".join(unread.span.location for unread in objects[:_MAX_SPANS])
    return locations + (f" and {len(objects) - _MAX_SPANS} more" if len(objects) > _MAX_SPANS else "")
