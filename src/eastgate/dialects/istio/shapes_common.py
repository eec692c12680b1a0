"""Shapes that several of Istio's policies have: how they choose what they apply to, and the whole resource."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import resource
from eastgate.dialects.istio import validation
from eastgate.dialects.istio.validation import Checking
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Field, ListOf, MapOf, Record, Text
from eastgate.settings import Settings

_MOST_TARGETS = 16

_selector: Record[Settings] = Record(
    "a workload selector",
    {
        "matchLabels": Field(
            MapOf(Text("a label value"), "a mapping of labels", validation.labels_without_wildcards),
            about="Labels that a workload must have, with these values. Left out or {}, it is every workload.",
        )
    },
    misspelt={"labels": "matchLabels"},
    advice={"matchExpressions": "write matchLabels: Istio's selectors have nothing else"},
    otherwise="write labels in matchLabels: {..}",
)
SELECTOR: Field[Settings] = Field(
    _selector,
    about="The labels of the workloads that the policy applies to, in its own namespace; in the root namespace, in all "
    "namespaces. Left out it is all of them.",
)

_target: Record[Settings] = Record(
    "a target reference",
    {
        "group": Field(Text("a group"), about="The group of the target: gateway.networking.k8s.io for Gateways."),
        "kind": Field(
            Text("a kind"),
            required=True,
            help="write kind: Gateway, or kind: Service",
            about="Gateway, GatewayClass, Service or ServiceEntry.",
        ),
        "name": Field(
            Text("a name"), required=True, help="write name: <the name of the target>", about="The name of the target."
        ),
        "namespace": Field(Text("a namespace"), about="It must be left out: a policy is beside its target."),
    },
    rules=(validation.target_kind,),
)
_targets: ListOf[Settings] = ListOf(
    _target, "a list of target references", validation.at_most(_MOST_TARGETS, "targets"), served=_MOST_TARGETS
)
TARGETS: dict[str, Field[Settings]] = {
    "targetRef": Field(_target, about="The old form of targetRefs, with one target."),
    "targetRefs": Field(
        _targets, about="The Gateways, or the Services and ServiceEntries behind waypoints, that the policy applies to."
    ),
}


def istio_resource(kind: str, spec: Record[Settings], about: str) -> Record[Settings]:
    """Return the shape of a policy. One without `spec` is one with an empty spec."""
    shape = resource(kind, spec, about=about)
    return replace(shape, fields={**shape.fields, "spec": Field(spec)}, rules=(_annotations,))


def _annotations(root: Node, to: Checking) -> None:
    if root["kind"].text == "AuthorizationPolicy":
        validation.dry_run(root, to)
    else:
        validation.no_dry_run(root, to)
