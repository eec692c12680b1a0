"""Peers and ports as predicates. The code is the same for all kinds, and for both ends of a connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Direction
from eastgate.dialects.network.values import Network
from eastgate.ir import Between, InNetwork, Is, Labelled, Matcher, Not, OneOf, Predicate, Suffix, all_of, any_of
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    DESTINATION_NODE,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    TRANSPORT,
    Attribute,
)
from eastgate.ir.labels import Selector


@dataclass(frozen=True, slots=True)
class PeerEnd:
    """The end of a connection to which the peers of a direction refer."""

    namespace: Attribute
    labels: Attribute
    address: Attribute

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return the attributes that peers read."""
        return (self.namespace, self.labels, self.address, DESTINATION_NODE, DESTINATION_DOMAIN)

    def pods(self, namespaces: Selector, pods: Selector) -> Predicate:
        """Match pods that one selector selects, in namespaces that the other selects."""
        at = Is(self.namespace, Labelled(namespaces))
        return at if pods == Selector.of() else all_of([at, Is(self.labels, Labelled(pods))])

    def pods_in(self, namespace: str, pods: Selector) -> Predicate:
        """Match pods that a selector selects in one namespace."""
        return self.pods(Selector.of({NAME_LABEL: namespace}), pods)

    def networks(self, networks: Iterable[Network], excepted: Sequence[Network] = ()) -> Predicate:
        """Match addresses in ANY of the networks and in none of the exceptions."""
        inside = Is(self.address, InNetwork(tuple(networks)))
        return all_of([inside, Not(Is(self.address, InNetwork(tuple(excepted))))]) if excepted else inside


PEERS: Final = {
    Direction.INGRESS: PeerEnd(SOURCE_NAMESPACE, SOURCE_LABELS, PACKET_SOURCE),
    Direction.EGRESS: PeerEnd(DESTINATION_NAMESPACE, DESTINATION_LABELS, DESTINATION_ADDRESS),
}
PORTS: Final = (PORT, PORT_NAME, TRANSPORT)


def on_nodes(nodes: Selector) -> Predicate:
    """Match destinations that are nodes, or pods in the network of one."""
    return Is(DESTINATION_NODE, Labelled(nodes))


def in_domains(names: Iterable[str]) -> Predicate:
    """Match destinations by the domain names that were resolved to them. `*.` means one or more labels."""
    plain = [name.lower().rstrip(".") for name in names]
    exact = frozenset(name for name in plain if not name.startswith("*."))
    parts: list[Predicate] = [Is(DESTINATION_DOMAIN, OneOf(exact))] if exact else []
    return any_of([*parts, *(Is(DESTINATION_DOMAIN, Suffix(name[1:])) for name in plain if name.startswith("*."))])


@dataclass(frozen=True, slots=True)
class PortItem:
    """One entry of `ports` or `protocols`: numbers or names. With neither, it means all ports of the transport.

    Without a transport, a name means the port with this name at the destination, for any transport.
    """

    transport: str | None
    first: int | None = None
    last: int | None = None
    name: str | None = None


def on_ports(items: Sequence[PortItem]) -> Predicate:
    """Match ANY of the entries."""
    by_transport: dict[str | None, list[PortItem]] = {}
    for item in items:
        by_transport.setdefault(item.transport, []).append(item)
    return any_of(_on_transport(transport, listed) for transport, listed in by_transport.items())


def _on_transport(transport: str | None, items: Sequence[PortItem]) -> Predicate:
    parts: list[Predicate] = []
    if transport is not None:
        parts.append(Is(TRANSPORT, OneOf(frozenset({transport}))))
    if all(item.first is not None or item.name is not None for item in items):
        parts.append(any_of(_ports(items)))
    return all_of(parts)


def _ports(items: Sequence[PortItem]) -> list[Predicate]:
    numbers = frozenset(item.first for item in items if item.first is not None and item.last in (None, item.first))
    ranges = [
        (item.first, item.last)
        for item in items
        if item.first is not None and item.last is not None and item.last != item.first
    ]
    names = frozenset(item.name for item in items if item.name is not None)
    matchers: list[tuple[Attribute, Matcher]] = [(PORT, OneOf(numbers))] if numbers else []
    matchers += [(PORT, Between(first, last)) for first, last in dict.fromkeys(ranges)]
    matchers += [(PORT_NAME, OneOf(names))] if names else []
    return [Is(attribute, matcher) for attribute, matcher in matchers]
