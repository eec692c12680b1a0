"""Descriptions of AccessPolicies."""

from __future__ import annotations

from eastgate.cluster import GatewayNamed
from eastgate.dialects.accesspolicy.model import Policy
from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, DescribedRule, Words, describe_rule, describe_rules


def _level(policy: Policy) -> str:
    return "gateway" if isinstance(policy.targets[0], GatewayNamed) else "backend"


def _rules(policy: Policy) -> list[DescribedRule]:
    asks = [describe_rule(f"ASK {authorizer}", rule) for rule, authorizer in policy.asks]
    return [*asks, *describe_rules(str(policy.action), (*policy.denies, *policy.allows))]


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return NO_RULES if selects else problem or NOTHING_SELECTED


WORDS: Words[Policy] = Words(
    action=lambda policy: str(policy.action),
    level=_level,
    rules=_rules,
    why_idle=_why_idle,
)
