"""Assembly of the network policies on a pod to the layer of one direction.

    [Observe(audit), FirstMatch(itself), FirstMatch(admin), AllowAny]              if a NetworkPolicy selects the pod
    [Observe(audit), FirstMatch(itself), FirstMatch(admin), FirstMatch(baseline)]  if none does

A policy without rules for a direction does not affect it, except a NetworkPolicy that isolates for it. A connection
that no rule decides is allowed. A denied connection gets no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from eastgate.cluster.points import Direction
from eastgate.dialects.base import Scene
from eastgate.dialects.network.model import NetworkPolicy, NetworkTier
from eastgate.dialects.network.provenance import NODE_TRAFFIC, PLACEMENTS, TO_ITSELF, EnforcementReading, StageName
from eastgate.dialects.network.settings import NetworkEnforcement, NetworkSettings
from eastgate.ir import (
    AllowAny,
    Attachment,
    Chain,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Origin,
    Predicate,
    Refusal,
    Rule,
    Stage,
    Step,
    all_of,
    any_of,
)
from eastgate.ir.attributes import VICINITY

# The order of rules in a tier, also if the order of policies is not defined.
#
# Policies of one tier are evaluated by ascending priority, and the first rule that matches decides. Policies with one
# priority may be evaluated in any order. So may an AdminNetworkPolicy beside a ClusterNetworkPolicy of the Admin tier.
# A request is allowed only if every order allows it.
#
# The *candidates* for a request are the matching policies that may be evaluated first. Every candidate decides in some
# order, by its own first rule that matches. So the tier
#
# - denies if a candidate denies
# - else passes if a candidate passes: a candidate that accepts would allow anyway, and the stages after the tier must
#   allow as well
# - else accepts if a candidate accepts
#
# `in_any_order` writes this as one list of steps, of the following three kinds. The first step that matches decides.
#
# - each Deny of a sequence, if no earlier rule of the sequence accepts or passes
# - each Pass of a sequence, if no earlier rule of the sequence accepts
# - every Accept
#
# A Pass needs no test of an earlier Deny: that step comes first, or an Accept or Pass before it hides it. An Accept
# needs no test: if a rule of a sequence matches, and the first that matches is neither Deny nor Pass, the sequence
# accepts.


def order_tier(policies: Iterable[NetworkPolicy], direction: Direction) -> tuple[Step, ...]:
    """Return the rules of the policies of a tier as steps. The first step that matches decides."""
    by_kind: dict[str, list[NetworkPolicy]] = {}
    for policy in sorted(policies, key=lambda policy: (policy.priority, policy.ref)):
        by_kind.setdefault(policy.ref.kind, []).append(policy)
    return in_any_order([_by_priority(policies, direction) for policies in by_kind.values()])


def _by_priority(policies: Sequence[NetworkPolicy], direction: Direction) -> tuple[Step, ...]:
    steps: list[Step] = []
    for _, equal in groupby(policies, key=lambda policy: policy.priority):
        steps += in_any_order([[rule.step for rule in policy.rules[direction]] for policy in equal])
    return tuple(steps)


def in_any_order(sequences: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """Combine sequences of steps without a defined order. In each sequence, the first step that matches decides."""
    asked = [sequence for sequence in sequences if sequence]
    if len(asked) == 1:
        return tuple(asked[0])
    denying = (
        step for sequence in asked for step in _effect_steps(sequence, Effect.DENY, (Effect.ACCEPT, Effect.PASS))
    )
    passing = (step for sequence in asked for step in _effect_steps(sequence, Effect.PASS, (Effect.ACCEPT,)))
    accepting = (step for sequence in asked for step in sequence if step.effect is Effect.ACCEPT)
    return (*denying, *passing, *accepting)


def _effect_steps(sequence: Sequence[Step], effect: Effect, hidden_by: tuple[Effect, ...]) -> Iterator[Step]:
    """Yield the steps of one effect. Each matches only if no earlier step with an effect of `hidden_by` matches."""
    before: list[Predicate] = []
    for step in sequence:
        if step.effect is effect:
            when = all_of([step.rule.when, Not(any_of(before))]) if before else step.rule.when
            yield Step(Rule(when, step.rule.origin), effect)
        elif step.effect in hidden_by:
            before.append(step.rule.when)


_TO_ITSELF: Final = Rule(Is(VICINITY, OneOf(frozenset({"itself"}))), Origin(None, 0, derived=TO_ITSELF))
_OWN_NODE: Final = Rule(Is(VICINITY, OneOf(frozenset({"node"}))), Origin(None, 0, derived=NODE_TRAFFIC))


def ends(attached: Sequence[Attachment[NetworkPolicy]], direction: Direction, scene: Scene) -> list[Layer]:
    """Return the layer of a direction at the pods that these policies select, or no layer if no policy governs it."""
    chosen = dict.fromkeys(attachment.policy for attachment in attached)
    policies = [policy for policy in chosen if direction in policy.rules]
    if not policies:
        return []
    choice = scene.settings.section(NetworkSettings).network_policies
    stages = _stages(policies, direction) if choice is NetworkEnforcement.ENFORCE else []
    return [Layer(PLACEMENTS[direction], Chain(tuple(stages), (EnforcementReading(choice),)))]


def _stages(policies: Sequence[NetworkPolicy], direction: Direction) -> list[Stage]:
    enforced = [policy for policy in policies if not policy.audit]
    tiers = {tier: [policy for policy in enforced if policy.tier is tier] for tier in NetworkTier}
    stages: list[Stage] = []
    if observed := [rule for policy in policies if policy.audit for rule in policy.rules[direction]]:
        rules, would = tuple(rule.rule for rule in observed), tuple(rule.action for rule in observed)
        stages.append(Observe(StageName.AUDIT, rules, would))
    if enforced:
        stages.append(_first_match(StageName.ITSELF, (Step(_TO_ITSELF, Effect.ACCEPT),)))
    if tiers[NetworkTier.ADMIN]:
        stages.append(_first_match(StageName.ADMIN, order_tier(tiers[NetworkTier.ADMIN], direction)))
    if tiers[NetworkTier.NAMESPACED]:
        allowing = [rule.rule for policy in tiers[NetworkTier.NAMESPACED] for rule in policy.rules[direction]]
        stages.append(AllowAny(StageName.NAMESPACED, (*allowing, _OWN_NODE), Refusal.CLOSED))
    elif tiers[NetworkTier.BASELINE]:
        stages.append(_first_match(StageName.BASELINE, order_tier(tiers[NetworkTier.BASELINE], direction)))
    return stages


def _first_match(name: StageName, steps: tuple[Step, ...]) -> FirstMatch:
    return FirstMatch(name, steps, Effect.PASS, Refusal.CLOSED)
