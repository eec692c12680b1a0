"""Converts AuthPolicies of today to those of 2022, if no other policy governs any rule of the target.

The rules become the one auth scheme of the policy, and the conditions those of the scheme. A policy that the kind of
2022 cannot express stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster.points import is_rule_of
from eastgate.cluster.routing.rules import every_rule
from eastgate.cluster.targets import RulesOfGateway
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfig_versions import spec_of
from eastgate.convert.authconfigs import object_of
from eastgate.convert.gateway_conditions import reads_shared_only
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.convert.not_convertible import NotConvertible, first_error, keep_unconverted
from eastgate.dialects.kuadrant import proposal
from eastgate.dialects.kuadrant.policies import Policy
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.reading.manifests import Plain

PROPOSAL_API_VERSION = f"{proposal.GROUP}/v1alpha1"
_SECRET_WORDS = frozenset({"apiKey", "x509", "sharedSecretRef", "credentialsRef", "clientSecretRef", "signingKeyRefs"})


def to_proposal(items: Sequence[Item], job: Job) -> None:
    """Convert policies one by one."""
    for item in items:
        policy = item.policy
        assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
        try:
            _check_ways(policy, job)
            manifest = _manifest(item, policy, job)
            _check_words(manifest, policy, job)
        except NotConvertible as unconverted:
            keep_unconverted(item, policy.name_span, unconverted, job)
        else:
            job.write(item.document, manifest)


def _check_ways(policy: Policy, job: Job) -> None:
    target = policy.target
    if policy.deleted:
        raise NotConvertible(kuadrant_codes.NOT_IN_FORCE, "the policy is being deleted", policy.name_span)
    section = target.listener if isinstance(target, RulesOfGateway) else target.rule
    if section is not None or (not isinstance(target, RulesOfGateway) and target.kind != "HTTPRoute"):
        message = "a policy of 2022 targets a whole Gateway or HTTPRoute"
        raise NotConvertible(kuadrant_codes.NOT_EXPRESSIBLE, message, policy.target_span)
    ways = [rule for rule in every_rule(job.world) if is_rule_of(rule.point, target)]
    if not ways:
        raise NotConvertible(kuadrant_codes.NO_GATEWAY, "no manifest declares the target", policy.target_span)
    for item in job.items:
        other = item.policy
        if other is policy or not isinstance(other, Policy | proposal.Policy):
            continue
        if isinstance(other, proposal.Policy):
            is_near = any(other.target in (rule.point.gateway, rule.point.route) for rule in ways)
        else:
            is_near = any(is_rule_of(rule.point, other.target) for rule in ways)
        if is_near:
            raise NotConvertible(kuadrant_codes.TWO_LEVELS, f"{other.ref} governs the same rules", policy.target_span)
    if isinstance(target, RulesOfGateway) and any(
        rule.is_stream for rule in every_rule(job.world) if rule.gateway == target.gateway
    ):
        raise NotConvertible(
            kuadrant_codes.STREAMS, "the Gateway also forwards traffic that is not HTTP", policy.target_span
        )


def _manifest(item: Item, policy: Policy, job: Job) -> Manifest:
    spec = spec_of(item)
    proper = object_of(spec[policy.written]) if policy.written is not None else spec
    scheme = object_of(proper.get("rules"))
    when = proper.get("when")
    conditions: list[Plain] = list(when) if isinstance(when, list) else []
    if not all(reads_shared_only(str(object_of(condition).get("predicate"))) for condition in conditions):
        message = "the scheme of a policy lacks attributes that its gateway has"
        raise NotConvertible(kuadrant_codes.GATEWAY_CONDITION, message, policy.name_span)
    if conditions:
        scheme["when"] = conditions
    if sets := object_of(proper.get("patterns")):
        scheme["patterns"] = {name: object_of(listed)["allOf"] for name, listed in sets.items()}
    namespace = policy.ref.namespace or job.settings.namespace
    if _mentions_secrets(scheme) and namespace != job.settings.section(KuadrantSettings).authorino_namespace:
        message = f"a policy of 2022 looks for Secrets in {namespace}, its own namespace"
        raise NotConvertible(kuadrant_codes.SECRETS, message, policy.name_span)
    name = job.name(f"AuthPolicy.{proposal.GROUP}", namespace, policy.ref.name)
    return {
        "apiVersion": PROPOSAL_API_VERSION,
        "kind": "AuthPolicy",
        "metadata": metadata_of(item.document, name, namespace),
        "spec": {"targetRef": spec["targetRef"], "authScheme": scheme},
    }


def _mentions_secrets(value: Plain) -> bool:
    if isinstance(value, dict):
        return any(key in _SECRET_WORDS or _mentions_secrets(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_mentions_secrets, value))


def _check_words(manifest: Manifest, policy: Policy, job: Job) -> None:
    """Raise NotConvertible if the kind of 2022 rejects the manifest."""
    error = first_error(manifest, job.settings)
    if error is not None:
        raise NotConvertible(
            kuadrant_codes.NOT_EXPRESSIBLE,
            f"a policy of 2022 cannot express this: {error.code.title}",
            policy.name_span,
        )
