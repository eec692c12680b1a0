"""Reads AuthPolicies of 2022 for conversions: the ways that they are on, and the requests that their rules select."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster.routing.model import Routed
from eastgate.cluster.routing.rules import every_rule
from eastgate.cluster.targets import GatewayNamed
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfig_versions import spec_of
from eastgate.convert.authconfig_words import object_of
from eastgate.convert.authorino_checks import reasons_to_keep
from eastgate.convert.gateway_conditions import is_plain_path, rules_predicate
from eastgate.convert.gateway_hosts import hears_tls
from eastgate.convert.istio_rules import lose_paths
from eastgate.convert.model import Item, Job, Manifest
from eastgate.convert.unsaid import Unsaid
from eastgate.dialects.kuadrant.hosts import is_inside
from eastgate.dialects.kuadrant.proposal import Policy
from eastgate.dialects.kuadrant.proposal.assemble import in_force


def ways_of(policy: Policy, items: Sequence[Item], job: Job) -> list[Routed]:
    """Return the rules that a policy is on the way to. Raises Unsaid if there are none, or it is not in force."""
    rivals = [
        other.policy for other in items if isinstance(other.policy, Policy) and other.policy.target == policy.target
    ]
    winner = in_force(rivals)
    if winner is not policy and winner is not None and not policy.audit:
        raise Unsaid(kuadrant_codes.NOT_IN_FORCE, f"{winner.ref} has the same target", policy.name_span)
    ways = [rule for rule in every_rule(job.world) if is_on(policy, rule)]
    if not ways:
        message = f"no manifest says which requests {policy.ref} is for"
        way_out = "give the manifests of the route and of its Gateway with -f"
        raise Unsaid(kuadrant_codes.NO_GATEWAY, message, policy.target_span, way_out)
    return ways


def is_on(policy: Policy, rule: Routed) -> bool:
    """Return whether a policy is on the way to a rule of a route."""
    target = policy.target
    if isinstance(target, GatewayNamed):
        return rule.point.gateway == target
    return rule.point.route == target


def check_schemes(policy: Policy, ways: Sequence[Routed], job: Job) -> None:
    """Raise Unsaid where Authorino cannot decide all that the schemes of a policy decide, or would allow more."""
    if any(rule.is_stream for rule in ways):
        raise Unsaid(kuadrant_codes.STREAMS, "the Gateway also leads on what is no HTTP", policy.target_span)
    for scheme in policy.schemes:
        for code, message, span, way_out in reasons_to_keep(scheme, job):
            raise Unsaid(code, message, span, way_out)


def scheme_specs(item: Item) -> list[Manifest]:
    """Return the schemes of a policy as they are written, without nulls."""
    spec = spec_of(item)
    listed = spec.get("authSchemes")
    return [object_of(scheme) for scheme in (listed if isinstance(listed, list) else [spec["authScheme"]])]


def selecting_predicate(
    policy: Policy, hosts: Sequence[str], ways: Sequence[Routed], job: Job, *, at_gateway: bool = True
) -> str | None:
    """Return the requests to some hosts that the rules select, as CEL; None where all are. Raises Unsaid."""
    is_any = [
        rule.hosts is None or all(any(is_inside(host, own) for own in rule.hosts) for host in hosts)
        for rule in policy.rules
    ]
    for rule, any_host in zip(policy.rules, is_any, strict=True):
        if not any_host and hears_tls(ways, job.world):
            message = "rules select by the name in the TLS handshake as well, which conditions of a policy do not see"
            raise Unsaid(
                kuadrant_codes.SERVER_NAME, message, rule.span, "leave `hosts` out, or name all hosts of the target"
            )
        for path in rule.paths or ():
            if not is_plain_path(path):
                message = f"`{path}` can be spelled in several ways, and a condition of a policy sees one"
                raise Unsaid(kuadrant_codes.SPELLED_PATH, message, rule.span)
        if rule.paths is not None and "*" not in rule.paths:
            lose_paths(job, rule.span)
    return rules_predicate(policy.rules, is_any, at_gateway=at_gateway)
