"""Descriptions of AuthPolicies."""

from __future__ import annotations

from eastgate.cluster.targets import RulesOfGateway
from eastgate.dialects.kuadrant.policies.model import Block, Policy
from eastgate.dialects.words import NOTHING_SELECTED, DescribedRule, Words


def _rules(policy: Policy) -> list[DescribedRule]:
    does = "OVERRIDE" if policy.block is Block.OVERRIDES else "DEFAULT"
    return [
        DescribedRule(does, (f"{key.section} {key.name}".rstrip(),), policy.origin(key), node.span)
        for key, node in policy.rules.items()
    ]


def _level(policy: Policy) -> str:
    target = policy.target
    if isinstance(target, RulesOfGateway):
        return "gateway" if target.listener is None else "listener"
    return "route" if target.rule is None else "rule"


def _why_idle(policy: Policy, problem: str | None, selects: bool) -> str:
    if policy.deleted:
        return "it is being deleted"
    return problem or ("every rule of it is overridden" if selects else NOTHING_SELECTED)


WORDS: Words[Policy] = Words(
    action=lambda _policy: "ASK",
    level=_level,
    rules=_rules,
    why_idle=_why_idle,
    count_rules=lambda policy: len(policy.rules),
)
