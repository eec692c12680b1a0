"""Codes of lint's findings about AuthConfigs."""

from eastgate.basics.diagnostics import Code, Severity

HOST_TAKEN = Code(
    "EG6251",
    "host that is linked to another AuthConfig",
    "Authorino links a host to the AuthConfig that it reconciles first, the oldest. A wildcard of that AuthConfig "
    "counts too. Authorino does not ask the other AuthConfig about the host, and reports it as not ready "
    "(HostsNotLinked).",
    Severity.WARNING,
)
OTHER_SPELLING = Code(
    "EG6252",
    "host that another AuthConfig decides in another spelling",
    "Authorino compares hosts with their letter case, and first with the port. Proxies ignore the letter case for "
    "routing. So a client can spell the host so that the wildcard of another AuthConfig matches it.",
    Severity.WARNING,
)
