"""Codes of lint's findings about AccessPolicies."""

from eastgate.basics.diagnostics import Code, Severity

NO_TOOL = Code(
    "EG6026",
    "rule that allows no tool",
    "The list of tools is empty. The caller may open a session and list the tools, but call none.",
    Severity.WARNING,
)
READING_UNLISTED_CALLER = Code(
    "EG6044",
    "the two readings of unlistedCaller differ here",
    "A caller that no InlineTools rule names is denied, or passes the level. The setting `unlistedCaller` decides.",
    Severity.INFO,
)
MORE_THAN_MCP_PATH = Code(
    "EG6062",
    "route that forwards other paths than the MCP path to an XBackend",
    "`spec.mcp.path` of an XBackend is the path of its MCP server, and limits nothing. Policies apply to every path "
    "that a route forwards to the backend. So an allowed caller reaches other paths of that server, too.",
    Severity.WARNING,
    needs_cluster=True,
)
