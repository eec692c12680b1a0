"""Descriptions of GEP-3779 policies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from eastgate.dialects import words
from eastgate.dialects.gep3779.model import Policy, Tier
from eastgate.dialects.gep3779.provenance import PLACEMENTS
from eastgate.dialects.modes import LayerMode, modes_of_layer
from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, DescribedRule, Words, describe_rules
from eastgate.ir import Layer


def _rules(policy: Policy) -> list[DescribedRule]:
    return describe_rules(str(policy.action), policy.rules)


def _tier(policy: Policy) -> words.DescribedTier | None:
    return words.DescribedTier(str(policy.tier), policy.priority) if policy.tier is not Tier.NAMESPACED else None


def _why_idle(policy: Policy, problem: str | None, selects: bool) -> str:
    if not selects:
        return problem or NOTHING_SELECTED
    if policy.tier is Tier.BASELINE:
        return "each workload that it selects has policies of its own at this level, which replace the baseline"
    return NO_RULES


def _modes(layer: Layer, policies: Sequence[Policy], _stance: Hashable) -> list[LayerMode]:
    """Return the modes of a level: namespaced policies turn deny by default on, those of tiers do not."""
    enforced = [policy for policy in policies if PLACEMENTS[policy.level] == layer.at and not policy.audit]
    return modes_of_layer(layer, [policy.ref for policy in enforced if policy.tier is Tier.NAMESPACED])


WORDS: Words[Policy] = Words(
    action=lambda policy: str(policy.action),
    level=lambda policy: str(policy.level),
    rules=_rules,
    why_idle=_why_idle,
    tier=_tier,
    modes=_modes,
    levels=tuple(PLACEMENTS.values()),
)
