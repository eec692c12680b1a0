"""Removes the tools that a caller may not call from a server's list. Gateways of Eastgate ask over a unix socket."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.cluster.ends import Destination
from eastgate.control.authorizer.checks import ProxyCheck
from eastgate.control.authorizer.deciding import LiveAuthorizer
from eastgate.control.authorizer.grpc_checks import source_of_principal
from eastgate.control.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.reading.mcp.messages import BadMessage
from eastgate.reading.mcp.tool_lists import filter_tools

TOOLS_PATH = "/tools"
_PREFIX = "x-eastgate-"


def answer_tools(
    request: ServedRequest, authorizer: LiveAuthorizer, where_of: Callable[[str], Destination | None] = lambda _: None
) -> ServedResponse:
    """Return a server's answer without the tools that the caller may not call, or 502 if it cannot be read.

    The body and its content-type are those of the server's answer. Headers describe the request: x-eastgate-source (a
    SPIFFE ID; empty: none), -host, -method, -path and -sni. The destination is in -to, or in -target, which `where_of`
    resolves.
    """
    given = {name.removeprefix(_PREFIX): value for name, value in request.headers if name.startswith(_PREFIX)}
    where = where_of(given["target"]) if "target" in given else None
    types = request.values("content-type")
    if request.method != "POST" or "source" not in given or len(types) != 1:
        return ServedResponse(400)
    if "target" in given and where is None:
        return ServedResponse(404)
    check = ProxyCheck(
        source=source_of_principal(given["source"]),
        method=given.get("method", "POST"),
        path=given.get("path", "/"),
        host=given.get("host"),
        address=given.get("address"),
        sni=given.get("sni"),
        shown_headers=frozenset(),
        to=given.get("to"),
    )
    try:
        filtered = filter_tools(request.body, types[0], lambda tool: authorizer.may_call(check, tool, where))
    except BadMessage:
        return ServedResponse(502)
    return ServedResponse(200, (("content-type", types[0]),), filtered)
