"""Codes of findings about Istio's policies: valid, and probably not what the author meant."""

from eastgate.diagnostics import Code, Severity

CLOSES_TCP = Code(
    "EG6111",
    "DENY that closes TCP ports",
    "Fields of HTTP do not count where there is no HTTP. Of a DENY rule that looks at them nothing is left there, or "
    "only the rest, so that connections are denied which the rule does not mean. Name the ports that speak HTTP.",
    Severity.WARNING,
)
LITERAL_WILDCARD = Code(
    "EG6112",
    "wildcard that is a character",
    "A `*` stands for any text only at one end of a value: a leading one is looked for first, then one at the end. Any "
    "other is compared as it is, so that the value matches nothing that exists: a DENY denies nothing.",
)
EMPTY_ENTRIES = Code(
    "EG6113",
    "empty list that matches everything",
    "Istio takes `from: []` and `to: []` for lists that are left out: the rule matches any source, or any operation.",
)
HOST_BITS = Code(
    "EG6114",
    "network with host bits",
    "The bits behind the prefix do not count. Perhaps one address was meant, or another prefix.",
    Severity.INFO,
)
DENY_BY_DEFAULT = Code(
    "EG6115",
    "ALLOW for all workloads",
    "As soon as an ALLOW policy applies to a workload, what no ALLOW policy allows is denied. Without a selector it "
    "applies to all workloads of its namespace, or of the mesh.",
    Severity.INFO,
)
NO_PROVIDER = Code(
    "EG6116",
    "provider that cannot be asked",
    "The MeshConfig has no valid extension provider of this name, or several providers are named for one workload. "
    "Istio then denies what the rules match.",
    Severity.WARNING,
)
FAILS_OPEN = Code(
    "EG6117",
    "provider that fails open",
    "With `failOpen`, requests pass where the provider cannot be asked: who can stop it can pass.",
    Severity.WARNING,
)
CROSSING_PATTERN = Code(
    "EG6118",
    "pattern of namespaces that matches all",
    "Sidecars look for a namespace as `/ns/<pattern>/` in the whole identity, and a `*` in it matches slashes too. A "
    "pattern whose end is also the end of `/sa` matches every account of every namespace.",
)
EMPTY_SELECTOR = Code(
    "EG6119",
    "empty selector that selects nothing",
    "To sidecars `selector: {}` is the same as none. Where ztunnel decides, a policy with it is not enforced on any "
    "workload: a DENY denies nothing.",
)
MAPPED_NETWORK = Code(
    "EG6120",
    "IPv4 network that is written as IPv6",
    "Eastgate reads `::ffff:10.0.0.0/104` as 10.0.0.0/8. Istio's proxies compare it with IPv6 callers only, so that a "
    "DENY denies no IPv4 caller there.",
)
