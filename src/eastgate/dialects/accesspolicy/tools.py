"""Names of tools (and prompts): alone, and as names of what stands behind the target."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster.names import dns_subdomain_problem
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.validation import Checking, inside
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, constraint, quoted

LONGEST_SERVED = 253 + 1 + 128  # for an API server: a backend, a slash, and the longest name that MCP advises
_LONGEST_PARAM = 20


_UNSEEN = r"\x7f-\xa0\xad"  # nobody sees these, and nobody means them


@constraint(pattern=rf"^[^\x00-\x20{_UNSEEN}*]([^\x00-\x1f{_UNSEEN}*]*[^\x00-\x20{_UNSEEN}*])?$")
def tool(node: Node, to: Checking) -> None:
    """Require the name of a tool; MCP asks for no more than that it is one."""
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
    if len(node.text) > _LONGEST_PARAM and _problem(node.text) is None:
        message = f"{quoted(node.text)} has {len(node.text)} characters, and the API server refuses more than 20"
        to.report(codes.PARAM_LENGTH, message, node, help=_PARAM_HELP)
    else:
        tool(node, to)


_PARAM_HELP = (
    "for a tool write type: CEL and cel: {expression: request.mcp.tool_name == '..'}, or the policy in v0alpha0: "
    "neither has that limit"
)


# A DNS name before the first slash. An API server counts the length of an expression as its cost, for every tool: so
# this one is short, with `\b` for “next to a letter or digit”.
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
    """Check names with a slash: `backend/tool` on a Gateway; on a Backend it would be an unlikely name."""
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
    """Yield the names of tools and prompts, in either form of the API. Resources have URIs, not names."""
    for rule in spec.get("rules") or ():
        yield from inside(rule, "authorization", "tools") or ()
        for method in inside(rule, "authorization", "mcp", "methods") or ():
            name = method.get("name")
            if name is not None and name.value in ("tools/call", "prompts/get"):
                yield from method.get("params") or ()
