"""001, the Provisional draft: v1alpha1, field by field."""

from __future__ import annotations

from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.shapes_common import XX
from eastgate.dialects.gep3779.validation import Subject
from eastgate.schema import Choice, Field, ListOf, Record, Text
from eastgate.schema.codes import UNKNOWN_FIELD
from eastgate.schema.kubernetes import dns_label, resource

# 001: the Provisional draft

_NO_APPLICATION_ATTRIBUTES = (
    UNKNOWN_FIELD,
    "remove it, or write AuthorizationPolicy v1alpha2 with enforcementLevel: APPLICATION",
)
_old_source: Record[Subject] = Record(
    "a source",
    {
        "identities": Field(IDENTITIES),
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
                Record("attributes", {"ports": Field(PORTS)}, misspelt={"port": "ports"}),
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
                "action": Field(ALLOW_OR_DENY, required=True, help="write action: ALLOW, or action: DENY"),
                "tcpRules": Field(ListOf(_old_rule, "a list of rules")),
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
    )


V1ALPHA1 = _v1alpha1(TARGETS)
V1ALPHA1_ONE_TARGET = _v1alpha1(TARGET)  # the Go type has one object; files may give either
