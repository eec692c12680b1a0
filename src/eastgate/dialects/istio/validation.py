"""Checks of Istio's webhook beyond the types of fields. Each function is one check.

The shapes in `shapes.py` call a check only if the fields that it reads have the right type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import GATEWAY_GROUP
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.model import DRY_RUN
from eastgate.dialects.istio.written import OPERATION_FIELDS, SOURCE_FIELDS, negated
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, quoted
from eastgate.settings import Settings

Checking = Check[Settings]

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_CORE: Final = '""'
_TARGETS: Final = {
    "Gateway": GATEWAY_GROUP,
    "GatewayClass": GATEWAY_GROUP,
    "Service": "",
    "ServiceEntry": "networking.istio.io",
}


def is_true(text: str) -> bool:
    """Return whether a text means true, as Go reads booleans."""
    return text in _TRUE


def action_of(spec: Node) -> str:
    """Return the action of a policy; the default is ALLOW."""
    action = spec.get("action")
    return action.value if action is not None and isinstance(action.value, str) else "ALLOW"


# Targets


def one_way_to_choose(spec: Node, to: Checking) -> None:
    """Reject a selector beside targets, and the old field beside the new one."""
    targets = spec.get("targetRefs")
    chosen = [name for name in ("selector", "targetRef") if name in spec]
    chosen += ["targetRefs"] if targets is not None and list(targets) else []
    if len(chosen) > 1:
        to.report(
            codes.SELECTOR_AND_TARGETS,
            f"`{chosen[0]}` and `{chosen[1]}` cannot be used together",
            spec.key_span(chosen[1]),
            help=f"keep one of them: `{chosen[0]}`, or `{chosen[1]}`",
        )


def target_kind(ref: Node, to: Checking) -> None:
    """Require a kind of target that Istio supports, in the policy's own namespace."""
    kind, group = ref["kind"], ref.get("group")
    if kind.text not in _TARGETS:
        near = did_you_mean(kind.text, _TARGETS)
        help_ = f"did you mean `{near}`?" if near else "write kind: Gateway, Service, ServiceEntry or GatewayClass"
        to.report(codes.TARGET_KIND, f"{quoted(kind.text)} cannot be the target of a policy", kind, help=help_)
    elif ("" if group is None or group.text == "core" else group.text) != _TARGETS[kind.text]:
        written = "the core group" if group is None or not group.text else f"the group `{group.text}`"
        to.report(
            codes.TARGET_KIND,
            f"{kind.text} is not in {written}",
            group or kind,
            help=f"write group: {_TARGETS[kind.text] or _CORE}",
        )
    if not ref["name"].text:
        to.report(codes.TARGET_KIND, "a target has a name", ref["name"], help="write name: <the name of the target>")
    namespace = ref.get("namespace")
    if namespace is not None and namespace.text:
        to.report(
            codes.TARGET_NAMESPACE,
            "a policy targets objects of its own namespace",
            namespace,
            help="remove it, and put the policy into the namespace of its target",
        )


def labels_without_wildcards(labels: Node, to: Checking) -> None:
    """Reject labels that no workload can have: with wildcards, or without a key."""
    for key, value in labels.items():
        if not key:
            to.report(codes.SELECTOR_LABEL, "a label has a key", labels.key_span(key), help="write its key")
        elif "*" in key or "*" in value.text:
            text = key if "*" in key else value.text
            to.report(
                codes.SELECTOR_LABEL,
                f"{quoted(text)} is compared literally: a selector has no wildcards",
                labels.key_span(key) if "*" in key else value,
                help="write the label as the workloads have it, or one policy for each value",
            )


# Annotations


def dry_run(root: Node, to: Checking) -> None:
    """Require true or false, as Go reads booleans, on a policy that allows or denies."""
    annotations, spec = root["metadata"].get("annotations"), root.get("spec")
    if annotations is None or DRY_RUN not in annotations or not isinstance(annotations[DRY_RUN].value, str):
        return
    action, annotation = action_of(spec) if spec is not None else "ALLOW", annotations[DRY_RUN]
    if action not in ("ALLOW", "DENY"):
        message = f"{DRY_RUN} is for the actions ALLOW and DENY, not {action}"
        to.report(codes.DRY_RUN, message, annotations.key_span(DRY_RUN), help="remove the annotation")
    elif annotation.text not in _TRUE | _FALSE:
        message = f"{quoted(annotation.text)} is neither true nor false"
        to.report(codes.DRY_RUN, message, annotation, help='write "true", or remove the annotation')


def no_dry_run(root: Node, to: Checking) -> None:
    """Reject the annotation on other kinds."""
    annotations = root["metadata"].get("annotations")
    if annotations is not None and DRY_RUN in annotations:
        message = f"{DRY_RUN} is for AuthorizationPolicies"
        to.report(codes.DRY_RUN, message, annotations.key_span(DRY_RUN), help="remove the annotation")


# Actions


def rules_where_needed(spec: Node, to: Checking) -> None:
    """Reject a DENY or CUSTOM policy without rules, which is never triggered."""
    action, rules = action_of(spec), spec.get("rules")
    if action in ("DENY", "CUSTOM") and (rules is None or not list(rules)):
        to.report(
            codes.WITHOUT_RULES,
            f"a {action} policy without rules is never triggered",
            rules or spec["action"],
            help="write rules: [{}] for every request",
        )


def provider_with_custom(spec: Node, to: Checking) -> None:
    """Require a provider for CUSTOM, and reject it for other actions."""
    custom, provider = action_of(spec) == "CUSTOM", spec.get("provider")
    name = provider.get("name") if provider is not None else None
    if provider is not None and not custom:
        to.report(
            codes.PROVIDER_FOREIGN,
            f"a policy with the action {action_of(spec)} has no provider",
            spec.key_span("provider"),
            help="write action: CUSTOM, or remove `provider`",
        )
    elif custom and (name is None or name.value == ""):  # a name of another type is already reported
        at: Node | Span = name or (spec["action"] if provider is None else spec.key_span("provider"))
        to.report(
            codes.PROVIDER,
            "a CUSTOM policy needs the name of a provider",
            at,
            help="write provider: {name: <an extension provider of the MeshConfig>}",
        )


_IDENTITIES = tuple(
    name
    for field in ("namespaces", "serviceAccounts", "trustDomains", "principals", "requestPrincipals")
    for name in (field, negated(field))
)
_IDENTITY_KEYS = ("source.namespace", "source.serviceAccount", "source.trustDomain", "source.principal")


def without_identities_in_custom(spec: Node, to: Checking) -> None:
    """Reject identities and claims in the rules of a CUSTOM policy."""
    if action_of(spec) != "CUSTOM":
        return
    for rule in spec.get("rules") or ():
        sources = (entry.get("source") for entry in rule.get("from") or ())
        for source in (source for source in sources if source is not None):
            for name in _IDENTITIES:
                if name in source and list(source[name]):
                    _not_with_custom(name, source.key_span(name), to)
        keys = (entry.get("key") for entry in rule.get("when") or ())
        for key in (key for key in keys if key is not None and isinstance(key.value, str)):
            if key.text in _IDENTITY_KEYS or key.text.startswith("request.auth."):
                _not_with_custom(key.text, key.span, to)


def _not_with_custom(name: str, at: Span, to: Checking) -> None:
    to.report(
        codes.NOT_WITH_CUSTOM,
        f"`{name}` is not supported in a CUSTOM policy",
        at,
        help="remove it, or write a separate ALLOW or DENY policy for it",
    )


# Rules


def _has_any(record: Node, fields: Iterable[str]) -> bool:
    names = (name for field in fields for name in (field, negated(field)))
    return any(name in record and list(record[name]) for name in names)


def source_has_fields(source: Node, to: Checking) -> None:
    """Reject a source without values, and service accounts beside principals or namespaces."""
    if not _has_any(source, SOURCE_FIELDS):
        to.report(
            codes.EMPTY_SOURCE,
            "a source needs at least one value",
            source,
            help="write sources, or leave `from` out for any source",
        )
    elif _has_any(source, ("serviceAccounts",)) and _has_any(source, ("principals", "namespaces")):
        name = next(name for name in ("serviceAccounts", "notServiceAccounts") if name in source)
        to.report(
            codes.ACCOUNTS_WITH_OTHERS,
            f"`{name}` cannot be used beside principals or namespaces",
            source.key_span(name),
            help="write one source for each, or only serviceAccounts",
        )


def operation_has_fields(operation: Node, to: Checking) -> None:
    """Reject an operation without values."""
    if not _has_any(operation, OPERATION_FIELDS):
        to.report(
            codes.EMPTY_OPERATION,
            "an operation needs at least one value",
            operation,
            help="write operations, or leave `to` out for any operation",
        )


def at_most(most: int, what: str) -> Callable[[Node, Checking], None]:
    """Return a check that rejects a list with more entries than an API server accepts."""

    def check(entries: Node, to: Checking) -> None:
        listed = list(entries)
        if len(listed) > most:
            to.report(
                codes.TOO_MANY,
                f"there are {len(listed)} {what}, but an API server accepts only {most}",
                listed[most],
                help="write several policies",
            )

    return check
