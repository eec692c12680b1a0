"""Predicates of AccessPolicy rules, except the source: MCP methods and tools, HTTP attributes, expressions."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import PathMatch, PathType, ValueMatch
from eastgate.cluster.names import dns_subdomain_problem
from eastgate.cluster.routes import CANONICAL
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.cel import compiled
from eastgate.dialects.accesspolicy.validation import Checking, inside
from eastgate.ir import ALWAYS, NEVER, And, Computed, Is, Not, OneOf, Or, Predicate, Prefix, Present, Suffix
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import BACKEND, HOST, MCP_METHOD, MCP_TOOL, METHOD, PATH, PORT, Attribute, header
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, constraint, quoted

# Names of tools and prompts: alone, and as `backend/tool`.


MAX_SERVED_NAME_LENGTH = (
    253 + 1 + 128
)  # for an API server: a backend, a slash, and the longest name that MCP recommends
_MAX_PARAM_LENGTH = 20


_UNSEEN = r"\x7f-\xa0\xad"  # invisible characters, which no author writes on purpose


@constraint(pattern=rf"^[^\x00-\x20{_UNSEEN}*]([^\x00-\x1f{_UNSEEN}*]*[^\x00-\x20{_UNSEEN}*])?$")
def tool(node: Node, to: Checking) -> None:
    """Require a valid tool name. MCP requires only that there is a name."""
    problem = _problem(node.text)
    if problem is not None:
        message, way_out = problem
        to.report(codes.TOOL_NAME, f"{quoted(node.text)} {message}", node, help=way_out)


def _problem(name: str) -> tuple[str, str] | None:
    if not name or name != name.strip() or not name.isprintable():
        return "is not the name of a tool", "write the name as the server lists it"
    if "*" in name:
        return "is a pattern, and tools are compared exactly", "list each tool by its name"
    return None


def param(node: Node, to: Checking) -> None:
    """Require, in v1alpha1, a name of at most 20 characters."""
    if len(node.text) > _MAX_PARAM_LENGTH and _problem(node.text) is None:
        message = f"{quoted(node.text)} has {len(node.text)} characters, and the API server refuses more than 20"
        to.report(codes.PARAM_LENGTH, message, node, help=_PARAM_HELP)
    else:
        tool(node, to)


_PARAM_HELP = (
    "for a tool write type: CEL and cel: {expression: request.mcp.tool_name == '..'}, or the policy in v0alpha0: "
    "neither has that limit"
)


# A DNS name before the first slash. An API server counts the length of an expression as its cost, for every tool. So
# this expression is short, with `\b` for “next to a letter or digit”.
_IS_QUALIFIED = r"name.matches(r'^\b([-a-z\d]|\b\.\b){1,253}\b/.')"
_NAMED_TOOLS = "!has(rule.authorization) || !has(rule.authorization.tools) || rule.authorization.tools"


@constraint(
    Cel(
        "!self.targetRefs.exists(ref, ref.kind == 'Gateway') || "
        f"self.rules.all(rule, {_NAMED_TOOLS}.all(name, !name.contains('/') || {_IS_QUALIFIED}))",
        "on a Gateway a tool is named by its name, or as <backend>/<tool>",
    )
)
def fit_the_target(spec: Node, to: Checking) -> None:
    """Check names with a slash: on a Gateway they mean `backend/tool`, on a Backend they are unlikely names."""
    targets = list(spec["targetRefs"])
    at_gateway = any(kind is not None and kind.value == "Gateway" for kind in (ref.get("kind") for ref in targets))
    names = {name.value for ref in targets if (name := ref.get("name")) is not None and isinstance(name.value, str)}
    for node in _tool_names(spec):
        if not isinstance(node.value, str) or "/" not in node.value or _problem(node.value) is not None:
            continue
        backend, _, own_name = node.value.partition("/")
        if at_gateway and (dns_subdomain_problem(backend) is not None or not own_name):
            message = f"{quoted(node.value)} is not <backend>/<tool>, the tool of one backend behind the Gateway"
            to.report(codes.TOOL_NAME, message, node, help="write <backend>/<tool>, or the name of the tool alone")
        elif not at_gateway and backend in names:
            message = f"{quoted(node.value)}: on a Backend tools are named without the Backend"
            to.report(codes.QUALIFIED_ON_BACKEND, message, node, help=f"write {own_name or 'the name of the tool'}")


def _tool_names(spec: Node) -> Iterator[Node]:
    """Yield the names of tools and prompts, in both forms of the API. Resources have URIs instead of names."""
    for rule in spec.get("rules") or ():
        yield from inside(rule, "authorization", "tools") or ()
        for method in inside(rule, "authorization", "mcp", "methods") or ():
            name = method.get("name")
            if name is not None and name.value in ("tools/call", "prompts/get"):
                yield from method.get("params") or ()


NO_HEADER = header("")


def nothing() -> Predicate:
    """Match no request, as an empty list does."""
    return NEVER


# MCP


def _is_method(*names: str) -> Predicate:
    return Is(MCP_METHOD, OneOf(frozenset(names)))


_NO_MESSAGE = Not(Is(MCP_METHOD, Present()))  # the GET stream and the DELETE of a session have no JSON-RPC body
_STREAM = And((_NO_MESSAGE, Is(METHOD, OneOf(frozenset({"GET"})))))
_END = And((_NO_MESSAGE, Is(METHOD, OneOf(frozenset({"DELETE"}))), Is(header("mcp-session-id"), Present())))


_LIFECYCLE = (_is_method("initialize", "ping", "tools/list"), Is(MCP_METHOD, Prefix("notifications/")), _STREAM, _END)
_BASE = (*_LIFECYCLE, _is_method("server/discover"))  # since 2026-07-28 a client may begin with it
_BASE_TODAY = (*_LIFECYCLE, Is(MCP_METHOD, Prefix("completion/")), Is(MCP_METHOD, Prefix("logging/")))


def base_protocol() -> Predicate:
    """Match the base protocol: the messages that every tool call needs. The proposal's form always allows them."""
    return Or(_BASE)


def or_base_protocol(predicate: Predicate) -> Predicate:
    """Match the tools that a rule allows, and the base protocol."""
    return Or((predicate, *_BASE))


def calls(tools: list[str], *, gateway_in: str | None) -> Predicate:
    """Match calls of ANY of the tools."""
    return And((_is_method("tools/call"), _names(tools, gateway_in=gateway_in)))


def _names(names: list[str], *, gateway_in: str | None) -> Predicate:
    """Match ANY of the names.

    On a Gateway a name is of any backend, and `backend/tool` of one backend in the policy's namespace.
    """
    qualified = [name for name in names if gateway_in is not None and "/" in name]
    plain = frozenset(name for name in names if name not in qualified)
    parts: list[Predicate] = [Is(MCP_TOOL, OneOf(plain))] if plain else []
    for name in qualified:
        backend, _, tool = name.partition("/")
        one_backend = Is(BACKEND, OneOf(frozenset({f"{gateway_in}/{backend}"})))
        parts.append(And((Is(MCP_TOOL, OneOf(frozenset({tool}))), one_backend)))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def mcp(node: Node, *, gateway_in: str | None) -> Predicate:
    """Match, in v1alpha1, ANY of the methods and, if chosen, the base protocol.

    If neither is written, the predicate matches any request, as without `mcp`. An empty list matches no method.
    """
    methods = node.get("methods")
    option = node.get("mcpBaseProtocolMethodsOption")
    base = _BASE_TODAY if option is not None and option.text == "MATCH_BASE_PROTOCOL_METHODS" else ()
    if methods is None:
        return Or(base) if base else ALWAYS
    return Or((*(_mcp_method(method, gateway_in=gateway_in) for method in methods), *base))


def _mcp_method(node: Node, *, gateway_in: str | None) -> Predicate:
    name, params = node["name"].text, node.get("params")
    method: Predicate = _is_method(name) if "/" in name else Is(MCP_METHOD, Prefix(f"{name}/"))
    if params is None:
        return method
    has_names = not name.startswith("resources/")  # resources have URIs, where a slash does not separate a backend
    return And((method, _names([param.text for param in params], gateway_in=gateway_in if has_names else None)))


# HTTP


def methods(node: Node) -> tuple[Attribute, Predicate]:
    """Match ANY of the methods."""
    return METHOD, Is(METHOD, OneOf(frozenset(method.text for method in node)))


def ports(node: Node) -> tuple[Attribute, Predicate]:
    """Match ANY of the ports."""
    return PORT, Is(PORT, OneOf(frozenset(port.number for port in node)))


def hosts(node: Node) -> tuple[Attribute, Predicate]:
    """Match ANY of the hosts; `*.` matches one or more labels."""
    names = [comparable_host(host.text) for host in node]
    exact = frozenset(name for name in names if not name.startswith("*."))
    parts: list[Predicate] = [Is(HOST, OneOf(exact))] if exact else []
    parts += [Is(HOST, Suffix(name[1:])) for name in names if name.startswith("*.")]
    return HOST, Or(tuple(parts))


def paths(node: Node) -> tuple[Attribute, Predicate]:
    """Match ANY of the path matches."""
    return PATH, Or(tuple(_path(path) for path in node))


def _path(node: Node) -> Predicate:
    kind, value = node.get("type"), node.get("value")
    match = PathMatch(
        PathType(kind.text if kind is not None else "PathPrefix"), value.text if value is not None else ""
    )
    whole, part = CANONICAL.path_parts(match)
    # The prefix / also requires a path.
    return whole if part is None else Or((whole, CANONICAL.under(f"{CANONICAL.stem(match)}/")))


def header_match(node: Node) -> tuple[Attribute, Predicate]:
    """Match a header with a value."""
    name, kind = node["name"].text, node.get("type")
    regex = kind is not None and kind.text == "RegularExpression"
    attribute = header(name)
    return attribute, CANONICAL.value(attribute, ValueMatch(name, node["value"].text, regex))


# Expressions


def expression(text: str, *, on_error: bool) -> Predicate:
    """Match tool calls with a CEL expression. `on_error` is the result if it errs."""
    from eastgate.dialects.cel import Expression

    condition = compiled(text)
    assert isinstance(condition, Expression)  # noqa: S101 - validation has compiled it
    lowered = condition.lowered_or_error if on_error else condition.lowered
    if lowered is None:
        lowered = Computed(text, condition.attributes, condition.evaluate, on_error=on_error)
    return And((_is_method("tools/call"), lowered))
