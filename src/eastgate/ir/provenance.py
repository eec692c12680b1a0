"""The origins of rules, as data. A rule that is in no policy's list has a description; `str` is for output."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Protocol

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.ir.attributes import Attribute
from eastgate.ir.predicates import Predicate


@dataclass(frozen=True, slots=True, order=True)
class PolicyRef:
    """The name of a policy. Cluster-scoped policies have no namespace."""

    kind: str
    namespace: str | None
    name: str
    group: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part is not None)


class _WithRef(Protocol):
    @property
    def ref(self) -> PolicyRef: ...


def repr_of_named(policy: _WithRef) -> str:
    """Return the name of a policy, which is the `repr` of policies of all dialects."""
    return f"<{policy.ref}>"


class RuleKind(enum.Enum):
    """The kinds of rules."""

    LISTED = enum.auto()  # in a policy's list of rules
    SCHEME = enum.auto()  # an auth scheme of a policy
    DEFAULT = enum.auto()  # applies if no policy does
    FALLBACK = enum.auto()  # the requests that an object allows before policies refine it
    ITSELF = enum.auto()  # a workload may call itself
    PROBE = enum.auto()  # the kubelet may probe a workload
    UNCOVERED = enum.auto()  # refuses requests that a policy selects and none of its parts covers
    UNRESOLVED = enum.auto()  # of a policy with a reference to a missing object
    UNREADABLE = enum.auto()  # replaces a policy that cannot be read


class Derived(Protocol):
    """A description of a rule that is not `LISTED`. Dialects define their own; `str` is for output, not for code."""

    @property
    def kind(self) -> RuleKind:
        """Return the kind of the rule, for code that does not depend on dialects."""
        ...


@dataclass(frozen=True, slots=True)
class ImpliedRule:
    """A rule that no policy contains and whose description is constant."""

    kind: RuleKind
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a rule: policy, index and span, and for each attribute that it reads, the span that constrains it.

    A default has no policy. `derived` describes a rule that is not in a policy's list of rules. `pieces` are the
    entries of the rule's lists with their texts. ANY entry of each list must hold.
    """

    policy: PolicyRef | None
    index: int
    span: Span | None = None
    parts: tuple[tuple[Attribute, Span], ...] = ()
    derived: Derived | None = None
    pieces: tuple[tuple[Predicate, Span], ...] = field(default=(), compare=False, repr=False)

    @property
    def kind(self) -> RuleKind:
        """Return the kind of the rule."""
        return RuleKind.LISTED if self.derived is None else self.derived.kind

    @property
    def label(self) -> str:
        """Return the description of a derived rule, for output; empty for a listed rule."""
        return "" if self.derived is None else str(self.derived)

    def part(self, attribute: Attribute) -> Span | None:
        """Return the span that constrains one attribute, or the span of the whole rule if that is not known."""
        return next((span for part, span in self.parts if part == attribute), self.span)

    def __str__(self) -> str:
        if self.policy is None:
            return self.label
        return f"{self.policy} {self.label}" if self.derived is not None else f"{self.policy} rule {self.index}"


# The effective policy of a point: the rules of several policies that are in force there, and those that are shadowed.
#
# It explains a chain and decides nothing: the stages of the chain consist of the rules in force.


class Shadowing(enum.StrEnum):
    """The reason why a rule is not in force."""

    ATOMIC_DEFAULTS = "atomic-defaults"  # defaults that are in force as a whole or not at all
    DEFAULT = "default"  # a more specific policy has a rule with the same key
    ATOMIC_OVERRIDES = "atomic-overrides"  # overrides that replace all other rules
    OVERRIDE = "override"  # an override has the same key


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """A rule of the effective policy, with its merge key."""

    key: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ShadowedRule:
    """A rule that is not in force, and the policies that shadow it."""

    key: str
    origin: Origin
    why: Shadowing
    by: tuple[PolicyRef, ...]


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """All rules of the policies of a point."""

    rules: tuple[RuleInForce, ...]
    shadowed: tuple[ShadowedRule, ...] = ()
