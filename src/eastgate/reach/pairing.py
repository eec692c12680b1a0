"""Pairs of destinations that exist on two sides under one name, with the entrances that both sides have.

Destinations that cannot differ are left out, at low cost. If the world is the same, only the targets of changed
policies are compared. Network verdicts are computed only if another part differs, or if they may differ themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import ROUTE_KINDS, Everything, ObjectId, Workload
from eastgate.cluster.points import DeadEnd, NamedPoint, Point
from eastgate.cluster.targets import BackendNamed
from eastgate.dialects import Policy
from eastgate.ir import ALWAYS, Layer, PolicyRef, Unroutable
from eastgate.reach import gateways
from eastgate.reach.alike import are_alike, are_alike_entrances, changed_policies
from eastgate.reach.destinations import Destination, DestinationKind, Entrance, Passage
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.hosts import host_names
from eastgate.reach.workloads import backend_alone, endpoints, layers_before, service_alone, workload_class

# Network verdicts depend on none of these kinds
_KINDS_WITHOUT_NETWORK_EFFECT = frozenset(
    {*ROUTE_KINDS, "Gateway", "GatewayClass", "ReferenceGrant", "Secret", "Service"}
)


def go_on() -> bool:
    """Return False: a comparison without a deadline is never late."""
    return False


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A destination of both sides that may decide differently. `members` are keys; `entrances` are those to compare."""

    kind: DestinationKind
    members: tuple[str, ...]
    entrances: tuple[tuple[Entrance, Entrance], ...]

    @property
    def layers(self) -> Iterator[Layer]:
        """Yield every layer of both sides."""
        return (layer for pair in self.entrances for entrance in pair for layer in entrance.layers)


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """The pairs to compare, the destinations on one side only (as questions name them), and the number on both sides.

    `uncertain` are workloads for which it is unknown which policies select them, so that their verdicts may differ.
    `same_network`: network verdicts are the same on both sides. `is_late`: there was no time to look at all
    destinations.
    """

    pairs: tuple[Pair, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    common: int
    changed: tuple[PolicyRef, ...]
    uncertain: tuple[str, ...]
    same_network: bool = False
    is_late: bool = False


class _Sides(NamedTuple):
    old: Authority
    new: Authority
    touched: frozenset[Point] | None  # None: all may have changed
    among: Container[str] | None
    same_network: bool
    is_late: Callable[[], bool]
    skips_network: bool = False  # if it is the same on both sides


def pair_destinations(
    old: Authority,
    new: Authority,
    among: Container[str] | None = None,
    is_late: Callable[[], bool] = go_on,
    *,
    skips_network: bool = False,
) -> Pairing:
    """Pair the destinations of two authorities with the same names of callers. `among`: only these of the workloads.

    `is_late` is called many times and tells whether to stop. `skips_network`: if network verdicts are the same on both
    sides, the pairs do not contain them. The comparison may then find differences that the network hides.
    """
    policies = _policies(old), _policies(new)
    changed = changed_policies(old, new, *policies)
    same_network = _is_same_network(old, new, changed)
    sides = _Sides(old, new, _touched(old, new, changed, policies), among, same_network, is_late, skips_network)
    before, after = _names(old), _names(new)
    pairs = [*_workloads(sides), *_gateways(sides, gateways.gateways), *_gateways(sides, gateways.routes)]
    pairs += [*_services(sides), *_backends(sides)]
    return Pairing(
        tuple(pair for pair in pairs if pair.entrances),
        tuple(name for name in after if name not in before),
        tuple(name for name in before if name not in after),
        sum(name in after and _is_among(name, among) for name in before),
        tuple(changed),
        tuple(_uncertain(old, new)) if changed or sides.touched is None else (),
        same_network,
        is_late(),
    )


def pair_workloads(
    old: Authority, new: Authority, keys: Collection[str], *, same_network: bool, is_late: Callable[[], bool] = go_on
) -> Pairing:
    """Return the pairs of some workloads only. `same_network`: network verdicts are the same on both sides."""
    sides = _Sides(old, new, frozenset(keys), None, same_network, is_late, skips_network=True)
    pairs = tuple(pair for pair in _workloads(sides) if pair.entrances)
    return Pairing(pairs, (), (), len(keys), (), (), same_network, is_late())


_Policies = Mapping[PolicyRef, Policy]


def _policies(authority: Authority) -> _Policies:
    return {policy.ref: policy for policy in authority.policies}


def _touched(
    old: Authority, new: Authority, changed: Sequence[PolicyRef], policies: tuple[_Policies, _Policies]
) -> frozenset[Point] | None:
    """Return the points that changed policies target, if nothing else has changed; None if every point may differ."""
    if old.settings != new.settings or old.world.objects != new.world.objects:
        return None
    if any(ref in engine.network_refs for engine in (programs_of(old), programs_of(new)) for ref in changed):
        return None  # they also matter at the other end
    for side in policies:
        targets = (target for ref in changed if ref in side for target in side[ref].targets)
        if any(isinstance(target, Everything) for target in targets):
            return None
    engines = programs_of(old), programs_of(new)
    return frozenset[Point]().union(*(engine.points_of(ref) for engine in engines for ref in changed))


def _is_same_network(old: Authority, new: Authority, changed: Sequence[PolicyRef]) -> bool:
    """Return whether no input of network verdicts has changed."""
    if old.settings != new.settings:
        return False
    if any(ref in engine.network_refs for engine in (programs_of(old), programs_of(new)) for ref in changed):
        return False
    return all(name.kind in _KINDS_WITHOUT_NETWORK_EFFECT for name in differing_objects(old, new))


def differing_objects(old: Authority, new: Authority) -> Iterator[ObjectId]:
    """Yield the names of objects that are not the same on both sides."""
    before, after = old.world.objects, new.world.objects
    if before == after:
        return
    yield from (name for name, declared in before.items() if after.get(name) != declared)
    yield from (name for name in after if name not in before)


def _names(authority: Authority) -> dict[str, None]:
    world = authority.world
    names = [f"{DestinationKind.POD}:{key}" for key in world.workloads]
    names += [f"{DestinationKind.GATEWAY}:{gateway.key}" for gateway in world.gateways.values()]
    names += [f"{DestinationKind.BACKEND}:{backend.key}" for backend in world.backends.values()]
    names += [name for destination in gateways.routes(authority) for name in destination.names]
    names += host_names(authority)
    return dict.fromkeys(names)


def _is_among(name: str, among: Container[str] | None) -> bool:
    kind, _, key = name.partition(":")
    return among is None or kind != DestinationKind.POD or key in among


def _uncertain(old: Authority, new: Authority) -> Iterator[str]:
    for key in old.world.workloads:
        if key in new.world.workloads:
            before, after = programs_of(old).uncertain(key), programs_of(new).uncertain(key)
            if not are_alike(before, after):
                yield key


def _decide_alike(sides: _Sides, was: Sequence[Layer], now: Sequence[Layer]) -> bool:
    return are_alike(was, now) and not _may_authorizers_differ(sides, was)


def _may_authorizers_differ(sides: _Sides, layers: Iterable[Layer]) -> bool:
    """Return whether equal authorizers may answer differently, because Secrets have changed."""
    if sides.touched is not None or sides.old.world.secrets == sides.new.world.secrets:
        return False
    return any(ask.evaluator is not None for layer in layers for ask in layer.asks)


# Workloads

_Layers = tuple[Layer, ...]


def _workloads(sides: _Sides) -> Iterator[Pair]:
    old, new, touched, among, same_network, is_late, skips_network = sides
    classes: dict[tuple[int, ...], tuple[_Layers, _Layers, list[tuple[Workload, Workload]]]] = {}
    keys = old.world.workloads if touched is None else sorted(point for point in touched if isinstance(point, str))
    for key in keys:
        before, after = old.world.workloads.get(key), new.world.workloads.get(key)
        if before is not None and after is not None and (among is None or key in among):
            if is_late():
                break
            if same_network and not _is_own_different(sides, key):
                continue
            if same_network and skips_network:
                layers = programs_of(old).program(key).layers, programs_of(new).program(key).layers
            else:
                layers = layers_before(old, before), layers_before(new, after)
            ids = (len(layers[0]), *(id(layer) for side in layers for layer in side))
            classes.setdefault(ids, (*layers, []))[2].append((before, after))
    for was, now, members in classes.values():
        if not _decide_alike(sides, was, now):
            yield _workload_pair(old, new, (was, now), members)


def _is_own_different(sides: _Sides, key: str) -> bool:
    """Return whether the policies at the proxy of a workload may decide differently."""
    was, now = programs_of(sides.old).program(key).layers, programs_of(sides.new).program(key).layers
    return not _decide_alike(sides, was, now)


def _workload_pair(
    old: Authority,
    new: Authority,
    layers: tuple[tuple[Layer, ...], tuple[Layer, ...]],
    members: Sequence[tuple[Workload, Workload]],
) -> Pair:
    ports = {port.number for pair in members for workload in pair for port in workload.ports}
    services = {
        service
        for before, after in members
        for service in {*old.world.services_of(before.key)} & {*new.world.services_of(after.key)}
    }
    was = workload_class(old, layers[0], [before for before, _ in members], layers[1], ports, services)
    now = workload_class(new, layers[1], [after for _, after in members], layers[0], ports, services)
    return Pair(DestinationKind.POD, now.members, tuple(_matched(was, now)))


def _matched(was: Destination, now: Destination) -> Iterator[tuple[Entrance, Entrance]]:
    """Yield the entrances of both sides. Their classes of ports are the same; a Service may be on one side only."""
    before = {_port_key(entrance): entrance for entrance in was.entrances}
    for entrance in now.entrances:
        other = before.get(_port_key(entrance))
        if other is not None:
            yield other, entrance


def _port_key(entrance: Entrance) -> tuple[object, ...]:
    return entrance.service, entrance.ports, entrance.others, entrance.ranges


# Services


def _services(sides: _Sides) -> Iterator[Pair]:
    """Yield the Services that lead to other pods than before. For other Services, the pairs of pods are sufficient."""
    old, new, touched = sides[:3]
    if touched is not None:
        return
    for key, service in new.world.services.items():
        before = old.world.services.get(key)
        if before is not None and endpoints(old, before) != endpoints(new, service):
            was, now = service_alone(old, before), service_alone(new, service)
            yield Pair(DestinationKind.SERVICE, (key,), tuple(_matched(was, now)))


# Gateways, routes and backends


def _gateways(sides: _Sides, of: Callable[[Authority], list[Destination]]) -> Iterator[Pair]:
    old, new, touched = sides[:3]
    if touched is not None and not any(isinstance(point, NamedPoint) for point in touched):
        return
    before = {destination.members: destination for destination in of(old)}
    for destination in of(new):
        was = before.get(destination.members)
        if was is not None:
            entrances = _common(old, new, was.entrances, destination.entrances)
            differing = tuple(
                pair
                for pair in entrances
                if not are_alike_entrances(*pair) or _may_authorizers_differ(sides, pair[0].layers)
            )
            yield Pair(destination.kind, destination.members, differing)


def _common(
    old: Authority, new: Authority, before: Iterable[Entrance], after: Iterable[Entrance]
) -> list[tuple[Entrance, Entrance]]:
    """Return the entrances of both sides. If one side has none at a port, requests have no destination there."""
    was = {_entrance_key(entrance): entrance for entrance in before}
    now = {_entrance_key(entrance): entrance for entrance in after}
    return [
        (
            was.get(key) or _replacement_entrance(old, was.values(), now[key]),
            now.get(key) or _replacement_entrance(new, now.values(), was[key]),
        )
        for key in dict.fromkeys([*was, *now])
    ]


def _entrance_key(entrance: Entrance) -> tuple[tuple[int, ...], bool | None, bool]:
    return entrance.ports, entrance.tls, entrance.hides_http


def _replacement_entrance(authority: Authority, entrances: Iterable[Entrance], missing: Entrance) -> Entrance:
    """Return the replacement of a missing entrance: the only other entrance at its port, or one without destination."""
    there = [entrance for entrance in entrances if entrance.ports == missing.ports]
    if len(there) == 1:
        return there[0]
    layers = programs_of(authority).program(DeadEnd(Unroutable.NO_ROUTE)).layers
    passage = Passage(ALWAYS, (EnforcementPoint((), layers),))
    return Entrance(missing.ports, missing.others, missing.facts, (passage,), tls=missing.tls)


def _backends(sides: _Sides) -> Iterator[Pair]:
    old, new, touched = sides[:3]
    for key, backend in new.world.backends.items():
        before = old.world.backends.get(key)
        point = BackendNamed(backend.namespace, backend.name)
        if before is None or (touched is not None and point not in touched):
            continue
        layers = programs_of(old).program(point).layers, programs_of(new).program(point).layers
        if not _decide_alike(sides, *layers):
            ports = {side.port for side in (before, backend) if side.port}
            was = backend_alone(old, before, layers[1], ports)
            now = backend_alone(new, backend, layers[0], ports)
            yield Pair(DestinationKind.BACKEND, (key,), tuple(_matched(was, now)))
