"""Codes of the errors in Linkerd's policies. Errors of its admission webhook have the message of the webhook."""

from eastgate.basics.diagnostics import Code, Severity

SERVICE_TARGET = Code(
    "EG4001",
    "a Service as target",
    "“An AuthorizationPolicy may not target a Service, which is a distinctly client-centric concept. (I.e. a server "
    "cannot necessarily know whether a given connection targetted servicea or serviceb).”",
)
TARGET_KIND = Code(
    "EG4002",
    "unsupported authorization target type",
    "A policy targets a Server, an HTTPRoute, a GRPCRoute or its own Namespace; or, as the proposal has it, a "
    "ServiceAccount, a Deployment, StatefulSet, DaemonSet, ReplicaSet or Job, or a Pod.",
)
OTHER_NAMESPACE = Code(
    "EG4003",
    "a target in another namespace",
    "A policy references a single resource in the same namespace; it cannot target another namespace.",
)
TARGET_NOT_IN_LINKERD = Code(
    "EG4004",
    "target type that Linkerd refuses today",
    "The proposal has this target type, and Eastgate decides as the proposal describes. The admission webhook of "
    "today's Linkerd refuses it.",
    Severity.WARNING,
)
SEVERAL_OF_A_KIND = Code(
    "EG4005",
    "several authentications of one kind",
    "“All authentications must be provided”: Eastgate requires all of several authentications of one kind. The "
    "admission webhook of today's Linkerd refuses more than one.",
    Severity.WARNING,
)
AUTHENTICATION_KIND = Code(
    "EG4006",
    "unsupported authentication kind",
    "A policy requires a MeshTLSAuthentication, a NetworkAuthentication or a ServiceAccount.",
)
IDENTITY = Code(
    "EG4007",
    "invalid identity",
    "An identity is a DNS name in lower case, `*.` and a DNS name, `*` alone, or a SPIFFE ID.",
)
IDENTITIES_OR_REFS = Code(
    "EG4008", "identities or identityRefs", "A MeshTLSAuthentication has exactly one of the two, with something in it."
)
IDENTITY_REF_KIND = Code(
    "EG4009", "invalid identity target kind", "An identity refers to a ServiceAccount or a Namespace."
)
NAMESPACE_IN_NAMESPACE = Code(
    "EG4010", "a namespace in a namespace", "A Namespace identity_ref is cluster-scoped and cannot have a namespace."
)
NO_NETWORK = Code("EG4011", "no network", "At least one network must be specified.")
CIDR = Code("EG4012", "invalid network", "A network is an address such as 10.0.0.1 or a CIDR such as 10.0.0.0/8.")
NEGATED = Code("EG4013", "network completely negated", "The exception covers the whole network, so no address remains.")
EXCEPTION_OUTSIDE = Code(
    "EG4014",
    "exception outside its network",
    "An exception removes addresses from its own network, so it must be inside of that network.",
)
ACCESS_POLICY = Code(
    "EG4015",
    "invalid accessPolicy",
    "In the words of Linkerd: Invalid 'accessPolicy' field. It is all-authenticated, all-unauthenticated, "
    "cluster-authenticated, cluster-unauthenticated, deny or audit.",
)
PROXY_PROTOCOL = Code(
    "EG4016", "invalid proxyProtocol", "The proxyProtocol is unknown, HTTP/1, HTTP/2, gRPC, opaque or TLS."
)
ONE_SELECTOR = Code("EG4017", "one selector", "A Server has exactly one of podSelector and externalWorkloadSelector.")
SERVER_PORT = Code("EG4018", "invalid port of a Server", "A port is a number from 1 to 65535, or the name of a port.")
LATER_VERSION = Code("EG4019", "field of a later version", "The field exists, but not in this version of the resource.")
ILLEGAL_EXPRESSION = Code(
    "EG4020",
    "illegal match expression",
    "Linkerd treats In and NotIn without values, and Exists and DoesNotExist with values, as expressions that match "
    "nothing. In with the empty list matches nothing, and NotIn with it everything.",
    Severity.WARNING,
)
ONE_SERVER = Code(
    "EG4021", "one way to name Servers", "A ServerAuthorization names its Servers by exactly one of name and selector."
)
UNAUTHENTICATED_MESH = Code(
    "EG4022", "unauthenticated and meshTLS", "`unauthenticated` must be false if `mesh_tls` is specified."
)
UNAUTHENTICATED_TLS = Code(
    "EG4023",
    "unauthenticatedTLS and identities",
    "`unauthenticatedTLS` must be false if any `identities` or `service_accounts` is specified.",
)
NO_CLIENT = Code(
    "EG4024",
    "authorization authorizes no clients",
    "Linkerd accepts the resource and ignores it: it authorizes no client.",
    Severity.WARNING,
)
ROUTE_PARENT = Code("EG4025", "parent of a route", "A route cannot target an EgressNetwork without specifying a port.")
ROUTE_PATH = Code(
    "EG4026",
    "invalid path of a route",
    "HttpPathMatch paths must be absolute (begin with `/`), and must have a form that requests can have.",
)
ROUTE_PATTERN = Code("EG4027", "invalid regular expression", "A regular expression is one in the syntax of RE2.")
ROUTE_REDIRECT = Code("EG4028", "invalid redirect", "A redirect path is absolute, and is either full or a prefix.")
ROUTE_TIMEOUT = Code(
    "EG4029",
    "invalid timeout",
    "A timeout is a duration such as 10s or 1m30s; backendRequest must not be greater than request.",
)
ROUTE_TOO_MANY = Code("EG4030", "too many entries", "A route has at most 16 hostnames, and a rule at most 8 matches.")
ROUTE_HOST = Code("EG4031", "invalid hostname", "A hostname is a DNS name in lower case, `*.` may stand before it.")
DROPPED_ROUTE = Code(
    "EG4032",
    "route that Linkerd drops",
    "Linkerd accepts the route and then ignores all of it. A Server as parent must be in the route's own namespace "
    "and in the group policy.linkerd.io, without port and sectionName.",
    Severity.WARNING,
)
ROUTE_HEADER = Code("EG4033", "invalid name of a header", "A header has a name of letters, digits and dashes, say.")
MODE_WITHOUT_EFFECT = Code(
    "EG4034",
    "mode without effect",
    "Authentications and routes alone decide nothing, so they have no audit mode. A policy that refers to an "
    "authentication has one.",
    Severity.WARNING,
)
MATCH_TYPE = Code(
    "EG4035",
    "unsupported GRPCRoute method match type",
    "The admission webhook of Linkerd refuses a GRPCRoute whose method is matched by a regular expression.",
)
ROUTE_BACKEND = Code("EG4036", "backend of a route", "A route cannot reference a Service without a port.")
