"""Shapes that every policy shares with Kubernetes: metadata, label selectors, references."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem, label_key_problem, label_value_problem
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import codes
from eastgate.reading.manifests.shapes.constraints import Cel, constraint
from eastgate.reading.manifests.shapes.shape import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_KEY_LENGTHS,
    LABEL_VALUE,
    Anything,
    Check,
    Choice,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    enumerated,
    quoted,
    whole,
)

C = TypeVar("C")

MODE = "eastgate.dev/mode"
SOURCE_UID = "eastgate.dev/source-uid"
"""The label of a native policy: the UID of the policy that it was written from."""

UNWRITABLE = "eastgate.dev/native-unwritable"
"""The treatment of the pods of a policy that the installed mesh cannot express: `leave` or `close`."""


def resource(kind: str, spec: Record[C], *, cluster_scoped: bool = False, about: str | None = None) -> Record[C]:
    """Return the shape of a resource: apiVersion, kind, metadata, the given spec, and a status of any shape."""
    return Record(
        kind,
        {
            "apiVersion": Field(Text()),
            "kind": Field(Text()),
            "metadata": Field(_metadata(cluster_scoped=cluster_scoped), required=True),
            "spec": Field(spec, required=True, help=f"write spec: with {enumerated(_required(spec), 'and')}"),
            "status": Field(Anything()),
        },
        advice={name: f"indent it: `{name}` belongs in `spec`" for name in spec.fields},
        about=about,
    )


def _required(spec: Record[C]) -> list[str]:
    return [f"`{name}`" for name, of in spec.fields.items() if of.required] or ["what it says"]


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
    mode = Choice(("audit", "enforce"), codes.BAD_MODE)
    fields: dict[str, Field[C]] = {
        "name": Field(dns_subdomain("a name"), required=True),
        "namespace": Field(dns_label("a namespace")),
        "labels": Field(MapOf(Text(), "a mapping of labels")),
        "annotations": Field(MapOf(Text(), "a mapping of annotations", known={MODE: mode})),
    }
    foreign = {}
    if cluster_scoped:
        del fields["namespace"]
        foreign = {"namespace": (codes.NAMESPACE_ON_CLUSTER_SCOPED, "remove it: this policy is cluster-scoped")}
    return Record(
        "metadata",
        fields | {name: Field(Anything()) for name in _SERVER_FIELDS},
        foreign=foreign,
        otherwise=f"the fields here are {', '.join(f'`{name}`' for name in fields)}",
    )


def is_audit(document: Node) -> bool:
    """Return whether a policy is in audit mode: reported and not enforced."""
    annotations = document["metadata"].get("annotations")
    mode = annotations.get(MODE) if annotations is not None else None
    return mode is not None and mode.value == "audit"


def dns_label(what: str) -> Text[C]:
    """Return the shape of the name of a namespace or a Service."""
    return Text(what, dns_label_name)


def dns_subdomain(what: str) -> Text[C]:
    """Return the shape of the name of most objects."""
    return Text(what, _dns_subdomain_name)


@constraint(minLength=1, maxLength=63, pattern=whole(DNS_LABEL))
def dns_label_name(node: Node, to: Check[C]) -> None:
    """Demand a valid name of a namespace or a Service."""
    _name(node, to, dns_label_problem)


@constraint(minLength=1, maxLength=253, pattern=whole(DNS_SUBDOMAIN))
def _dns_subdomain_name(node: Node, to: Check[C]) -> None:
    _name(node, to, dns_subdomain_problem)


def _name(node: Node, to: Check[C], problem_of: Callable[[str], str | None]) -> None:
    problem = problem_of(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a valid name: {problem}"
        to.report(codes.BAD_NAME, message, node, help=_proper_name(node.text, problem_of))


def _proper_name(text: str, problem_of: Callable[[str], str | None]) -> str:
    near = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not near:
        return "write the name"
    return f"write {near}" if problem_of(near) is None else "write a shorter name"


_AS_THE_PODS = "no object can have this label: write the {} as the labels of the selected objects have it"


@constraint(maxLength=63, pattern=whole(LABEL_VALUE))
def _label_value(node: Node, to: Check[C]) -> None:
    problem = label_value_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a valid label value: {problem}"
        to.report(codes.BAD_LABEL, message, node, help=_AS_THE_PODS.format("value"))


@constraint(
    Cel(
        f"self.all(key, key.matches(r'{whole(LABEL_KEY)}') && key.matches(r'{whole(LABEL_KEY_LENGTHS)}'))",
        "label keys are <name>, or <DNS name>/<name>",
    ),
    maxProperties=64,
)
def _label_keys(node: Node, to: Check[C]) -> None:
    for key in node.keys:
        problem = label_key_problem(key)
        if problem is not None:
            _bad_label_key(key, problem, node.key_span(key), to)


@constraint(maxLength=317, pattern=whole(LABEL_KEY), anyOf=[{"pattern": whole(LABEL_KEY_LENGTHS)}])
def _label_key(node: Node, to: Check[C]) -> None:
    problem = label_key_problem(node.text)
    if problem is not None:
        _bad_label_key(node.text, problem, node.span, to)


def _bad_label_key(key: str, problem: str, at: Span, to: Check[C]) -> None:
    message = f"{quoted(key)} is not a valid label key: {problem}"
    to.report(codes.BAD_LABEL, message, at, help=_AS_THE_PODS.format("key"))


@constraint(
    Cel(
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        "In and NotIn need values; Exists and DoesNotExist take none",
    )
)
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


def label_selector(legal: Callable[[Node, Check[C]], None] = _requirement) -> Record[C]:
    """Return the shape of a label selector. An unknown key is an error: without it, the selector would select
    everything.

    `legal` checks each requirement. By default it demands values exactly if the operator takes values.
    """
    requirement: Record[C] = Record(
        "a selector requirement",
        {
            "key": Field(
                Text("a label key", _label_key),
                required=True,
                help="write key: <the key of a label>",
                about="The key of the label that the requirement is about.",
            ),
            "operator": Field(
                Choice(tuple(Operator), codes.BAD_OPERATOR),
                required=True,
                help=f"write operator: {enumerated(tuple(Operator), 'or')}",
                about="In and NotIn compare the label with the values; Exists and DoesNotExist ask for its key alone.",
            ),
            "values": Field(
                ListOf(Text("a label value", _label_value), "a list of label values", served=64),
                about="The values that In and NotIn compare with: at least one for them, none for the others.",
            ),
        },
        rules=(legal,),
    )
    return Record(
        "a label selector",
        {
            "matchLabels": Field(
                MapOf(Text("a label value", _label_value), "a mapping of labels", _label_keys),
                about="Labels that an object must have, with these values.",
            ),
            "matchExpressions": Field(
                ListOf(requirement, "a list of requirements", served=64),
                about="Requirements on labels, all of which must be met.",
            ),
        },
        otherwise="write labels in matchLabels: {..}, or in matchExpressions: [..]",
    )


def selector_of(node: Node | None) -> Selector:
    """Return the selector of a checked node; without a node, the selector of everything."""
    if node is None:
        return Selector.of()
    labels = node.get("matchLabels")
    expressions = node.get("matchExpressions")
    return Selector.of(
        {key: value.text for key, value in labels.items()} if labels is not None else {},
        [
            Requirement(
                expression["key"].text,
                Operator(expression["operator"].text),
                frozenset(value.text for value in expression.get("values") or ()),
            )
            for expression in expressions or ()
        ],
    )
