"""Codes of lint's findings about AuthConfigs."""

from eastgate.basics.diagnostics import Code, Severity

HOST_TAKEN = Code(
    "EG6251",
    "host that is linked to another AuthConfig",
    "Authorino links a host to the AuthConfig that it reconciles first, the oldest, also where a wildcard of that one "
    "means it. The other AuthConfig is not asked about the host, and is not ready (HostsNotLinked).",
    Severity.WARNING,
)
OTHER_SPELLING = Code(
    "EG6252",
    "host that another AuthConfig decides in another spelling",
    "Authorino compares hosts with letter case, and first with the port. Proxies route whatever the letter case is: a "
    "client who writes the host otherwise is asked for what another AuthConfig wants, whose wildcard means it.",
    Severity.WARNING,
)
