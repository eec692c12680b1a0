"""The four resources, field by field. The Go types of the drafts are normative; READINGS decides the open questions.

This file has the Implementable draft (000) and Eastgate's cluster-wide policies, whose rules are the same. The other
two forms are in `shapes_drafts.py`.
"""

from __future__ import annotations

from eastgate.cluster.resources import resource
from eastgate.dialects.gep3779 import codes, validation, values
from eastgate.dialects.gep3779.shapes_drafts import (
    ALLOW_OR_DENY,
    ANY_OF_THEM,
    IDENTITIES,
    LEVEL,
    NETWORK,
    SELECTOR,
    SERVED,
    SPEC_ADVICE,
    SPEC_SPELLINGS,
    TARGETS,
    V1ALPHA1,
    V1ALPHA1_ONE_TARGET,
    X_V1ALPHA1,
    target_refs,
)
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Text, Whole
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

__all__ = ["CLUSTER_POLICY", "V1ALPHA1", "V1ALPHA1_ONE_TARGET", "V1ALPHA2", "X_V1ALPHA1"]

# Rules


def _source(service_account: Text[Settings], forms: str) -> Record[Settings]:
    return Record(
        "authorizationSource",
        {
            "identities": IDENTITIES,
            "serviceAccounts": Field(
                ListOf(service_account, "a list of service accounts"),
                about=f"Service accounts of the target's trust domain: {forms}. [] matches nobody.",
            ),
        },
        misspelt={"serviceAccount": "serviceAccounts", "identity": "identities"},
        advice={"matchExpressions": "list who is meant: the draft leaves richer expressions to the future"},
        foreign={"namespaces": (UNKNOWN_FIELD, "write serviceAccounts: [<namespace>/*]")},
    )


_application: Record[Settings] = Record(
    "applicationAttributes",
    {
        "paths": Field(
            ListOf(Text("a path", values.path), "a list of paths"),
            about="Paths, of which one must match: exact, or with one * at the end or the beginning. They are "
            "compared without query, after normalization. Left out it is any path; [] matches none.",
        ),
        "methods": Field(
            ListOf(Text("a method", values.method), "a list of methods"),
            about="HTTP methods, of which one must match, case-sensitive. Left out it is any method; [] matches none.",
        ),
    },
)


def _rules(service_account: Text[Settings], forms: str) -> Field[Settings]:
    rule: Record[Settings] = Record(
        "a rule",
        {
            "authorizationSource": Field(
                _source(service_account, forms),
                about="Who is asking: any of the identities or service accounts. Left out it is anybody, also "
                "somebody without an identity; {} matches nobody.",
            ),
            "networkAttributes": NETWORK,
            "applicationAttributes": Field(
                _application,
                about="What must be true of the request; only at enforcementLevel APPLICATION. Left out it is any "
                "request.",
            ),
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
    return Field(ListOf(rule, "a list of rules", served=SERVED), about=ANY_OF_THEM)


# 000: the Implementable draft

V1ALPHA2: Record[Settings] = resource(
    "AuthorizationPolicy",
    Record(
        "spec",
        {
            "targetRefs": target_refs(TARGETS),
            "action": ALLOW_OR_DENY,
            "enforcementLevel": LEVEL,
            "rules": _rules(
                Text("a service account", values.service_account),
                "<namespace>/<name>, <namespace>/*, or <name> in the policy's own namespace",
            ),
        },
        rules=(
            validation.deny_has_rules("rules"),
            validation.no_application_attributes_at_network,
            validation.target_fits_level,
        ),
        misspelt={**SPEC_SPELLINGS, "tcpRules": "rules"},
        advice=SPEC_ADVICE,
    ),
    about="Who may reach some workloads of a namespace: GEP-3779, the Implementable draft.",
)


# Eastgate's cluster-wide policies in two tiers

_subject: Record[Settings] = Record(
    "subject",
    {
        "namespaceSelector": Field(SELECTOR, about="The labels of the namespaces. Left out it is every namespace."),
        "podSelector": Field(SELECTOR, about="The labels of the pods. Left out it is every pod."),
    },
)
CLUSTER_POLICY: Record[Settings] = resource(
    "ClusterAuthorizationPolicy",
    Record(
        "spec",
        {
            "tier": Field(
                Choice(("Admin", "Baseline")),
                required=True,
                help="write tier: Admin, or tier: Baseline",
                about="Admin goes before the policies of namespaces and is final; Baseline applies to workloads that "
                "no policy of their namespace targets.",
            ),
            "priority": Field(
                Whole(0, 1000, what="a priority"),
                required=True,
                help="write priority: 0 to 1000; lower goes first",
                about="The order within the tier: lower goes first. Of equal ones DENY goes before PASS before ALLOW.",
            ),
            "subject": Field(
                _subject, about="Which workloads the policy is about: both selectors must match. Left out it is all."
            ),
            "action": Field(
                Choice(("ALLOW", "DENY", "PASS"), codes.ACTION),
                required=True,
                help="write action: ALLOW, DENY or PASS",
                about="What happens to a request that one of the rules matches; PASS leaves the decision to what "
                "comes after this tier.",
            ),
            "enforcementLevel": LEVEL,
            "rules": _rules(
                Text("a service account", values.service_account_anywhere), "<namespace>/<name> or <namespace>/*"
            ),
        },
        rules=(validation.deny_has_rules("rules"), validation.no_application_attributes_at_network),
        foreign=dict.fromkeys(
            ("targetRefs", "targetRef"), (UNKNOWN_FIELD, "a cluster policy says what it applies to in `subject`")
        ),
    ),
    cluster_scoped=True,
    about="Who may reach workloads anywhere in the cluster, before or behind the policies of their namespaces.",
)
