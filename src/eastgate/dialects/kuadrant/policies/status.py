"""What the status of an AuthPolicy would show, and what is wrong with one beside everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import World
from eastgate.cluster.targets import RulesOfGateway
from eastgate.diagnostics import Diagnostic
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.policies import codes
from eastgate.dialects.kuadrant.policies.effective import Effective, fold
from eastgate.dialects.kuadrant.policies.model import Policy
from eastgate.settings import Settings

__all__ = ["conditions", "examine"]


def examine(policies: Sequence[Policy], _settings: Settings, world: World) -> Iterator[tuple[Policy, Diagnostic]]:
    """Report missing targets."""
    for policy in policies:
        if not _target_exists(policy, world):
            message = f"no manifest declares {policy.target}"
            yield policy, Diagnostic(codes.NO_SUCH_TARGET, message, policy.target_span, "declare it, or name another")


def _target_exists(policy: Policy, world: World) -> bool:
    target = policy.target
    key = f"{target.namespace}/{target.name}"
    if isinstance(target, RulesOfGateway):
        gateway = world.gateways.get(key)
        return gateway is not None and target.listener in (None, *(each.name for each in gateway.listeners))
    from eastgate.gateway.model import name_of_rule, rules_of

    route = world.routes.get(f"{target.kind}/{key}")
    if route is None:
        return False
    return target.rule in (None, *(name_of_rule(rule, number) for number, rule in enumerate(rules_of(route))))


def conditions(policy: Policy, policies: Sequence[Policy], _settings: Settings, world: World) -> list[Condition]:
    """Return the conditions `Accepted` and `Enforced` of a policy."""
    if not _target_exists(policy, world):
        message = f"AuthPolicy target {policy.target.name} was not found"
        return [Condition("Accepted", "False", "TargetNotFound", message)]
    accepted = Condition("Accepted", "True", "Accepted", "AuthPolicy has been accepted")
    return [accepted, _enforced(policy, policies, world)]


def _enforced(policy: Policy, policies: Sequence[Policy], world: World) -> Condition:
    """Return whether some of its rules are in force on some way; the words are upstream's."""
    ways = list(_ways(policy, policies, world))
    if policy.audit:
        return Condition("Enforced", "False", "Unknown", "AuthPolicy only audits")
    if not ways:
        message = "AuthPolicy is not in the path to any existing routes"
        return Condition("Enforced", "False", "Unknown", message)
    if all(policy not in effective.sources for effective in ways):
        over = dict.fromkeys(f"{other.ref.namespace}/{other.ref.name}" for each in ways for other in each.sources)
        return Condition("Enforced", "False", "Overridden", f"AuthPolicy is overridden by [{' '.join(over)}]")
    whole = all(effective.rules.get(key) is policy for effective in ways for key in policy.rules)
    how = "successfully" if whole else "partially"
    return Condition("Enforced", "True", "Enforced", f"AuthPolicy has been {how} enforced")


def _ways(policy: Policy, policies: Sequence[Policy], world: World) -> Iterator[Effective]:
    """Yield the effective policy of each way that a policy is on, through a Gateway."""
    from eastgate.cluster.points import is_rule_of
    from eastgate.gateway.rules import every_rule

    accepted = [each for each in policies if not each.audit and _target_exists(each, world)]
    for routed in every_rule(world):
        rule = routed.point
        if rule.gateway is not None and is_rule_of(rule, policy.target):
            yield fold(each for each in accepted if is_rule_of(rule, each.target))
