"""Converts AuthPolicies of 2022 to those of today.

The rules become the `when` of the policy, and the auth scheme becomes its rules. An AuthPolicy of today has one scheme.
So a policy with several schemes becomes a policy for each listener, if no listener has hosts of two schemes. A policy
that cannot be converted stays in force beside the converted ones, and then both must allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster.points import RuleNamed, is_rule_of
from eastgate.cluster.routing.model import Routed
from eastgate.cluster.routing.rules import every_rule
from eastgate.cluster.targets import GatewayNamed
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfig_versions import spec_of
from eastgate.convert.authconfigs import auth_config, object_of
from eastgate.convert.authorino_checks import lose_what_differs, reasons_to_keep, with_host_check, with_token_checks
from eastgate.convert.gateway_conditions import arriving_hosts, is_plain_path, rules_predicate, serves_tls
from eastgate.convert.istio_rules import lose_paths
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.convert.not_convertible import NotConvertible, keep_unconverted
from eastgate.convert.policy_writing import POLICY_API_VERSION, report_secrets, rules_of_policy
from eastgate.dialects.kuadrant import policies
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.hosts import is_inside
from eastgate.dialects.kuadrant.proposal import Policy
from eastgate.dialects.kuadrant.proposal.assemble import in_force
from eastgate.dialects.kuadrant.proposal.model import HttpRule

# Reads AuthPolicies of 2022 for conversions: the route rules that they govern, and the requests that they select.


def governed_rules(policy: Policy, items: Sequence[Item], job: Job) -> list[Routed]:
    """Return the rules of routes that a policy governs.

    Raises NotConvertible if there are none, or if the policy is not in force.
    """
    rivals = [
        other.policy for other in items if isinstance(other.policy, Policy) and other.policy.target == policy.target
    ]
    winner = in_force(rivals)
    if winner is not policy and winner is not None and not policy.audit:
        raise NotConvertible(kuadrant_codes.NOT_IN_FORCE, f"{winner.ref} has the same target", policy.name_span)
    ways = [rule for rule in every_rule(job.world) if governs(policy, rule)]
    if not ways:
        message = f"no manifest shows which requests {policy.ref} governs"
        way_out = "give the manifests of the route and of its Gateway with -f"
        raise NotConvertible(kuadrant_codes.NO_GATEWAY, message, policy.target_span, way_out)
    return ways


def governs(policy: Policy, rule: Routed) -> bool:
    """Return whether a policy governs a rule of a route."""
    target = policy.target
    if isinstance(target, GatewayNamed):
        return rule.point.gateway == target
    return rule.point.route == target


def check_schemes(policy: Policy, ways: Sequence[Routed], job: Job) -> None:
    """Raise NotConvertible if Authorino cannot evaluate the schemes of a policy, or would allow more."""
    if any(rule.is_stream for rule in ways):
        raise NotConvertible(
            kuadrant_codes.STREAMS, "the Gateway also forwards traffic that is not HTTP", policy.target_span
        )
    for scheme in policy.schemes:
        for code, message, span, way_out in reasons_to_keep(scheme, job):
            raise NotConvertible(code, message, span, way_out)


def scheme_specs(item: Item) -> list[Manifest]:
    """Return the schemes of a policy as written, without nulls."""
    spec = spec_of(item)
    listed = spec.get("authSchemes")
    return [object_of(scheme) for scheme in (listed if isinstance(listed, list) else [spec["authScheme"]])]


def selecting_predicate(
    policy: Policy, hosts: Sequence[str], ways: Sequence[Routed], job: Job, *, at_gateway: bool = True
) -> str | None:
    """Return a CEL predicate for the requests to some hosts that the rules select; None if they select all.

    Raises NotConvertible.
    """
    is_any = [
        rule.hosts is None or all(any(is_inside(host, own) for own in rule.hosts) for host in hosts)
        for rule in policy.rules
    ]
    for rule, any_host in zip(policy.rules, is_any, strict=True):
        if not any_host and serves_tls(ways, job.world):
            message = "rules also select by the TLS server name, which conditions of a policy do not see"
            raise NotConvertible(
                kuadrant_codes.SERVER_NAME, message, rule.span, "leave `hosts` out, or name all hosts of the target"
            )
        for path in rule.paths or ():
            if not is_plain_path(path):
                message = f"`{path}` can be spelled in several ways, and a condition of a policy sees one"
                raise NotConvertible(kuadrant_codes.SPELLED_PATH, message, rule.span)
        if rule.paths is not None and "*" not in rule.paths:
            lose_paths(job, rule.span)
    return rules_predicate(policy.rules, is_any, at_gateway=at_gateway)


def to_today(items: Sequence[Item], job: Job) -> None:
    """Convert the policies of routes first: if one of them is converted, the policy of the Gateway stays."""
    taken = {
        rule.point
        for rule in every_rule(job.world)
        for item in job.items
        if isinstance(item.policy, policies.Policy) and is_rule_of(rule.point, item.policy.target)
    }
    for item in sorted(items, key=_is_of_gateway):
        policy = item.policy
        assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
        try:
            points = _convert(item, policy, taken, items, job)
        except NotConvertible as unconverted:
            keep_unconverted(item, policy.name_span, unconverted, job)
        else:
            taken |= points if not policy.audit else set()


def _is_of_gateway(item: Item) -> bool:
    return isinstance(item.policy, Policy) and isinstance(item.policy.target, GatewayNamed)


def _convert(item: Item, policy: Policy, taken: set[RuleNamed], items: Sequence[Item], job: Job) -> set[RuleNamed]:
    """Convert a policy, and return the rules of routes where the result is enforced. Raises NotConvertible."""
    ways = governed_rules(policy, items, job)
    points = {rule.point for rule in ways}
    if points & taken:
        raise NotConvertible(kuadrant_codes.TWO_LEVELS, "another policy governs the same rules", policy.target_span)
    check_schemes(policy, ways, job)
    written = [
        (section, _spec(item, policy, scheme, among, job)) for section, scheme, among in _sections(policy, ways, job)
    ]
    for scheme in policy.schemes:
        lose_what_differs(scheme, job)
    namespace = policy.ref.namespace or job.settings.namespace
    for section, spec in written:
        wanted = policy.ref.name if section is None else f"{policy.ref.name}-{section}"
        name = job.name(f"AuthPolicy.{policies.GROUP}", namespace, wanted)
        target = {**object_of(spec_of(item)["targetRef"]), **({"sectionName": section} if section is not None else {})}
        target.pop("namespace", None)
        job.write(
            item.document,
            {
                "apiVersion": POLICY_API_VERSION,
                "kind": "AuthPolicy",
                "metadata": metadata_of(item.document, name, namespace),
                "spec": {"targetRef": target, **spec},
            },
        )
    return points


# Schemes by host

_Section = tuple[str | None, int, list[Routed]]


def _sections(policy: Policy, ways: list[Routed], job: Job) -> list[_Section]:
    """Return the parts of the target that have one scheme each, by the index of the scheme: the whole target, or its
    listeners.
    """
    schemes = _schemes_of(policy, ways, job)
    if len(schemes) == 1:
        return [(None, next(iter(schemes)), ways)]
    if not schemes:
        raise NotConvertible(
            kuadrant_codes.UNCOVERED_HOSTS, "no request that the rules select has a scheme", policy.target_span
        )
    listeners = dict.fromkeys(rule.point.listener for rule in ways)
    if isinstance(policy.target, GatewayNamed) and None not in listeners:
        sections = []
        for listener in listeners:
            among = [rule for rule in ways if rule.point.listener == listener]
            chosen = _schemes_of(policy, among, job)
            if len(chosen) == 1:
                sections.append((listener, next(iter(chosen)), among))
        if len(sections) == len(listeners):
            return sections
    span = policy.scheme_spans[1][0]
    raise NotConvertible(
        kuadrant_codes.SCHEMES_BY_HOST, "a policy of today has one scheme for all hosts of its target", span
    )


def _schemes_of(policy: Policy, ways: Sequence[Routed], job: Job) -> set[int]:
    """Return the schemes of the selected requests to some rules. Requests without a scheme are denied."""
    chosen: set[int] = set()
    for host in _asked_hosts(policy, ways, job):
        near = [
            (len(covering), index)
            for index, scheme in enumerate(policy.schemes)
            for covering in scheme.hosts
            if is_inside(host, covering)
        ]
        if near:
            chosen.add(max(near)[1])
        chosen |= {
            index
            for index, scheme in enumerate(policy.schemes)
            if any(inner != host and is_inside(inner, host) for inner in scheme.hosts)
        }
    return chosen


def _asked_hosts(policy: Policy, ways: Sequence[Routed], job: Job) -> Iterator[str]:
    for host in arriving_hosts(ways, job.world):
        for rule in policy.rules or (HttpRule(None, None, None, policy.span),):
            if rule.hosts is None or any(is_inside(host, own) for own in rule.hosts):
                yield host
            else:
                yield from (own for own in rule.hosts if is_inside(own, host))


# The policy


def _spec(item: Item, policy: Policy, index: int, ways: Sequence[Routed], job: Job) -> Manifest:
    selected = selecting_predicate(policy, list(arriving_hosts(ways, job.world)), ways, job)
    scheme = policy.schemes[index]
    report_secrets(scheme, policy.ref.namespace, policy.scheme_spans[index][0], job)
    config = with_token_checks(auth_config(scheme_specs(item)[index]), scheme)
    uncovered = [
        host for host in _asked_hosts(policy, ways, job) if not any(is_inside(host, own) for own in scheme.hosts)
    ]
    if uncovered:
        _lose_status(policy, scheme, uncovered[0], job)
        config = with_host_check(config, scheme)
    return rules_of_policy(config, scheme, [selected] if selected else [])


def _lose_status(policy: Policy, scheme: Scheme, host: str, job: Job) -> None:
    """Report the status of requests without a scheme. Raises NotConvertible if a `when` would allow some of them."""
    if scheme.when is not None:
        message = f"requests to {host} without a scheme are denied, but the `when` of the scheme would allow some"
        raise NotConvertible(
            kuadrant_codes.UNCOVERED_HOSTS,
            message,
            policy.target_span,
            "write the condition at the entries of the scheme",
        )
    message = f"requests to {host} without a scheme are denied with 401 or 403, as the scheme sets it, and not with 404"
    job.lose(kuadrant_codes.UNCOVERED_HOSTS, message, policy.target_span)
