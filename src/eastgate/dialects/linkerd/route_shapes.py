"""The HTTPRoute of policy.linkerd.io, field by field as in its CRD."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from eastgate.basics.regexes import regex
from eastgate.cluster.names import dns_label_problem
from eastgate.cluster.patterns import pattern_problem
from eastgate.cluster.read_routes import METHODS, WEIGHT
from eastgate.cluster.resources import dns_label, dns_subdomain, resource
from eastgate.dialects.linkerd import codes, validation
from eastgate.dialects.linkerd.model import GROUP, kind_if_readable, namespace_of
from eastgate.dialects.linkerd.values import Checking, milliseconds
from eastgate.ir.paths import control_character, path_problem
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Anything, Choice, Field, ListOf, Record, Text, Whole, quoted
from eastgate.reading.manifests.shapes.codes import MISSING_FIELD, NOT_A_CHOICE, NULL_VALUE, OUT_OF_RANGE, WRONG_TYPE
from eastgate.settings import Settings

# Checks of an HTTPRoute beyond the types of fields: those of Linkerd's admission webhook and of its CRD.


# The types of filters, and the field in which each is described.
FILTERS = {
    "RequestHeaderModifier": "requestHeaderModifier",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "RequestRedirect": "requestRedirect",
}


# Parents


def check_parent(ref: Node, to: Checking) -> None:
    """Report a parent that Linkerd rejects, or that makes Linkerd ignore the route."""
    kind = kind_if_readable(ref) or ("", "Gateway")
    if kind == (GROUP, "EgressNetwork") and "port" not in ref:
        message = "cannot target an EgressNetwork without specifying a port"
        to.report(codes.ROUTE_PARENT, message, ref["kind"], help="write port: <number>")
    elif kind[1].lower() == "server" and kind[0] != GROUP:
        group = ref.get("group") or ref["kind"]
        message = "Linkerd ignores this parent: a Server is of the group policy.linkerd.io"
        to.report(codes.DROPPED_ROUTE, message, group, help="write group: policy.linkerd.io")
    elif _is_server(ref):
        for field in ("port", "sectionName"):
            if field in ref:
                message = f"Linkerd ignores a route whose Server parent has `{field}`"
                to.report(codes.DROPPED_ROUTE, message, ref.key_span(field), help="remove it: a Server is one port")


def check_own_namespace(document: Node, to: Checking) -> None:
    """Report a Server in another namespace than the route."""
    own = namespace_of(document, to.context.namespace)
    for ref in document["spec"].get("parentRefs") or ():
        namespace = ref.get("namespace")
        if own is None or namespace is None or not isinstance(namespace.value, str) or not _is_server(ref):
            continue
        if namespace.value != own and dns_label_problem(namespace.value) is None:
            message = f"Linkerd ignores a route whose Server is in another namespace: {namespace.value}"
            to.report(
                codes.DROPPED_ROUTE, message, namespace, help=f"remove it: the Server must be in {own}, as this is"
            )


def _is_server(ref: Node) -> bool:
    return kind_if_readable(ref) == (GROUP, "Server")


_HOSTNAME = regex(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def check_hostname(node: Node, to: Checking) -> None:
    """Report a text that is neither a hostname nor `*.` and a hostname."""
    text = node.text
    if _HOSTNAME.fullmatch(text):
        return
    near = re.sub(r"^[a-z]+://|[:/].*$", "", text.lower()).rstrip(".")
    way_out = f"write {near}" if _HOSTNAME.fullmatch(near) else "write a name such as www.example.com or *.example.com"
    if text == "*":
        way_out = "leave `hostnames` out: without it any host is meant"
    to.report(codes.ROUTE_HOST, f"{quoted(text)} is not a hostname", node, help=way_out)


# Matches


def check_path(match: Node, to: Checking) -> None:
    """Report an invalid regular expression, or a path that is not absolute or that no request can have."""
    value, kind = match.get("value"), match.get("type")
    if value is not None and (control := control_character(value.text)) is not None:
        message = f"{quoted(value.text)} has a control character ({control})"
        to.report(codes.ROUTE_PATH, message, value, help="remove it")
    elif kind is not None and kind.text == "RegularExpression":
        check_pattern(match, to)
    elif value is not None and (problem := _path_problem(value.text)) is not None:
        message, way_out = problem
        to.report(codes.ROUTE_PATH, message, value, help=way_out)


def _path_problem(text: str) -> tuple[str, str] | None:
    if not text.startswith("/"):
        requirement = "HttpPathMatch paths must be absolute (begin with `/`)"
        return f"{requirement}; {quoted(text)} is not an absolute path", f"write /{text}"
    problem = path_problem(text, letters=True)
    return (f"{quoted(text)} is not a path: {problem[0]}", problem[1]) if problem is not None else None


def check_pattern(match: Node, to: Checking) -> None:
    """Report an invalid regular expression."""
    kind, value = match.get("type"), match.get("value")
    if kind is None or value is None or kind.text != "RegularExpression":
        return
    problem = pattern_problem(value.text)
    if problem is not None:
        to.report(
            codes.ROUTE_PATTERN,
            f"{quoted(value.text)} is not a regular expression: {problem}",
            value,
            help="write it in the syntax of RE2, which has no look-around and no back-references",
        )


_HEADER = regex(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


def is_header_name(text: str) -> bool:
    """Return whether HTTP accepts a text as the name of a header."""
    return _HEADER.fullmatch(text) is not None


def check_header_name(node: Node, to: Checking) -> None:
    if not is_header_name(node.text):
        near = node.text.strip().rstrip(":").strip()
        way_out = f"write {near}" if is_header_name(near) else "write a name such as x-team"
        to.report(codes.ROUTE_HEADER, f"{quoted(node.text)} is not the name of a header", node, help=way_out)


# Filters and timeouts


def check_filter(node: Node, to: Checking) -> None:
    """Report a filter without the field of its type."""
    kind = node["type"]
    field = FILTERS[kind.text]
    if field not in node:
        message = f"a filter of type {kind.text} needs `{field}`"
        to.report(MISSING_FIELD, message, kind, help=f"write {field}: {{..}}")


def check_redirect_path(node: Node, to: Checking) -> None:
    """Report a redirect without exactly one of full path and prefix, or with a path that is not absolute."""
    fields = [name for name in ("replaceFullPath", "replacePrefixMatch") if name in node]
    if len(fields) != 1:
        message = "a RequestRedirect filter must contain either replaceFullPath or replacePrefixMatch"
        at = node.key_span(fields[1]) if fields else node.span
        to.report(codes.ROUTE_REDIRECT, message, at, help="write one of the two")
        return
    value = node[fields[0]]
    if not value.text.startswith("/"):
        requirement = "RequestRedirect filters may only contain absolute paths (starting with '/')"
        message = f"{requirement}; {quoted(value.text)} is not an absolute path"
        to.report(codes.ROUTE_REDIRECT, message, value, help=f"write /{value.text}")


def check_timeouts(node: Node, to: Checking) -> None:
    """Report invalid durations, and an inner timeout that is longer than the outer."""
    durations = {name: _duration(name, timeout, to) for name in _TIMEOUTS if (timeout := node.get(name)) is not None}
    outer, inner = durations.get("request"), durations.get("backendRequest")
    if outer is not None and inner is not None and inner > outer:
        template = "backendRequest timeout ({}) must not be greater than request timeout ({})"
        message = template.format(node["backendRequest"].text, node["request"].text)
        way_out = f"write {node['request'].text} or less, or a longer request timeout"
        to.report(codes.ROUTE_TIMEOUT, message, node["backendRequest"], help=way_out)


_TIMEOUTS = ("request", "backendRequest")
_DURATIONS = "write a duration such as 10s, 500ms or 1m30s"


def _duration(name: str, node: Node, to: Checking) -> float | None:
    if node.value is None:
        to.report(NULL_VALUE, f"`{name}` has no value", node, help=_DURATIONS)
        return None
    if not isinstance(node.value, str):
        number = isinstance(node.value, int) and not isinstance(node.value, bool) and node.value >= 0
        way_out = f"write {node.value}s, with its unit" if number else _DURATIONS
        to.report(WRONG_TYPE, f"expected a duration, found {node.kind}", node, help=way_out)
        return None
    text, positive = node.text, node.text.removeprefix("-")
    duration = milliseconds(text)
    if duration is None:
        negative = positive != text and milliseconds(positive) is not None
        message = f"{name} timeout must not be negative" if negative else f"{quoted(text)} is not a duration"
        with_unit = f"write {text}s, with its unit" if text.isascii() and text.isdigit() else _DURATIONS
        to.report(codes.ROUTE_TIMEOUT, message, node, help=f"write {positive}" if negative else with_unit)
    return duration


# Lists


def at_most(limit: int, what: str) -> Callable[[Node, Checking], None]:
    """Return a check of the limit that the CRD sets on a list."""

    def rule(entries: Node, to: Checking) -> None:
        nodes = list(entries)
        if len(nodes) > limit:
            message = f"{len(nodes)} {what}, and at most {limit} are allowed"
            way_out = "write another rule for the rest" if what == "matches" else "write another route for the rest"
            to.report(codes.ROUTE_TOO_MANY, message, nodes[limit], help=way_out)

    return rule


Shape = Record[Settings]

_port = Whole(1, 65535, what="a port")
_name: Text[Settings] = dns_subdomain("a name")
_header_name: Text[Settings] = Text("the name of a header", check_header_name)


# Matches


def _value_match(what: str, name: Text[Settings]) -> Shape:
    return Record(
        what,
        {
            "name": Field(name, required=True, help="write name: .."),
            "type": Field(Choice(("Exact", "RegularExpression"))),
            "value": Field(Text("a value"), required=True, help="write value: .."),
        },
        rules=(check_pattern,),
    )


_path: Shape = Record(
    "path",
    {"type": Field(Choice(("Exact", "PathPrefix", "RegularExpression"))), "value": Field(Text("a path"))},
    rules=(check_path,),
    misspelt={"prefix": "value", "exact": "value", "pathPrefix": "value"},
    advice=dict.fromkeys(("prefix", "exact", "pathPrefix"), "write type: PathPrefix or Exact, and value: /.."),
)
_match: Shape = Record(
    "a match",
    {
        "path": Field(_path),
        "headers": Field(ListOf(_value_match("a match of a header", _header_name), "a list of headers")),
        "queryParams": Field(
            ListOf(_value_match("a match of a query parameter", Text("a name")), "a list of query parameters")
        ),
        "method": Field(Choice(METHODS)),
    },
    misspelt={"query": "queryParams", "methods": "method", "paths": "path"},
)


# Filters

_header: Shape = Record(
    "a header",
    {
        "name": Field(_header_name, required=True, help="write name: .."),
        "value": Field(Text("a value"), required=True, help="write value: .."),
    },
)
_headers: Field[Settings] = Field(ListOf(_header, "a list of headers"))
_remove: Field[Settings] = Field(ListOf(_header_name, "a list of names of headers"))
_redirect_path: Shape = Record(
    "path",
    {
        "type": Field(Choice(("ReplaceFullPath", "ReplacePrefixMatch"))),
        "replaceFullPath": Field(Text("a path")),
        "replacePrefixMatch": Field(Text("a path")),
    },
    rules=(check_redirect_path,),
)
_redirect: Shape = Record(
    "requestRedirect",
    {
        "scheme": Field(Choice(("http", "https"))),
        "hostname": Field(Text("a hostname")),
        "path": Field(_redirect_path),
        "port": Field(_port),
        "statusCode": Field(Whole(301, 308, what="a status")),
    },
)
_NO_SUCH_FILTER = (NOT_A_CHOICE, "remove it: this HTTPRoute has no such filter")
_filter: Shape = Record(
    "a filter",
    {
        "type": Field(
            Choice(
                tuple(FILTERS),
                reasons=dict.fromkeys(("URLREWRITE", "REQUESTMIRROR", "EXTENSIONREF"), _NO_SUCH_FILTER),
            ),
            required=True,
            help="write type: RequestHeaderModifier, ResponseHeaderModifier or RequestRedirect",
        ),
        "requestHeaderModifier": Field(
            Record("requestHeaderModifier", {"set": _headers, "add": _headers, "remove": _remove})
        ),
        "responseHeaderModifier": Field(
            Record("responseHeaderModifier", {"set": _headers, "add": _headers, "remove": _remove})
        ),
        "requestRedirect": Field(_redirect),
    },
    rules=(check_filter,),
)


# Rules

_backend: Shape = Record(
    "a backend reference",
    {
        "group": Field(Text("a group")),
        "kind": Field(Text("a kind")),
        "name": Field(_name, required=True, help="write name: <the Service>"),
        "namespace": Field(dns_label("a namespace")),
        "port": Field(_port),
        "weight": Field(replace(WEIGHT, code=OUT_OF_RANGE, what="a weight")),
        "filters": Field(Anything()),
    },
)
_timeouts: Shape = Record(
    "timeouts",
    {"request": Field(Anything()), "backendRequest": Field(Anything())},
    rules=(check_timeouts,),
)
_rule: Shape = Record(
    "a rule",
    {
        "matches": Field(ListOf(_match, "a list of matches", at_most(8, "matches"))),
        "filters": Field(ListOf(_filter, "a list of filters")),
        "backendRefs": Field(ListOf(_backend, "a list of backend references")),
        "timeouts": Field(_timeouts),
        "name": Field(Text("a name")),
    },
    misspelt={"match": "matches", "filter": "filters", "timeout": "timeouts"},
)
_parent: Shape = Record(
    "a parent reference",
    {
        "group": Field(Text("a group")),
        "kind": Field(Text("a kind")),
        "namespace": Field(dns_label("a namespace")),
        "name": Field(_name, required=True, help="write name: <the Server's name>"),
        "sectionName": Field(Text("a name")),
        "port": Field(_port),
    },
    rules=(check_parent,),
)
HTTP_ROUTE: Shape = replace(
    resource(
        "HTTPRoute",
        Record(
            "spec",
            {
                "parentRefs": Field(ListOf(_parent, "a list of parent references")),
                "hostnames": Field(
                    ListOf(
                        Text("a hostname", check_hostname),
                        "a list of hostnames",
                        at_most(16, "hostnames"),
                    )
                ),
                "rules": Field(ListOf(_rule, "a list of rules")),
            },
            misspelt={
                "parentRef": "parentRefs",
                "hostname": "hostnames",
                "hosts": "hostnames",
                "targetRef": "parentRefs",
            },
            advice={"requiredAuthenticationRefs": "write an AuthorizationPolicy whose targetRef is this route"},
        ),
    ),
    rules=(check_own_namespace, validation.check_no_mode),
)
