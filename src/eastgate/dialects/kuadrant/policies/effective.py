"""The effective policy: the result of merging all policies that govern a rule of a route.

The policies are merged from the most specific to the least specific target: a rule of a route, the route, the listener,
the Gateway. Of two policies on one target, the newer is more specific. Each policy is merged by its own strategy:

    atomic defaults    count only if there are no more specific rules at all.
    atomic overrides   are the only rules that count.
    merged defaults    add each rule whose name no more specific policy has.
    merged overrides   replace each more specific rule of the same name.
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
    """A rule that is not in force, its policy, and the policies that override it."""

    key: RuleKey
    policy: Policy
    why: Shadowing
    by: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    """The rules in force, each with its policy; the other rules; and all policies that were merged.

    Policies are sorted, the most specific first.
    """

    rules: Mapping[RuleKey, Policy] = field(hash=False)
    policies: tuple[Policy, ...]
    shadowed: tuple[Shadowed, ...] = ()

    @property
    def nodes(self) -> dict[tuple[str, str], Node]:
        """Return the rules in force as written, by section and name."""
        return {key: policy.rules[key] for key, policy in self.rules.items()}

    @property
    def sources(self) -> tuple[Policy, ...]:
        """Return the policies with rules in force, the most specific first."""
        contributing = {id(policy) for policy in self.rules.values()}
        return tuple(policy for policy in self.policies if id(policy) in contributing)

    @property
    def overridden(self) -> tuple[Policy, ...]:
        """Return the policies without rules in force, the most specific first."""
        contributing = {id(policy) for policy in self.rules.values()}
        return tuple(policy for policy in self.policies if id(policy) not in contributing)


def by_specificity(policies: Iterable[Policy]) -> list[Policy]:
    """Sort policies for one rule, the most specific first."""
    return sorted(policies, key=_rank, reverse=True)


def _rank(policy: Policy) -> tuple[int, bool, str, str, str]:
    """Return the sort key of a policy: its target and its age."""
    target = policy.target
    if isinstance(target, RulesOfGateway):
        depth = 0 if target.listener is None else 1
    else:
        depth = 2 if target.rule is None else 3
    return depth, *age_of(policy)


def age_of(policy: Policy) -> tuple[bool, str, str, str]:
    """Return the sort key for age, the oldest first.

    A policy without a creation time is yet to be created, and so the newest.
    """
    return policy.created is None, policy.created or "", policy.ref.namespace or "", policy.ref.name


def fold(policies: Iterable[Policy]) -> Effective:
    """Return the effective policy of policies that govern the same rule."""
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
    """Return the rules that a policy and more specific ones shadow in each other.

    `rules` are in force without the policy.
    """
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
