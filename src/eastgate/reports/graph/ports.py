"""Sets of ports as stretches: which ports the requests of an edge may be to, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from eastgate.ir import Between
from eastgate.reach.destinations import Destination, Entrance
from eastgate.reach.requests import EVERY_PORT
from eastgate.reports.graph.model import Bundle
from eastgate.reports.graph.reached import takes

PortSet = tuple[tuple[int, int], ...]
"""Stretches of ports, sorted, with both ends in them."""

_EVERY: PortSet = ((EVERY_PORT.first, EVERY_PORT.last),)
_FEW = 64  # ports that are listed one by one


def port_sets(destination: Destination, port: int | None) -> Iterator[tuple[Entrance, PortSet]]:
    """Yield the entrances that requests to a port come to, with the ports that are meant; None: to any port."""
    named: dict[str | None, set[int]] = {}
    for entrance in destination.entrances:
        named.setdefault(entrance.service, set()).update(entrance.ports)
    for entrance, numbers, others in takes(destination, port):
        yield entrance, ports_in(numbers, entrance.ranges if others else (), named[entrance.service])


def ports_in(numbers: Iterable[int], ranges: Iterable[Between], named: Iterable[int]) -> PortSet:
    """Return some ports, and all of these ranges that nothing names."""
    free = _without(union((each.first, each.last) for each in ranges), named)
    return union([*free, *((number, number) for number in numbers)])


def _without(ports: PortSet, numbers: Iterable[int]) -> PortSet:
    taken = union((number, number) for number in numbers)
    return _complement(union([*_complement(ports), *taken]))


def union(stretches: Iterable[tuple[int, int]]) -> PortSet:
    """Return the ports of some stretches."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def _complement(ports: PortSet) -> PortSet:
    ((start, end),) = _EVERY
    left: list[tuple[int, int]] = []
    for first, last in ports:
        if first > start:
            left.append((start, first - 1))
        start = last + 1
    return (*left, (start, end)) if start <= end else tuple(left)


def is_subset(ports: PortSet, others: PortSet) -> bool:
    """Return whether all these ports are among the others."""
    return union([*ports, *others]) == others


def port_set_of(bundle: Bundle) -> PortSet:
    """Return the ports of a bundle that `with_ports` made."""
    numbers = [(port, port) for port in bundle.ports]
    if not bundle.other_ports:
        return union(numbers)
    if bundle.port_ranges:
        return union([*numbers, *bundle.port_ranges])
    return _without(_EVERY, bundle.closed_ports)


def _listed(ports: PortSet) -> tuple[int, ...] | None:
    """Return ports one by one; None where they are too many."""
    if sum(last - first + 1 for first, last in ports) > _FEW:
        return None
    return tuple(port for first, last in ports for port in range(first, last + 1))


def with_ports(bundle: Bundle, ports: PortSet) -> Bundle:
    """Return a bundle of edges to these ports."""
    listed = _listed(ports)
    if listed is not None:
        return replace(bundle, ports=listed, other_ports=False)
    closed = _listed(_complement(ports))
    if closed is not None:
        return replace(bundle, ports=(), other_ports=True, any_port=not closed, closed_ports=closed)
    return replace(bundle, ports=(), other_ports=True, port_ranges=ports)
