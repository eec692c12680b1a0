"""The layer of a workload that ztunnel serves: connections alone, from callers or from the waypoint before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.dialects.istio.authentications import PeerAuthentication
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.peer_chains import mtls_stage
from eastgate.dialects.istio.peer_modes import ztunnel_denials, ztunnel_ties
from eastgate.dialects.istio.plane_provenance import (
    Direct,
    DroppedFields,
    Tied,
    UnsupportedAction,
    WaypointIdentity,
    WaypointScope,
)
from eastgate.dialects.istio.provenance import AT_ZTUNNEL, StageName
from eastgate.dialects.istio.rewriting import rewrite_chain
from eastgate.dialects.istio.waypoints import Binding, seen_from
from eastgate.dialects.istio.ztunnel import ZtunnelRule, lower_rule
from eastgate.ir import (
    NEVER,
    AllowAny,
    Chain,
    Deny,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Or,
    Predicate,
    Present,
    Reading,
    Refusal,
    Rule,
    SelectorCase,
    Stage,
    all_of,
)
from eastgate.ir.attributes import IDENTITY, SERVICE


def ztunnel_layer(
    policies: Sequence[IstioAuthorizationPolicy],
    peers: Sequence[PeerAuthentication],
    bindings: Sequence[Binding],
    root_namespace: str,
) -> Layer:
    """Return the layer. Policies with targets, and actions that ztunnel does not have, are not enforced here.

    Nor is a policy with a selector that has no labels: istiod sends it to be referred to, and no workload refers to it.
    """
    chain = _chain([policy for policy in policies if _is_sent(policy)], peers, root_namespace)
    if not bindings:
        return Layer(AT_ZTUNNEL, chain)
    cases = tuple(SelectorCase(through_waypoint(binding), _behind(binding, chain)) for binding in bindings)
    return Layer(AT_ZTUNNEL, replace(chain, scope=Direct()), cases)


def _is_sent(policy: IstioAuthorizationPolicy) -> bool:
    return not policy.refs and (bool(policy.selector.match_labels) or not policy.has_selector)


def through_waypoint(binding: Binding) -> Predicate:
    """Return which requests go through a waypoint: of callers in the mesh, since nobody else is led there."""
    past = [Not(Is(IDENTITY, OneOf(binding.passing)))] if binding.passing else []
    past += [Not(Is(IDENTITY, accounts)) for accounts in binding.sidecars]
    led = Is(IDENTITY, OneOf(binding.only)) if binding.only else Is(IDENTITY, Present())
    return all_of((addressed_to(binding), led, *past))


def addressed_to(binding: Binding) -> Predicate:
    """Return which requests are addressed to what a waypoint is bound to."""
    if binding.service is None:
        unaddressed = Not(Is(SERVICE, Present()))
        return Or((unaddressed, Is(SERVICE, OneOf(binding.headless)))) if binding.headless else unaddressed
    return Is(SERVICE, OneOf(frozenset({binding.service})))


def _behind(binding: Binding, chain: Chain) -> Chain:
    waypoint = binding.waypoint
    seen = rewrite_chain(chain, lambda predicate: seen_from(waypoint, predicate))
    reading = WaypointIdentity(str(waypoint), waypoint.identity)
    scope = WaypointScope(str(waypoint), binding.service)
    return replace(seen, readings=(*chain.readings, reading), scope=scope)


def _chain(
    policies: Sequence[IstioAuthorizationPolicy], peers: Sequence[PeerAuthentication], root_namespace: str
) -> Chain:
    enforced = [policy for policy in policies if not policy.audit]
    enforced_peers = [peer for peer in peers if not peer.audit]
    denials = ztunnel_denials(enforced_peers, root_namespace)
    ties = (Tied(tuple(policy.ref for policy in tie)) for tie in ztunnel_ties(enforced_peers, root_namespace))
    observed = [
        (rule, "deny" if policy.action is Action.DENY else "allow")
        for policy in policies
        if policy.audit and not policy.dry_run
        for rule in _rules([policy], policy.action)
    ]
    deny, allow = _rules(enforced, Action.DENY), _rules(enforced, Action.ALLOW)
    stages: list[Stage] = []
    if denials:
        stages.append(mtls_stage(denials))
    if observed:
        rules, would = zip(*observed, strict=True)
        stages.append(Observe(StageName.AUDIT, rules, would))
    if deny:
        stages.append(Deny(StageName.DENY, deny, Refusal.CLOSED))
    if any(policy.action is Action.ALLOW for policy in enforced):
        stages.append(AllowAny(StageName.ALLOW, allow, Refusal.CLOSED))
    return Chain(tuple(stages), (*ties, *_readings(enforced)))


def _rules(policies: Sequence[IstioAuthorizationPolicy], action: Action) -> tuple[Rule, ...]:
    lowered = (
        (rule.origin, lower_rule(rule, policy.namespace, denies=action is Action.DENY))
        for policy in policies
        if policy.action is action and action in (Action.ALLOW, Action.DENY)
        for rule in policy.rules
    )
    return tuple(Rule(rule.when, origin) for origin, rule in lowered if rule.when != NEVER)


def _readings(policies: Sequence[IstioAuthorizationPolicy]) -> Iterator[Reading]:
    for policy in policies:
        if policy.action not in (Action.ALLOW, Action.DENY):
            yield UnsupportedAction(policy.ref, str(policy.action))
            continue
        for rule in policy.rules:
            lowered = lower_rule(rule, policy.namespace, denies=policy.action is Action.DENY)
            if lowered.dropped:
                yield DroppedFields(policy.ref, rule.index, lowered.dropped, _effect(policy.action, lowered))


def _effect(action: Action, lowered: ZtunnelRule) -> str:
    verb = "denies" if action is Action.DENY else "allows"
    return f"{verb} nothing" if lowered.when == NEVER else f"{verb} more than it says"
