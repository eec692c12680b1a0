"""Descriptions of AuthPolicies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from eastgate.basics.diagnostics import Diagnostic
from eastgate.cluster import World
from eastgate.cluster.targets import RulesOfGateway, RulesOfRoute
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.policies import codes
from eastgate.dialects.kuadrant.policies.effective import Effective
from eastgate.dialects.kuadrant.policies.model import Block, Policy
from eastgate.dialects.kuadrant.policies.ways import effective_policies, target_exists
from eastgate.dialects.words import NOTHING_SELECTED, DescribedRule, Words
from eastgate.settings import Settings

# The status of an AuthPolicy, and its problems with other objects.


def examine(policies: Collection[Policy], _settings: Settings, world: World) -> Iterator[tuple[Policy, Diagnostic]]:
    """Report missing targets."""
    for policy in policies:
        if not target_exists(policy, world):
            message = f"no manifest declares {policy.target}"
            yield policy, Diagnostic(codes.NO_SUCH_TARGET, message, policy.target_span, "declare it, or name another")


def conditions(policy: Policy, policies: Sequence[Policy], _settings: Settings, world: World) -> list[Condition]:
    """Return the conditions `Accepted` and `Enforced` of a policy; no conditions for a policy that is being deleted."""
    if policy.deleted:
        return []
    if not target_exists(policy, world):
        message = f"AuthPolicy target {_target_name(policy.target)} was not found"
        return [Condition("Accepted", "False", "TargetNotFound", message)]
    accepted = Condition("Accepted", "True", "Accepted", "AuthPolicy has been accepted")
    return [accepted, _enforced(policy, policies, world)]


def _target_name(target: RulesOfGateway | RulesOfRoute) -> str:
    section = target.listener if isinstance(target, RulesOfGateway) else target.rule
    return target.name if section is None else f"{target.name}#{section}"


def _enforced(policy: Policy, policies: Sequence[Policy], world: World) -> Condition:
    """Return whether some of its rules are in force for some route rule.

    Reasons and messages are kuadrant-operator's.
    """
    if policy.audit:
        return Condition("Enforced", "False", "Unknown", "AuthPolicy only audits")
    ways = [effective for _, effective in effective_policies(policies, world, policy)]
    if not ways:
        message = "AuthPolicy is not in the path to any existing routes"
        return Condition("Enforced", "False", "Unknown", message)
    overriding = list(dict.fromkeys(other for effective in ways for other in _overriding(policy, effective)))
    if not any(policy in effective.sources for effective in ways):
        names = " ".join(f"{other.ref.namespace}/{other.ref.name}" for other in overriding)
        return Condition("Enforced", "False", "Overridden", f"AuthPolicy is overridden by [{names}]")
    how = "partially" if overriding else "successfully"
    return Condition("Enforced", "True", "Enforced", f"AuthPolicy has been {how} enforced")


def _overriding(policy: Policy, effective: Effective) -> Iterator[Policy]:
    """Yield the policies whose rules are in force instead of the rules of this policy.

    For a rule whose name has no rule in force, these are all policies with rules in force.
    """
    for key in policy.rules:
        source = effective.rules.get(key)
        if source is None:
            yield from effective.sources
        elif source is not policy:
            yield source


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
