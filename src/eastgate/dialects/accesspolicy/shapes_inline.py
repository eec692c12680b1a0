"""The `authorization` of v1alpha1, field by field, with its checks: HTTP attributes, MCP methods, or an expression."""

from __future__ import annotations

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.regexes import regex
from eastgate.cluster.resources import dns_label
from eastgate.dialects.accesspolicy import attributes, codes, validation, values
from eastgate.dialects.accesspolicy.cel import CEL
from eastgate.dialects.accesspolicy.validation import Checking, Demand, at_most
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import (
    Cel,
    Choice,
    Field,
    ListOf,
    Record,
    Shape,
    Text,
    Whole,
    all_of,
    constraint,
    enumerated,
    quoted,
)
from eastgate.reading.manifests.shapes import codes as schema_codes
from eastgate.settings import Settings

# An external authorizer: Gateway API's HTTPExternalAuthFilter, field by field, with its checks.


PORT = Whole(1, 65535, what="a port")


@constraint(
    Cel("(self.protocol == 'GRPC') == has(self.grpc)", "grpc must be set if and only if the protocol is GRPC"),
    Cel("(self.protocol == 'HTTP') == has(self.http)", "http must be set if and only if the protocol is HTTP"),
)
def _protocol(node: Node, to: Checking) -> None:
    """Require the settings of the protocol, and no settings of another one."""
    protocol = node["protocol"].text
    wanted, other = ("grpc", "http") if protocol == "GRPC" else ("http", "grpc")
    if other in node:
        message = f"protocol must be '{other.upper()}' when {other} is set"
        way_out = "remove one of them" if wanted in node else f"write protocol: {other.upper()}, or {wanted}: {{}}"
        to.report(codes.PROTOCOL, message, node.key_span(other), help=way_out)
    elif wanted not in node:
        message = f"{wanted} must be specified when protocol is set to '{protocol}'"
        to.report(codes.PROTOCOL, message, node["protocol"], help=f"write {wanted}: {{}}")


@constraint(
    Cel(
        "(!has(self.kind) || self.kind == 'Service') && (!has(self.group) || self.group in ['', 'core'])",
        "an external authorizer must be a Service",
    ),
    Cel("has(self.port)", "Must have port for Service reference"),
)
def _service(ref: Node, to: Checking) -> None:
    """Require a Service with its port, because no other kind can be asked."""
    kind, group = ref.get("kind"), ref.get("group")
    wrong = kind if kind is not None and kind.text != "Service" else None
    if wrong is None and group is not None and group.text not in ("", "core"):
        wrong = group
    if wrong is not None:
        message = "an external authorizer must be a Service"
        to.report(
            codes.AUTHORIZER, message, wrong, help="write the name and port of a Service; leave kind and group out"
        )
    elif "port" not in ref:
        to.report(codes.AUTHORIZER, "Must have port for Service reference", ref["name"], help="write port: ..")


_headers: ListOf[Settings] = ListOf(
    Text("the name of a header", values.header_name), "a list of headers", validation.no_duplicates
)
_backend_ref: Record[Settings] = Record(
    "backendRef",
    {
        "group": Field(Text("a group", served=253), about="The core group, ''."),
        "kind": Field(Text("a kind", served=63), about="Service, which is also the default."),
        "name": Field(
            dns_label("the name of a Service"), required=True, help="write name: ..", about="The name of the Service."
        ),
        "namespace": Field(
            dns_label("a namespace"),
            about="The namespace of the Service. The default is the policy's own; another one needs a ReferenceGrant.",
        ),
        "port": Field(PORT, help="write port: ..", about="The port of the Service."),
    },
    rules=(_service,),
)
_http: Record[Settings] = Record(
    "http",
    {
        "path": Field(
            Text("a path", values.prefix), about="The prefix that the authorizer gets before the path of each request."
        ),
        "allowedHeaders": Field(_headers, about="The request headers that the authorizer gets."),
        "allowedResponseHeaders": Field(_headers, about="Headers of its response that are added to the request."),
    },
)

EXTERNAL_AUTH: Record[Settings] = Record(
    "externalAuth",
    {
        "protocol": Field(
            Choice(("HTTP", "GRPC")),
            required=True,
            help="write protocol: HTTP, or protocol: GRPC",
            about="The protocol of the authorizer.",
        ),
        "backendRef": Field(
            _backend_ref,
            required=True,
            help="write backendRef: {name: .., port: ..}",
            about="The Service of the authorizer.",
        ),
        "grpc": Field(
            Record(
                "grpc",
                {"allowedHeaders": Field(_headers, about="The request headers that the authorizer gets.")},
            ),
            help="write grpc: {}",
            about="Settings of the protocol GRPC; {} takes the defaults.",
        ),
        "http": Field(_http, help="write http: {}", about="Settings of the protocol HTTP; {} takes the defaults."),
        "forwardBody": Field(
            Record(
                "forwardBody",
                {"maxSize": Field(Whole(0, 65535, what="a size in bytes"), about="The maximum size of the body.")},
            ),
            about="Whether the authorizer gets the body.",
        ),
    },
    rules=(_protocol,),
    misspelt={"backendRefs": "backendRef", "service": "backendRef"},
    advice={"service": "write backendRef: {name: .., port: ..}"},
)


_AT_MOST_TEN = at_most(10, "write the rest into another rule")


def _list(name: str, item: Shape[Settings], what: str, *demands: Demand) -> Field[Settings]:
    """Make the shape of a list. A missing list matches anything, so its help does not suggest to remove it."""
    return Field(
        ListOf(item, what, all_of(*demands)),
        help=f"write {name}: [..]; without it everything matches, with [] nothing",
    )


# MCP

_WITH_PARAMS = ("prompts/get", "tools/call", "resources/subscribe", "resources/unsubscribe", "resources/read")


_MCP_METHODS = (
    *("tools", "prompts", "resources"),
    *("prompts/list", "tools/list", "resources/list", "resources/templates/list"),
    *_WITH_PARAMS,
)
_BASE_PROTOCOL = regex(r"initialize|ping|(notifications|completion|logging)(/.*)?")


def _mcp_method_name(node: Node, to: Checking) -> None:
    """Require a method outside of the base protocol, or a family of methods."""
    if node.text in _MCP_METHODS:
        return
    near = did_you_mean(node.text, _MCP_METHODS)
    if _BASE_PROTOCOL.fullmatch(node.text):
        way_out = "write mcpBaseProtocolMethodsOption: MATCH_BASE_PROTOCOL_METHODS beside `methods`"
    else:
        way_out = f"did you mean `{near}`?" if near else f"write {enumerated(_MCP_METHODS, 'or')}"
    message = f"{quoted(node.text)} is not an MCP method that a rule can name"
    to.report(schema_codes.NOT_A_CHOICE, message, node, help=way_out)


def _mcp_method_params(node: Node, to: Checking) -> None:
    """Reject params of a method without a name to compare."""
    if "params" in node and node["name"].text in _MCP_METHODS and node["name"].text not in _WITH_PARAMS:
        message = "Params can only be specified for get, call, subscribe, unsubscribe, or read methods"
        way_out = f"remove params, or write name: {enumerated(_WITH_PARAMS, 'or')}"
        to.report(codes.PARAMS, message, node.key_span("params"), help=way_out)


_PARAMS = "methods: [{name: tools/call, params: [..]}]"

_mcp_method: Record[Settings] = Record(
    "an MCP method",
    {
        "name": Field(Text("an MCP method", _mcp_method_name), required=True, help="write name: tools/call"),
        "params": _list(
            "params", Text("a name", attributes.param), "a list of names", _AT_MOST_TEN, validation.no_duplicates
        ),
    },
    rules=(_mcp_method_params,),
    misspelt={"tools": "params", "names": "params"},
    otherwise="write {name: tools/call, params: [..]}",
)
_mcp: Record[Settings] = Record(
    "mcp",
    {
        "methods": Field(
            ListOf(_mcp_method, "a list of MCP methods", all_of(_AT_MOST_TEN, validation.unique_method_names)),
            help="write methods: [..]; [] matches no method; without it any method matches, or none beside "
            "MATCH_BASE_PROTOCOL_METHODS",
        ),
        "mcpBaseProtocolMethodsOption": Field(Choice(("SKIP_BASE_PROTOCOL_METHODS", "MATCH_BASE_PROTOCOL_METHODS"))),
    },
    misspelt={"tools": "methods", "baseProtocolMethodsOption": "mcpBaseProtocolMethodsOption"},
    advice={"tools": f"write {_PARAMS}"},
    otherwise=f"write {{{_PARAMS}}}, or {{mcpBaseProtocolMethodsOption: MATCH_BASE_PROTOCOL_METHODS}}",
)

# HTTP

_HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_path: Record[Settings] = Record(
    "a path match",
    {"type": Field(Choice(("Exact", "PathPrefix", "RegularExpression"))), "value": Field(Text("a path"))},
    rules=(values.path_match,),
    misspelt={"path": "value"},
    otherwise="write {type: PathPrefix, value: /..}",
)
_header: Record[Settings] = Record(
    "a header match",
    {
        "type": Field(Choice(("Exact", "RegularExpression"))),
        "name": Field(Text("the name of a header", values.header_name), required=True, help="write name: .."),
        "value": Field(Text("a value"), required=True, help="write value: .."),
    },
    rules=(values.header,),
    otherwise="write {name: .., value: ..}",
)
_all_must_match = at_most(10, "remove some: a request must match all of them")


# A rule

INLINE_FIELDS = ("methods", "paths", "headers", "hosts", "ports", "mcp")


def _type_and_members(node: Node, to: Checking) -> None:
    """Require, in v1alpha1, an expression alone for CEL, and no expression for Inline."""
    kind = node["type"]
    if kind.text == "Inline":
        if "cel" in node:
            message = "cel must not be specified when type is set to 'Inline'"
            to.report(codes.CEL_FOREIGN, message, node.key_span("cel"), help="write type: CEL, or remove it")
        return
    if "cel" not in node:
        message = "cel must be specified when type is set to 'CEL'"
        to.report(codes.CEL_MISSING, message, kind, help="write cel: {expression: ..}")
        return
    for name in INLINE_FIELDS:
        if name in node:
            message = f"`{name}` does not belong in an authorization of type CEL"
            to.report(codes.FOREIGN_MEMBER, message, node.key_span(name), help="write it into the expression")


_type = Choice(
    ("Inline", "CEL"),
    reasons={
        "INLINETOOLS": (
            schema_codes.NOT_A_CHOICE,
            f"InlineTools is v0alpha0: write type: Inline and mcp: {{{_PARAMS}}}",
        ),
        "EXTERNALAUTH": (
            schema_codes.NOT_A_CHOICE,
            "in v1alpha1 the policy asks: write action: ExternalAuth and externalAuth: {..} in `spec`",
        ),
    },
)
_hosts = _list("hosts", Text("a host", values.host), "a list of hosts", _AT_MOST_TEN, validation.no_duplicates)

AUTHORIZATION: Record[Settings] = Record(
    "authorization",
    {
        "type": Field(_type, required=True, help="write type: Inline, or type: CEL"),
        # nine methods exist, so a list without duplicates has at most nine
        "methods": _list("methods", Choice(_HTTP_METHODS), "a list of methods", validation.no_duplicates),
        "paths": _list("paths", _path, "a list of path matches", _AT_MOST_TEN),
        "headers": _list(
            "headers", _header, "a list of header matches", _all_must_match, validation.unique_header_names
        ),
        "hosts": _hosts,
        "ports": _list("ports", PORT, "a list of ports", _AT_MOST_TEN, validation.no_duplicates),
        "mcp": Field(_mcp, help=f"write mcp: {{{_PARAMS}}}; without it everything matches"),
        "cel": Field(CEL, help="write cel: {expression: ..}"),
    },
    rules=(_type_and_members,),
    misspelt={"tools": "mcp", "tool": "mcp", "externalAuth": "type", "expression": "cel"},
    advice={
        "tools": f"write mcp: {{{_PARAMS}}}",
        "tool": f"write mcp: {{{_PARAMS}}}",
        "externalAuth": "write it in `spec`, beside action: ExternalAuth",
        "expression": "write cel: {expression: ..}",
    },
)
