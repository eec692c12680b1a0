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
    MAX_SERVED_ENTRIES,
    NETWORK,
    SELECTOR,
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
                about=f"Service accounts of the target's trust domain: {forms}. [] matches no caller.",
            ),
        },
        misspelt={"serviceAccount": "serviceAccounts", "identity": "identities"},
        advice={"matchExpressions": "list the callers: the draft has no other expressions yet"},
        foreign={"namespaces": (UNKNOWN_FIELD, "write serviceAccounts: [<namespace>/*]")},
    )


_application: Record[Settings] = Record(
    "applicationAttributes",
    {
        "paths": Field(
            ListOf(Text("a path", values.path), "a list of paths"),
            about="Paths, of which one must match: exact, or with one * at the end or the beginning. They are "
            "compared without query, after normalization. Without it any path matches; [] matches none.",
        ),
        "methods": Field(
            ListOf(Text("a method", values.method), "a list of methods"),
            about="HTTP methods, of which one must match, case-sensitive. Without it any method matches; [] matches "
            "none.",
        ),
    },
)


def _rules(service_account: Text[Settings], forms: str) -> Field[Settings]:
    rule: Record[Settings] = Record(
        "a rule",
        {
            "authorizationSource": Field(
                _source(service_account, forms),
                about="The callers: any of the identities or service accounts. Without it any caller matches, also an "
                "anonymous one; {} matches no caller.",
            ),
            "networkAttributes": NETWORK,
            "applicationAttributes": Field(
                _application,
                about="Conditions on the request; only at enforcementLevel APPLICATION. Without it any request "
                "matches.",
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
    return Field(ListOf(rule, "a list of rules", served=MAX_SERVED_ENTRIES), about=ANY_OF_THEM)


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
    about="The callers that may reach some workloads of a namespace: GEP-3779, the Implementable draft.",
)


# Eastgate's cluster-wide policies in two tiers

_subject: Record[Settings] = Record(
    "subject",
    {
        "namespaceSelector": Field(
            SELECTOR, about="The labels of the namespaces. Without it every namespace is selected."
        ),
        "podSelector": Field(SELECTOR, about="The labels of the pods. Without it every pod is selected."),
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
                about="The order within the tier, the lowest first. At equal priority DENY precedes PASS, and PASS "
                "precedes ALLOW.",
            ),
            "subject": Field(
                _subject,
                about="The workloads of the policy: both selectors must match. Without it the policy applies to all "
                "workloads.",
            ),
            "action": Field(
                Choice(("ALLOW", "DENY", "PASS"), codes.ACTION),
                required=True,
                help="write action: ALLOW, DENY or PASS",
                about="The effect on a request that one of the rules matches. PASS leaves the decision to the policies "
                "after this tier.",
            ),
            "enforcementLevel": LEVEL,
            "rules": _rules(
                Text("a service account", values.service_account_anywhere), "<namespace>/<name> or <namespace>/*"
            ),
        },
        rules=(validation.deny_has_rules("rules"), validation.no_application_attributes_at_network),
        foreign=dict.fromkeys(
            ("targetRefs", "targetRef"), (UNKNOWN_FIELD, "a cluster policy selects its workloads in `subject`")
        ),
    ),
    cluster_scoped=True,
    about="The callers that may reach workloads anywhere in the cluster, before or after the policies of their "
    "namespaces.",
)
