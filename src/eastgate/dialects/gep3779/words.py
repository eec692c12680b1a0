"""How GEP-3779 policies are described."""

from __future__ import annotations

from eastgate.dialects import words
from eastgate.dialects.gep3779.model import Policy, Tier
from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, DescribedRule, Words, describe_rules

__all__ = ["WORDS"]


def _rules(policy: Policy) -> list[DescribedRule]:
    return describe_rules(str(policy.action), policy.rules)


def _tier(policy: Policy) -> words.Tier | None:
    return words.Tier(str(policy.tier), policy.priority) if policy.tier is not Tier.NAMESPACED else None


def _why_idle(policy: Policy, problem: str | None, selects: bool) -> str:
    if not selects:
        return problem or NOTHING_SELECTED
    if policy.tier is Tier.BASELINE:
        return "each workload that it selects has policies of its own at this level, which replace the baseline"
    return NO_RULES


WORDS: Words[Policy] = Words(
    action=lambda policy: str(policy.action),
    level=lambda policy: str(policy.level),
    rules=_rules,
    why_idle=_why_idle,
    tier=_tier,
)
