"""Codes of findings about Linkerd's resources."""

from eastgate.basics.diagnostics import Code, Severity

ACCESS_POLICY_WINS = Code(
    "EG6025",
    "accessPolicy wider than the policy",
    "What Linkerd lets in on a port is the union of all authorizations: the `accessPolicy` of the Server already lets "
    "in everybody whom this policy names, and others too.",
    Severity.WARNING,
)
SERVERS_OVERLAP = Code(
    "EG6080",
    "two Servers for one port",
    "The oldest Server owns a port, then the first by name. The other one and every policy on it are ignored there.",
    Severity.WARNING,
)
NO_SERVER = Code(
    "EG6081",
    "policy without a Server",
    "A policy on a Namespace, and a ServerAuthorization, apply to Servers. Where no Server is, they do nothing, and "
    "the default policy decides.",
    Severity.WARNING,
    needs_cluster=True,
)
NO_SUCH_AUTHENTICATION = Code(
    "EG6082",
    "authentication that does not exist",
    "A policy that requires an authentication which does not exist authorizes nobody.",
    Severity.WARNING,
    needs_cluster=True,
)
PROBE_DENIED = Code(
    "EG6083",
    "probe that is denied",
    "The kubelet is nobody in the mesh. Linkerd lets probes in by itself only on ports without routes, so that with "
    "routes the pod is never ready.",
    Severity.WARNING,
)
ROUTE_NOT_ATTACHED = Code(
    "EG6084",
    "policy on a route that is not attached",
    "Linkerd ignores the route, or no Server takes it: the policy on it does nothing.",
    Severity.WARNING,
)
DEFAULT_POLICY = Code(
    "EG6085",
    "invalid default policy",
    "The annotation `config.linkerd.io/default-inbound-policy` is no policy. Linkerd ignores it, and the default of "
    "the cluster decides, which may be wide open.",
    Severity.ERROR,
)
NOT_ENFORCED = Code(
    "EG6086",
    "policy that no proxy enforces",
    "The pod is not in the mesh (`linkerd.io/inject: disabled`), or the proxy is bypassed on this port "
    "(`config.linkerd.io/skip-inbound-ports`).",
    Severity.ERROR,
)
ROUTE_RESPELT = Code(
    "EG6100",
    "route that another spelling goes round",
    "Linkerd's proxy compares a path as it is sent, and many applications normalise it: `//admin` and `/x/../admin` "
    "are not `/admin` to the one, and are to the other. A wider route lets in what this one denies. Where Eastgate's "
    "proxies enforce, paths are normalised first (the setting `dataPlane`).",
    Severity.WARNING,
)
