"""Codes of lint's findings about AccessPolicies."""

from eastgate.diagnostics import Code, Severity

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
