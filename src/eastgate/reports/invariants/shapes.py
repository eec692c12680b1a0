"""The shape of an Invariant, field by field."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.basics.regexes import regex
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem
from eastgate.cluster.resources import label_selector, resource
from eastgate.ir.addresses import comparable_host, is_host
from eastgate.ir.paths import path_problem
from eastgate.ir.spiffe import SCHEME, spiffe_problem, trust_domain_problem
from eastgate.reading.manifests import Node
from eastgate.reading.manifests.shapes import (
    Check,
    Choice,
    Field,
    Flag,
    ListOf,
    Record,
    Text,
    Whole,
    constraint,
    enumerated,
    quoted,
)
from eastgate.reading.mcp.messages import NAMED
from eastgate.reports.invariants import codes
from eastgate.reports.invariants.model import ALL_ACCOUNTS, Quantifier

KIND = "Invariant"
CLUSTER_KIND = "ClusterInvariant"
KINDS = (KIND, CLUSTER_KIND)
ON_NOT_PROVEN = ("Warn", "Refuse")
_METHOD = regex(r"[A-Z][A-Z0-9_-]*")
_TOOL = regex(r"[^\s*]+\*?")
_MCP_METHOD = regex(r"[a-z][A-Za-z0-9_]*(/[A-Za-z0-9_]+)*")


# Texts


def _check_name(node: Node, to: Check[None], what: str, *, all_of_a_namespace: bool = False) -> None:
    namespace, slash, name = node.text.partition("/")
    wildcard = " or <namespace>/*" if all_of_a_namespace else ""
    way_out = f"write <namespace>/<name>{wildcard}"
    problem = dns_label_problem(namespace) if slash else "its namespace is missing"
    if problem is None and not (all_of_a_namespace and name == ALL_ACCOUNTS):
        problem = dns_subdomain_problem(name)
    if problem is not None:
        to.report(codes.BAD_ACCOUNT, f"{quoted(node.text)} is no {what}: {problem}", node, help=way_out)


def _account(node: Node, to: Check[None]) -> None:
    _check_name(node, to, "service account", all_of_a_namespace=True)


def _name_of(what: str) -> Text[None]:
    return Text(f"a {what}", lambda node, to: _check_name(node, to, what))


def _identity(node: Node, to: Check[None]) -> None:
    text = node.text
    if text.startswith(SCHEME) and text.endswith("/*"):
        problem = trust_domain_problem(text.removeprefix(SCHEME).removesuffix("/*"))
    else:
        problem = spiffe_problem(text)
    if problem is not None:
        way_out = "write spiffe://<trust domain>/<path>, or spiffe://<trust domain>/*"
        to.report(codes.BAD_IDENTITY, f"{quoted(text)} is not an identity: {problem}", node, help=way_out)


def _path(node: Node, to: Check[None]) -> None:
    text = node.text
    if not text.startswith("/"):
        to.report(codes.BAD_PATH, f"{quoted(text)} does not begin with a slash", node, help=f"write /{text}")
        return
    if "*" in text.removesuffix("/*"):
        message = f"{quoted(text)} has a `*` elsewhere than in `/*` at its end"
        to.report(codes.BAD_PATH, message, node, help="write an exact path, or one that ends with /*")
        return
    problem = path_problem(text, wildcard=text.endswith("/*"))
    if problem is not None:
        to.report(codes.BAD_PATH, f"no request has the path {quoted(text)}: {problem[0]}", node, help=problem[1])


def _word(what: str, is_valid: Callable[[str], object], way_out: Callable[[str], str]) -> Text[None]:
    def rule(node: Node, to: Check[None]) -> None:
        if not is_valid(node.text):
            to.report(codes.BAD_WORD, f"{quoted(node.text)} is no {what}", node, help=way_out(node.text))

    return Text(f"a {what}", rule)


def _is_host(text: str) -> bool:
    name = text.removeprefix("*.")
    return is_host(name) and comparable_host(name) == name


def _as_method(text: str) -> str:
    capitals = text.upper()
    return f"write {capitals}" if _METHOD.fullmatch(capitals) else "write a method of HTTP, GET for example"


# Lists. An empty list would match nothing, so none may be empty.


def some_entry(node: Node, to: Check[None]) -> None:
    """Require a list with at least one entry."""
    if not list(node):
        to.report(codes.FITS_NOTHING, "an empty list fits nothing", node, help="leave it out, or write its entries")


def _list(item: Text[None] | Whole, what: str) -> ListOf[None]:
    return ListOf(item, f"a list of {what}", some_entry)


# Callers


def _caller_fields() -> dict[str, Field[None]]:
    return {
        "serviceAccounts": Field(_list(Text("a service account", _account), "service accounts")),
        "pods": Field(label_selector()),
        "namespaces": Field(label_selector()),
        "identities": Field(_list(Text("an identity", _identity), "identities")),
        "anonymous": Field(Flag()),
        "any": Field(Flag()),
    }


def _some_callers(node: Node, to: Check[None]) -> None:
    given = {key for key, value in node.items() if value.value is not False}
    if not given:
        way_out = "write any: true for all callers, or serviceAccounts, pods, namespaces, identities, anonymous: true"
        to.report(codes.NO_CALLERS, "this selects no callers", node, help=way_out)


_except: Record[None] = Record("except", _caller_fields(), rules=(_some_callers,))
_from: Record[None] = Record(
    "from",
    {**_caller_fields(), "except": Field(_except)},
    rules=(_some_callers,),
    misspelt={"not": "except", "accounts": "serviceAccounts", "principals": "identities", "workloads": "pods"},
    counted=7,
)


# Destinations

_SELECTING = ("pods", "namespaces")
_NAMING = {"services": "Service", "gateways": "Gateway", "backends": "Backend"}


def _some_destinations(node: Node, to: Check[None]) -> None:
    named = [name for name in _NAMING if name in node]
    if not named and not any(name in node for name in _SELECTING):
        way_out = f"write pods: {{matchLabels: {{..}}}}, or {enumerated(tuple(_NAMING), 'or')}"
        to.report(codes.NO_DESTINATIONS, "this selects no destinations", node, help=way_out)
    elif named and "namespaces" in node and "pods" not in node:
        message = f"`namespaces` narrows `pods`, and not `{named[0]}`, which have names"
        way_out = "leave it out, or write pods: {} for all pods of these namespaces"
        to.report(codes.NO_DESTINATIONS, message, node.key_span("namespaces"), help=way_out)


_to: Record[None] = Record(
    "to",
    {
        "pods": Field(label_selector()),
        "namespaces": Field(label_selector()),
        **{name: Field(_list(_name_of(kind), f"{kind}s")) for name, kind in _NAMING.items()},
    },
    rules=(_some_destinations,),
    misspelt={"workloads": "pods"},
)


# Requests


def _some_request(node: Node, to: Check[None]) -> None:
    """Require that a request with an MCP message may be a POST, and that a message with a tool may be `tools/call`."""
    messages = node.get("mcpMethods")
    if messages is not None and "tools" in node and not any(message.value in NAMED for message in messages):
        way_out = "add tools/call, or leave out mcpMethods"
        to.report(codes.FITS_NOTHING, "none of these messages names a tool", messages, help=way_out)
    methods = node.nearest("http", "methods")
    if not isinstance(methods.value, list) or not ("tools" in node or "mcpMethods" in node):
        return
    if "POST" not in [method.value for method in methods]:
        to.report(codes.FITS_NOTHING, "an MCP message is a POST, which these methods exclude", methods, help="add POST")


_http: Record[None] = Record(
    "http",
    {
        "methods": Field(_list(_word("method", _METHOD.fullmatch, _as_method), "methods")),
        "paths": Field(_list(Text("a path", _path), "paths")),
        "hosts": Field(
            _list(
                _word("host", _is_host, lambda _: "write a name in small letters, or *.<name>, without a port"), "hosts"
            )
        ),
    },
    misspelt={"method": "methods", "path": "paths", "host": "hosts"},
)
_tool = _word("name of a tool", _TOOL.fullmatch, lambda _: "write the name of a tool, perhaps with a `*` at its end")
_mcp_method = _word("MCP method", _MCP_METHOD.fullmatch, lambda _: "write tools/list, for example")

_statement: Record[None] = Record(
    "a statement",
    {
        "from": Field(_from, required=True, help="write from: {any: true} for all callers"),
        "to": Field(_to, required=True, help="write to: {pods: {matchLabels: {..}}}"),
        "ports": Field(_list(Whole(1, 65535, what="a port"), "ports")),
        "http": Field(_http),
        "tools": Field(_list(_tool, "tools")),
        "mcpMethods": Field(_list(_mcp_method, "MCP methods")),
        "includeSelf": Field(Flag(), about="Whether requests of a pod to itself, and from its node, count too."),
    },
    rules=(_some_request,),
    misspelt={"port": "ports", "tool": "tools", "methods": "http", "paths": "http"},
)

STATEMENT_FIELDS: dict[str, Field[None]] = {
    **{mode.value: Field(_statement) for mode in Quantifier},
    "includeFuture": Field(Flag(), about="Whether pods and namespaces that do not exist yet count too."),
    "existingOnly": Field(Flag(), about="Has no effect: pods that do not exist yet count only with includeFuture."),
    "cites": Field(Text(), about="The reason for the statement. It is shown if the statement fails."),
    "onNotProven": Field(Choice(ON_NOT_PROVEN), about="How to treat a change after which the statement is not proven."),
}


@constraint(oneOf=[{"required": [mode.value]} for mode in Quantifier])
def exactly_one_statement(node: Node, to: Check[None]) -> None:
    """Require exactly one of the three statements in a spec."""
    given = [mode for mode in Quantifier if mode in node]
    if len(given) == 1:
        return
    words = enumerated([f"`{mode}`" for mode in Quantifier], "and")
    if not given:
        way_out = "write never: {from: {any: true}, to: {pods: {}}}, for example"
        to.report(codes.ONE_STATEMENT, f"an {KIND} has one of {words}, and this has none", node, help=way_out)
    for mode in given[1:]:
        message = f"an {KIND} has one of {words}, and this has `{given[0]}` too"
        to.report(codes.ONE_STATEMENT, message, node.key_span(mode), help="write a document for each statement")


def check_namespace(node: Node, to: Check[None]) -> None:
    """Require that an Invariant with a namespace covers only objects of that namespace."""
    namespace = node.nearest("metadata", "namespace")
    if "metadata" not in node or "namespace" not in node["metadata"] or not isinstance(namespace.value, str):
        return
    for mode in Quantifier:
        to_node = node.nearest("spec", mode, "to")
        if not isinstance(to_node.value, dict):
            continue
        if "namespaces" in to_node:
            message = f"this is about the pods of namespace {namespace.value}"
            way_out = f"leave it out, or write a {CLUSTER_KIND}"
            to.report(codes.BEYOND_ITS_NAMESPACE, message, to_node.key_span("namespaces"), help=way_out)
        for field in _NAMING:
            for name in to_node.get(field) or ():
                if isinstance(name.value, str) and name.value.partition("/")[0] != namespace.value:
                    message = f"{quoted(name.value)} is not in namespace {namespace.value}"
                    way_out = f"name what is in {namespace.value}, or write a {CLUSTER_KIND}"
                    to.report(codes.BEYOND_ITS_NAMESPACE, message, name, help=way_out)


_STATED = Record("spec", STATEMENT_FIELDS, rules=(exactly_one_statement,), counted=7)

SERVED: dict[str, Record[None]] = {
    KIND: resource(KIND, _STATED, about="A statement about all requests to destinations in a namespace."),
    CLUSTER_KIND: resource(
        CLUSTER_KIND, _STATED, cluster_scoped=True, about="A statement about all requests to destinations in a cluster."
    ),
}
"""The shapes of the objects of a cluster. They name no manifests, because they are about the objects of the cluster."""
