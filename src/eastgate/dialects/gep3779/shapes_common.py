"""What the forms of the policy have in common: targets, ports, identities, levels."""

from __future__ import annotations

from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.validation import Subject
from eastgate.schema import Choice, Field, ListOf, Record, Text, Whole
from eastgate.schema.codes import UNKNOWN_FIELD
from eastgate.schema.kubernetes import label_selector

__all__ = [
    "ACTION",
    "IDENTITIES",
    "LEVEL",
    "NETWORK",
    "NO_APPLICATION_ATTRIBUTES",
    "PORTS",
    "SELECTOR",
    "SERVED_RULES",
    "SPEC_ADVICE",
    "SPEC_SPELLINGS",
    "TARGET",
    "TARGETS",
    "target_refs",
]

SELECTOR: Record[Subject] = label_selector()

_SELECTORS = ("labelSelector", "labels", "matchExpressions", "matchLabels", "podSelector")

TARGET: Record[Subject] = Record(
    "a target reference",
    {
        "group": Field(Text("a group")),
        "kind": Field(Text("a kind"), required=True, help="write kind: Pod, or kind: Service"),
        "name": Field(Text("the name of a Service")),
        "selector": Field(SELECTOR, help=validation.SELECTOR_HELP),
    },
    rules=(validation.target,),
    misspelt=dict.fromkeys(_SELECTORS, "selector"),
    advice=dict.fromkeys(_SELECTORS, "write selector: {matchLabels: {..}}"),
    foreign={
        "namespace": (UNKNOWN_FIELD, "remove it: a policy only ever targets objects of its own namespace"),
        "sectionName": (UNKNOWN_FIELD, "remove it: a policy targets whole pods; its rules may name ports"),
    },
)
TARGETS: ListOf[Subject] = ListOf(TARGET, "a list of target references", validation.some_target)

PORTS: ListOf[Subject] = ListOf(Whole(1, 65535, codes.PORT_RANGE, "a port"), "a list of ports")
IDENTITIES: ListOf[Subject] = ListOf(Text("a SPIFFE ID", values.spiffe_id), "a list of SPIFFE IDs")
NETWORK: Record[Subject] = Record("networkAttributes", {"ports": Field(PORTS)}, misspelt={"port": "ports"})
ALLOW_OR_DENY = Choice(("ALLOW", "DENY"), codes.ACTION)
LEVEL = Choice(("NETWORK", "APPLICATION"), codes.LEVEL, any_case=True)
SPEC_SPELLINGS = {"targetRef": "targetRefs", "selector": "targetRefs"}
SPEC_ADVICE = {"selector": "write targetRefs: [{kind: Pod, selector: {..}}]"}
