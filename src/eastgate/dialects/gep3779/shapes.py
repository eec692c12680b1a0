"""The four resources, field by field. The Go types of the drafts are normative; READINGS settles the rest."""

from __future__ import annotations

from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.validation import Subject
from eastgate.schema import Choice, Field, ListOf, Record, Text, Whole
from eastgate.schema.codes import UNKNOWN_FIELD
from eastgate.schema.kubernetes import dns_label, label_selector, resource

__all__ = ["CLUSTER_POLICY", "V1ALPHA1", "V1ALPHA2", "X_V1ALPHA1"]

_selector: Record[Subject] = label_selector()

_SELECTORS = ("labelSelector", "labels", "matchExpressions", "matchLabels", "podSelector")

_target: Record[Subject] = Record(
    "a target reference",
    {
        "group": Field(Text("a group")),
        "kind": Field(Text("a kind"), required=True, help="write kind: Pod, or kind: Service"),
        "name": Field(Text("the name of a Service")),
        "selector": Field(_selector, help=validation.SELECTOR_HELP),
    },
    rules=(validation.target,),
    misspelt=dict.fromkeys(_SELECTORS, "selector"),
    advice=dict.fromkeys(_SELECTORS, "write selector: {matchLabels: {..}}"),
    foreign={
        "namespace": (UNKNOWN_FIELD, "remove it: a policy only ever targets objects of its own namespace"),
        "sectionName": (UNKNOWN_FIELD, "remove it: a policy targets whole pods; its rules may name ports"),
    },
)
_targets: ListOf[Subject] = ListOf(_target, "a list of target references", validation.some_target)

_ports: ListOf[Subject] = ListOf(Whole(1, 65535, codes.PORT_RANGE, "a port"), "a list of ports")
_identities: ListOf[Subject] = ListOf(Text("a SPIFFE ID", values.spiffe_id), "a list of SPIFFE IDs")
_network: Record[Subject] = Record("networkAttributes", {"ports": Field(_ports)}, misspelt={"port": "ports"})
_allow_or_deny = Choice(("ALLOW", "DENY"), codes.ACTION)
_level = Choice(("NETWORK", "APPLICATION"), codes.LEVEL, any_case=True)
_spec_spellings = {"targetRef": "targetRefs", "selector": "targetRefs"}
_spec_advice = {"selector": "write targetRefs: [{kind: Pod, selector: {..}}]"}


# 000: the Implementable draft


def _rules(service_account: Text[Subject]) -> ListOf[Subject]:
    source: Record[Subject] = Record(
        "authorizationSource",
        {
            "identities": Field(_identities),
            "serviceAccounts": Field(ListOf(service_account, "a list of service accounts")),
        },
        misspelt={"serviceAccount": "serviceAccounts", "identity": "identities"},
        advice={"matchExpressions": "list who is meant: the draft leaves richer expressions to the future"},
        foreign={"namespaces": (UNKNOWN_FIELD, "write serviceAccounts: [<namespace>/*]")},
    )
    application: Record[Subject] = Record(
        "applicationAttributes",
        {
            "paths": Field(ListOf(Text("a path", values.path), "a list of paths")),
            "methods": Field(ListOf(Text("a method", values.method), "a list of methods")),
        },
    )
    rule: Record[Subject] = Record(
        "a rule",
        {
            "authorizationSource": Field(source),
            "networkAttributes": Field(_network),
            "applicationAttributes": Field(application),
        },
        misspelt={
            **dict.fromkeys(("sources", "source", "identities", "serviceAccounts"), "authorizationSource"),
            **dict.fromkeys(("attributes", "ports"), "networkAttributes"),
            **dict.fromkeys(("paths", "methods"), "applicationAttributes"),
        },
        advice={
            "sources": "write authorizationSource: {serviceAccounts: [..]}, or {identities: [..]}",
            "identities": "write authorizationSource: {identities: [..]}",
            "serviceAccounts": "write authorizationSource: {serviceAccounts: [..]}",
            "ports": "write networkAttributes: {ports: [..]}",
            "paths": "write applicationAttributes: {paths: [..]}",
            "methods": "write applicationAttributes: {methods: [..]}",
        },
    )
    return ListOf(rule, "a list of rules")


V1ALPHA2: Record[Subject] = resource(
    "AuthorizationPolicy",
    Record(
        "spec",
        {
            "targetRefs": Field(_targets, required=True, missing=codes.NO_TARGET, help=validation.NO_TARGET_HELP),
            "action": Field(_allow_or_deny, required=True, help="write action: ALLOW, or action: DENY"),
            "enforcementLevel": Field(_level),
            "rules": Field(_rules(Text("a service account", values.service_account))),
        },
        rules=(
            validation.deny_has_rules("rules"),
            validation.no_application_attributes_at_network,
            validation.target_fits_level,
        ),
        misspelt={**_spec_spellings, "tcpRules": "rules"},
        advice=_spec_advice,
    ),
)


# 001: the Provisional draft

_NO_APPLICATION_ATTRIBUTES = (
    UNKNOWN_FIELD,
    "remove it, or write AuthorizationPolicy v1alpha2 with enforcementLevel: APPLICATION",
)
_old_source: Record[Subject] = Record(
    "a source",
    {
        "identities": Field(_identities),
        "serviceAccounts": Field(
            ListOf(Text("a service account", values.service_account_v1alpha1), "a list of service accounts")
        ),
        "namespaces": Field(ListOf(dns_label("a namespace"), "a list of namespaces")),
    },
    rules=(validation.one_list,),
    misspelt={
        "serviceAccount": "serviceAccounts",
        "namespace": "namespaces",
        **dict.fromkeys(("identity", "spiffe", "type"), "identities"),
    },
    advice={"spiffe": "write identities: [..]", "type": "remove it: the one list that is set says what the source is"},
)
_old_rule: Record[Subject] = Record(
    "a rule",
    {
        "sources": Field(ListOf(_old_source, "a list of sources", validation.not_empty("sources"))),
        "attributes": Field(
            ListOf(
                Record("attributes", {"ports": Field(_ports)}, misspelt={"port": "ports"}),
                "a list of attributes",
                validation.not_empty("attributes"),
            )
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
    foreign={"applicationAttributes": _NO_APPLICATION_ATTRIBUTES},
)


def _v1alpha1(targets: ListOf[Subject] | Record[Subject]) -> Record[Subject]:
    return resource(
        "AuthorizationPolicy",
        Record(
            "spec",
            {
                "targetRefs": Field(targets, required=True, missing=codes.NO_TARGET, help=validation.NO_TARGET_HELP),
                "action": Field(_allow_or_deny, required=True, help="write action: ALLOW, or action: DENY"),
                "tcpRules": Field(ListOf(_old_rule, "a list of rules")),
            },
            rules=(validation.deny_has_rules("tcpRules"),),
            misspelt={**_spec_spellings, "rules": "tcpRules"},
            advice=_spec_advice,
            foreign={
                "enforcementLevel": (
                    codes.LEVEL_IN_V1ALPHA1,
                    "remove it, or write apiVersion: gateway.networking.x-k8s.io/v1alpha2",
                )
            },
        ),
    )


V1ALPHA1 = _v1alpha1(_targets)
V1ALPHA1_ONE_TARGET = _v1alpha1(_target)  # the Go type has one object; files may give either


# GEP-3779 as it stands upstream

_x_source: Record[Subject] = Record(
    "a source",
    {
        "type": Field(
            Choice(("ServiceAccount", "SPIFFE")), required=True, help="write type: ServiceAccount, or type: SPIFFE"
        ),
        "spiffe": Field(Text("a SPIFFE ID", values.spiffe_id)),
        "serviceAccount": Field(
            Record(
                "serviceAccount",
                {
                    "namespace": Field(dns_label("a namespace")),
                    "name": Field(
                        Text("the name of a service account", values.account_name),
                        required=True,
                        help=values.ACCOUNT_NAME_HELP,
                    ),
                },
            )
        ),
    },
    rules=(validation.source_union,),
    misspelt=dict.fromkeys(("identities", "serviceAccounts", "namespaces"), "type"),
    advice={
        "identities": "write one source for each: {type: SPIFFE, spiffe: ..}",
        "serviceAccounts": "write one source for each: "
        "{type: ServiceAccount, serviceAccount: {namespace: .., name: ..}}",
        "namespaces": 'write one source for each: {type: ServiceAccount, serviceAccount: {namespace: .., name: "*"}}',
    },
)
_x_rule: Record[Subject] = Record(
    "a rule",
    {"sources": Field(ListOf(_x_source, "a list of sources")), "networkAttributes": Field(_network)},
    misspelt={
        **dict.fromkeys(("authorizationSource", "source"), "sources"),
        **dict.fromkeys(("attributes", "ports"), "networkAttributes"),
    },
    advice={
        "authorizationSource": "write sources: [{type: .., ..}]",
        "ports": "write networkAttributes: {ports: [..]}",
    },
    foreign={"applicationAttributes": _NO_APPLICATION_ATTRIBUTES},
)

X_V1ALPHA1: Record[Subject] = resource(
    "XAuthorizationPolicy",
    Record(
        "spec",
        {
            "targetRefs": Field(
                ListOf(_target, "a list of target references", validation.pod_stands_alone),
                required=True,
                missing=codes.NO_TARGET,
                help=validation.NO_TARGET_HELP,
            ),
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
            ),
            "rules": Field(ListOf(_x_rule, "a list of rules")),
        },
        rules=(validation.target_fits_level,),
        misspelt={**_spec_spellings, "tcpRules": "rules"},
        advice=_spec_advice,
    ),
)


# Ours: cluster-wide policies in two tiers

CLUSTER_POLICY: Record[Subject] = resource(
    "ClusterAuthorizationPolicy",
    Record(
        "spec",
        {
            "tier": Field(Choice(("Admin", "Baseline")), required=True, help="write tier: Admin, or tier: Baseline"),
            "priority": Field(
                Whole(0, 1000, what="a priority"), required=True, help="write priority: 0 to 1000; lower goes first"
            ),
            "subject": Field(
                Record("subject", {"namespaceSelector": Field(_selector), "podSelector": Field(_selector)})
            ),
            "action": Field(
                Choice(("ALLOW", "DENY", "PASS"), codes.ACTION), required=True, help="write action: ALLOW, DENY or PASS"
            ),
            "enforcementLevel": Field(_level),
            "rules": Field(_rules(Text("a service account", values.service_account_anywhere))),
        },
        rules=(validation.deny_has_rules("rules"), validation.no_application_attributes_at_network),
        foreign=dict.fromkeys(
            ("targetRefs", "targetRef"), (UNKNOWN_FIELD, "a cluster policy says what it applies to in `subject`")
        ),
    ),
    cluster_scoped=True,
)
