"""The effective policy of a point: which rules of several policies are in force there, and which are shadowed.

It explains a chain to people and decides nothing: the stages of the chain are made of the rules in force.
"""

from __future__ import annotations

import enum

from eastgate.basics.records import dataclass
from eastgate.ir.provenance import Origin, PolicyRef


class Shadowing(enum.StrEnum):
    """The reason for which a rule is not in force."""

    ATOMIC_DEFAULTS = "atomic-defaults"  # defaults that count as a whole, or not at all
    DEFAULT = "default"  # a default that a more specific policy has a rule of the same key for
    ATOMIC_OVERRIDES = "atomic-overrides"  # overrides beside which nothing else counts
    OVERRIDE = "override"  # an override of the same key


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """A rule of the effective policy, by the key that it is merged by."""

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
