"""The layers of a workload in ambient mode: that of its waypoints, and that of the ztunnel of its node.

A waypoint decides about traffic to what uses it, by the policies that target it or the Service. ztunnel then decides
about connections: where these come from a waypoint, it sees the waypoint, and not the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from eastgate.dialects.istio.authentications import PeerAuthentication
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.mtls import rewrite_chain
from eastgate.dialects.istio.peer_modes import ztunnel_denials
from eastgate.dialects.istio.provenance import AT_ZTUNNEL, MtlsDemand, StageName, ZtunnelReading
from eastgate.dialects.istio.waypoints import Binding, seen_from
from eastgate.dialects.istio.ztunnel import lower_rule
from eastgate.ir import (
    AllowAny,
    Chain,
    Deny,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Origin,
    Predicate,
    Present,
    Refusal,
    Rule,
    SelectorCase,
    Stage,
)
from eastgate.ir.attributes import SERVICE

__all__ = ["addressed_by", "ztunnel_layer"]


def addressed_by(binding: Binding) -> Predicate:
    """Return the condition that traffic is addressed to what a waypoint is bound to."""
    if binding.service is None:
        return Not(Is(SERVICE, Present()))
    return Is(SERVICE, OneOf(frozenset({binding.service})))


def ztunnel_layer(policies: Sequence[IstioPolicy], bindings: Sequence[Binding], root_namespace: str) -> Layer | None:
    """Return the layer of ztunnel; None where nothing is about the workload."""
    selecting = [policy for policy in policies if isinstance(policy, IstioAuthorizationPolicy) and _is_told(policy)]
    peers = [policy for policy in policies if isinstance(policy, PeerAuthentication) and not policy.audit]
    chain = _chain(selecting, peers, root_namespace)
    if not chain.stages:
        return None
    cases = tuple(
        SelectorCase(addressed_by(binding), rewrite_chain(chain, partial(seen_from, binding.waypoint)))
        for binding in bindings
    )
    return Layer(AT_ZTUNNEL, chain, cases)


def _is_told(policy: IstioPolicy) -> bool:
    """Return whether istiod tells ztunnel of a policy. One with an empty selector is for workloads, and none has it."""
    return not policy.refs and (bool(policy.selector.match_labels) or not policy.has_selector)


def _chain(
    policies: Sequence[IstioAuthorizationPolicy], peers: Sequence[PeerAuthentication], root_namespace: str
) -> Chain:
    stages: list[Stage] = []
    readings: list[ZtunnelReading] = []
    if denials := ztunnel_denials(peers, root_namespace):
        rules = (Rule(each.when, Origin(each.policy.ref, 0, each.span, derived=MtlsDemand())) for each in denials)
        stages.append(Deny(StageName.MTLS, tuple(rules), Refusal.CLOSED))
    enforced = [policy for policy in policies if not policy.audit]
    observed = [policy for policy in policies if policy.audit and policy.action in (Action.ALLOW, Action.DENY)]
    if rules := [(rule, str(policy.action)) for policy in observed for rule in _rules(policy, readings)]:
        stages.append(Observe(StageName.AUDIT, tuple(rule for rule, _ in rules), tuple(would for _, would in rules)))
    denying = [policy for policy in enforced if policy.action is Action.DENY]
    if denied := tuple(rule for policy in denying for rule in _rules(policy, readings)):
        stages.append(Deny(StageName.DENY, denied, Refusal.CLOSED))
    if allowing := [policy for policy in enforced if policy.action is Action.ALLOW]:
        allowed = tuple(rule for policy in allowing for rule in _rules(policy, readings))
        stages.append(AllowAny(StageName.ALLOW, allowed, Refusal.CLOSED))
    return Chain(tuple(stages), tuple(readings))


def _rules(policy: IstioAuthorizationPolicy, readings: list[ZtunnelReading]) -> Iterator[Rule]:
    for rule in policy.rules:
        lowered = lower_rule(rule, policy.namespace, denies=policy.action is Action.DENY)
        if lowered.dropped:
            readings.append(ZtunnelReading(policy.ref, rule.index, lowered.dropped))
        yield Rule(lowered.when, rule.origin)
