"""What can be said of AuthPolicies only beside everything else: their targets, and each other.

A policy has one condition, `Available`: whether it guards its target, and if not, why not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.diagnostics import Diagnostic
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant import codes
from eastgate.dialects.kuadrant.assemble import in_force
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.dialects.kuadrant.model import Policy
from eastgate.schema import enumerated, quoted
from eastgate.settings import Settings
from eastgate.world import World
from eastgate.world.targets import GatewayNamed, RouteNamed

__all__ = ["available", "examine"]


def examine(policies: Sequence[Policy], _settings: Settings, world: World) -> Iterator[tuple[Policy, Diagnostic]]:
    """Hosts against those of the target, targets that are not there, and policies that are in each other's way."""
    for policy in policies:
        hostnames = _hostnames(policy, world)
        if hostnames is None:
            kind, name = _target(policy)
            message = f"no manifest declares {kind} {policy.target.namespace}/{name}"
            yield policy, Diagnostic(codes.TARGET_NOT_FOUND, message, policy.target_span, "declare it, or name another")
        for finding in _rule_hosts(policy, hostnames):
            yield policy, finding
        for finding in _scheme_hosts(policy, hostnames):
            yield policy, finding
        winner = _winner(policy, policies)
        if not policy.audit and winner is not policy:
            kind, name = _target(policy)
            message = f"{winner.ref} targets {kind} {name} already, and is older"
            yield policy, Diagnostic(codes.CONFLICTED, message, policy.target_span, "write both into one policy")


def _rule_hosts(policy: Policy, hostnames: list[str] | None) -> Iterator[Diagnostic]:
    if hostnames is None or isinstance(policy.target, GatewayNamed):  # Gateway level policies have no such restriction
        return
    for rule in policy.rules:
        for host, span in zip(rule.hosts or (), rule.host_spans, strict=True):
            if not any(is_inside(host, outer) for outer in hostnames):
                message = f"rule host ({quoted(host)}) does not follow any hierarchical constraints"
                way_out = f"the hostnames of the HTTPRoute are {enumerated(hostnames, 'and')}: write one inside of them"
                yield Diagnostic(codes.RULE_HOST, message, span, way_out)


def _scheme_hosts(policy: Policy, hostnames: list[str] | None) -> Iterator[Diagnostic]:
    hosts = [host for rule in policy.rules for host in rule.hosts or ()]
    if not policy.rules or any(rule.hosts is None for rule in policy.rules):
        hosts += hostnames if hostnames is not None else [ANY]
    for scheme, (_, spans) in zip(policy.schemes, policy.scheme_spans, strict=True):
        for host, span in zip(scheme.hosts, spans, strict=True):
            if not any(is_inside(host, outer) for outer in hosts):
                message = f"scheme host ({quoted(host)}) does not match any host of the rules"
                way_out = f"the rules have {enumerated(hosts, 'and')}: write a host inside of them"
                yield Diagnostic(codes.SCHEME_HOST, message, span, way_out)


def _hostnames(policy: Policy, world: World) -> list[str] | None:
    """The hostnames of the target; `*` where it has none; None where it does not exist."""
    target = policy.target
    if isinstance(target, RouteNamed):
        route = world.routes.get(f"HTTPRoute/{target.namespace}/{target.name}")
        return (list(route.hostnames) or [ANY]) if route is not None else None
    gateway = world.gateways.get(f"{target.namespace}/{target.name}")
    return [listener.hostname or ANY for listener in gateway.listeners] or [ANY] if gateway is not None else None


def _target(policy: Policy) -> tuple[str, str]:
    return "HTTPRoute" if isinstance(policy.target, RouteNamed) else "Gateway", policy.target.name


def _winner(policy: Policy, policies: Sequence[Policy]) -> Policy:
    return in_force(one for one in policies if one.target == policy.target) or policy


def available(policy: Policy, policies: Sequence[Policy], settings: Settings, world: World) -> Condition:
    """The condition `Available` of a policy."""
    kind, _ = _target(policy)
    mine = [finding for one, finding in examine(policies, settings, world) if one is policy]
    blocking = next((f for f in mine if f.is_error or f.code in (codes.TARGET_NOT_FOUND, codes.CONFLICTED)), None)
    if blocking is not None:
        reason = "Conflicted" if blocking.code is codes.CONFLICTED else "Error"
        return Condition("Available", "False", reason, blocking.message)
    return Condition("Available", "True", f"{kind}Protected", f"{kind} is protected")
