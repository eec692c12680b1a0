"""Codes of what is understood and still not what its author meant."""

from eastgate.diagnostics import Code, Severity

# Targets

SELECTS_NOTHING = Code(
    "EG6001",
    "target without workloads",
    "The policy is understood, and there is nothing that it applies to: what it was meant to protect is not protected "
    "by it. Nothing is said where the manifests hold no workloads at all.",
    Severity.WARNING,
)
NO_SUCH_TARGET = Code(
    "EG6002",
    "target that no manifest declares",
    "The Service, Gateway, Backend, Server, route or workload that the policy names is not in the manifests.",
    Severity.WARNING,
)
PORT_NOT_EXPOSED = Code(
    "EG6003",
    "port that no selected workload exposes",
    "Ports are those of the workload (`containerPort`), not those of a Service. Workloads that declare no ports are "
    "taken to expose any.",
    Severity.WARNING,
)
NO_SUCH_ACCOUNT = Code(
    "EG6004",
    "service account that does not exist",
    "No manifest declares the service account and no workload runs as it, although other accounts of its namespace "
    "are declared. Nobody can have this identity.",
    Severity.WARNING,
)
NO_SUCH_NAMESPACE = Code(
    "EG6005",
    "namespace that does not exist",
    "Namespaces are declared, but not this one, and nothing is in it. It may simply be missing from the manifests.",
    Severity.INFO,
)
FOREIGN_TRUST_DOMAIN = Code(
    "EG6006",
    "identity of another trust domain",
    "Only a federated mesh lets such a client in, and no `serviceAccounts` entry ever means it.",
    Severity.INFO,
)
TYPO = Code(
    "EG6007",
    "looks like a misspelt name",
    "Nothing has this name, label or trust domain, and something has one that differs in a letter or two.",
    Severity.WARNING,
)

# Rules

MATCHES_NOTHING = Code(
    "EG6020",
    "rule with an empty list",
    "An explicitly empty list matches nothing, and so does a source with nothing in it; left out, it would match "
    "anything. The rule does nothing.",
    Severity.WARNING,
)
CONTRADICTION = Code(
    "EG6021",
    "conditions that cannot hold together",
    "Every condition of the rule can be met, but no request meets all of them.",
    Severity.WARNING,
)
SHADOWED = Code(
    "EG6022",
    "rule that is decided before",
    "On every workload that the rule applies to, every request that it matches is decided by other rules before: by a "
    "DENY, or by a higher tier. This is exact: no request is left for the rule.",
    Severity.WARNING,
)
REDUNDANT = Code(
    "EG6023",
    "rule that another one covers",
    "Wherever the rule applies, another rule with the same effect matches all that it matches. Without it every "
    "decision stays the same; but where it is the only one that looks at paths, paths with an encoded slash are no "
    "longer refused.",
    Severity.INFO,
)
DUPLICATE = Code(
    "EG6024",
    "rule that is written twice",
    "Two rules with the same effect and the same meaning apply to the same workloads. Whoever changes one of them "
    "later changes nothing.",
    Severity.WARNING,
)
ACCESS_POLICY_WINS = Code(
    "EG6025",
    "accessPolicy wider than the policy",
    "What Linkerd lets in on a port is the union of all authorizations: the `accessPolicy` of the Server already lets "
    "in everybody whom this policy names, and others too.",
    Severity.WARNING,
)

NO_TOOL = Code(
    "EG6026",
    "rule that allows no tool",
    "The list of tools is empty. The caller may open a session and list the tools, and may call none of them.",
    Severity.WARNING,
)

# Workloads

LOCKED_OUT = Code(
    "EG6040",
    "workload that nothing can reach",
    "Policies apply to the workload, and none of them allows anything that is not denied before.",
    Severity.WARNING,
)
LAYERS_DISAGREE = Code(
    "EG6041",
    "one layer allows what another denies",
    "Policies of two kinds apply to the workload, and both must allow. A client that the one names is refused by the "
    "other, whatever else the request is.",
    Severity.WARNING,
)
READING_DENY_ONLY = Code(
    "EG6042",
    "the two readings of denyOnly differ here",
    "Only DENY policies target the workload. The drafts say both that the rest is denied and that it is permitted; "
    "the setting `denyOnly` decides.",
    Severity.INFO,
)
READING_SERVICE_TARGET = Code(
    "EG6043",
    "the two readings of serviceTarget differ here",
    "A policy that targets a Service governs its pods, or only the traffic that is addressed to the Service; the "
    "setting `serviceTarget` decides.",
    Severity.INFO,
)
READING_UNLISTED_CALLER = Code(
    "EG6044",
    "the two readings of unlistedCaller differ here",
    "A caller whom no InlineTools rule names is denied, or passes the level; the setting `unlistedCaller` decides.",
    Severity.INFO,
)
READING_AUTHORINO_COMPAT = Code(
    "EG6045",
    "the two readings of authorinoCompat differ here",
    "A `when` that errs denies, or skips what it guards as Authorino does; the setting `authorinoCompat` decides.",
    Severity.INFO,
)
AUDIT_WOULD_CHANGE = Code(
    "EG6046",
    "what an audited policy would change",
    "The policy is annotated `eastgate.dev/mode: audit` and decides nothing yet. This is a request that would get "
    "another verdict if it did.",
    Severity.INFO,
)

# Gateways

UNPROTECTED = Code(
    "EG6060",
    "unprotected beside protected ones",
    "Other routes or backends of the same Gateway have policies; this one has none, and neither has the Gateway.",
    Severity.WARNING,
)
HOST_WITHOUT_SCHEME = Code(
    "EG6061",
    "host that no auth scheme covers",
    "The rules of the AuthPolicy select requests to this host, and no scheme is for it: they are refused (404).",
    Severity.WARNING,
)

# Kuadrant

SET_IN_ANY = Code(
    "EG6070",
    "set of patterns in `any`",
    "A `patternRef` in `any` contributes the patterns of its set one by one, as Authorino flattens it: one of them is "
    "enough, where elsewhere all of them must hold.",
    Severity.WARNING,
)

# Linkerd

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
)
NO_SUCH_AUTHENTICATION = Code(
    "EG6082",
    "authentication that does not exist",
    "A policy that requires an authentication which does not exist authorizes nobody.",
    Severity.WARNING,
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

# Suppressions

NO_REASON = Code(
    "EG6090",
    "suppression that is not understood",
    "A suppression is `<code>: <reason>`, several separated by `;` or a line break. One without a reason suppresses "
    "nothing.",
    Severity.WARNING,
)
SUPPRESSES_NOTHING = Code(
    "EG6091",
    "suppression without a finding",
    "There is nothing here that it suppresses: it can be removed, so that it does not hide something later.",
    Severity.WARNING,
)
