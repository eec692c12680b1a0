"""Codes of findings about Linkerd's resources."""

from eastgate.basics.diagnostics import Code, Severity

ACCESS_POLICY_WINS = Code(
    "EG6025",
    "accessPolicy wider than the policy",
    "A port allows the union of all authorizations. The `accessPolicy` of the Server already allows every client of "
    "this policy, and others too.",
    Severity.WARNING,
)
SERVERS_OVERLAP = Code(
    "EG6080",
    "two Servers for one port",
    "The oldest Server owns a port, then the first by name. The other Server and its policies have no effect on that "
    "port.",
    Severity.WARNING,
)
NO_SERVER = Code(
    "EG6081",
    "policy without a Server",
    "A policy on a Namespace, and a ServerAuthorization, apply to Servers. Without a Server they do nothing, and the "
    "default policy decides.",
    Severity.WARNING,
    needs_cluster=True,
)
NO_SUCH_AUTHENTICATION = Code(
    "EG6082",
    "missing authentication",
    "A policy that requires a missing authentication authorizes no client.",
    Severity.WARNING,
    needs_cluster=True,
)
PROBE_DENIED = Code(
    "EG6083",
    "denied probe",
    "The kubelet has no identity in the mesh. Linkerd allows probes by itself only on ports without routes. On a port "
    "with routes the probe is denied, and the pod is never ready.",
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
    "route that another spelling bypasses",
    "Linkerd's proxy compares a path as the client sent it, and many applications normalize it: to an application "
    "`//admin` and `/x/../admin` are `/admin`, but not to the proxy. A wider route then allows the request that this "
    "route denies. Eastgate's proxies normalize paths first (the setting `dataPlane`).",
    Severity.WARNING,
)
