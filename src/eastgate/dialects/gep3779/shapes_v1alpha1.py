"""001, the Provisional draft: v1alpha1, field by field."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import dns_label, resource
from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.shapes_common import (
    ALLOW_OR_DENY,
    ANY_OF_THEM,
    IDENTITIES,
    NO_APPLICATION_ATTRIBUTES,
    PORTS,
    SERVED,
    SPEC_ADVICE,
    SPEC_SPELLINGS,
    TARGET,
    TARGETS,
    target_refs,
)
from eastgate.reading.manifests.shapes import Field, ListOf, Record, Text
from eastgate.settings import Settings

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
    advice={"spiffe": "write identities: [..]", "type": "remove it: the one list that is set says what the source is"},
)
_old_rule: Record[Settings] = Record(
    "a rule",
    {
        "sources": Field(
            ListOf(_old_source, "a list of sources", validation.not_empty("sources"), served=SERVED),
            about="Who is asking: any of the sources. Left out it is anybody.",
        ),
        "attributes": Field(
            ListOf(
                Record("attributes", {"ports": PORTS}, misspelt={"port": "ports"}),
                "a list of attributes",
                validation.not_empty("attributes"),
            ),
            about="What must be true of the connection: any of the entries. Left out it is any connection.",
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
                "tcpRules": Field(ListOf(_old_rule, "a list of rules", served=SERVED), about=ANY_OF_THEM),
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
        about="Who may reach some workloads of a namespace: GEP-3779, the Provisional draft.",
    )


V1ALPHA1 = _v1alpha1(TARGETS)
V1ALPHA1_ONE_TARGET = _v1alpha1(TARGET)  # the Go type has one object; files may give either
