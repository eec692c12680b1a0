"""The webhook configurations: the changes that an API server sends, and the failure policy without an answer."""

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
_TIMEOUT_SECONDS = 10
_SHORT_TIMEOUT_SECONDS = 5  # for frequent changes that are allowed without an answer


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
"""Rules for Services, Namespaces, Pods, and the workloads that create Pods."""

_Kind = tuple[str, str, str]


def webhook_configurations(webhook: Webhook) -> list[dict[str, Any]]:
    """Return the validating and the mutating configuration."""
    return [validating_configuration(webhook), mutating_configuration(webhook)]


def converted_definitions() -> list[str]:
    """Return the names of the CustomResourceDefinitions with several versions, which use the conversion webhook."""
    return sorted(f"{each.resource.plural}.{each.group}" for each in served() if len(each.versions) > 1)


def validating_configuration(webhook: Webhook) -> dict[str, Any]:
    """Return the configuration for changes of policies, Gateways, routes and Kubernetes objects.

    Without an answer, a change of a policy that only Eastgate reads is refused. A change of any other object is
    allowed, since other programs need it. Controllers write Kubernetes objects often, so the API server sends only
    changes on which a verdict may depend.
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
                | {
                    "matchConditions": [{"name": "matters", "expression": matters}],
                    "timeoutSeconds": _SHORT_TIMEOUT_SECONDS,
                }
                for name, rules, matters in _of_kubernetes()
            ),
        ],
    )


def _of_kubernetes() -> Iterator[tuple[str, list[dict[str, Any]], str]]:
    """Yield webhooks for Kubernetes objects: a name, rules, and a condition for changes that matter.

    Some subresources can change labels too. New pods and new workloads are not sent: Invariants also cover pods that do
    not exist yet.
    """
    services, namespaces, pods, bindings, makers = _KUBERNETES
    labels, template = _differs("metadata.?labels"), "spec.?template"
    released = "has(object.metadata.deletionTimestamp) && size(object.metadata.?finalizers.orValue([])) == 0"
    serving = f"request.operation != 'UPDATE' || object.spec != oldObject.spec || {labels} || ({released})"
    yield "services", services, serving
    many = "size(object.metadata.?labels.orValue({})) > 1"  # more than the label that every namespace has
    named = f"{labels} || {_differs('metadata.?annotations')}"
    yield "namespaces", namespaces, f"request.operation == 'CREATE' ? {many} : {named}"
    yield "pods", pods, " || ".join((labels, *_noted("metadata")))
    # A binding copies labels and annotations to its pod. Kubernetes itself sets the topology labels of the node.
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
    """Yield conditions that an annotation of pods differs. Other annotations, such as those of the network, change
    with every new pod.
    """
    for name in dialects.registered().pod_annotations:
        yield _differs(f"{metadata}.?annotations[?'{name}']", "''")


def mutating_configuration(webhook: Webhook) -> dict[str, Any]:
    """Return the configuration for new pods: in namespaces with injection, and with the label that requests it.

    Without an answer, such a pod is refused: without its proxy it would be reachable past all policies.

    Policies are validated here too, without a change: the API server calls these webhooks before it validates its own
    schema, whose messages are hard to understand.
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
    """Return the kinds of policies that only Eastgate defines, and the other kinds that it reads, in all versions."""
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
    """Return one webhook. It excludes the namespaces that Eastgate itself and Kubernetes need."""
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": webhook.client_config(path),
        "rules": [rule | {"scope": "*"} for rule in rules],
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [_where(_NAMESPACE, "NotIn", *_EXCLUDED), *namespaces]},
        "failurePolicy": on_failure,
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
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
    """Return the plural name of a kind. All kinds here have regular plurals."""
    lower = kind.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") and not lower.endswith("ay") else f"{lower}s"
