"""AuthPolicy, field by field."""

from __future__ import annotations

from eastgate.dialects.kuadrant import validation
from eastgate.dialects.kuadrant.schemes import LONE_SCHEME, SCHEME
from eastgate.schema import Field, ListOf, Record, Text
from eastgate.schema.codes import UNKNOWN_FIELD
from eastgate.schema.kubernetes import dns_subdomain, resource
from eastgate.settings import Settings

__all__ = ["AUTH_POLICY"]

_TARGET_HELP = "write targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: ..}"
_target: Record[Settings] = Record(
    "a target reference",
    {
        "group": Field(Text("a group"), required=True, help="write group: gateway.networking.k8s.io"),
        "kind": Field(Text("HTTPRoute or Gateway"), required=True, help="write kind: HTTPRoute, or kind: Gateway"),
        "name": Field(dns_subdomain("a name"), required=True, help="write name: <the target's name>"),
        "namespace": Field(Text("a namespace")),
    },
    rules=(validation.target,),
    foreign={"sectionName": (UNKNOWN_FIELD, "remove it: a policy targets all of a route or of a Gateway")},
)
_rule: Record[Settings] = Record(
    "a rule",
    {
        "hosts": Field(ListOf(Text("a host", validation.host), "a list of hosts", validation.not_empty("hosts"))),
        "methods": Field(
            ListOf(Text("a method", validation.method), "a list of methods", validation.not_empty("methods"))
        ),
        "paths": Field(ListOf(Text("a path", validation.path), "a list of paths", validation.not_empty("paths"))),
    },
    misspelt={"host": "hosts", "hostnames": "hosts", "method": "methods", "path": "paths"},
    advice=dict.fromkeys(("to", "operation"), "write `hosts`, `methods` and `paths` in the rule itself"),
)
AUTH_POLICY: Record[Settings] = resource(
    "AuthPolicy",
    Record(
        "spec",
        {
            "targetRef": Field(_target, required=True, help=_TARGET_HELP),
            "rules": Field(ListOf(_rule, "a list of rules")),
            "authSchemes": Field(ListOf(SCHEME, "a list of auth schemes", validation.one_scheme_for_a_host)),
            "authScheme": Field(LONE_SCHEME),
        },
        rules=(validation.some_scheme,),
        misspelt={"targetRefs": "targetRef", "rule": "rules"},
        advice={
            "hosts": "write the hosts in the rules: rules: [{hosts: [..]}]",
            "when": "write conditions in an auth scheme: authSchemes: [{when: [..]}]",
        },
    ),
)
