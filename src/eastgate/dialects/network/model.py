"""A network policy of any of the four kinds, as it is once it has been read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.points import Direction
from eastgate.cluster.targets import Target
from eastgate.ir import Origin, PolicyRef, Predicate, Rule, Step, repr_of_named

if TYPE_CHECKING:
    from eastgate.dialects.network.lowering import PortItem

GROUP = "networking.k8s.io"
CLUSTER_GROUP = "policy.networking.k8s.io"


class NetworkTier(StrEnum):
    """The tiers, in the order in which they decide. The last applies only where no policy of the second does."""

    ADMIN = "Admin"
    NAMESPACED = "NetworkPolicy"
    BASELINE = "Baseline"


@dataclass(frozen=True, slots=True, eq=False)
class Peer:
    """One entry of `from` or `to`: its meaning, the fields that it sets, and where it is written."""

    when: Predicate
    fields: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class NetworkRule:
    """One rule of one direction. `peers` and `ports` are what it asks of connections; None: anything will do.

    `name` is the one that authors of cluster-wide policies may give it.
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
    """A policy. A direction that `rules` does not have is none of its business.

    A NetworkPolicy isolates the pods that it selects for its directions. `unused` are rules of directions that it does
    not have. `types_span` is that of `policyTypes`, None where they follow from the rules.
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
        """Return whether it closes what it does not allow."""
        return self.tier is NetworkTier.NAMESPACED
