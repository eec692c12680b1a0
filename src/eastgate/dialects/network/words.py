"""Descriptions of network policies."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from eastgate.cluster import PodsAcross, World
from eastgate.cluster.points import Direction
from eastgate.dialects.base import Condition
from eastgate.dialects.network.model import NetworkPolicy, NetworkRule, NetworkTier
from eastgate.dialects.words import (
    NOTHING_SELECTED,
    DescribedRule,
    DescribedTarget,
    DescribedTier,
    LayerMode,
    Words,
    modes_of_layer,
)
from eastgate.ir import Layer
from eastgate.ir.labels import Selector
from eastgate.settings import Settings

# Conditions that network policies would show


def conditions(
    policy: NetworkPolicy, _policies: Sequence[NetworkPolicy], _settings: Settings, world: World
) -> list[Condition]:
    """Return the condition that says whether a policy selects pods."""
    if any(world.select(target) for target in policy.targets):
        message = "it is in audit mode: it is reported and decides nothing" if policy.audit else "it is in order"
        return [Condition("Accepted", "True", "Accepted", message)]
    return [Condition("Accepted", "False", "TargetNotFound", "no pod is selected")]


def _action(policy: NetworkPolicy) -> str:
    """Return the effect of its rules, or `ISOLATE` for a NetworkPolicy without rules."""
    actions = dict.fromkeys(rule.action for rule in policy.all_rules)
    return "/".join(actions) or ("ISOLATE" if policy.isolates else "-")


def _level(policy: NetworkPolicy) -> str:
    return (
        "+".join(direction for direction in (Direction.INGRESS, Direction.EGRESS) if direction in policy.rules) or "-"
    )


def _rules(policy: NetworkPolicy) -> Iterator[DescribedRule]:
    for direction in (Direction.INGRESS, Direction.EGRESS):
        if policy.isolates and not policy.rules.get(direction, ("not isolated",)):
            yield DescribedRule("ISOLATE", ("nothing is allowed",), None, policy.span, about=direction)
        for rule in policy.rules.get(direction, ()):
            yield _described(rule, direction)


def _described(rule: NetworkRule, direction: Direction) -> DescribedRule:
    named = direction if rule.name is None else f"{direction} ({rule.name})"
    return DescribedRule(rule.action, (rule.rule.when,), rule.rule.origin, rule.rule.origin.span, about=named)


def _targets(policy: NetworkPolicy) -> Sequence[DescribedTarget] | None:
    return [_target(target) for target in policy.targets if isinstance(target, PodsAcross)] or None


def _target(target: PodsAcross) -> DescribedTarget:
    if target.pods == Selector.of():
        return DescribedTarget("Namespace", target.namespaces, target)
    return DescribedTarget("Pod", target.pods if target.namespaces == Selector.of() else str(target), target)


def _tier(policy: NetworkPolicy) -> DescribedTier | None:
    return None if policy.tier is NetworkTier.NAMESPACED else DescribedTier(policy.tier, policy.priority)


def _why_idle(policy: NetworkPolicy, problem: str | None, selects: bool) -> str:
    if not selects:
        return problem or NOTHING_SELECTED
    if policy.tier is NetworkTier.BASELINE:
        return "NetworkPolicies select all of its pods, or it has no rules that match"
    return "it has no rules, so that nothing matches"


def _modes(layer: Layer, policies: Sequence[NetworkPolicy], _stance: Hashable) -> list[LayerMode]:
    direction = Direction(layer.at.level)
    closing = [policy.ref for policy in policies if policy.isolates and direction in policy.rules and not policy.audit]
    return modes_of_layer(layer, closing)


WORDS: Words[NetworkPolicy] = Words(
    action=_action,
    level=_level,
    rules=_rules,
    why_idle=_why_idle,
    targets=_targets,
    tier=_tier,
    modes=_modes,
    count_rules=lambda policy: sum(1 for _ in policy.all_rules),
)
