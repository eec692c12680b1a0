"""GEP-3779 as it stands upstream: the X kind, field by field."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import dns_label, resource
from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.shapes_common import (
    ANY_OF_THEM,
    NETWORK,
    NO_APPLICATION_ATTRIBUTES,
    SERVED,
    SPEC_ADVICE,
    SPEC_SPELLINGS,
    TARGETS,
    target_refs,
)
from eastgate.dialects.sources import source_fields
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Text
from eastgate.settings import Settings

_x_account: Record[Settings] = Record(
    "serviceAccount",
    {
        "namespace": Field(
            dns_label("a namespace"), about="The namespace of the account. Left out it is the policy's own."
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
            ListOf(_x_source, "a list of sources", served=SERVED),
            about="Who is asking: any of the sources. Left out it is anybody; [] matches nobody.",
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
                about="What happens to a request that one of the rules matches. What nothing allows is denied.",
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
            "rules": Field(ListOf(_x_rule, "a list of rules", served=SERVED), about=ANY_OF_THEM),
        },
        rules=(validation.target_fits_level,),
        misspelt={**SPEC_SPELLINGS, "tcpRules": "rules"},
        advice=SPEC_ADVICE,
    ),
    about="Who may reach some workloads of a namespace: GEP-3779 as it stands upstream.",
)
