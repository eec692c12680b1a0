"""Descriptions of Istio's policies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from eastgate.cluster import GATEWAY_GROUP
from eastgate.dialects.istio.authentication_words import describe_modes, describe_tokens
from eastgate.dialects.istio.authentications import PeerAuthentication, RequestAuthentication
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.provenance import AT_WAYPOINT, AT_ZTUNNEL, Surface
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.dialects.istio.targets import target_of
from eastgate.dialects.modes import LayerMode, modes_of_layer
from eastgate.dialects.words import (
    NO_ACTION,
    NO_RULES,
    NOTHING_SELECTED,
    DescribedRule,
    DescribedTarget,
    Words,
    describe_rules,
)
from eastgate.ir import Layer, Rule
from eastgate.settings import Settings


def rules_as_written(policy: IstioPolicy) -> tuple[Rule, ...]:
    """Return the rules of a policy in terms of requests, whatever proxy enforces them."""
    if not isinstance(policy, IstioAuthorizationPolicy):
        return ()
    from eastgate.dialects.istio.lowering import View, lower_policy  # many commands describe no such policy
    from eastgate.dialects.istio.mesh_config import MeshConfig

    in_no_mesh = MeshConfig((Settings().trust_domain,), PathNormalization.BASE)
    return lower_policy(policy, View(Surface.ANY, in_no_mesh))


def _action(policy: IstioPolicy) -> str:
    return str(policy.action) if isinstance(policy, IstioAuthorizationPolicy) else NO_ACTION


def _rules(policy: IstioPolicy) -> Iterable[DescribedRule]:
    match policy:
        case PeerAuthentication():
            return describe_modes(policy)
        case RequestAuthentication():
            return describe_tokens(policy)
        case _:
            return describe_rules(_action(policy), rules_as_written(policy))


def _is_indirect(policy: IstioPolicy) -> bool:
    """Return whether it targets a Gateway, or a class of them: of all pods, only those behind a waypoint are meant."""
    return any(ref.group == GATEWAY_GROUP for ref in policy.refs)


def _targets(policy: IstioPolicy) -> Sequence[DescribedTarget] | None:
    if not policy.refs:
        return [DescribedTarget("Pod", policy.selector, policy.targets[0])] if policy.targets else None
    return [DescribedTarget(ref.kind, ref.name, target_of(ref, policy.namespace)) for ref in policy.refs]


def _why_idle(policy: IstioPolicy, problem: str | None, selects: bool) -> str:
    if not selects:
        return problem or NOTHING_SELECTED
    return NO_RULES if isinstance(policy, IstioAuthorizationPolicy) and not policy.rules else problem or ""


def _modes(layer: Layer, policies: Sequence[IstioPolicy], _stance: Hashable) -> list[LayerMode]:
    """Return the modes of a layer: ALLOW policies turn deny by default on."""
    at_waypoint, at_ztunnel = layer.at == AT_WAYPOINT, layer.at == AT_ZTUNNEL
    enforced = (
        policy for policy in policies if not ((at_waypoint and not policy.refs) or (at_ztunnel and policy.refs))
    )
    allowing = (policy for policy in enforced if isinstance(policy, IstioAuthorizationPolicy) and not policy.audit)
    return modes_of_layer(layer, [policy.ref for policy in allowing if policy.action is Action.ALLOW])


WORDS: Words[IstioPolicy] = Words(
    action=_action,
    level=lambda _policy: "istio",
    rules=_rules,
    why_idle=_why_idle,
    targets=_targets,
    is_indirect=_is_indirect,
    modes=_modes,
)
