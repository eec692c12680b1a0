"""The effective policies of all rules of routes, for each listener."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import World
from eastgate.cluster.points import RuleNamed, is_rule_of
from eastgate.cluster.targets import RulesOfGateway
from eastgate.dialects.kuadrant.policies.effective import Effective, fold
from eastgate.dialects.kuadrant.policies.model import Policy


def effective_policies(
    policies: Sequence[Policy], world: World, about: Policy | None = None
) -> Iterator[tuple[RuleNamed, Effective]]:
    """Yield the effective policy of each rule behind a Gateway that some accepted policy, or this policy, governs."""
    from eastgate.cluster.routing.rules import every_rule

    accepted = [policy for policy in policies if is_accepted(policy, world)]
    for routed in every_rule(world) if accepted else ():
        rule = routed.point
        if rule.gateway is None or (about is not None and not is_rule_of(rule, about.target)):
            continue
        if on_way := [policy for policy in accepted if is_rule_of(rule, policy.target)]:
            yield rule, fold(on_way)


def is_accepted(policy: Policy, world: World) -> bool:
    """Return whether a policy counts: it is not being deleted, not in audit mode, and its target exists."""
    return not policy.audit and not policy.deleted and target_exists(policy, world)


def target_exists(policy: Policy, world: World) -> bool:
    """Return whether a manifest declares the target of a policy, and its section."""
    target = policy.target
    key = f"{target.namespace}/{target.name}"
    if isinstance(target, RulesOfGateway):
        gateway = world.gateways.get(key)
        return gateway is not None and target.listener in (None, *(each.name for each in gateway.listeners))
    from eastgate.cluster.routing.model import name_of_rule, rules_of

    route = world.routes.get(f"{target.kind}/{key}")
    if route is None:
        return False
    return target.rule in (None, *(name_of_rule(rule, number) for number, rule in enumerate(rules_of(route))))
