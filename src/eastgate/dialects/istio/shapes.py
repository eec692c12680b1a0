"""The fields of AuthorizationPolicy. v1 and v1beta1 are the same. Istio's webhook defines validity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eastgate.cluster.resources import resource
from eastgate.dialects.istio import codes, validation, values
from eastgate.dialects.istio.validation import Checking
from eastgate.dialects.istio.written import negated
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, MapOf, Record, Text
from eastgate.settings import Settings

# Common shapes of Istio's policies: the choice of workloads, and the whole resource


_MAX_TARGETS = 16

_selector: Record[Settings] = Record(
    "a workload selector",
    {
        "matchLabels": Field(
            MapOf(Text("a label value"), "a mapping of labels", validation.labels_without_wildcards),
            about="Labels that a workload must have, with these values. If left out or {}, every workload.",
        )
    },
    misspelt={"labels": "matchLabels"},
    advice={"matchExpressions": "write matchLabels: Istio's selectors have nothing else"},
    otherwise="write labels in matchLabels: {..}",
)
SELECTOR: Field[Settings] = Field(
    _selector,
    about="The labels of the workloads that the policy applies to, in its own namespace; in the root namespace, in all "
    "namespaces. If left out, all workloads.",
)

_target: Record[Settings] = Record(
    "a target reference",
    {
        "group": Field(Text("a group"), about="The group of the target: gateway.networking.k8s.io for Gateways."),
        "kind": Field(
            Text("a kind"),
            required=True,
            help="write kind: Gateway, or kind: Service",
            about="Gateway, GatewayClass, Service or ServiceEntry.",
        ),
        "name": Field(
            Text("a name"), required=True, help="write name: <the name of the target>", about="The name of the target."
        ),
        "namespace": Field(
            Text("a namespace"), about="It must be left out: a policy is in the namespace of its target."
        ),
    },
    rules=(validation.target_kind,),
)
_targets: ListOf[Settings] = ListOf(
    _target, "a list of target references", validation.at_most(_MAX_TARGETS, "targets"), served=_MAX_TARGETS
)
TARGETS: dict[str, Field[Settings]] = {
    "targetRef": Field(_target, about="The old form of targetRefs, with one target."),
    "targetRefs": Field(
        _targets, about="The Gateways, or the Services and ServiceEntries behind waypoints, that the policy applies to."
    ),
}


def istio_resource(kind: str, spec: Record[Settings], about: str) -> Record[Settings]:
    """Return the shape of a policy. A missing `spec` is an empty one."""
    shape = resource(kind, spec, about=about)
    return replace(shape, fields={**shape.fields, "spec": Field(spec)}, rules=(_annotations,))


def _annotations(root: Node, to: Checking) -> None:
    if root["kind"].text == "AuthorizationPolicy":
        validation.dry_run(root, to)
    else:
        validation.no_dry_run(root, to)


_MAX_RULES = 512
_MAX_ACCOUNTS = 16


def _lists(
    what: str,
    rule: Callable[[Node, Checking], None],
    about: str,
    field: str,
    whole: Callable[[Node, Checking], None] | None = None,
) -> dict[str, Field[Settings]]:
    """Return a list of a rule, and the list of values that must not match."""
    shape: ListOf[Settings] = ListOf(Text(what, rule), f"a list: {what} in each entry", whole)
    return {
        field: Field(shape, about=f"{about} Any of them must match."),
        negated(field): Field(shape, about=f"As `{field}`, and none of them may match."),
    }


_source: Record[Settings] = Record(
    "source",
    {
        **_lists(
            "a principal",
            values.some_text,
            "Identities of callers: <trust domain>/ns/<namespace>/sa/<name>. They need mTLS.",
            "principals",
        ),
        **_lists(
            "a request principal",
            values.some_text,
            "Principals of tokens, <issuer>/<subject>. They need a RequestAuthentication.",
            "requestPrincipals",
        ),
        **_lists("a namespace", values.some_text, "Namespaces of callers. They need mTLS.", "namespaces"),
        **_lists(
            "a service account",
            values.service_account,
            "Service accounts, <namespace>/<name> or <name>, without wildcards. They need mTLS.",
            "serviceAccounts",
            validation.at_most(_MAX_ACCOUNTS, "service accounts"),
        ),
        **_lists("a trust domain", values.trust_domain, "Trust domains of callers. They need mTLS.", "trustDomains"),
        **_lists("an address", values.address, "Addresses of the direct peer, or networks.", "ipBlocks"),
        **_lists(
            "an address",
            values.address,
            "Addresses or networks of the client, from X-Forwarded-For or the PROXY protocol.",
            "remoteIpBlocks",
        ),
    },
    rules=(validation.source_has_fields,),
    misspelt={
        "principal": "principals",
        "namespace": "namespaces",
        "serviceAccount": "serviceAccounts",
        "ipBlock": "ipBlocks",
        "remoteIPBlocks": "remoteIpBlocks",
    },
)
_operation: Record[Settings] = Record(
    "operation",
    {
        **_lists("a host", values.some_text, "Hosts of requests, in any letter case.", "hosts"),
        **_lists("a port", values.port, "Ports of the workload, as strings.", "ports"),
        **_lists("a method", values.some_text, "HTTP methods, in this letter case.", "methods"),
        **_lists("a path", values.path, "Paths without their queries; {*} is one segment, {**} any number.", "paths"),
    },
    rules=(validation.operation_has_fields,),
    misspelt={"host": "hosts", "port": "ports", "method": "methods", "path": "paths"},
)
_condition: Record[Settings] = Record(
    "a condition",
    {
        "key": Field(Text("a key"), required=True, help="write key: <an attribute>", about="The attribute to compare."),
        "values": Field(ListOf(Text("a value"), "a list of values"), about="Any of them must match."),
        "notValues": Field(ListOf(Text("a value"), "a list of values"), about="None of them may match."),
    },
    rules=(values.condition,),
    misspelt={"value": "values", "notValue": "notValues"},
)
_from: Record[Settings] = Record(
    "an entry of `from`",
    {
        "source": Field(
            _source,
            required=True,
            missing=codes.EMPTY_SOURCE,
            help="write source: {..}, or leave `from` out for any source",
            about="The caller. All lists in it must match.",
        )
    },
    misspelt=dict.fromkeys(_source.fields, "source"),
    advice={name: f"write source: {{{name}: [..]}}" for name in _source.fields},
    otherwise="write source: {..}",
)
_to: Record[Settings] = Record(
    "an entry of `to`",
    {
        "operation": Field(
            _operation,
            required=True,
            missing=codes.EMPTY_OPERATION,
            help="write operation: {..}, or leave `to` out for any operation",
            about="The request. All lists in it must match.",
        )
    },
    misspelt=dict.fromkeys(_operation.fields, "operation"),
    advice={name: f"write operation: {{{name}: [..]}}" for name in _operation.fields},
    otherwise="write operation: {..}",
)
_rule: Record[Settings] = Record(
    "a rule",
    {
        "from": Field(
            ListOf(_from, "a list of sources", validation.at_most(_MAX_RULES, "sources"), served=_MAX_RULES),
            about="ANY of the sources must match. If left out, any source.",
        ),
        "to": Field(
            ListOf(_to, "a list of operations"),
            about="ANY of the operations must match. If left out, any operation.",
        ),
        "when": Field(ListOf(_condition, "a list of conditions"), about="ALL of the conditions must hold."),
    },
)
_provider: Record[Settings] = Record(
    "provider", {"name": Field(Text("a name"), about="The name of an extension provider of the MeshConfig.")}
)

AUTHORIZATION_POLICY: Record[Settings] = istio_resource(
    "AuthorizationPolicy",
    Record(
        "spec",
        {
            "selector": SELECTOR,
            **TARGETS,
            "action": Field(
                Choice(("ALLOW", "DENY", "AUDIT", "CUSTOM"), codes.ACTION),
                about="The effect on a request that one of the rules matches. The order is CUSTOM, DENY, "
                "ALLOW. If an ALLOW policy applies to a workload, requests that no ALLOW policy allows are denied.",
            ),
            "rules": Field(
                ListOf(_rule, "a list of rules", validation.at_most(_MAX_RULES, "rules"), served=_MAX_RULES),
                about="The policy matches a request if any of its rules does. An empty rule matches "
                "everything; an ALLOW policy without rules allows nothing.",
            ),
            "provider": Field(_provider, about="The provider that decides for a CUSTOM policy."),
        },
        rules=(
            validation.one_way_to_choose,
            validation.rules_where_needed,
            validation.provider_with_custom,
            validation.without_identities_in_custom,
        ),
        misspelt={"rule": "rules"},
    ),
    about="The callers and requests that may reach workloads of an Istio mesh.",
)
