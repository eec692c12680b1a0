"""Codes for the losses of a conversion. A result with losses never allows more than its source."""

from eastgate.basics.diagnostics import Code, Severity

NO_CONVERSION = Code(
    "EG7001",
    "no way to this kind",
    "There is no conversion from this kind of policy to the requested kind. The policy is not converted and must stay "
    "in force.",
    Severity.WARNING,
)
TIER = Code(
    "EG7002",
    "cluster-wide tiers are not converted",
    "No other API has tiers of policies before or after those of the namespaces. The policy is not converted: without "
    "it, requests that an Admin tier denies may be allowed.",
    Severity.WARNING,
)
DENY = Code(
    "EG7003",
    "the target has no DENY",
    "The requested kind can only allow. The policy is not converted: without it, requests that it denies may be "
    "allowed.",
    Severity.WARNING,
)
LEVEL = Code(
    "EG7004",
    "the target has no APPLICATION level",
    "The requested kind is enforced at L4 and sees no paths and methods. The policy is not converted.",
    Severity.WARNING,
)
SERVICE_SELECTOR = Code(
    "EG7005",
    "a Service became its selector",
    "The target of the conversion selects pods and not Services. The current selector of the Service is written "
    "instead. The converted policy does not follow changes of the Service.",
    Severity.WARNING,
)
SERVICE_UNKNOWN = Code(
    "EG7006",
    "a Service cannot be targeted",
    "The target of the conversion selects pods. Either no manifest shows which pods the Service selects, or the "
    "policy is only for traffic to the Service (serviceTarget: traffic). The policy is not converted.",
    Severity.WARNING,
)
AUDIT = Code(
    "EG7007",
    "the target cannot audit",
    "The policy only observes (`eastgate.dev/mode: audit`), and the target of the conversion has no reliable "
    "equivalent. The policy is not converted.",
    Severity.WARNING,
)

WIDER = Code(
    "EG7008",
    "the mesh would allow requests that policies deny",
    "Eastgate compared the native policies with their source policies for all requests. The native policies allow "
    "more, because another policy on the same pods cannot be written, or because other native policies combine with "
    "them. So the mesh denies every request to these pods.",
    Severity.WARNING,
)


# Istio

SELECTOR = Code(
    "EG7101",
    "Istio cannot select these pods",
    "A selector of Istio has labels with values only. It cannot express NotIn, Exists and DoesNotExist. The policy is "
    "not converted, because a policy that selects other pods would allow requests to them.",
    Severity.WARNING,
)
ROOT_NAMESPACE = Code(
    "EG7102",
    "Istio's root namespace means the whole mesh",
    "In its root namespace a policy of Istio applies to all namespaces. The policy is not converted.",
    Severity.WARNING,
)
LEVELS = Code(
    "EG7103",
    "NETWORK and APPLICATION meet on a workload",
    "Both levels must allow, and the target has one list of policies, where any policy is enough. If both levels "
    "select exactly the same pods, Istio gets rules that require both. Otherwise the APPLICATION policy is not "
    "converted, and must stay in force beside the converted ones.",
    Severity.WARNING,
)
NAMESPACE_ACCOUNTS = Code(
    "EG7104",
    "every account of a namespace",
    "Istio matches namespaces by a pattern. The pattern also matches identities that are no service accounts of the "
    "namespace. An ALLOW gets the known service accounts instead. A DENY gets the pattern.",
    Severity.WARNING,
)
TRUST_DOMAIN = Code(
    "EG7105",
    "cluster.local is every trust domain of the mesh",
    "Istio reads the trust domain cluster.local in a principal as the trust domain of the mesh and its aliases. An "
    "ALLOW leaves the identity out. A DENY then denies more than this identity.",
    Severity.WARNING,
)
WAYPOINT = Code(
    "EG7106",
    "enforced at a waypoint only",
    "Istio enforces a policy on a Service at the waypoint of that Service. Without a waypoint, the policy is not "
    "enforced. The policy is not converted if it meets policies on pods or on other levels there, or if it also "
    "governs traffic to the pods themselves.",
    Severity.WARNING,
)
PATHS = Code(
    "EG7107",
    "paths are compared as the mesh is configured",
    "By default Istio does not merge slashes, and forwards encoded slashes and characters (`%40` for `@`). Linkerd "
    "compares paths as clients send them. So a client may write a path in a form that the policy does not match, or "
    "that it matches by mistake. In Istio configure pathNormalization and add --assume istio-paths. For Linkerd, let "
    "a gateway normalize paths.",
    Severity.WARNING,
)
NOT_HTTP = Code(
    "EG7108",
    "a DENY by path or method also denies traffic that is not HTTP",
    "On a port that does not speak HTTP, Istio leaves paths and methods out of a DENY rule, which then denies more.",
    Severity.WARNING,
)

# AccessPolicy

BASE_PROTOCOL = Code(
    "EG7301",
    "the base protocol of tool calls",
    "In v0alpha0 every caller that a rule names may also initialize, ping, list tools, send notifications and "
    "discover the server. In v1alpha1 this is an option. It does not include server/discover, and it includes "
    "completion/* and logging/*. The result is narrower: in v1alpha1 callers can call and list tools. In v0alpha0 "
    "completion/* and logging/* are denied, and a rule that does not allow server/discover is left out.",
    Severity.WARNING,
)
RULE_LEFT_OUT = Code(
    "EG7302",
    "a rule was left out",
    "The target cannot express this rule. In a policy that allows, the rule is left out, which allows less.",
    Severity.WARNING,
)
POLICY_LEFT_OUT = Code(
    "EG7303",
    "a policy was left out",
    "The target can express neither this policy nor a narrower one. The policy is not converted and must stay in "
    "force.",
    Severity.WARNING,
)

GRANT = Code(
    "EG7304",
    "a ReferenceGrant has to name another group",
    "The two forms are in different API groups, and a ReferenceGrant for an authorizer in another namespace names the "
    "group. Until it names the new one, the reference is not granted, which denies.",
    Severity.WARNING,
)


# Linkerd

DEFAULT_OPEN = Code(
    "EG7401",
    "ports without a Server are open",
    "Linkerd governs a port once a Server selects it. The other ports follow the default policy. GEP-3779 governs all "
    "ports of its workloads. Unless the default policy is deny, the policy is not converted.",
    Severity.WARNING,
)
PORTS_UNKNOWN = Code(
    "EG7402",
    "only declared ports",
    "A Server has one port, so a rule for any port is written for each port that the workloads declare. Undeclared "
    "ports stay closed.",
    Severity.WARNING,
)
PROBES = Code(
    "EG7403",
    "probes of the kubelet",
    "Linkerd allows every caller on the path of an HTTP probe, and GEP-3779 does not. A conversion to Linkerd needs "
    "an empty linkerdProbeNetworks; otherwise the policy is not converted. After a conversion from Linkerd, the "
    "kubelet needs its own rule.",
    Severity.WARNING,
)
SERVERS_MEET = Code(
    "EG7404",
    "two Servers for one port",
    "In Linkerd one Server owns a port of a pod, and the others have no effect there. The policy is not converted.",
    Severity.WARNING,
)
ROUTES = Code(
    "EG7405",
    "routes",
    "Only the closest matching route of a Server counts, and rules have no such order. So a request that several "
    "routes match is allowed for fewer callers. In a conversion from Linkerd, a Server with routes is not converted.",
    Severity.WARNING,
)
CLIENT = Code(
    "EG7406",
    "clients that cannot be named",
    "Networks, names outside of the mesh and name patterns are neither identities nor service accounts. Rules for "
    "such clients are left out, which allows less.",
    Severity.WARNING,
)
OTHER_PORTS = Code(
    "EG7407",
    "the default policy of other ports",
    "In Linkerd ports without a Server follow the default policy. In GEP-3779 they are closed once a policy targets "
    "the workload. Declared ports get a rule if the default policy allows every caller. The others are closed.",
    Severity.WARNING,
)


# From Istio; some also occur in the other direction

AUTHENTICATION = Code(
    "EG7501",
    "tokens and mTLS stay with Istio",
    "No other API defines which tokens are accepted, or where plaintext is allowed. A RequestAuthentication or "
    "PeerAuthentication is not converted, and must stay in force.",
    Severity.WARNING,
)
ACTION = Code(
    "EG7502",
    "CUSTOM and AUDIT stay with Istio",
    "No other API asks a provider of the mesh, or logs the requests that a rule matches. The policy is not converted.",
    Severity.WARNING,
)
ATTACHMENT = Code(
    "EG7503",
    "the policy does not apply to pods alone",
    "Istio attaches the policy to Gateways, Services or waypoints, sees a waypoint instead of the caller, or has no "
    "identities on some ports. A policy on pods would have another meaning. The policy is not converted.",
    Severity.WARNING,
)
ROOT_COPIES = Code(
    "EG7504",
    "a policy of the whole mesh became one for each namespace",
    "In its root namespace a policy of Istio applies to all namespaces. The converted policies are in the namespaces "
    "of the manifests. In any other namespace the policy is no longer in force.",
    Severity.WARNING,
)
FIELD = Code(
    "EG7505",
    "a rule that the target cannot express",
    "The target cannot express hosts, addresses, tokens, headers, path templates and exclusions. A rule with these is "
    "left out of an ALLOW, which allows less. A DENY with such a rule, and an ALLOW without other rules, is not "
    "converted.",
    Severity.WARNING,
)
CALLERS = Code(
    "EG7506",
    "callers by patterns",
    "Istio matches namespaces and service accounts of any trust domain, identities below those of accounts, and "
    "patterns. An ALLOW keeps the callers that the target can name, and the known accounts that match. A DENY is "
    "converted only if the target can name all of its callers.",
    Severity.WARNING,
)
POLICIES_MEET = Code(
    "EG7507",
    "policies that must not be combined, or must not be separated",
    "In one API any ALLOW policy is enough. In two APIs each must allow. So a policy is not converted if it shares "
    "pods with a policy of the other API, or with an unconverted one: it would become wider, or have no effect.",
    Severity.WARNING,
)
ZTUNNEL = Code(
    "EG7508",
    "ztunnel drops a part of this rule",
    "ztunnel sees connections only. It leaves out ALLOW rules with fields of HTTP, and so does the conversion. From a "
    "DENY it drops the fields, and often the rule. The converted DENY has the rule as written, which denies more.",
    Severity.WARNING,
)
