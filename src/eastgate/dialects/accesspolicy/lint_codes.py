"""Codes of lint's findings about AccessPolicies."""

from eastgate.basics.diagnostics import Code, Severity

NO_TOOL = Code(
    "EG6026",
    "rule that allows no tool",
    "The list of tools is empty. The caller may open a session and list the tools, and may call none of them.",
    Severity.WARNING,
)
READING_UNLISTED_CALLER = Code(
    "EG6044",
    "the two readings of unlistedCaller differ here",
    "A caller whom no InlineTools rule names is denied, or passes the level; the setting `unlistedCaller` decides.",
    Severity.INFO,
)
MORE_THAN_MCP_PATH = Code(
    "EG6062",
    "route that leads other paths than the MCP path to an XBackend",
    "`spec.mcp.path` of an XBackend says where its MCP server is, and limits nothing. Policies apply to every path "
    "that a route leads to the backend. So a caller that they allow reaches other paths of that server, too.",
    Severity.WARNING,
    needs_cluster=True,
)
