"""The webhook configurations, as data: which changes an API server asks about, and what it does without an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from eastgate import dialects
from eastgate.cluster import GATEWAY_GROUP
from eastgate.cluster.gateways import ROUTE_KINDS
from eastgate.reports.crds import Webhook
from eastgate.reports.crds.definitions import served

VALIDATING = MUTATING = "eastgate"  # the names of the two configurations
VALIDATE, DIAGNOSE, INJECT = "/validate", "/diagnose", "/inject"

_API_VERSION = "admissionregistration.k8s.io/v1"
_LABELS = {"app.kubernetes.io/managed-by": "eastgate"}
_NAMESPACE = "kubernetes.io/metadata.name"
_EXCLUDED = ("eastgate-system", "kube-system")
_INJECTION, _INJECT_POD = "eastgate.dev/injection", "eastgate.dev/inject"
_SECONDS = 10
_BRIEF_SECONDS = 5  # for what many wait for, and that is allowed without an answer


def _rule(group: str, resources: Sequence[str], *operations: str) -> list[dict[str, Any]]:
    return [{"apiGroups": [group], "apiVersions": ["v1"], "operations": list(operations), "resources": list(resources)}]


_KUBERNETES = (
    _rule("", ["services", "services/status"], "CREATE", "UPDATE", "DELETE"),
    _rule("", ["namespaces", "namespaces/finalize", "namespaces/status"], "CREATE", "UPDATE"),
    _rule("", ["pods", "pods/status"], "UPDATE"),
    _rule("", ["bindings", "pods/binding"], "CREATE"),
    _rule("apps", ["daemonsets", "deployments", "replicasets", "statefulsets"], "UPDATE")
    + _rule("", ["replicationcontrollers"], "UPDATE"),
)
"""Services, Namespaces, Pods, and what makes Pods."""

_Kind = tuple[str, str, str]


def webhook_configurations(webhook: Webhook) -> list[dict[str, Any]]:
    """Return the validating and the mutating configuration."""
    return [validating_configuration(webhook), mutating_configuration(webhook)]


def converted_definitions() -> list[str]:
    """Return the names of the definitions of kinds in several versions, which name the webhook that converts."""
    return sorted(f"{each.resource.plural}.{each.group}" for each in served() if len(each.versions) > 1)


def validating_configuration(webhook: Webhook) -> dict[str, Any]:
    """Return the configuration for changes of policies, and of what leads to them.

    Without an answer nothing changes about the policies that only Eastgate reads. Those of others, Gateways, routes and
    objects of Kubernetes are theirs: what could not be looked at is allowed. Controllers write the last of these in
    numbers, so that the API server sends only changes that a verdict may depend on.
    """
    mine, others = _kinds()
    routes = _rules((GATEWAY_GROUP, "*", kind) for kind in ("Gateway", "ReferenceGrant", *ROUTE_KINDS))
    return _configuration(
        "Validating",
        VALIDATING,
        [
            _webhook("policies.eastgate.dev", webhook, VALIDATE, _rules(mine), "Fail"),
            _webhook("others.eastgate.dev", webhook, VALIDATE, _rules(others), "Ignore"),
            _webhook("routes.eastgate.dev", webhook, VALIDATE, routes, "Ignore"),
            *(
                _webhook(f"{name}.eastgate.dev", webhook, VALIDATE, rules, "Ignore")
                | {"matchConditions": [{"name": "matters", "expression": matters}], "timeoutSeconds": _BRIEF_SECONDS}
                for name, rules, matters in _of_kubernetes()
            ),
        ],
    )


def _of_kubernetes() -> Iterator[tuple[str, list[dict[str, Any]], str]]:
    """Yield webhooks for objects of Kubernetes: a name, rules, and which changes matter.

    Labels can be written by way of some subresources as well. New pods are not asked about, and neither is what makes
    new ones: Invariants are about pods that do not exist yet.
    """
    services, namespaces, pods, bindings, makers = _KUBERNETES
    labels, template = _differs("metadata.?labels"), "spec.?template"
    released = "has(object.metadata.deletionTimestamp) && size(object.metadata.?finalizers.orValue([])) == 0"
    serving = f"request.operation != 'UPDATE' || object.spec != oldObject.spec || {labels} || ({released})"
    yield "services", services, serving
    many = "size(object.metadata.?labels.orValue({})) > 1"  # than the one that every namespace has
    named = f"{labels} || {_differs('metadata.?annotations')}"
    yield "namespaces", namespaces, f"request.operation == 'CREATE' ? {many} : {named}"
    yield "pods", pods, " || ".join((labels, *_noted("metadata")))
    # A binding hands labels and annotations on to its pod. Those of the topology of its node come from Kubernetes.
    labelling = "object.metadata.?labels.orValue({}).exists(key, !key.startsWith('topology.kubernetes.io/'))"
    noting = (f"object.metadata.?annotations[?'{name}'].hasValue()" for name in dialects.registered().pod_annotations)
    yield "bindings", bindings, " || ".join((labelling, *noting))
    account = _differs(f"{template}.?spec.?serviceAccountName", "''")
    yield (
        "workloads",
        makers,
        " || ".join((_differs(f"{template}.?metadata.?labels"), account, *_noted(f"{template}.?metadata"))),
    )


def _differs(field: str, otherwise: str = "{}") -> str:
    before, after = (f"{side}.{field}.orValue({otherwise})" for side in ("oldObject", "object"))
    return f"{after} != {before}"


def _noted(metadata: str) -> Iterator[str]:
    """Yield that an annotation of pods differs; others, such as those of the network, change with every new pod."""
    for name in dialects.registered().pod_annotations:
        yield _differs(f"{metadata}.?annotations[?'{name}']", "''")


def mutating_configuration(webhook: Webhook) -> dict[str, Any]:
    """Return the configuration for new pods: of namespaces with injection, and those with the label that asks for it.

    A pod without the proxy that it should have would be reachable past all policies, so that there is none instead.
    Policies are looked at here as well, and not changed: the API server asks these webhooks before it checks its own
    schema, whose messages nobody understands.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    enabled, disabled = (_where(_INJECTION, operator, "enabled") for operator in ("In", "NotIn"))
    webhooks = [
        _webhook("namespace.inject.eastgate.dev", webhook, INJECT, [rule], "Fail", enabled)
        | {"objectSelector": {"matchExpressions": [_where(_INJECT_POD, "NotIn", "false")]}},
        _webhook("pod.inject.eastgate.dev", webhook, INJECT, [rule], "Fail", disabled)
        | {"objectSelector": {"matchExpressions": [_where(_INJECT_POD, "In", "true")]}},
    ]
    changing = [each | {"reinvocationPolicy": "IfNeeded"} for each in webhooks]
    mine = _rules(_kinds()[0], ["CREATE", "UPDATE"])
    diagnosing = _webhook("diagnose.policies.eastgate.dev", webhook, DIAGNOSE, mine, "Ignore")
    return _configuration("Mutating", MUTATING, [*changing, diagnosing | {"reinvocationPolicy": "Never"}])


def _kinds() -> tuple[list[_Kind], list[_Kind]]:
    """Return the kinds of policies that only Eastgate defines, and the others that it reads, in all versions."""
    mine = [(each.group, version.name, each.kind) for each in served() for version in each.versions]
    kinds = [(kind.group, kind.version, kind.kind) for kind in dialects.registered().kinds]
    return mine, [kind for kind in kinds if kind not in mine]


def _configuration(kind: str, name: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name, "labels": dict(_LABELS)},
        "webhooks": webhooks,
    }


def _webhook(
    name: str,
    webhook: Webhook,
    path: str,
    rules: list[dict[str, Any]],
    on_failure: str,
    *namespaces: dict[str, Any],
) -> dict[str, Any]:
    """Return one webhook, which is not asked about the namespaces that Eastgate itself and Kubernetes need."""
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": webhook.client_config(path),
        "rules": [rule | {"scope": "*"} for rule in rules],
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [_where(_NAMESPACE, "NotIn", *_EXCLUDED), *namespaces]},
        "failurePolicy": on_failure,
        "sideEffects": "None",
        "timeoutSeconds": _SECONDS,
    }


def _where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def _rules(kinds: Iterable[_Kind], operations: Sequence[str] = ("CREATE", "UPDATE", "DELETE")) -> list[dict[str, Any]]:
    """Return a rule for each group, with all of its kinds in all of their versions."""
    by_group: dict[str, tuple[set[str], set[str]]] = {}
    for group, version, kind in kinds:
        versions, resources = by_group.setdefault(group, (set(), set()))
        versions.add(version)
        resources.add(_plural(kind))
    return [
        {
            "apiGroups": [group],
            "apiVersions": sorted(versions),
            "operations": list(operations),
            "resources": sorted(resources),
        }
        for group, (versions, resources) in sorted(by_group.items())
    ]


def _plural(kind: str) -> str:
    """Return the name of the resource of a kind; all that are read here are regular."""
    lower = kind.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") and not lower.endswith("ay") else f"{lower}s"
