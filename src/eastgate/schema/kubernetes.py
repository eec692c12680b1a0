"""Shapes that every policy shares with Kubernetes: metadata, label selectors, references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from eastgate.schema import codes
from eastgate.schema.shapes import Anything, Check, Choice, Field, ListOf, MapOf, Record, Text
from eastgate.sources.node import Node
from eastgate.world.labels import Operator, Requirement, Selector
from eastgate.world.names import dns_label_problem, dns_subdomain_problem, label_key_problem, label_value_problem

__all__ = ["MODE", "dns_label", "dns_subdomain", "is_audit", "label_selector", "resource", "selector_of"]

C = TypeVar("C")

MODE = "eastgate.dev/mode"


def resource(kind: str, spec: Record[C], *, cluster_scoped: bool = False) -> Record[C]:
    """A whole resource: apiVersion, kind, metadata, the given spec, and a status that is not ours to check."""
    return Record(
        kind,
        {
            "apiVersion": Field(Text()),
            "kind": Field(Text()),
            "metadata": Field(_metadata(cluster_scoped=cluster_scoped), required=True),
            "spec": Field(spec, required=True),
            "status": Field(Anything()),
        },
    )


_SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)


def _metadata(*, cluster_scoped: bool) -> Record[C]:
    fields: dict[str, Field[C]] = {
        "name": Field(dns_subdomain("a name"), required=True),
        "namespace": Field(dns_label("a namespace")),
        "labels": Field(MapOf(Text(), "a mapping of labels")),
        "annotations": Field(MapOf(Text(), "a mapping of annotations", _check_mode)),
        **{name: Field(Anything()) for name in _SERVER_FIELDS},
    }
    foreign = {}
    if cluster_scoped:
        del fields["namespace"]
        foreign = {"namespace": (codes.NAMESPACE_ON_CLUSTER_SCOPED, "remove it: this policy is cluster-scoped")}
    return Record("metadata", fields, foreign=foreign)


def _check_mode(node: Node, to: Check[C]) -> None:
    mode = node.get(MODE)
    if mode is not None and mode.text not in ("audit", "enforce"):
        to.report(
            codes.BAD_MODE, f"`{MODE}` is `audit` or `enforce`, not `{mode.text}`", mode, help="write audit, or enforce"
        )


def is_audit(document: Node) -> bool:
    """Whether a policy is to be reported and not enforced."""
    annotations = document["metadata"].get("annotations")
    mode = annotations.get(MODE) if annotations is not None else None
    return mode is not None and mode.value == "audit"


def dns_label(what: str) -> Text[C]:
    """The name of a namespace or a Service."""
    return Text(what, _named(dns_label_problem))


def dns_subdomain(what: str) -> Text[C]:
    """The name of most objects."""
    return Text(what, _named(dns_subdomain_problem))


def _named(problem_of: Callable[[str], str | None]) -> Callable[[Node, Check[C]], None]:
    def rule(node: Node, to: Check[C]) -> None:
        problem = problem_of(node.text)
        if problem is not None:
            to.report(codes.BAD_NAME, f"`{node.text}` is not a valid name: {problem}", node)

    return rule


def _label_value(node: Node, to: Check[C]) -> None:
    problem = label_value_problem(node.text)
    if problem is not None:
        to.report(codes.BAD_LABEL, f"`{node.text}` is not a valid label value: {problem}", node)


def _label_keys(node: Node, to: Check[C]) -> None:
    for key in node.keys:
        problem = label_key_problem(key)
        if problem is not None:
            to.report(codes.BAD_LABEL, f"`{key}` is not a valid label key: {problem}", node.key_span(key))


def _label_key(node: Node, to: Check[C]) -> None:
    problem = label_key_problem(node.text)
    if problem is not None:
        to.report(codes.BAD_LABEL, f"`{node.text}` is not a valid label key: {problem}", node)


def _requirement(node: Node, to: Check[C]) -> None:
    operator = Operator(node["operator"].text)
    values = node.get("values")
    if operator in (Operator.IN, Operator.NOT_IN):
        if values is None or not list(values):
            to.report(
                codes.BAD_OPERATOR,
                f"`{operator}` needs values",
                values or node,
                help="write values: [..], with at least one",
            )
    elif values is not None and list(values):
        to.report(
            codes.BAD_OPERATOR, f"`{operator}` takes no values", values, help="remove values, or write In or NotIn"
        )


def label_selector(what: str = "a label selector", misspelt: Mapping[str, str] | None = None) -> Record[C]:
    """A label selector. An unknown key in it is an error: pruned, the selector would select everything."""
    requirement: Record[C] = Record(
        "a selector requirement",
        {
            "key": Field(Text("a label key", _label_key), required=True),
            "operator": Field(Choice(tuple(Operator), codes.BAD_OPERATOR), required=True),
            "values": Field(ListOf(Text("a label value", _label_value), "a list of label values")),
        },
        rules=(_requirement,),
    )
    return Record(
        what,
        {
            "matchLabels": Field(MapOf(Text("a label value", _label_value), "a mapping of labels", _label_keys)),
            "matchExpressions": Field(ListOf(requirement, "a list of requirements")),
        },
        misspelt=misspelt or {},
    )


def selector_of(node: Node | None) -> Selector:
    """The selector that a checked node describes; without a node, the one that selects everything."""
    if node is None:
        return Selector.of()
    labels = node.get("matchLabels")
    expressions = node.get("matchExpressions")
    return Selector.of(
        {key: value.text for key, value in labels.items()} if labels is not None else {},
        [
            Requirement(
                one["key"].text,
                Operator(one["operator"].text),
                frozenset(value.text for value in one.get("values") or ()),
            )
            for one in expressions or ()
        ],
    )
