"""The HTTPRoute of policy.linkerd.io, field by field, as its CRD has it."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.read_routes import METHODS, WEIGHT
from eastgate.cluster.resources import dns_label, dns_subdomain, resource
from eastgate.dialects.linkerd import route_validation, validation
from eastgate.reading.manifests.shapes import Anything, Choice, Field, ListOf, Record, Text, Whole
from eastgate.reading.manifests.shapes.codes import NOT_A_CHOICE, OUT_OF_RANGE
from eastgate.settings import Settings

Shape = Record[Settings]

_port = Whole(1, 65535, what="a port")
_name: Text[Settings] = dns_subdomain("a name")
_header_name: Text[Settings] = Text("the name of a header", route_validation.check_header_name)


# Matches


def _value_match(what: str, name: Text[Settings]) -> Shape:
    return Record(
        what,
        {
            "name": Field(name, required=True, help="write name: .."),
            "type": Field(Choice(("Exact", "RegularExpression"))),
            "value": Field(Text("a value"), required=True, help="write value: .."),
        },
        rules=(route_validation.check_pattern,),
    )


_path: Shape = Record(
    "path",
    {"type": Field(Choice(("Exact", "PathPrefix", "RegularExpression"))), "value": Field(Text("a path"))},
    rules=(route_validation.check_path,),
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
    rules=(route_validation.check_redirect_path,),
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
                tuple(route_validation.FILTERS),
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
    rules=(route_validation.check_filter,),
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
    rules=(route_validation.check_timeouts,),
)
_rule: Shape = Record(
    "a rule",
    {
        "matches": Field(ListOf(_match, "a list of matches", route_validation.at_most(8, "matches"))),
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
    rules=(route_validation.check_parent,),
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
                        Text("a hostname", route_validation.check_hostname),
                        "a list of hostnames",
                        route_validation.at_most(16, "hostnames"),
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
    rules=(route_validation.check_own_namespace, validation.check_no_mode),
)
