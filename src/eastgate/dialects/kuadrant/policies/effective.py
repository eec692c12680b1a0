"""The effective policy: what is left of all policies on the way to a rule of a route.

From the most specific policy to the least (a rule of a route, the route, the listener, the Gateway; of two on one
target the newer is the more specific), each is merged in by its own strategy:

    atomic defaults    they count only where there are no more specific rules at all
    atomic overrides   nothing else counts
    merged defaults    those of its rules that the more specific policies have none of that name for
    merged overrides   its rules, and those of more specific policies of other names
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from eastgate.basics.records import dataclass
from eastgate.cluster.targets import RulesOfGateway
from eastgate.dialects.kuadrant.policies.model import Block, Policy, RuleKey, Strategy
from eastgate.ir import Shadowing
from eastgate.reading.manifests.node import Node

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A rule that is not in force, with its policy, and the policies that it gave way to."""

    key: RuleKey
    policy: Policy
    why: Shadowing
    by: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    """The rules in force, each with its policy; those that are not; and all policies on the way.

    Policies are sorted, the most specific first.
    """

    rules: Mapping[RuleKey, Policy] = field(hash=False)
    policies: tuple[Policy, ...]
    shadowed: tuple[Shadowed, ...] = ()

    @property
    def nodes(self) -> dict[tuple[str, str], Node]:
        """Return the rules in force as they are written, by section and name."""
        return {key: policy.rules[key] for key, policy in self.rules.items()}

    @property
    def sources(self) -> tuple[Policy, ...]:
        """Return the policies that rules in force come from, the most specific first."""
        contributing = {id(policy) for policy in self.rules.values()}
        return tuple(policy for policy in self.policies if id(policy) in contributing)

    @property
    def overridden(self) -> tuple[Policy, ...]:
        """Return the policies of which no rule is in force, the most specific first."""
        contributing = {id(policy) for policy in self.rules.values()}
        return tuple(policy for policy in self.policies if id(policy) not in contributing)


def by_specificity(policies: Iterable[Policy]) -> list[Policy]:
    """Sort policies on one way, the most specific first."""
    return sorted(policies, key=_rank, reverse=True)


def _rank(policy: Policy) -> tuple[int, bool, str, str, str]:
    """Rank a policy by its target and its age."""
    target = policy.target
    if isinstance(target, RulesOfGateway):
        depth = 0 if target.listener is None else 1
    else:
        depth = 2 if target.rule is None else 3
    return depth, *age_of(policy)


def age_of(policy: Policy) -> tuple[bool, str, str, str]:
    """Return what policies are sorted by, the oldest first. One without an age is yet to be created, and the newest."""
    return policy.created is None, policy.created or "", policy.ref.namespace or "", policy.ref.name


def fold(policies: Iterable[Policy]) -> Effective:
    """Return what is left of the policies on one way."""
    in_order = tuple(by_specificity(policies))
    rules: dict[RuleKey, Policy] = {}
    shadowed: dict[tuple[RuleKey, Policy], Shadowed] = {}
    for position, policy in enumerate(in_order):
        shadowing = _shadow(policy, in_order[:position], rules)
        shadowed |= {(each.key, each.policy): each for each in shadowing}
        own = dict.fromkeys(policy.rules, policy)
        match policy.block, policy.strategy:
            case Block.OVERRIDES, Strategy.ATOMIC:
                rules = own
            case Block.OVERRIDES, Strategy.MERGE:
                rules = {**rules, **own}
            case Block.DEFAULTS, Strategy.MERGE:
                rules = {**own, **rules}
            case _:
                rules = rules or own
    return Effective(rules, in_order, tuple(shadowed.values()))


def _shadow(policy: Policy, specific: Sequence[Policy], rules: Mapping[RuleKey, Policy]) -> list[Shadowed]:
    """Return what a policy and more specific ones shadow of each other; `rules` are those in force without it."""
    of_others = [(key, other) for other in specific for key in other.rules]
    match policy.block, policy.strategy:
        case Block.OVERRIDES, Strategy.ATOMIC:
            return [Shadowed(key, other, Shadowing.ATOMIC_OVERRIDES, (policy,)) for key, other in of_others]
        case Block.OVERRIDES, Strategy.MERGE:
            replaced = [(key, other) for key, other in of_others if key in policy.rules]
            return [Shadowed(key, other, Shadowing.OVERRIDE, (policy,)) for key, other in replaced]
        case Block.DEFAULTS, Strategy.MERGE:
            return [Shadowed(key, policy, Shadowing.DEFAULT, (rules[key],)) for key in policy.rules if key in rules]
        case _:
            in_force = set(rules.values())
            by = tuple(other for other in specific if other in in_force)
            return [Shadowed(key, policy, Shadowing.ATOMIC_DEFAULTS, by) for key in policy.rules if by]
