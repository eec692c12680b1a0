"""Classes of workloads that decide alike, Services, and backends, as destinations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.authority.authority import Authority, programs_of
from eastgate.cluster import Backend, Service, Workload
from eastgate.cluster.targets import BackendNamed
from eastgate.ir import ALWAYS, Is, Layer, OneOf
from eastgate.ir.attributes import BACKEND, PORT, SERVICE, Attribute
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.destinations import Destination, DestinationKind, Entrance, Passage
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.requests import PortClass, port_classes

# Workloads


def workloads(authority: Authority) -> list[Destination]:
    """Return the classes of workloads that decide alike, at the ports that they declare or that a rule names."""
    return [workload_class(authority, layers, members) for layers, members in classes(authority)]


def classes(authority: Authority) -> list[tuple[tuple[Layer, ...], list[Workload]]]:
    """Return the workloads that decide alike, with their layers."""
    alike: dict[tuple[int, ...], tuple[tuple[Layer, ...], list[Workload]]] = {}
    for workload in authority.world.workloads.values():
        layers = layers_before(authority, workload)
        alike.setdefault(tuple(map(id, layers)), (layers, []))[1].append(workload)
    return list(alike.values())


def layers_before(authority: Authority, workload: Workload) -> tuple[Layer, ...]:
    """Return all layers that a request to a workload passes: the layer of network policies, and those of its proxy."""
    own = programs_of(authority).program(workload.key).layers
    if not programs_of(authority).has_network_policies:
        return own
    from eastgate.reach.network import network_layers  # many authorities have no network policies

    return (*network_layers(authority, workload), *own)


def workload_class(
    authority: Authority,
    layers: tuple[Layer, ...],
    members: Sequence[Workload],
    other_layers: Sequence[Layer] = (),
    ports: Iterable[int] = (),
    services: Iterable[str] = (),
) -> Destination:
    """Return workloads with these layers as one destination.

    `other_layers`: layers whose distinctions count, too. `ports` and `services`: count as declared, too.
    """
    keys = tuple(workload.key for workload in members)
    compared = (*layers, *other_layers)
    looked_at: frozenset[Attribute] = frozenset().union(*(layer.looks_at for layer in compared))
    declared = sorted({*ports, *(port.number for workload in members for port in workload.ports)})
    port_sets = port_classes(_port_atoms(compared) if PORT in looked_at else (), declared)
    addressed: list[str | None] = [None]
    if SERVICE in looked_at:
        behind = {service for workload in members for service in authority.world.services_of(workload.key)}
        addressed += sorted({*behind, *services} & _services_in(compared))
    entrances = tuple(_workload_entrance(keys, layers, port, service) for service in addressed for port in port_sets)
    return Destination(DestinationKind.POD, keys, entrances, layers, keys)


def _workload_entrance(
    keys: tuple[str, ...], layers: tuple[Layer, ...], port: PortClass, service: str | None
) -> Entrance:
    facts = port.facts.and_(Facts({SERVICE: service}))
    passage = Passage(ALWAYS, (EnforcementPoint(keys, layers),))
    return Entrance(port.ports, port.others, facts, (passage,), service, ranges=port.ranges)


def _port_atoms(layers: Iterable[Layer]) -> list[Is]:
    asked = (atom for layer in layers for atom in layer.atoms(observed=False))
    return list(dict.fromkeys(atom for atom in asked if isinstance(atom, Is) and atom.attribute is PORT))


def _services_in(layers: Iterable[Layer]) -> set[str]:
    return {
        str(value)
        for layer in layers
        for atom in layer.atoms(observed=False)
        if isinstance(atom, Is) and atom.attribute is SERVICE and isinstance(atom.matcher, OneOf)
        for value in atom.matcher.values
    }


# Services


def endpoints(authority: Authority, service: Service) -> dict[int | None, tuple[tuple[str, int | None], ...]]:
    """Return the workloads, each with its port, for each port of a Service; None if the Service has no ports."""
    world = authority.world
    pods = [world.workloads[key] for key in sorted(world.pods_of(service.key))]
    if not service.ports:
        return {None: tuple((pod.key, None) for pod in pods)}
    return {
        port.port: tuple((pod.key, number) for pod in pods for number in world.target_ports(service, port.port, pod))
        for port in service.ports
    }


def service_alone(authority: Authority, service: Service) -> Destination:
    """Return a Service as its own destination. At each of its ports, ALL workloads that it leads to must allow."""
    entrances = []
    for port, ends in endpoints(authority, service).items():
        alike: dict[tuple[tuple[int, ...], int | None], tuple[tuple[Layer, ...], list[str]]] = {}
        for key, number in ends:
            layers = layers_before(authority, authority.world.workloads[key])
            alike.setdefault((tuple(map(id, layers)), number), (layers, []))[1].append(key)
        points = tuple(
            EnforcementPoint(tuple(keys), layers, _addressed(service, number))
            for (_, number), (layers, keys) in alike.items()
        )
        if points:
            ports = () if port is None else (port,)
            entrances.append(Entrance(ports, port is None, Facts(), (Passage(ALWAYS, points),)))
    return Destination(DestinationKind.SERVICE, (service.key,), tuple(entrances))


def _addressed(service: Service, number: int | None) -> Facts:
    return Facts({SERVICE: service.key} if number is None else {SERVICE: service.key, PORT: number})


# Backends


def backends(authority: Authority) -> list[Destination]:
    """Return every Backend, as a destination after all gateways."""
    return [backend_alone(authority, backend) for backend in authority.world.backends.values()]


def backend_alone(
    authority: Authority, backend: Backend, other_layers: Sequence[Layer] = (), ports: Iterable[int] = ()
) -> Destination:
    """Return a Backend as a destination after all gateways. `other_layers` and `ports`: as for workloads."""
    point = BackendNamed(backend.namespace, backend.name)
    facts = Facts({BACKEND: backend.key})
    layers = programs_of(authority).program(point).layers
    passage = Passage(ALWAYS, (EnforcementPoint((backend.key,), layers, facts),))
    classes = port_classes(
        _port_atoms((*layers, *other_layers)), sorted({*ports, *([backend.port] if backend.port else [])})
    )
    entrances = tuple(Entrance(port.ports, port.others, port.facts, (passage,), ranges=port.ranges) for port in classes)
    return Destination(DestinationKind.BACKEND, (backend.key,), entrances, layers, (point,))
