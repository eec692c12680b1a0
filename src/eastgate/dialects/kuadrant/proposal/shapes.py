"""AuthPolicy, field by field."""

from __future__ import annotations

import re
from dataclasses import replace

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.regexes import regex
from eastgate.cluster import GATEWAY_GROUP
from eastgate.cluster.names import dns_label_problem
from eastgate.cluster.resources import dns_subdomain, resource
from eastgate.dialects.kuadrant.proposal import codes
from eastgate.dialects.kuadrant.schemes import LONE_SCHEME, SCHEME
from eastgate.dialects.kuadrant.schemes.validation import host
from eastgate.ir.paths import control_character, path_problem
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import (
    Cel,
    Check,
    Constraint,
    Field,
    ListOf,
    Record,
    Text,
    constraint,
    not_empty,
    quoted,
)
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.reading.manifests.shapes.shape import NOT_COMPARABLE, path_with_wildcard, whole
from eastgate.settings import Settings

# Checks of an AuthPolicy beyond the types of its fields, as in the proposal. Each function is one check.
#
# Checks that need the target are in `words.py`.


Checking = Check[Settings]
_KINDS = ("HTTPRoute", "Gateway")


@constraint(
    Cel(f"self.group == '{GATEWAY_GROUP}'", f"the only supported group is {GATEWAY_GROUP}"),
    Cel(f"self.kind in {list(_KINDS)}", "the only supported kinds are HTTPRoute and Gateway"),
)
def target(ref: Node, to: Checking) -> None:
    """Check the group and the kind of the target."""
    group, kind = ref["group"], ref["kind"]
    if group.text != GATEWAY_GROUP:
        message = f"invalid targetRef.Group {quoted(group.text)}. The only supported group is {GATEWAY_GROUP}"
        to.report(codes.TARGET_GROUP, message, group, help=f"write group: {GATEWAY_GROUP}")
    if kind.text not in _KINDS:
        near = did_you_mean(kind.text, _KINDS)
        message = f"invalid targetRef.Kind {quoted(kind.text)}. The only supported kinds are HTTPRoute and Gateway"
        way_out = f"did you mean `{near}`?" if near else "write kind: HTTPRoute, or kind: Gateway"
        to.report(codes.TARGET_KIND, message, kind, help=way_out)


@constraint(
    Cel(
        "!('namespace' in dyn(self.spec.targetRef)) || "
        "dyn(self.spec.targetRef)['namespace'] == dyn(self.metadata)['namespace']",
        "only local objects can be referred to: the target is in the namespace of the policy",
    )
)
def own_namespace(document: Node, to: Checking) -> None:
    """Require a target in the policy's own namespace."""
    target_ref = document["spec"].get("targetRef")
    of_target = target_ref.get("namespace") if target_ref is not None else None
    own = document["metadata"].get("namespace")
    home = own.value if own is not None else to.context.namespace
    if not isinstance(home, str) or dns_label_problem(home) is not None:
        return  # the policy's namespace is invalid, which is reported
    if of_target is not None and isinstance(of_target.value, str) and of_target.text != home:
        message = f"only local objects can be referred to: the policy is in {home}, and not in {quoted(of_target.text)}"
        to.report(codes.OTHER_NAMESPACE, message, of_target, help="remove it, or move the policy to its target")


def _not_empty(field: str) -> Constraint:
    """Reject an empty list."""
    return not_empty(codes.EMPTY_LIST, f"`{field}` is empty", f"leave `{field}` out to select any, or name some")


_METHOD = regex(r"[A-Z0-9!#$%&'+.^_`|~-]+")


@constraint(pattern=whole(rf"\*|{_METHOD.pattern}"))
def method(node: Node, to: Checking) -> None:
    """Require a method in upper case, as in requests."""
    text = node.text
    if text != "*" and not _METHOD.fullmatch(text):
        way_out = f"write {text.upper()}" if _METHOD.fullmatch(text.upper()) else "write a method such as GET, or *"
        to.report(codes.METHOD, f"{quoted(text)} is not a method", node, help=way_out)


@constraint(pattern=path_with_wildcard(spaces=False), not_={"pattern": NOT_COMPARABLE})
def path(node: Node, to: Checking) -> None:
    """Require a path in its canonical form. In another form it would select no request."""
    problem = _path_problem(node.text)
    if problem is not None:
        reason, way_out = problem
        to.report(codes.PATH, f"{quoted(node.text)} is not a path: {reason}", node, help=way_out)


def _path_problem(text: str) -> tuple[str, str] | None:
    middle = text[1:] if text.startswith("*") else text.removesuffix("*")
    if not text:
        return "it is empty", "write /, or a path such as /admin"
    if "*" in middle:
        return "`*` may stand once, at its end or at its beginning", "write a path such as /admin/* or */edit"
    if not text.startswith(("/", "*")):
        return "it does not begin with /", f"write /{text}"
    if re.search(r"\s", text) and control_character(text) is None:
        return "it contains a space", "remove it, or write %20"
    return path_problem(text, wildcard=True)


@constraint(
    Cel(
        "!has(self.authSchemes) || !has(self.authScheme)",
        "a policy has one of `authSchemes` and `authScheme`, not both",
    )
)
def one_word_for_schemes(spec: Node, to: Checking) -> None:
    """Reject a single scheme beside a list of schemes."""
    if "authSchemes" in spec and "authScheme" in spec:
        message = "a policy has one of `authSchemes` and `authScheme`, not both"
        to.report(codes.TWO_LISTS, message, spec.key_span("authScheme"), help="write it into `authSchemes`")


def some_scheme(spec: Node, to: Checking) -> None:
    """Report a policy without a scheme, which denies all selected requests."""
    schemes = spec.get("authSchemes")
    if "authScheme" not in spec and (schemes is None or not list(schemes)):
        what = "that the rules select" if spec.get("rules") else "to the target"
        message = f"without an auth scheme every request {what} is denied"
        to.report(codes.NO_SCHEME, message, schemes or spec, help="write authSchemes: [{hosts: [..], identity: [..]}]")


@constraint(
    Cel(
        "self.all(scheme, scheme.hosts.all(host, self.exists_one(other, host in other.hosts)))",
        "a host has one auth scheme",
    )
)
def one_scheme_for_a_host(schemes: Node, to: Checking) -> None:
    """Reject two schemes for one host, because it would be open which of them decides."""
    seen: dict[str, int] = {}
    for index, scheme in enumerate(schemes):
        for node in scheme.get("hosts") or ():
            if not isinstance(node.value, str):
                continue
            first = seen.setdefault(node.value, index)
            if first != index:
                message = f"{quoted(node.value)} has an auth scheme already, scheme {first + 1}"
                to.report(codes.SAME_HOST, message, node, help="write one scheme for each host")


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
    rules=(target,),
    foreign={"sectionName": (UNKNOWN_FIELD, "remove it: a policy targets all of a route or of a Gateway")},
)
_rule: Record[Settings] = Record(
    "a rule",
    {
        "hosts": Field(
            ListOf(Text("a host", host), "a list of hosts", _not_empty("hosts")),
            about="Hosts of requests, ANY of them: a DNS name, `*.` and a DNS name, or `*`. Without it, any host.",
        ),
        "methods": Field(
            ListOf(Text("a method", method), "a list of methods", _not_empty("methods")),
            about="Methods of requests in capitals, ANY of them; `*` is any. Without it, any method.",
        ),
        "paths": Field(
            ListOf(Text("a path", path), "a list of paths", _not_empty("paths")),
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
                about="The HTTPRoute or the Gateway whose requests the policy governs.",
            ),
            "rules": Field(
                ListOf(_rule, "a list of rules"),
                about="The requests that must be authorized: those that ANY of the rules selects. Without it, all.",
            ),
            "authSchemes": Field(
                ListOf(SCHEME, "a list of auth schemes", one_scheme_for_a_host, served=32),
                about="Authentication and authorization of callers: one scheme for each host of requests.",
            ),
            "authScheme": Field(
                LONE_SCHEME,
                about="The one scheme of a policy, instead of `authSchemes`. Without hosts it is for all hosts.",
            ),
        },
        rules=(some_scheme, one_word_for_schemes),
        misspelt={"targetRefs": "targetRef", "rule": "rules"},
        advice={
            "hosts": "write the hosts in the rules: rules: [{hosts: [..]}]",
            "when": "write conditions in an auth scheme: authSchemes: [{when: [..]}]",
        },
    ),
    about="Requests to a route or to a Gateway that must pass an auth scheme.",
)
AUTH_POLICY: Record[Settings] = replace(_RESOURCE, rules=(own_namespace,))
