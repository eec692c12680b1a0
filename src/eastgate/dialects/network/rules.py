"""A rule of one direction, made of its peers and ports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.points import Direction
from eastgate.dialects.network.lowering import PEERS, PORTS, PortItem, on_ports
from eastgate.dialects.network.model import NetworkRule, Peer
from eastgate.ir import ALWAYS, Effect, Origin, PolicyRef, Predicate, Rule, Step, all_of, any_of
from eastgate.ir.attributes import Attribute
from eastgate.reading.manifests.node import Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Restriction(Generic[T]):
    """A list of a rule that restricts it: as it is written, and what each of its items means."""

    node: Node
    items: tuple[T, ...]


def make_rule(
    ref: PolicyRef,
    index: int,
    node: Node,
    direction: Direction,
    action: tuple[str, Effect],
    *,
    peers: Restriction[Predicate] | None,
    ports: Restriction[PortItem] | None,
) -> NetworkRule:
    """Return the rule that matches ANY of the peers on ANY of the ports; all of them where there is no list."""
    pieces = (*_pieces(peers, lambda when: when), *_pieces(ports, lambda port: on_ports((port,))))
    origin = Origin(ref, index, node.span, tuple(_parts(direction, peers, ports)), pieces=pieces)
    allowed = ALWAYS if peers is None else any_of(peers.items)
    on = ALWAYS if ports is None else on_ports(ports.items)
    name = node.get("name")
    return NetworkRule(
        Step(Rule(all_of([allowed, on]), origin), action[1]),
        action[0],
        None if peers is None else tuple(_peers(peers)),
        None if ports is None else ports.items,
        None if ports is None else ports.node.span,
        name.text if name is not None else None,
    )


def _peers(peers: Restriction[Predicate]) -> Iterator[Peer]:
    for node, when in zip(peers.node, peers.items, strict=True):
        yield Peer(when, frozenset(key for key, _ in node.items()), node.span)


def _pieces(listed: Restriction[T] | None, meaning: Callable[[T], Predicate]) -> Iterator[tuple[Predicate, Span]]:
    """Yield the entries of a list, each with its text."""
    if listed is not None:
        yield from ((meaning(item), node.span) for node, item in zip(listed.node, listed.items, strict=False))


def _parts(
    direction: Direction, peers: Restriction[Predicate] | None, ports: Restriction[PortItem] | None
) -> Iterator[tuple[Attribute, Span]]:
    if peers is not None:
        yield from ((attribute, peers.node.span) for attribute in PEERS[direction].attributes)
    if ports is not None:
        yield from ((attribute, ports.node.span) for attribute in PORTS)
