"""Converts AuthPolicies of today to AuthConfigs: the effective policy of each route rule, for the hosts of its
requests.

Authorino decides only requests that a proxy asks it about. So the policies stay in force until proxies ask about the
hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from eastgate.cluster.points import is_rule_of
from eastgate.cluster.routing.rules import every_rule
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfigs import API_VERSION, object_of
from eastgate.convert.from_proposal import governs
from eastgate.convert.gateway_conditions import are_mixed_up, hosts_on, reads_shared_only
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.convert.not_convertible import first_error
from eastgate.dialects.kuadrant import authconfigs, proposal
from eastgate.dialects.kuadrant.policies import Policy
from eastgate.dialects.kuadrant.policies.effective import Effective, fold
from eastgate.dialects.kuadrant.policies.model import RuleKey
from eastgate.dialects.kuadrant.schemes import SchemeSection
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.reading.manifests import Plain


def to_auth_configs(items: Sequence[Item], job: Job) -> None:
    """Write an AuthConfig for each effective policy that shares no host with another."""
    documents = {id(item.policy): item.document for item in items}
    policies = [item.policy for item in items if isinstance(item.policy, Policy)]
    by_host = _by_host([policy for policy in policies if not (policy.audit or policy.deleted)], job)
    configs = [item.policy for item in job.items if isinstance(item.policy, authconfigs.Policy)]
    taken = [host.partition(":")[0].lower() for config in configs for host in config.hosts]
    shared = list(_hosts_of_proposals(job))
    hosts_of: dict[tuple[tuple[RuleKey, int], ...], list[str]] = {}
    chosen: dict[tuple[tuple[RuleKey, int], ...], Effective] = {}
    for host, effectives in by_host.items():
        near = [each for other, found in by_host.items() if are_mixed_up(host, other) for each in found]
        is_shared = any(are_mixed_up(host, other) for other in shared)
        if is_shared or any(_key(each) != _key(effectives[0]) for each in near):
            for policy in _sources(near):
                message = f"rules for {host} have different policies, and Authorino finds one AuthConfig by the host"
                job.lose(kuadrant_codes.ONE_HOST, f"{message}: nothing is written for it", policy.target_span)
            continue
        if any(are_mixed_up(host, other) for other in taken):
            for policy in effectives[0].sources:
                message = f"another AuthConfig has {host}, or hosts that it covers: nothing is written for it"
                job.lose(kuadrant_codes.SHARED_HOST, message, policy.target_span)
            continue
        if effectives[0].rules:
            hosts_of.setdefault(_key(effectives[0]), []).append(host)
            chosen[_key(effectives[0])] = effectives[0]
    for key, hosts in hosts_of.items():
        _write(chosen[key], hosts, job)
    for policy in policies:
        message = f"no manifest shows that a proxy asks Authorino: {policy.ref} stays in force"
        way_out = "let the proxy ask Authorino about these hosts, then remove the policy"
        job.keep(documents[id(policy)], kuadrant_codes.NOT_ASKED_YET, message, policy.name_span, help=way_out)


def _by_host(policies: Sequence[Policy], job: Job) -> dict[str, list[Effective]]:
    """Return the effective policies for each host, including those without a rule."""
    by_host: dict[str, list[Effective]] = {}
    for rule in every_rule(job.world):
        effective = fold(policy for policy in policies if is_rule_of(rule.point, policy.target))
        for host in hosts_on(rule, job.world):
            by_host.setdefault(host, []).append(effective)
    return by_host


def _hosts_of_proposals(job: Job) -> Iterator[str]:
    """Yield the hosts that policies of 2022 govern."""
    proposals = [
        item.policy for item in job.items if isinstance(item.policy, proposal.Policy) and not item.policy.audit
    ]
    for rule in every_rule(job.world):
        if any(governs(policy, rule) for policy in proposals):
            yield from hosts_on(rule, job.world)


def _key(effective: Effective) -> tuple[tuple[RuleKey, int], ...]:
    return tuple((key, id(policy)) for key, policy in effective.rules.items())


def _sources(effectives: Iterable[Effective]) -> Iterator[Policy]:
    yield from {id(policy): policy for each in effectives for policy in each.sources}.values()


def _write(effective: Effective, hosts: list[str], job: Job) -> None:
    first = effective.sources[0]
    spec: Manifest = {"hosts": list[Plain](hosts)}
    patterns: Manifest = {}
    for key, policy in effective.rules.items():
        plain = policy.rules[key].plain()
        if key.section == SchemeSection.PATTERNS:
            patterns[key.name] = object_of(plain)["allOf"]
        elif key.section == SchemeSection.CONDITIONS:
            predicates = [str(object_of(each).get("predicate")) for each in plain] if isinstance(plain, list) else []
            if not all(map(reads_shared_only, predicates)):
                message = "Authorino lacks attributes that the gateway has: nothing is written for these hosts"
                job.lose(kuadrant_codes.GATEWAY_CONDITION, message, policy.rules[key].span)
                return
            spec["when"] = plain
        else:
            _put(spec, (*SchemeSection(key.section).path("dynamicMetadata"), *((key.name,) if key.name else ())), plain)
    if patterns:
        spec["patterns"] = patterns
    namespace = job.settings.section(KuadrantSettings).authorino_namespace
    document = next(item.document for item in job.items if item.policy is first)
    name = job.name("AuthConfig", namespace, f"{first.ref.namespace}-{first.ref.name}")
    metadata = metadata_of(document, name, namespace)
    manifest: Manifest = {"apiVersion": API_VERSION, "kind": "AuthConfig", "metadata": metadata, "spec": spec}
    error = first_error(manifest, job.settings)
    if error is not None:
        message = f"an AuthConfig cannot express this: {error.code.title}: nothing is written for these hosts"
        job.lose(kuadrant_codes.NOT_EXPRESSIBLE, message, first.name_span)
    else:
        job.write(document, manifest)


def _put(spec: Manifest, path: tuple[str, ...], plain: Plain) -> None:
    inner = spec
    for step in path[:-1]:
        below = inner.setdefault(step, {})
        assert isinstance(below, dict)  # noqa: S101 - made here
        inner = below
    inner[path[-1]] = plain
