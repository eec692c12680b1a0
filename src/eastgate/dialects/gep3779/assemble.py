"""Assemble the policies that target a workload to its layers: one for each level, NETWORK first.

Each level is a chain, and both must allow. A level that no policy targets is open. A chain is

    [Observe(audit), FirstMatch(admin), Deny, AllowAny]      if an enforced namespaced policy targets the workload
    [Observe(audit), FirstMatch(admin), FirstMatch(baseline)]  otherwise

A pod of a cluster without a proxy enforces none of these layers (`sidecars`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World
from eastgate.cluster.proxies import (
    EXCLUDED_INBOUND_PORTS,
    ProxyPresence,
    excluded_inbound_ports,
    has_identity,
    proxy_presence,
)
from eastgate.dialects.base import Scene
from eastgate.dialects.gep3779.model import Action, Level, Policy, Tier
from eastgate.dialects.gep3779.provenance import PLACEMENTS, DenyOnlyReading, StageName
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
from eastgate.ir import (
    AllowAny,
    Attachment,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Known,
    Layer,
    Observe,
    OneOf,
    PolicyRef,
    ProxyReading,
    RawRequest,
    Reading,
    Refusal,
    SelectorCase,
    Stage,
    Step,
)
from eastgate.ir.attributes import IDENTITY, SERVICE, SOURCE_WORKLOAD, Attribute
from eastgate.settings import Settings, Sidecars

# The sidecars that enforce GEP-3779: layers of a pod with a sidecar, and of a pod without.
#
# Manifests before injection have no sidecars, so every pod counts as having one. In a cluster each pod has a sidecar or
# not.


_SETTING = "sidecars"
_PROXY = "its eastgate proxy"
_WHY = {
    ProxyPresence.PRESENT: "it has one",
    ProxyPresence.ABSENT: "it has no Eastgate proxy",
    ProxyPresence.UNPROVEN: "its label claims an Eastgate proxy, but it has no such container",
    ProxyPresence.UNBORN: "it has no pods yet; a pod gets an Eastgate proxy, or none, when it is created",
}


@dataclass(frozen=True, slots=True)
class SidecarStance:
    """Whether a workload has a proxy, and the ports whose traffic bypasses the proxy."""

    presence: ProxyPresence
    excluded: tuple[int, ...] = ()


def stance_of(workload: Workload, attached: Sequence[Attachment[Policy]], scene: Scene) -> SidecarStance | None:
    """Return the stance of a workload; None if no policy targets it, or if every pod counts as having a proxy."""
    if not attached or scene.settings.sidecars is Sidecars.ASSUMED:
        return None
    presence = proxy_presence(scene.world, workload)
    return SidecarStance(presence, tuple(sorted(excluded_inbound_ports(workload.annotations))))


def behind_proxy(layer: Layer, policies: tuple[PolicyRef, ...], stance: SidecarStance, world: World) -> Layer:
    """Return a layer of a workload as its proxy enforces it. Without a proxy, the layer has no rules."""
    readings = _readings(policies, stance) if policies else ()
    if stance.presence is ProxyPresence.ABSENT:
        return Layer(layer.at, Chain((), readings))

    def stated(chain: Chain) -> Chain:
        return replace(chain, readings=(*chain.readings, *readings))

    cases = tuple(replace(case, chain=stated(case.chain)) for case in layer.cases)
    derivations = (*layer.derivations, ProxiedCallers(world))
    return replace(layer, otherwise=stated(layer.otherwise), cases=cases, derivations=derivations)


def _readings(policies: tuple[PolicyRef, ...], stance: SidecarStance) -> tuple[ProxyReading, ...]:
    presence = stance.presence
    by = None if presence is ProxyPresence.ABSENT else _PROXY
    is_certain = presence in (ProxyPresence.ABSENT, ProxyPresence.PRESENT)
    about_pod = ProxyReading(policies, by, _WHY[presence], _SETTING, Sidecars.ACTUAL, is_certain)
    if by is None or not stance.excluded:
        return (about_pod,)
    ports = stance.excluded
    why = f"{EXCLUDED_INBOUND_PORTS} keeps connections to port {', '.join(map(str, ports))} from its proxy"
    return about_pod, ProxyReading(policies, by, why, _SETTING, Sidecars.ACTUAL, certain=False, ports=ports)


@dataclass(frozen=True, slots=True)
class ProxiedCallers:
    """Replaces the identity of callers without a proxy: such a pod is anonymous.

    All other callers keep their identity.
    """

    world: World
    depends_on: ClassVar[None] = None  # callers are compared by their identities, not by their workloads

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent identity for a pod that has no proxy to prove its identity."""
        key = values.get(SOURCE_WORKLOAD)
        caller = self.world.workloads.get(key) if isinstance(key, str) else None
        return {} if caller is None or not caller.is_pod or has_identity(self.world, caller) else {IDENTITY: None}


_REFUSALS = {Level.NETWORK: Refusal.CLOSED, Level.APPLICATION: Refusal.FORBIDDEN}
_EFFECTS = {Action.ALLOW: Effect.ACCEPT, Action.DENY: Effect.DENY, Action.PASS: Effect.PASS}
_TIER_ORDER = {Action.DENY: 0, Action.PASS: 1, Action.ALLOW: 2}  # in one tier and priority


def layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    """Return the layers of a workload that these policies target, in the order in which a request passes them."""
    return [
        _enforced(_layer(level, at_level, scene.settings), at_level, scene)
        for level in Level
        if (at_level := [attachment for attachment in attached if attachment.policy.level is level])
    ]


def _enforced(layer: Layer, attached: list[Attachment[Policy]], scene: Scene) -> Layer:
    """Return a layer as the proxy of its workload enforces it, if it is known whether there is a proxy."""
    if not isinstance(scene.stance, SidecarStance):
        return layer
    refs = sorted({attachment.policy.ref for attachment in attached if not attachment.policy.audit})
    return behind_proxy(layer, tuple(refs), scene.stance, scene.world)


def _layer(level: Level, attached: list[Attachment[Policy]], settings: Settings) -> Layer:
    """Build the layer of a level.

    With `serviceTarget: traffic`, a policy on a Service governs only requests to the Service.
    """
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
    """Return a key in the order of `PolicyRef`.

    The engine gives policies in this order, so sorting compares them once.
    """
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
