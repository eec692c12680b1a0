"""The upstream form of GEP-3779 (the X kind), and its Provisional draft, field by field."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import dns_label, label_selector, resource
from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.sources import source_fields
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Shape, Text, Whole
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

# Shapes that all forms share: targets, ports, identities, levels.


MAX_SERVED_ENTRIES = 256  # rules of a policy and sources of a rule that an API server accepts
_MAX_SERVED_TARGETS = 64

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
    TARGET, "a list of target references", validation.some_target, served=_MAX_SERVED_TARGETS
)


def target_refs(shape: Shape[Settings]) -> Field[Settings]:
    return Field(
        shape,
        required=True,
        missing=codes.NO_TARGET,
        help=validation.NO_TARGET_HELP,
        about="The targets of the policy: Pods by their labels, or a Service by its name, of the policy's own "
        "namespace. For every pod of the namespace write kind Pod and selector {}.",
    )


PORTS: Field[Settings] = Field(
    ListOf(Whole(1, 65535, codes.PORT_RANGE, "a port"), "a list of ports"),
    about="The workload's own (container) ports, one of which must match. Without it any port matches; [] matches "
    "none.",
)
IDENTITIES: Field[Settings] = Field(
    ListOf(Text("a SPIFFE ID", values.spiffe_id), "a list of SPIFFE IDs"),
    about="Full SPIFFE IDs, spiffe://<trust domain>/<path>, compared exactly. [] matches no caller.",
)
NETWORK: Field[Settings] = Field(
    Record("networkAttributes", {"ports": PORTS}, misspelt={"port": "ports"}),
    about="Conditions on the connection. Without it any connection matches.",
)
ALLOW_OR_DENY: Field[Settings] = Field(
    Choice(("ALLOW", "DENY"), codes.ACTION),
    required=True,
    help="write action: ALLOW, or action: DENY",
    about="The effect on a request that one of the rules matches. Every DENY precedes every ALLOW. As soon as a "
    "policy targets a workload, requests that no rule allows are denied.",
)
LEVEL: Field[Settings] = Field(
    Choice(("NETWORK", "APPLICATION"), codes.LEVEL, any_case=True),
    about="Where the policy is enforced: NETWORK (L4) sees identities and ports, APPLICATION (L7) also paths and "
    "methods. The default is NETWORK.",
)
ANY_OF_THEM = "The policy matches a request if any of its rules does. An empty rule matches everything."
NO_APPLICATION_ATTRIBUTES = (
    UNKNOWN_FIELD,
    "remove it, or write AuthorizationPolicy v1alpha2 with enforcementLevel: APPLICATION",
)
SPEC_SPELLINGS = {"targetRef": "targetRefs", "selector": "targetRefs"}
SPEC_ADVICE = {"selector": "write targetRefs: [{kind: Pod, selector: {..}}]"}


# 001, the Provisional draft: v1alpha1, field by field.


_old_source: Record[Settings] = Record(
    "a source",
    {
        "identities": replace(IDENTITIES, about="Full SPIFFE IDs, spiffe://<trust domain>/<path>, compared exactly."),
        "serviceAccounts": Field(
            ListOf(Text("a service account", values.service_account_v1alpha1), "a list of service accounts"),
            about="Service accounts of the target's trust domain, <namespace>/<name>.",
        ),
        "namespaces": Field(
            ListOf(dns_label("a namespace"), "a list of namespaces"), about="Every service account of these namespaces."
        ),
    },
    rules=(validation.one_list,),
    misspelt={
        "serviceAccount": "serviceAccounts",
        "namespace": "namespaces",
        **dict.fromkeys(("identity", "spiffe", "type"), "identities"),
    },
    advice={"spiffe": "write identities: [..]", "type": "remove it: the list that is set defines the source"},
)
_old_rule: Record[Settings] = Record(
    "a rule",
    {
        "sources": Field(
            ListOf(_old_source, "a list of sources", validation.matching_list("sources"), served=MAX_SERVED_ENTRIES),
            about="The callers: any of the sources. Without it any caller matches.",
        ),
        "attributes": Field(
            ListOf(
                Record("attributes", {"ports": PORTS}, misspelt={"port": "ports"}),
                "a list of attributes",
                validation.matching_list("attributes"),
            ),
            about="Conditions on the connection: any of the entries. Without it any connection matches.",
        ),
    },
    misspelt={
        **dict.fromkeys(("authorizationSource", "source", "identities", "serviceAccounts", "namespaces"), "sources"),
        **dict.fromkeys(("networkAttributes", "ports"), "attributes"),
    },
    advice={
        "authorizationSource": "write sources: [{serviceAccounts: [..]}]",
        "identities": "write sources: [{identities: [..]}]",
        "serviceAccounts": "write sources: [{serviceAccounts: [..]}]",
        "namespaces": "write sources: [{namespaces: [..]}]",
        "networkAttributes": "write attributes: [{ports: [..]}]",
        "ports": "write attributes: [{ports: [..]}]",
    },
    foreign={"applicationAttributes": NO_APPLICATION_ATTRIBUTES},
)


def _v1alpha1(targets: ListOf[Settings] | Record[Settings]) -> Record[Settings]:
    return resource(
        "AuthorizationPolicy",
        Record(
            "spec",
            {
                "targetRefs": target_refs(targets),
                "action": ALLOW_OR_DENY,
                "tcpRules": Field(ListOf(_old_rule, "a list of rules", served=MAX_SERVED_ENTRIES), about=ANY_OF_THEM),
            },
            rules=(validation.deny_has_rules("tcpRules"),),
            misspelt={**SPEC_SPELLINGS, "rules": "tcpRules"},
            advice=SPEC_ADVICE,
            foreign={
                "enforcementLevel": (
                    codes.LEVEL_IN_V1ALPHA1,
                    "remove it, or write apiVersion: gateway.networking.x-k8s.io/v1alpha2",
                )
            },
        ),
        about="The callers that may reach some workloads of a namespace: GEP-3779, the Provisional draft.",
    )


V1ALPHA1 = _v1alpha1(TARGETS)
V1ALPHA1_ONE_TARGET = _v1alpha1(TARGET)  # the Go type has one object; Eastgate accepts either


_x_account: Record[Settings] = Record(
    "serviceAccount",
    {
        "namespace": Field(
            dns_label("a namespace"), about="The namespace of the account. The default is the policy's own namespace."
        ),
        "name": Field(
            Text("the name of a service account", values.account_name),
            required=True,
            help=values.ACCOUNT_NAME_HELP,
            about="The name of the account; * is every account of the namespace.",
        ),
    },
)
_x_source: Record[Settings] = Record(
    "a source",
    source_fields(values.spiffe_id, _x_account),
    rules=(validation.source_union,),
    misspelt=dict.fromkeys(("identities", "serviceAccounts", "namespaces"), "type"),
    advice={
        "identities": "write one source for each: {type: SPIFFE, spiffe: ..}",
        "serviceAccounts": "write one source for each: "
        "{type: ServiceAccount, serviceAccount: {namespace: .., name: ..}}",
        "namespaces": 'write one source for each: {type: ServiceAccount, serviceAccount: {namespace: .., name: "*"}}',
    },
)
_x_rule: Record[Settings] = Record(
    "a rule",
    {
        "sources": Field(
            ListOf(_x_source, "a list of sources", served=MAX_SERVED_ENTRIES),
            about="The callers: any of the sources. Without it any caller matches; [] matches no caller.",
        ),
        "networkAttributes": NETWORK,
    },
    misspelt={
        **dict.fromkeys(("authorizationSource", "source"), "sources"),
        **dict.fromkeys(("attributes", "ports"), "networkAttributes"),
    },
    advice={
        "authorizationSource": "write sources: [{type: .., ..}]",
        "ports": "write networkAttributes: {ports: [..]}",
    },
    foreign={"applicationAttributes": NO_APPLICATION_ATTRIBUTES},
)

X_V1ALPHA1: Record[Settings] = resource(
    "XAuthorizationPolicy",
    Record(
        "spec",
        {
            "targetRefs": target_refs(replace(TARGETS, rule=validation.pod_stands_alone)),
            "action": Field(
                Choice(
                    ("ALLOW",),
                    codes.ACTION,
                    reasons={
                        "DENY": (
                            codes.ACTION,
                            "XAuthorizationPolicy has no DENY yet: write AuthorizationPolicy v1alpha2",
                        )
                    },
                ),
                required=True,
                help="write action: ALLOW",
                about="The effect on a request that one of the rules matches. Requests that no rule allows are denied.",
            ),
            "enforcementLevel": Field(
                Choice(
                    ("Network",),
                    codes.LEVEL,
                    any_case=True,
                    reasons={
                        "APPLICATION": (
                            codes.LEVEL_RESERVED,
                            "`Application` is reserved: write AuthorizationPolicy v1alpha2",
                        )
                    },
                ),
                required=True,
                missing=codes.LEVEL_REQUIRED,
                help="write enforcementLevel: Network",
                about="Where the policy is enforced: at L4.",
            ),
            "rules": Field(ListOf(_x_rule, "a list of rules", served=MAX_SERVED_ENTRIES), about=ANY_OF_THEM),
        },
        rules=(validation.target_fits_level,),
        misspelt={**SPEC_SPELLINGS, "tcpRules": "rules"},
        advice=SPEC_ADVICE,
    ),
    about="The callers that may reach some workloads of a namespace: GEP-3779 in its upstream form.",
)
