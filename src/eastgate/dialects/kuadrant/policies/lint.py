"""AuthPolicies for lint, with their own checks: the effective policies, and the effect of each policy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from eastgate.dialects.kuadrant.policies import lint_codes as codes
from eastgate.dialects.kuadrant.policies.effective import age_of
from eastgate.dialects.kuadrant.policies.model import Block, Policy
from eastgate.dialects.kuadrant.policies.ways import effective_policies, is_accepted
from eastgate.dialects.linting import Context, Finding, Linting, Statements, enumerated


def _statements(_policy: Policy) -> Statements:
    """Return no statements: a scheme decides without them, and `examine` reports missing targets."""
    return Statements(rules=(), naming=(), targets=(), target_field="targetRef", allows=False, empty_list=None)


def _accepted(context: Context) -> list[Policy]:
    policies = (policy for policy in context.policies if isinstance(policy, Policy))
    return [policy for policy in policies if is_accepted(policy, context.world)]


def _check_effective(context: Context) -> Iterator[Finding]:
    """Report surprising effective policies."""
    if policies := _accepted(context):
        from eastgate.dialects.kuadrant.policies.lint_effective import find_in_effective  # imports the evaluator

        yield from find_in_effective(policies, context)


def _check_same_target(context: Context) -> Iterator[Finding]:
    """Report all policies on one target except the oldest."""
    policies = sorted(_accepted(context), key=lambda policy: (type(policy.target).__name__, str(policy.target)))
    for _, group in groupby(policies, key=lambda policy: (type(policy.target), policy.target)):
        first, *others = sorted(group, key=age_of)
        for policy in others:
            wins = first if policy.block is Block.OVERRIDES or first.block is Block.OVERRIDES else policy
            message = f"{policy.ref} and {first.ref} both target {policy.target}: if they differ, {wins.ref} counts"
            help_ = "write one policy, or make their targets differ by sectionName"
            yield Finding(codes.SAME_TARGET, message, policy.target_span, help_, (str(policy.ref), str(first.ref)))


def _check_enforcement(context: Context) -> Iterator[Finding]:
    """Report policies that govern no rule of a route, and policies without a rule in force."""
    policies = _accepted(context)
    ways = list(effective_policies(policies, context.world))
    for policy in policies if context.world.routes else ():
        on_way = [effective for _, effective in ways if policy in effective.policies]
        if not on_way:
            message = f"{policy.ref} targets {policy.target}, and no rule of a route is attached to it"
            help_ = "attach a route to it, or name another target"
            yield Finding(codes.ON_NO_ROUTE, message, policy.target_span, help_, (str(policy.ref),))
        elif all(policy in effective.overridden for effective in on_way):
            shadowing = (rule for effective in on_way for rule in effective.shadowed if rule.policy is policy)
            by = list(dict.fromkeys(str(other.ref) for rule in shadowing for other in rule.by))
            have = "has" if len(by) == 1 else "have"
            message = f"no rule of {policy.ref} is in force anywhere: {enumerated(by)} {have} rules in force instead"
            help_ = "remove it, or set strategy: merge in the policies that override it"
            yield Finding(codes.OVERRIDDEN, message, policy.name_span, help_, (str(policy.ref), *by))


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(),
    fallback=None,
    checks=(_check_effective, _check_same_target, _check_enforcement),
    codes=(codes,),
)
