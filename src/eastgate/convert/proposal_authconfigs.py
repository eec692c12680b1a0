"""Converts AuthPolicies of 2022 to AuthConfigs: each auth scheme, for those of its hosts that requests arrive for.

Rules become the `when` of the AuthConfig. The policies stay in force until proxies ask Authorino about the hosts, as
with AuthPolicies of today.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster.points import is_rule_of
from eastgate.cluster.routing.model import Routed
from eastgate.cluster.routing.rules import every_rule
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfigs import API_VERSION, auth_config
from eastgate.convert.authorino_checks import lose_what_differs, with_token_checks
from eastgate.convert.from_proposal import check_schemes, governed_rules, governs, scheme_specs, selecting_predicate
from eastgate.convert.gateway_conditions import are_mixed_up, arriving_hosts, hosts_on
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.convert.not_convertible import NotConvertible, first_error
from eastgate.dialects.kuadrant import authconfigs, policies
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.dialects.kuadrant.proposal import Policy
from eastgate.reading.manifests import Plain


def to_host_configs(items: Sequence[Item], job: Job) -> None:
    """Write an AuthConfig for each scheme that shares no host, and keep the policies."""
    configs = [item.policy for item in job.items if isinstance(item.policy, authconfigs.Policy)]
    taken = [host.partition(":")[0].lower() for config in configs for host in config.hosts]
    for item in items:
        policy = item.policy
        assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
        try:
            if not policy.audit:
                _convert(item, policy, governed_rules(policy, items, job), taken, job)
        except NotConvertible as unconverted:
            message = f"{unconverted.message}: no AuthConfig is written for {policy.ref}"
            job.lose(unconverted.code, message, unconverted.span or policy.name_span, help=unconverted.way_out)
        message = f"no manifest shows that a proxy asks Authorino: {policy.ref} stays in force"
        way_out = "let the proxy ask Authorino about these hosts, then remove the policy"
        job.keep(item.document, kuadrant_codes.NOT_ASKED_YET, message, policy.name_span, help=way_out)


def _convert(item: Item, policy: Policy, ways: list[Routed], taken: list[str], job: Job) -> None:
    check_schemes(policy, ways, job)
    arriving = list(arriving_hosts(ways, job.world))
    hosts_of = [_shared(scheme.hosts, arriving) for scheme in policy.schemes]
    manifests = []
    for index, hosts in enumerate(hosts_of):
        others = [host for other, listed in enumerate(hosts_of) if other != index for host in listed]
        chosen = [host for host in hosts if _has_alone(host, policy, index, others, taken, arriving, job)]
        if chosen:
            manifests.append(_manifest(item, policy, index, chosen, ways, job))
            lose_what_differs(policy.schemes[index], job)
    for manifest in manifests:
        error = first_error(manifest, job.settings)
        if error is not None:
            raise NotConvertible(
                kuadrant_codes.NOT_EXPRESSIBLE,
                f"an AuthConfig cannot express this: {error.code.title}",
                policy.name_span,
            )
    for manifest in manifests:
        job.write(item.document, manifest)


def _shared(hosts: Sequence[str], arriving: Sequence[str]) -> list[str]:
    """Return the hosts that a scheme covers and that requests arrive for."""
    met = [
        host if is_inside(host, own) else own
        for own in hosts or (ANY,)
        for host in arriving
        if is_inside(host, own) or is_inside(own, host)
    ]
    return list(dict.fromkeys(met))


def _has_alone(
    host: str, policy: Policy, index: int, others: Sequence[str], taken: list[str], arriving: Sequence[str], job: Job
) -> bool:
    """Return whether one scheme decides all requests that Authorino finds under a host; report the reason if not."""
    span = policy.scheme_spans[index][0]
    if any(are_mixed_up(host, other) for other in (*taken, *others)):
        message = f"another AuthConfig has {host}, or hosts that it covers: nothing is written for it"
        job.lose(kuadrant_codes.SHARED_HOST, message, span)
        return False
    ways = [
        rule for rule in every_rule(job.world) if any(are_mixed_up(host, each) for each in hosts_on(rule, job.world))
    ]
    if any(_has_another_policy(rule, policy, job) for rule in ways):
        message = f"rules for {host} have different policies, and Authorino finds one AuthConfig by the host"
        job.lose(kuadrant_codes.ONE_HOST, f"{message}: nothing is written for it", span)
        return False
    above = host.removeprefix("*.")
    arrives = above != host and any(is_inside(above, each) for each in arriving)
    if arrives and not any(is_inside(above, own) for own in policy.schemes[index].hosts or (ANY,)):
        message = f"Authorino treats {above} as {host}, but {above} has no scheme: nothing is written for it"
        job.lose(kuadrant_codes.UNCOVERED_HOSTS, message, span)
        return False
    return True


def _has_another_policy(rule: Routed, policy: Policy, job: Job) -> bool:
    """Return whether a rule is governed by another policy, or not by this one."""
    if not governs(policy, rule):
        return True
    others = [item.policy for item in job.items if item.policy is not policy]
    return any(
        (isinstance(other, policies.Policy) and is_rule_of(rule.point, other.target))
        or (isinstance(other, Policy) and other.target != policy.target and not other.audit and governs(other, rule))
        for other in others
    )


def _manifest(item: Item, policy: Policy, index: int, hosts: list[str], ways: list[Routed], job: Job) -> Manifest:
    among = [
        rule for rule in ways if any(are_mixed_up(host, each) for host in hosts for each in hosts_on(rule, job.world))
    ]
    selected = selecting_predicate(policy, hosts, among, job, at_gateway=False)
    config = with_token_checks(auth_config(scheme_specs(item)[index]), policy.schemes[index])
    when = config.get("when")
    conditions: list[Plain] = [{"predicate": selected}] if selected is not None else []
    conditions += when if isinstance(when, list) else []
    sections = {name: value for name, value in config.items() if name not in ("hosts", "when")}
    namespace = policy.ref.namespace or job.settings.namespace
    wanted = policy.ref.name if len(policy.schemes) == 1 else f"{policy.ref.name}-{index + 1}"
    name = job.name("AuthConfig", namespace, wanted)
    return {
        "apiVersion": API_VERSION,
        "kind": "AuthConfig",
        "metadata": metadata_of(item.document, name, namespace),
        "spec": {"hosts": list[Plain](hosts), **({"when": conditions} if conditions else {}), **sections},
    }
