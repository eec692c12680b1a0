"""Descriptions of Istio's policies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from eastgate.cluster import GATEWAY_GROUP, GatewayNamed, GatewaysMatching, World
from eastgate.cluster.points import NamedPoint
from eastgate.dialects.base import Condition
from eastgate.dialects.istio.model import (
    Action,
    IstioAuthorizationPolicy,
    IstioPolicy,
    JwtRule,
    PeerAuthentication,
    RequestAuthentication,
)
from eastgate.dialects.istio.provenance import AT_WAYPOINT, AT_ZTUNNEL, Surface
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.dialects.istio.targets import target_of
from eastgate.dialects.words import (
    NO_ACTION,
    NO_RULES,
    NOTHING_SELECTED,
    DescribedRule,
    DescribedTarget,
    LayerMode,
    Words,
    describe_rules,
    modes_of_layer,
)
from eastgate.ir import Layer, Rule
from eastgate.settings import Settings

# Conditions that a policy would show: whether its targets exist


def conditions(
    policy: IstioPolicy, _policies: Sequence[IstioPolicy], _settings: Settings, world: World
) -> list[Condition]:
    """Return the condition `Accepted`. Its reason may be that a targeted Gateway or Service does not exist."""
    missing = [
        f"{ref.kind} {policy.namespace}/{ref.name}"
        for ref in policy.refs
        if not _exists(policy, ref.kind, ref.name, world)
    ]
    undeclared = f"no manifest declares {', '.join(missing)}"
    if missing and len(missing) == len(policy.refs):
        return [Condition("Accepted", "False", "TargetNotFound", undeclared)]
    if not any(_selects(target, world) for target in policy.targets):
        return [Condition("Accepted", "True", "Accepted", "it is in order, and selects no workload now")]
    message = (
        "it is a dry run, or in audit mode: it is reported and decides nothing" if policy.audit else "it is in force"
    )
    return [Condition("Accepted", "True", "Accepted", f"{message}; {undeclared}" if missing else message)]


def _exists(policy: IstioPolicy, kind: str, name: str, world: World) -> bool:
    key = f"{policy.namespace}/{name}"
    match kind:
        case "Gateway":
            return key in world.gateways
        case "Service":
            return key in world.services
        case _:
            return True  # Eastgate does not read these kinds


def _selects(target: object, world: World) -> bool:
    match target:
        case GatewaysMatching():
            return bool(world.select_gateways(target))
        case GatewayNamed(namespace, name):
            return f"{namespace}/{name}" in world.gateways
        case _:
            return isinstance(target, NamedPoint) or bool(world.select(target))  # type: ignore[arg-type]


# Descriptions of RequestAuthentications and PeerAuthentications


def describe_modes(policy: PeerAuthentication) -> Iterator[DescribedRule]:
    """Yield descriptions of the modes of mTLS: the mode of the workloads, and those of ports."""
    yield DescribedRule("MTLS", (f"mode {policy.mode}",), None, policy.mode_span)
    for each in policy.ports:
        yield DescribedRule("MTLS", (f"port {each.port}: mode {each.mode}",), None, each.span)


def describe_tokens(policy: RequestAuthentication) -> Iterator[DescribedRule]:
    """Yield descriptions of the accepted tokens."""
    for rule in policy.rules:
        yield DescribedRule("VERIFY", tuple(_token_conditions(rule)), None, rule.span)


def _token_conditions(rule: JwtRule) -> Iterator[str]:
    yield f"issuer {rule.issuer}" if rule.issuer is not None else f"any issuer with the keys of {rule.jwks_uri}"
    if rule.audiences:
        yield f"audience {' or '.join(sorted(rule.audiences))}"
    headers = [f"header {each.name}" + (f" after {each.prefix!r}" if each.prefix else "") for each in rule.headers]
    locations = [
        *headers,
        *(f"parameter {name}" for name in rule.params),
        *(f"cookie {name}" for name in rule.cookies),
    ]
    if locations:
        yield f"in {' or '.join(locations)}"


def rules_as_written(policy: IstioPolicy) -> tuple[Rule, ...]:
    """Return the rules of a policy as predicates on requests, independent of the proxy."""
    if not isinstance(policy, IstioAuthorizationPolicy):
        return ()
    from eastgate.dialects.istio.lowering import View, lower_policy  # imported here: few commands need it
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
    """Return whether it targets a Gateway or a class of them: then it applies only to pods behind a waypoint."""
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
    """Return the modes of a layer. ALLOW policies turn on deny by default."""
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
