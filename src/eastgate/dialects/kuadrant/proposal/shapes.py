"""AuthPolicy, field by field."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import dns_subdomain, resource
from eastgate.dialects.kuadrant.proposal import validation
from eastgate.dialects.kuadrant.schemes import LONE_SCHEME, SCHEME
from eastgate.dialects.kuadrant.schemes.validation import host
from eastgate.reading.manifests.shapes import Field, ListOf, Record, Text
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

_TARGET_HELP = "write targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: ..}"
_target: Record[Settings] = Record(
    "a target reference",
    {
        "group": Field(
            Text("a group", served=253),
            required=True,
            help="write group: gateway.networking.k8s.io",
            about="The group of the target: gateway.networking.k8s.io.",
        ),
        "kind": Field(
            Text("HTTPRoute or Gateway", served=63),
            required=True,
            help="write kind: HTTPRoute, or kind: Gateway",
            about="HTTPRoute or Gateway.",
        ),
        "name": Field(
            dns_subdomain("a name"),
            required=True,
            help="write name: <the target's name>",
            about="The name of the target.",
        ),
        "namespace": Field(
            Text("a namespace", served=63),
            about="The namespace of the target, which is that of the policy, so that it need not be written.",
        ),
    },
    rules=(validation.target,),
    foreign={"sectionName": (UNKNOWN_FIELD, "remove it: a policy targets all of a route or of a Gateway")},
)
_rule: Record[Settings] = Record(
    "a rule",
    {
        "hosts": Field(
            ListOf(Text("a host", host), "a list of hosts", validation.not_empty("hosts")),
            about="Hosts of requests, ANY of them: a DNS name, `*.` and a DNS name, or `*`. Without it, any host.",
        ),
        "methods": Field(
            ListOf(Text("a method", validation.method), "a list of methods", validation.not_empty("methods")),
            about="Methods of requests in capitals, ANY of them; `*` is any. Without it, any method.",
        ),
        "paths": Field(
            ListOf(Text("a path", validation.path), "a list of paths", validation.not_empty("paths")),
            about="Paths of requests, ANY of them, perhaps with a `*` at one end. Without it, any path.",
        ),
    },
    misspelt={"host": "hosts", "hostnames": "hosts", "method": "methods", "path": "paths"},
    advice=dict.fromkeys(("to", "operation"), "write `hosts`, `methods` and `paths` in the rule itself"),
)
_RESOURCE: Record[Settings] = resource(
    "AuthPolicy",
    Record(
        "spec",
        {
            "targetRef": Field(
                _target,
                required=True,
                help=_TARGET_HELP,
                about="The HTTPRoute or the Gateway whose requests the policy is about.",
            ),
            "rules": Field(
                ListOf(_rule, "a list of rules"),
                about="The requests that must be authorized: those that ANY of the rules selects. Without it, all.",
            ),
            "authSchemes": Field(
                ListOf(SCHEME, "a list of auth schemes", validation.one_scheme_for_a_host, served=32),
                about="How callers are recognized and authorized: one scheme for each host of requests.",
            ),
            "authScheme": Field(
                LONE_SCHEME,
                about="The one scheme of a policy, in place of `authSchemes`: for all hosts where it names none.",
            ),
        },
        rules=(validation.some_scheme, validation.one_word_for_schemes),
        misspelt={"targetRefs": "targetRef", "rule": "rules"},
        advice={
            "hosts": "write the hosts in the rules: rules: [{hosts: [..]}]",
            "when": "write conditions in an auth scheme: authSchemes: [{when: [..]}]",
        },
    ),
    about="Requests to a route or to a Gateway that must pass an auth scheme.",
)
AUTH_POLICY: Record[Settings] = replace(_RESOURCE, rules=(validation.own_namespace,))
