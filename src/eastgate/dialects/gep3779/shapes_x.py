"""GEP-3779 as it stands upstream: the X kind, field by field."""

from __future__ import annotations

from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.shapes_common import XX
from eastgate.dialects.gep3779.validation import Subject
from eastgate.schema import Choice, Field, ListOf, Record, Text
from eastgate.schema.codes import UNKNOWN_FIELD
from eastgate.schema.kubernetes import dns_label, resource

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
    {"sources": Field(ListOf(_x_source, "a list of sources")), "networkAttributes": Field(NETWORK)},
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
                ListOf(TARGET, "a list of target references", validation.pod_stands_alone),
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
        misspelt={**SPEC_SPELLINGS, "tcpRules": "rules"},
        advice=SPEC_ADVICE,
    ),
)
