"""The destinations of a statement: the entrances that accept requests to them, and the questions about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eastgate.basics.diagnostics import Diagnostic, did_you_mean
from eastgate.basics.records import dataclass
from eastgate.cluster import Service, World
from eastgate.ir.attributes import VICINITY
from eastgate.ir.labels import Selector
from eastgate.reach.destinations import Destination, DestinationKind, Entrance
from eastgate.reach.reachability import Reachability
from eastgate.reports.invariants import codes
from eastgate.reports.invariants.future import Cover
from eastgate.reports.invariants.model import Named, Statement


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """An entrance of a destination, and its selected members, which all decide alike. Existing ones come first.

    `port` is a selected port; None means any port of the entrance. `service` is the Service that requests are addressed
    to, at its own port `service_port`, if the statement names it.
    """

    destination: Destination
    entrance: Entrance
    members: Sequence[str]
    port: int | None = None
    service: str | None = None
    service_port: int | None = None

    @property
    def member(self) -> str:
        """Return the first selected member."""
        return self.members[0]

    def __str__(self) -> str:
        port = self.port if self.port is not None else next(iter(self.entrance.ports), None)
        return f"{self.destination.kind}:{self.member}" + (f" port {port}" if port is not None else "")


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """The callers that are the pod itself, or that are in the network of its node.

    `node` is the address of that node. A template represents any number of pods, so none of them is the caller itself.
    """

    pods: frozenset[str] = frozenset()
    node: str | None = None

    @classmethod
    def of(cls, place: Covered, world: World) -> OwnAccess:
        """Return the own callers of the pod at a place."""
        workload = world.workloads.get(place.member) if place.destination.kind is DestinationKind.POD else None
        if workload is None or not workload.is_pod:
            return cls()
        pods = set() if workload.derived else {workload.key}
        if workload.host_ip is not None and any(VICINITY in layer.looks_at for layer in place.entrance.layers):
            on_node = (each for each in world.workloads.values() if each.host_network)
            pods |= {each.key for each in on_node if each.host_ip == workload.host_ip}
        return cls(frozenset(pods), workload.host_ip)


# Names that no manifest declares


def find_missing(statement: Statement, world: World) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name and port of a statement that no manifest declares."""
    destinations = statement.destinations
    kinds: Sequence[tuple[str, tuple[Named, ...], Mapping[str, object]]] = (
        ("Service", destinations.services, world.services),
        ("Gateway", destinations.gateways, world.gateways),
        ("Backend", destinations.backends, world.backends),
    )
    for kind, named, declared in kinds:
        for name in named:
            if name.key not in declared:
                near = did_you_mean(name.key, declared)
                way_out = f"did you mean `{near}`?" if near else f"declare the {kind}, or leave it out"
                message = f"no manifest declares the {kind} {name.key}"
                yield Diagnostic(codes.NAMES_NOTHING, message, name.span, way_out)
    yield from _missing_ports(statement, world)


def _missing_ports(statement: Statement, world: World) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each port that no selected Service or Gateway has, if the statement selects
    nothing else.
    """
    destinations = statement.destinations
    if destinations.pods is not None or destinations.backends:
        return
    services = [world.services[name.key] for name in destinations.services if name.key in world.services]
    gateways = [world.gateways[name.key] for name in destinations.gateways if name.key in world.gateways]
    ports = {port.port for service in services for port in service.ports}
    ports |= {listener.port for gateway in gateways for listener in gateway.listeners}
    if not ports:
        return
    for port, span in statement.requests.ports.items():
        if port not in ports:
            listed = ", ".join(map(str, sorted(ports)))
            message = f"none of the named Services and Gateways has port {port}"
            yield Diagnostic(codes.NAMES_NOTHING, message, span, f"write one of its ports: {listed}")


def covers_of(statement: Statement, world: World) -> list[Cover]:
    """Return the pods that a statement selects, existing or not."""
    destinations = statement.destinations
    covers = [Cover(destinations.pods, destinations.namespaces)] if destinations.pods is not None else []
    services = (world.services[name.key] for name in destinations.services)
    return [*covers, *(Cover.of_service(service, world) for service in services if service.selects_pods)]


# Entrances


def covered(statement: Statement, reach: Reachability, imagined: Iterable[str] = ()) -> Iterator[Covered]:
    """Yield the entrances that a statement selects; `imagined` are pods that do not exist yet."""
    return cover_destinations(statement, reach.destinations, reach.authority.world, frozenset(imagined))


def cover_destinations(
    statement: Statement, among: Iterable[Destination], world: World, new: frozenset[str] = frozenset()
) -> Iterator[Covered]:
    """Yield the entrances of destinations that a statement selects; `new` are those that do not exist yet."""
    destinations = statement.destinations
    selected: frozenset[str] = frozenset()
    if destinations.pods is not None:
        selected = select_workloads(world, destinations.namespaces, destinations.pods)
    behind = [(world.services[name.key], frozenset(world.pods_of(name.key))) for name in destinations.services]
    named = {
        DestinationKind.GATEWAY: {name.key for name in destinations.gateways},
        DestinationKind.BACKEND: {name.key for name in destinations.backends},
    }
    for destination in among:
        if destination.kind is DestinationKind.POD:
            yield from _of_pods(statement, destination, selected, new, world)
            for service, pods in behind:
                yield from _of_service(statement, destination, service, pods, new, world)
        elif not named.get(destination.kind, set()).isdisjoint(destination.members):
            yield from _at_ports(statement, destination, destination.members, destination.entrances)


def select_workloads(world: World, namespaces: Selector, pods: Selector) -> frozenset[str]:
    """Return the selected workloads, including ExternalWorkloads, which questions can also name."""
    is_selected = {name: namespaces.matches(world.namespace(name).labels) for name in world.namespaces_in_use()}
    return frozenset(
        key for key, each in world.workloads.items() if is_selected[each.namespace] and pods.matches(each.labels)
    )


def _of_pods(
    statement: Statement, destination: Destination, selected: frozenset[str], new: frozenset[str], world: World
) -> Iterator[Covered]:
    covered_members = _existing_first((member for member in destination.members if member in selected), new)
    if not covered_members:
        return
    direct = [entrance for entrance in destination.entrances if entrance.service is None]
    yield from _at_ports(statement, destination, covered_members, direct)
    services = (entrance.service for entrance in destination.entrances)
    for service in dict.fromkeys(service for service in services if service is not None):
        behind = _existing_first((member for member in covered_members if service in world.services_of(member)), new)
        if behind:
            entrances = [entrance for entrance in destination.entrances if entrance.service == service]
            yield from _at_ports(statement, destination, behind, entrances)


def _existing_first(members: Iterable[str], new: frozenset[str]) -> list[str]:
    return sorted(members, key=lambda member: member in new)


def _at_ports(
    statement: Statement, destination: Destination, members: Sequence[str], entrances: Sequence[Entrance]
) -> Iterator[Covered]:
    """Yield the entrances that lead to selected ports."""
    if not statement.requests.ports:
        yield from (Covered(destination, entrance, members) for entrance in entrances)
        return
    for port in statement.requests.ports:
        yield from (Covered(destination, entrance, members, port) for entrance in _entrances_at(port, entrances))


def _entrances_at(port: int, entrances: Sequence[Entrance]) -> list[Entrance]:
    named = [entrance for entrance in entrances if port in entrance.ports]
    return named or [entrance for entrance in entrances if entrance.takes(port)]


def _of_service(
    statement: Statement,
    destination: Destination,
    service: Service,
    pods: frozenset[str],
    new: frozenset[str],
    world: World,
) -> Iterator[Covered]:
    """Yield the entrances of pods behind a Service at the target ports of its ports."""
    behind = _existing_first((member for member in destination.members if member in pods), new)
    if not behind:
        return
    addressed = [entrance for entrance in destination.entrances if entrance.service == service.key]
    entrances = addressed or [entrance for entrance in destination.entrances if entrance.service is None]
    if not service.ports:
        yield from (Covered(destination, entrance, behind, None, service.key) for entrance in entrances)
        return
    asked = [
        port.port for port in service.ports if not statement.requests.ports or port.port in statement.requests.ports
    ]
    seen: set[tuple[int, int]] = set()
    for member in behind:
        for number in dict.fromkeys(asked):
            for target in world.target_ports(service, number, world.workloads[member]):
                if (number, target) not in seen:
                    seen.add((number, target))
                    for entrance in _entrances_at(target, entrances):
                        yield Covered(destination, entrance, [member, *behind], target, service.key, number)
