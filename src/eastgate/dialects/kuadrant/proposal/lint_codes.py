"""Codes of lint's findings about AuthPolicies."""

from eastgate.basics.diagnostics import Code, Severity

HOST_WITHOUT_SCHEME = Code(
    "EG6061",
    "host that no auth scheme covers",
    "The rules of the AuthPolicy select requests to this host, but the host has no scheme. The requests are refused "
    "(404).",
    Severity.WARNING,
    needs_cluster=True,
)
