"""A network policy of any of the four kinds, after reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.points import Direction
from eastgate.cluster.targets import Target
from eastgate.dialects.network.lowering import PEERS, PORTS, PortItem, on_ports
from eastgate.ir import ALWAYS, Effect, Origin, PolicyRef, Predicate, Rule, Step, all_of, any_of, repr_of_named
from eastgate.ir.attributes import Attribute
from eastgate.reading.manifests.node import Node

GROUP = "networking.k8s.io"
CLUSTER_GROUP = "policy.networking.k8s.io"


class NetworkTier(StrEnum):
    """The tiers, in the order of evaluation. The last applies only to pods without a policy of the second."""

    ADMIN = "Admin"
    NAMESPACED = "NetworkPolicy"
    BASELINE = "Baseline"


@dataclass(frozen=True, slots=True, eq=False)
class Peer:
    """One entry of `from` or `to`: its meaning, its fields, and the place where it is written."""

    when: Predicate
    fields: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class NetworkRule:
    """One rule of one direction. `peers` and `ports` restrict connections; None: no restriction.

    `name` is the optional name of a rule in a cluster-wide policy.
    """

    step: Step
    action: str
    peers: tuple[Peer, ...] | None
    ports: tuple[PortItem, ...] | None
    ports_span: Span | None = None
    name: str | None = None

    @property
    def rule(self) -> Rule:
        """Return the rule without its effect."""
        return self.step.rule


@dataclass(frozen=True, slots=True, eq=False)
class NetworkPolicy:
    """A policy. It does not affect a direction that `rules` does not have.

    A NetworkPolicy isolates the pods that it selects for its directions. `unused` are rules of other directions.
    `types_span` is the span of `policyTypes`, or None if the directions follow from the rules.
    """

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    tier: NetworkTier
    priority: int
    rules: Mapping[Direction, tuple[NetworkRule, ...]]
    subject_span: Span
    unused: tuple[NetworkRule, ...] = ()
    types_span: Span | None = None
    audit: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    __repr__ = repr_of_named

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its rules."""
        return (rule.rule.origin for rule in self.all_rules)

    @property
    def all_rules(self) -> Iterator[NetworkRule]:
        """Yield the rules of all its directions."""
        return (rule for rules in self.rules.values() for rule in rules)

    @property
    def isolates(self) -> bool:
        """Return whether it denies connections that no rule allows."""
        return self.tier is NetworkTier.NAMESPACED


# A rule of one direction, made from its peers and ports


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Restriction(Generic[T]):
    """A list that restricts a rule: its node, and the meaning of each item."""

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
    """Return the rule that matches ANY of the peers on ANY of the ports. A missing list matches all of them."""
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
    """Yield the entries of a list, each with its span."""
    if listed is not None:
        yield from ((meaning(item), node.span) for node, item in zip(listed.node, listed.items, strict=False))


def _parts(
    direction: Direction, peers: Restriction[Predicate] | None, ports: Restriction[PortItem] | None
) -> Iterator[tuple[Attribute, Span]]:
    if peers is not None:
        yield from ((attribute, peers.node.span) for attribute in PEERS[direction].attributes)
    if ports is not None:
        yield from ((attribute, ports.node.span) for attribute in PORTS)
