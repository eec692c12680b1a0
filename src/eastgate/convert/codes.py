"""Codes for the losses of a conversion. A result with losses never allows more than its source."""

from eastgate.basics.diagnostics import Code, Severity

NO_WAY = Code(
    "EG7001",
    "no way to this kind",
    "There is no conversion from this kind of policy to the one that was asked for. The policy is not converted "
    "and must stay in force as it is.",
    Severity.WARNING,
)
TIER = Code(
    "EG7002",
    "cluster-wide tiers are not converted",
    "No other API has policies that go before, or behind, those of the namespaces. The policy is not converted: "
    "without it, what an Admin tier denies may be allowed.",
    Severity.WARNING,
)
DENY = Code(
    "EG7003",
    "the target has no DENY",
    "The kind that was asked for can only allow. The policy is not converted: without it, what it denies may be "
    "allowed.",
    Severity.WARNING,
)
LEVEL = Code(
    "EG7004",
    "the target has no APPLICATION level",
    "The kind that was asked for is enforced at L4 and sees no paths and methods. The policy is not converted.",
    Severity.WARNING,
)
SERVICE_SELECTOR = Code(
    "EG7005",
    "a Service became its selector",
    "The target of the conversion selects pods and not Services. What the Service selects now is written instead; "
    "the converted policy does not follow when the Service changes.",
    Severity.WARNING,
)
SERVICE_UNKNOWN = Code(
    "EG7006",
    "a Service cannot be targeted",
    "The target of the conversion selects pods, and no manifest says which pods the Service selects, or only "
    "traffic to the Service is meant (serviceTarget: traffic). The policy is not converted.",
    Severity.WARNING,
)
AUDIT = Code(
    "EG7007",
    "the target cannot audit",
    "The policy only observes (`eastgate.dev/mode: audit`), and the target of the conversion has nothing that "
    "does so surely. The policy is not converted.",
    Severity.WARNING,
)

WIDER = Code(
    "EG7008",
    "the mesh would allow what policies deny",
    "The native policies that would be written were compared with the policies that they stand for, for all requests, "
    "and allow more, since another policy on the same pods cannot be written, or policies of somebody else combine "
    "with them. So nobody reaches these pods.",
    Severity.WARNING,
)


# Istio

SELECTOR = Code(
    "EG7101",
    "Istio cannot select these pods",
    "A selector of Istio has labels with values and no other expressions: NotIn, Exists and DoesNotExist cannot "
    "be said. The policy is not converted, because one that selects other pods would allow there what nobody "
    "wrote.",
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
    "Both levels must allow, and the target has one list of policies, of which any is enough. On exactly the same pods "
    "Istio gets rules that ask for both; otherwise the APPLICATION policy is not converted, and must stay in force "
    "beside the converted ones.",
    Severity.WARNING,
)
NAMESPACE_ACCOUNTS = Code(
    "EG7104",
    "every account of a namespace",
    "Istio matches namespaces by a pattern that also matches identities which are no service accounts of it. "
    "Where the policy allows, the accounts that the manifests know are written instead; where it denies, the "
    "pattern is.",
    Severity.WARNING,
)
TRUST_DOMAIN = Code(
    "EG7105",
    "cluster.local is every trust domain of the mesh",
    "Istio reads the trust domain cluster.local in a principal as the mesh's own and its aliases. Where the "
    "policy allows, the identity is left out; where it denies, more than this identity is denied.",
    Severity.WARNING,
)
WAYPOINT = Code(
    "EG7106",
    "enforced at a waypoint only",
    "Istio enforces a policy on a Service at the waypoint of that Service, and nowhere if there is none. Where "
    "policies on pods or on other levels meet it there, or traffic to the pods themselves is meant too, it is not "
    "converted.",
    Severity.WARNING,
)
PATHS = Code(
    "EG7107",
    "paths are compared as the mesh is configured",
    "By default Istio does not merge slashes and lets encoded slashes and characters (`%40` for `@`) through, and "
    "Linkerd compares paths as they are sent, so that a path may be written in a way that the policy does not match, "
    "or matches where it should not. In Istio configure pathNormalization, and say so with --assume istio-paths; "
    "before Linkerd, let a gateway do it.",
    Severity.WARNING,
)
NOT_HTTP = Code(
    "EG7108",
    "a DENY by path or method also denies what is not HTTP",
    "On a port that does not speak HTTP, Istio leaves paths and methods out of a DENY rule, which then denies more.",
    Severity.WARNING,
)

# AccessPolicy

BASE_PROTOCOL = Code(
    "EG7301",
    "what calling a tool needs beside",
    "In v0alpha0 whoever a rule names may also initialize, ping, list tools, send notifications and discover the "
    "server; in v1alpha1 this is an option without server/discover, that lets completion/* and logging/* through as "
    "well. The result is narrower: in v1alpha1 tools can be called and listed; in v0alpha0 completion/* and logging/* "
    "are denied, and a rule that does not allow server/discover is left out.",
    Severity.WARNING,
)
RULE_LEFT_OUT = Code(
    "EG7302",
    "a rule was left out",
    "The target has no words for this rule. In a policy that allows it is left out, which allows less.",
    Severity.WARNING,
)
POLICY_LEFT_OUT = Code(
    "EG7303",
    "a policy was left out",
    "The target has no words for this policy, and nothing narrower can be said. It is not converted and must stay "
    "in force as it is.",
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
    "ports that no Server has are open",
    "Linkerd governs a port once a Server has it; the others follow the default policy. GEP-3779 governs all "
    "ports of its workloads. Unless that default is deny, the policy is not converted.",
    Severity.WARNING,
)
PORTS_UNKNOWN = Code(
    "EG7402",
    "only declared ports",
    "A Server has one port, so a rule for any port is written for each port that the workloads declare. Ports "
    "that are not declared stay closed.",
    Severity.WARNING,
)
PROBES = Code(
    "EG7403",
    "probes of the kubelet",
    "Linkerd lets everybody in on the path of an HTTP probe, and GEP-3779 does not. Going to Linkerd, the policy "
    "is not converted unless linkerdProbeNetworks is empty; coming from it, the kubelet needs a rule of its own.",
    Severity.WARNING,
)
SERVERS_MEET = Code(
    "EG7404",
    "two Servers for one port",
    "In Linkerd one Server owns a port of a pod and the others count for nothing. The policy is not converted.",
    Severity.WARNING,
)
ROUTES = Code(
    "EG7405",
    "routes",
    "Of the routes of a Server only the closest match counts, and a rule has no such order. What more than one "
    "route matches is allowed to fewer callers; coming from Linkerd, a Server with routes is not converted.",
    Severity.WARNING,
)
CLIENT = Code(
    "EG7406",
    "clients that cannot be named",
    "Networks, names outside of the mesh and patterns over names are no identities or service accounts. What only "
    "lets such clients in is left out, which allows less.",
    Severity.WARNING,
)
OTHER_PORTS = Code(
    "EG7407",
    "the default policy of other ports",
    "In Linkerd ports without a Server follow the default policy; in GEP-3779 they are closed once a policy "
    "targets the workload. Declared ports get a rule where the default lets everybody in; the others are closed.",
    Severity.WARNING,
)


# From Istio; some also occur in the other direction

AUTHENTICATION = Code(
    "EG7501",
    "tokens and mTLS stay with Istio",
    "No other API says which tokens are accepted, or where plaintext is: a RequestAuthentication or PeerAuthentication "
    "is not converted, and must stay in force.",
    Severity.WARNING,
)
ACTION = Code(
    "EG7502",
    "CUSTOM and AUDIT stay with Istio",
    "No other API asks a provider of the mesh, or logs what a rule matches. The policy is not converted.",
    Severity.WARNING,
)
ATTACHMENT = Code(
    "EG7503",
    "the policy is about more than pods",
    "Istio attaches the policy to Gateways, Services or waypoints, sees a waypoint in the place of the caller, or has "
    "no identities on some ports. A policy on pods would mean something else. The policy is not converted.",
    Severity.WARNING,
)
ROOT_COPIES = Code(
    "EG7504",
    "a policy of the whole mesh became one for each namespace",
    "In its root namespace a policy of Istio applies to all namespaces. What it became is in the namespaces that the "
    "manifests have; in any other, nothing of it is in force.",
    Severity.WARNING,
)
FIELD = Code(
    "EG7505",
    "a rule that the target has no words for",
    "Hosts, addresses, tokens, headers, path templates and what must not match cannot be said. What asks for them is "
    "left out of an ALLOW, which allows less. A DENY, and an ALLOW of which no rule is left, is not converted.",
    Severity.WARNING,
)
CALLERS = Code(
    "EG7506",
    "callers by patterns",
    "Istio matches namespaces and service accounts of any trust domain, identities below those of accounts, and "
    "patterns. In an ALLOW those callers stay who can be named, or are known to match; a DENY is converted only where "
    "all of its callers can be named.",
    Severity.WARNING,
)
POLICIES_MEET = Code(
    "EG7507",
    "policies that must not be put into one list, or apart",
    "Of the ALLOW policies of one API any is enough, and of two APIs each must allow. What meets a policy that is of "
    "the other API already, or stays where it is, is not converted: it would become wider, or of no use.",
    Severity.WARNING,
)
ZTUNNEL = Code(
    "EG7508",
    "ztunnel drops a part of this rule",
    "ztunnel sees connections only. It leaves out ALLOW rules with fields of HTTP, and so does the conversion; of a "
    "DENY it drops the fields, and often the rule. What is converted denies what is written, which is more.",
    Severity.WARNING,
)
