"""Shapes that the forms of the policy share: targets, ports, identities, levels."""

from __future__ import annotations

from eastgate.cluster.resources import label_selector
from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Shape, Text, Whole
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

SERVED = 256  # rules of a policy and sources of a rule, for an API server
_SERVED_TARGETS = 64

SELECTOR: Record[Settings] = label_selector()

_SELECTORS = ("labelSelector", "labels", "matchExpressions", "matchLabels", "podSelector")

TARGET: Record[Settings] = Record(
    "a target reference",
    {
        "group": Field(
            Text("a group", served=253), about="The group of the target: Pods and Services are in the core group, ''."
        ),
        "kind": Field(
            Text("a kind", served=63),
            required=True,
            help="write kind: Pod, or kind: Service",
            about="Pod, with a selector; or Service, with a name.",
        ),
        "name": Field(
            Text("the name of a Service", served=63),
            about="The name of the Service. Pods are targeted by their labels and have no name here.",
        ),
        "selector": Field(
            SELECTOR,
            help=validation.SELECTOR_HELP,
            about="The labels of the Pods, in the policy's own namespace; {} selects every pod of it.",
        ),
    },
    rules=(validation.target,),
    misspelt=dict.fromkeys(_SELECTORS, "selector"),
    advice=dict.fromkeys(_SELECTORS, "write selector: {matchLabels: {..}}"),
    foreign={
        "namespace": (UNKNOWN_FIELD, "remove it: a policy only ever targets objects of its own namespace"),
        "sectionName": (UNKNOWN_FIELD, "remove it: a policy targets whole pods; its rules may name ports"),
    },
)
TARGETS: ListOf[Settings] = ListOf(
    TARGET, "a list of target references", validation.some_target, served=_SERVED_TARGETS
)


def target_refs(shape: Shape[Settings]) -> Field[Settings]:
    return Field(
        shape,
        required=True,
        missing=codes.NO_TARGET,
        help=validation.NO_TARGET_HELP,
        about="What the policy applies to: Pods by their labels, or a Service by its name, of the policy's own "
        "namespace. For every pod of the namespace write kind Pod and selector {}.",
    )


PORTS: Field[Settings] = Field(
    ListOf(Whole(1, 65535, codes.PORT_RANGE, "a port"), "a list of ports"),
    about="The workload's own (container) ports, of which one must match. Left out it is any port; [] matches none.",
)
IDENTITIES: Field[Settings] = Field(
    ListOf(Text("a SPIFFE ID", values.spiffe_id), "a list of SPIFFE IDs"),
    about="Full SPIFFE IDs, spiffe://<trust domain>/<path>, compared exactly. [] matches nobody.",
)
NETWORK: Field[Settings] = Field(
    Record("networkAttributes", {"ports": PORTS}, misspelt={"port": "ports"}),
    about="What must be true of the connection. Left out it is any connection.",
)
ALLOW_OR_DENY: Field[Settings] = Field(
    Choice(("ALLOW", "DENY"), codes.ACTION),
    required=True,
    help="write action: ALLOW, or action: DENY",
    about="What happens to a request that one of the rules matches. A DENY goes before every ALLOW; as soon as a "
    "policy targets a workload, what nothing allows is denied.",
)
LEVEL: Field[Settings] = Field(
    Choice(("NETWORK", "APPLICATION"), codes.LEVEL, any_case=True),
    about="Where the policy is enforced: NETWORK (L4) sees identities and ports, APPLICATION (L7) also paths and "
    "methods. Left out it is NETWORK.",
)
ANY_OF_THEM = "The policy matches a request if any of its rules does. A rule with nothing in it matches everything."
NO_APPLICATION_ATTRIBUTES = (
    UNKNOWN_FIELD,
    "remove it, or write AuthorizationPolicy v1alpha2 with enforcementLevel: APPLICATION",
)
SPEC_SPELLINGS = {"targetRef": "targetRefs", "selector": "targetRefs"}
SPEC_ADVICE = {"selector": "write targetRefs: [{kind: Pod, selector: {..}}]"}
