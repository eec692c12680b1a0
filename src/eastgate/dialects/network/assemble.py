"""From the network policies on a pod to the layer of one direction.

    [Observe(audit), FirstMatch(itself), FirstMatch(admin), AllowAny]              where a NetworkPolicy selects it
    [Observe(audit), FirstMatch(itself), FirstMatch(admin), FirstMatch(baseline)]  where none does

A policy without rules for a direction has no say in it, but for a NetworkPolicy that isolates for it. What nothing
decides is allowed, and what is denied gets no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eastgate.cluster.points import Direction
from eastgate.dialects.base import Scene
from eastgate.dialects.network.model import NetworkPolicy, NetworkTier
from eastgate.dialects.network.provenance import PLACEMENTS, EnforcementReading, NodeTraffic, StageName, ToItself
from eastgate.dialects.network.settings import NetworkEnforcement, NetworkSettings
from eastgate.dialects.network.tiers import order_tier
from eastgate.ir import (
    AllowAny,
    Attachment,
    Chain,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Observe,
    OneOf,
    Origin,
    Refusal,
    Rule,
    Stage,
    Step,
)
from eastgate.ir.attributes import VICINITY

_TO_ITSELF: Final = Rule(Is(VICINITY, OneOf(frozenset({"itself"}))), Origin(None, 0, derived=ToItself()))
_OWN_NODE: Final = Rule(Is(VICINITY, OneOf(frozenset({"node"}))), Origin(None, 0, derived=NodeTraffic()))


def ends(attached: Sequence[Attachment[NetworkPolicy]], direction: Direction, scene: Scene) -> list[Layer]:
    """Return the layer of a direction at the pods that these policies select; none where no policy governs it."""
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
