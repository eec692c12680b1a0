"""Writes AuthPolicies of today from AuthConfigs, and from schemes with the same field names."""

from __future__ import annotations

from eastgate.basics.diagnostics.spans import Span
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfigs import object_of
from eastgate.convert.authorino import needs_secrets
from eastgate.convert.gateway_conditions import gateway_predicates
from eastgate.convert.model import Job, Manifest
from eastgate.convert.not_convertible import NotConvertible
from eastgate.dialects.kuadrant import policies
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.reading.manifests import Plain

POLICY_API_VERSION = f"{policies.GROUP}/v1"


def report_secrets(scheme: Scheme, namespace: str | None, span: Span | None, job: Job) -> None:
    """Report that the Secrets of a scheme must be moved.

    Raises NotConvertible if the scheme would select other Secrets instead.
    """
    kuadrants = job.settings.section(KuadrantSettings).authorino_namespace
    if not needs_secrets(scheme) or namespace == kuadrants:
        return
    if any(secret.namespace == kuadrants for secret in job.world.secrets.values()):
        message = f"Secrets of {kuadrants} would be used instead of those of {namespace}"
        raise NotConvertible(kuadrant_codes.SECRETS, message, span)
    message = f"Kuadrant looks for Secrets in {kuadrants}, the namespace of Authorino"
    way_out = f"copy the Secrets of the scheme from {namespace} to {kuadrants}"
    job.lose(kuadrant_codes.SECRETS, message, span, help=way_out)


def rules_of_policy(config: Manifest, scheme: Scheme, selected: list[str]) -> Manifest:
    """Return `when`, `patterns` and `rules` of a policy for the spec of an AuthConfig. Raises NotConvertible."""
    spec = dict(config)
    spec.pop("when", None)
    predicates = gateway_predicates(scheme.when)
    if predicates is None:
        message = "the `when` of the scheme reads an attribute that a gateway does not have"
        raise NotConvertible(
            kuadrant_codes.GATEWAY_CONDITION, message, scheme.span, "write the condition at the entries of the scheme"
        )
    spec.pop("hosts", None)
    sets = object_of(spec.pop("patterns", None))
    named = [object_of(each) for listed in sets.values() if isinstance(listed, list) for each in listed]
    if any("predicate" in each for each in named):
        raise NotConvertible(
            kuadrant_codes.NOT_EXPRESSIBLE, "a policy of today has no predicates in named patterns", scheme.span
        )
    response = object_of(spec.get("response"))
    success = object_of(response.get("success"))
    if "dynamicMetadata" in success:
        success["filters"] = success.pop("dynamicMetadata")
        spec["response"] = {**response, "success": success}
    if not any(spec.values()):
        raise NotConvertible(kuadrant_codes.NOT_EXPRESSIBLE, "a policy of today has at least one rule", scheme.span)
    conditions: list[Plain] = [{"predicate": predicate} for predicate in (*selected, *predicates)]
    patterns: Manifest = {name: {"allOf": listed} for name, listed in sets.items()}
    return {
        **({"when": conditions} if conditions else {}),
        **({"patterns": patterns} if patterns else {}),
        "rules": spec,
    }
