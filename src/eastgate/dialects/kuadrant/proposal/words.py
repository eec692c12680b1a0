"""Descriptions of AuthPolicies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from eastgate.basics.diagnostics import Diagnostic, did_you_mean
from eastgate.cluster import World
from eastgate.cluster.targets import GatewayNamed, RouteNamed
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.dialects.kuadrant.proposal import codes
from eastgate.dialects.kuadrant.proposal.assemble import in_force
from eastgate.dialects.kuadrant.proposal.model import HttpRule, Policy
from eastgate.dialects.words import NOTHING_SELECTED, DescribedRule, Words
from eastgate.reading.manifests.shapes import enumerated, quoted
from eastgate.settings import Settings

# Compares AuthPolicies with other objects of the cluster: with their targets, and with each other.
#
# A policy has one condition, `Available`: whether it guards its target, with the reason if not.


def examine(policies: Collection[Policy], _settings: Settings, world: World) -> Iterator[tuple[Policy, Diagnostic]]:
    """Report missing targets, hosts outside of the target's hosts, and policies that conflict."""
    together: dict[RouteNamed | GatewayNamed, list[Policy]] = {}
    for policy in policies:
        together.setdefault(policy.target, []).append(policy)
    for policy in policies:
        for finding in _findings(policy, together[policy.target], world):
            yield policy, finding


def conditions(policy: Policy, policies: Sequence[Policy], _settings: Settings, world: World) -> list[Condition]:
    """Return the condition `Available` of a policy."""
    return [_available(policy, policies, world)]


def _available(policy: Policy, policies: Sequence[Policy], world: World) -> Condition:
    kind = _kind(policy)
    together = [other for other in policies if other.target == policy.target]
    for finding in _findings(policy, together, world):
        if finding.code is codes.CONFLICTED:
            return Condition("Available", "False", "Conflicted", finding.message)
        if finding.is_error or finding.code is codes.TARGET_NOT_FOUND:
            return Condition("Available", "False", "Error", finding.message)
    if policy.audit:
        return Condition("Available", "False", "Audit", f"{kind} is not protected: the policy only audits")
    return Condition("Available", "True", f"{kind}Protected", f"{kind} is protected")


def _findings(policy: Policy, together: Sequence[Policy], world: World) -> Iterator[Diagnostic]:
    """Diagnose one policy. `together` are all policies with the same target."""
    hostnames = _hostnames(policy, world)
    if hostnames is None:
        message = f"no manifest declares {_kind(policy)} {policy.target.namespace}/{policy.target.name}"
        yield Diagnostic(codes.TARGET_NOT_FOUND, message, policy.target_span, _another_target(policy, world))
    yield from _rule_hosts(policy, hostnames)
    yield from _scheme_hosts(policy, hostnames)
    winner = in_force(together)
    if winner is not None and winner is not policy and not policy.audit:
        why = "is the first by name" if winner.created == policy.created else "is older"
        message = f"not in force: {winner.ref} has the same target, and {why}"
        yield Diagnostic(codes.CONFLICTED, message, policy.name_span, "write both into one policy, or remove one")


def _rule_hosts(policy: Policy, hostnames: list[str] | None) -> Iterator[Diagnostic]:
    if hostnames is None or isinstance(policy.target, GatewayNamed):  # Gateway level policies have no such restriction
        return
    for rule in policy.rules:
        for host, span in zip(rule.hosts or (), rule.host_spans, strict=True):
            if not _is_inside_any(host, hostnames):
                message = f"rule host ({quoted(host)}) does not follow any hierarchical constraints"
                way_out = f"write a host within the hosts of the HTTPRoute: {_listed(hostnames)}"
                yield Diagnostic(codes.RULE_HOST, message, span, way_out)


def _scheme_hosts(policy: Policy, hostnames: list[str] | None) -> Iterator[Diagnostic]:
    hosts, whose = [host for rule in policy.rules for host in rule.hosts or ()], "the rules"
    if not policy.rules or any(rule.hosts is None for rule in policy.rules):  # no hosts: those of the target
        hosts, whose = [*(hostnames if hostnames is not None else [ANY]), *hosts], f"the {_kind(policy)}"
    for scheme, (_, spans) in zip(policy.schemes, policy.scheme_spans, strict=True):
        for host, span in zip(scheme.hosts if spans else (), spans, strict=True):
            if not _is_inside_any(host, hosts):
                message = f"scheme host ({quoted(host)}) does not match any host of the rules"
                way_out = f"write a host within the hosts of {whose}: {_listed(hosts)}"
                yield Diagnostic(codes.SCHEME_HOST, message, span, way_out)


def _is_inside_any(host: str, outer: Sequence[str]) -> bool:
    return any(is_inside(host, other) for other in outer)


def _listed(hosts: Sequence[str]) -> str:
    return enumerated(list(dict.fromkeys(hosts)), "or")


def _hostnames(policy: Policy, world: World) -> list[str] | None:
    """Return the hostnames of the target; `*` if it has none; None if it does not exist."""
    target = policy.target
    if isinstance(target, RouteNamed):
        route = world.routes.get(f"HTTPRoute/{target.namespace}/{target.name}")
        return (list(route.hostnames) or [ANY]) if route is not None else None
    gateway = world.gateways.get(f"{target.namespace}/{target.name}")
    return [listener.hostname or ANY for listener in gateway.listeners] or [ANY] if gateway is not None else None


def _another_target(policy: Policy, world: World) -> str:
    """Suggest a target for one that does not exist."""
    target = policy.target
    routes = (route for route in world.routes.values() if route.kind == "HTTPRoute")
    targets = routes if _kind(policy) == "HTTPRoute" else world.gateways.values()
    declared = {(candidate.namespace, candidate.name) for candidate in targets}
    elsewhere = sorted(namespace for namespace, name in declared if name == target.name)
    if elsewhere:
        return f"one of this name is in {enumerated(elsewhere, 'and')}: a policy is in the namespace of its target"
    near = did_you_mean(target.name, sorted(name for namespace, name in declared if namespace == target.namespace))
    return f"did you mean {near}?" if near else "declare it, or name another"


def _kind(policy: Policy) -> str:
    return "HTTPRoute" if isinstance(policy.target, RouteNamed) else "Gateway"


def _rules(policy: Policy) -> list[DescribedRule]:
    from eastgate.dialects.kuadrant.authorino.model import METHOD_NAMES  # only if there is an AuthPolicy

    described = [DescribedRule("SELECT", (_selected(rule),), None, rule.span) for rule in policy.rules]
    described = described or [DescribedRule("SELECT", ("all traffic of the target",), None, policy.span)]
    for origin, scheme in zip(policy.origins, policy.schemes, strict=True):
        names = ", ".join(f"{identity.name} ({METHOD_NAMES[type(identity.method)]})" for identity in scheme.identities)
        agreed = "".join(f"; then {authorization.name}" for authorization in scheme.authorizations)
        asks = f"hosts {', '.join(scheme.hosts)}: identity {names or 'none'}{agreed}"
        described.append(DescribedRule("AUTH", (asks,), origin, origin.span))
    return described


def _selected(rule: HttpRule) -> str:
    parts = {"hosts": rule.hosts, "methods": rule.methods, "paths": rule.paths}
    return "; ".join(f"{name} {', '.join(texts)}" for name, texts in parts.items() if texts is not None) or "anything"


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return problem or ("no scheme" if selects else NOTHING_SELECTED)


WORDS: Words[Policy] = Words(
    action=lambda _policy: "ASK",
    level=lambda policy: "gateway" if isinstance(policy.target, GatewayNamed) else "route",
    rules=_rules,
    why_idle=_why_idle,
    count_rules=lambda policy: len(policy.rules),
)
