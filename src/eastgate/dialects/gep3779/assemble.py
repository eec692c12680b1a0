"""From the policies that target a workload to its layers: one for each level, NETWORK first.

Each level is a chain of its own, and both must allow; a level that no policy targets is open. A chain is

    [Observe(audit), FirstMatch(admin), Deny, AllowAny]      where an enforced namespaced policy targets the workload
    [Observe(audit), FirstMatch(admin), FirstMatch(baseline)]  where none does

At a pod of a cluster without a proxy nothing of this is enforced (`sidecars`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.dialects.base import Scene
from eastgate.dialects.gep3779.model import Action, Level, Policy, Tier
from eastgate.dialects.gep3779.provenance import PLACEMENTS, DenyOnlyReading, StageName
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
from eastgate.dialects.gep3779.sidecars import SidecarStance, behind_proxy
from eastgate.ir import (
    AllowAny,
    Attachment,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Observe,
    OneOf,
    Reading,
    Refusal,
    SelectorCase,
    Stage,
    Step,
)
from eastgate.ir.attributes import SERVICE
from eastgate.settings import Settings

_REFUSALS = {Level.NETWORK: Refusal.CLOSED, Level.APPLICATION: Refusal.FORBIDDEN}
_EFFECTS = {Action.ALLOW: Effect.ACCEPT, Action.DENY: Effect.DENY, Action.PASS: Effect.PASS}
_TIER_ORDER = {Action.DENY: 0, Action.PASS: 1, Action.ALLOW: 2}  # in one tier and priority


def layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    """Return the layers of a workload that these policies target, in the order in which a request meets them."""
    return [
        _enforced(_layer(level, at_level, scene.settings), at_level, scene)
        for level in Level
        if (at_level := [attachment for attachment in attached if attachment.policy.level is level])
    ]


def _enforced(layer: Layer, attached: list[Attachment[Policy]], scene: Scene) -> Layer:
    """Return a layer as the proxy of its workload enforces it, where it is known whether there is one."""
    if not isinstance(scene.stance, SidecarStance):
        return layer
    refs = sorted({attachment.policy.ref for attachment in attached if not attachment.policy.audit})
    return behind_proxy(layer, tuple(refs), scene.stance, scene.world)


def _layer(level: Level, attached: list[Attachment[Policy]], settings: Settings) -> Layer:
    """Build the layer of a level. Read as traffic, a policy on a Service governs only what is addressed to it."""
    placement = PLACEMENTS[level]
    if settings.section(GepSettings).service_target is ServiceTarget.WORKLOADS:
        return Layer(placement, _chain(level, [attachment.policy for attachment in attached], settings))
    services = sorted({attachment.service for attachment in attached if attachment.service is not None})
    by_pod = [attachment.policy for attachment in attached if attachment.service is None]
    return Layer(
        placement,
        _chain(level, by_pod, settings),
        tuple(
            SelectorCase(
                Is(SERVICE, OneOf(frozenset({service}))),
                _chain(
                    level,
                    [*by_pod, *(attachment.policy for attachment in attached if attachment.service == service)],
                    settings,
                ),
            )
            for service in services
        ),
    )


def _chain(level: Level, policies: list[Policy], settings: Settings) -> Chain:
    chosen = sorted(dict.fromkeys(policies), key=_sort_key)
    enforced = [policy for policy in chosen if not policy.audit]
    namespaced = [policy for policy in enforced if policy.tier is Tier.NAMESPACED]
    stages: list[Stage] = []
    readings: list[Reading] = []
    if audited := [policy for policy in chosen if policy.audit]:
        stages.append(_observe(audited))
    if admin := [policy for policy in enforced if policy.tier is Tier.ADMIN]:
        stages.append(_tier(StageName.ADMIN, admin, level))
    if namespaced:
        stages.extend(_namespaced(namespaced, level, settings, readings))
    elif baseline := [policy for policy in enforced if policy.tier is Tier.BASELINE]:
        stages.append(_tier(StageName.BASELINE, baseline, level))
    return Chain(tuple(stages), tuple(readings))


def _sort_key(policy: Policy) -> tuple[str, str, str, str]:
    """Return a key in the order of `PolicyRef`: the engine gives policies in it, so that sorting compares them once."""
    ref = policy.ref
    return ref.kind, ref.namespace or "", ref.name, ref.group


def _observe(audited: list[Policy]) -> Observe:
    rules = [(rule, policy.action) for policy in audited for rule in policy.rules]
    return Observe(StageName.AUDIT, tuple(rule for rule, _ in rules), tuple(str(action) for _, action in rules))


def _tier(name: StageName, policies: list[Policy], level: Level) -> FirstMatch:
    ordered = sorted(policies, key=lambda p: (p.priority, _TIER_ORDER[p.action], p.ref))
    steps = tuple(Step(rule, _EFFECTS[policy.action]) for policy in ordered for rule in policy.rules)
    return FirstMatch(name, steps, Effect.PASS, _REFUSALS[level])


def _namespaced(policies: list[Policy], level: Level, settings: Settings, readings: list[Reading]) -> list[Stage]:
    refusal, deny_only = _REFUSALS[level], settings.section(GepSettings).deny_only
    deny = [rule for policy in policies if policy.action is Action.DENY for rule in policy.rules]
    allowing = [policy for policy in policies if policy.action is Action.ALLOW]
    stages: list[Stage] = []
    if deny:
        stages.append(Deny(StageName.DENY, tuple(deny), refusal))
    if not allowing:
        readings.append(DenyOnlyReading(deny_only))
    if allowing or deny_only is DenyOnly.DENY:
        stages.append(AllowAny(StageName.ALLOW, tuple(rule for policy in allowing for rule in policy.rules), refusal))
    return stages
