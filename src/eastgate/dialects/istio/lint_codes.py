"""Codes of findings about Istio's policies: valid policies that are probably not what the author meant."""

from eastgate.basics.diagnostics import Code, Severity

# Codes of findings about the proxies: valid policies that proxies enforce differently from their text


NOTHING_AT_ZTUNNEL = Code(
    "EG6131",
    "rule without effect at ztunnel",
    "ztunnel sees connections and no HTTP. A DENY rule with a part that reads only HTTP denies nothing there. The same "
    "is true of a part with only trustDomains. A waypoint enforces such rules, by a policy with targetRefs.",
)
WIDER_AT_ZTUNNEL = Code(
    "EG6132",
    "rule that is wider at ztunnel",
    "ztunnel leaves out the fields that need HTTP, and trustDomains, so the rule matches more than its text says.",
)
LEFT_OUT_AT_ZTUNNEL = Code(
    "EG6133",
    "rule that allows nothing at ztunnel",
    "ztunnel drops an ALLOW rule that reads HTTP, and its policy still denies connections that no rule allows. A "
    "waypoint enforces such rules, by a policy with targetRefs.",
    Severity.WARNING,
)
ACTION_AT_ZTUNNEL = Code(
    "EG6134",
    "action that ztunnel does not have",
    "ztunnel allows and denies. Policies with the actions CUSTOM and AUDIT are not enforced there.",
)
NO_PROXY = Code(
    "EG6135",
    "policy on a workload without a proxy",
    "No label of the pod and its namespace gives it a sidecar or ztunnel, so that no proxy enforces the policy. Label "
    "it, or name the proxies with istioDataPlane. Connections to a port that the annotation "
    "`traffic.sidecar.istio.io/excludeInboundPorts` names, or `includeInboundPorts` does not, bypass the sidecar.",
    Severity.WARNING,
    wrong="kind: Namespace\nmetadata: {name: shop}\n",
    right="kind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n",
)
NOT_BOUND = Code(
    "EG6136",
    "target that no waypoint enforces",
    "Only its waypoint enforces a policy on a Service. The label istio.io/use-waypoint must name the waypoint, which "
    "must accept Services and, by its listener, the namespace. A headless Service (clusterIP: None) has no waypoint: "
    "clients call its pods, which have the waypoint of the workload.",
)
ONLY_WAYPOINTS = Code(
    "EG6137",
    "selector that matches only waypoints",
    "Waypoints enforce only policies with targetRefs. They ignore policies that select their pods by labels.",
)
MODES_OF_ONE_AGE = Code(
    "EG6139",
    "PeerAuthentications of one age that differ",
    "Of several PeerAuthentications at one level, the oldest counts. If they have one age, ztunnel may use any of "
    "them, and another one after a restart of istiod. Eastgate tries each, and allows only requests that all of them "
    "allow. Policies without a creationTimestamp have one age.",
    Severity.WARNING,
)
MODE_NOT_ENFORCED = Code(
    "EG6138",
    "mode of mTLS that is not enforced",
    "Istio ignores a selector in the root namespace. At ztunnel, the mode STRICT of a port may be lost if modes of "
    "ports and of the mesh are combined, and DISABLE of a port is not an exception.",
)
UNKNOWN_PROXY = Code(
    "EG6140",
    "policy on a workload whose proxy is unknown",
    "The manifests label no namespace and no pod for Istio. So it is unknown whether the pod has a proxy that enforces "
    "the policy. Eastgate tries a sidecar and no proxy, and allows only requests that are allowed in both cases. Label "
    "the namespace, or name the proxies with istioDataPlane.",
    Severity.INFO,
)
TOKENS_AT_ZTUNNEL = Code(
    "EG6128",
    "RequestAuthentication that ztunnel ignores",
    "ztunnel sees connections and no tokens. A waypoint validates tokens, by a RequestAuthentication with targetRefs.",
    Severity.WARNING,
)


CLOSES_TCP = Code(
    "EG6111",
    "DENY that closes TCP ports",
    "Fields of HTTP do not count without HTTP. A DENY rule loses them there, so that it denies connections that it "
    "should not deny, or all of them. Name the ports that speak HTTP.",
    Severity.WARNING,
    wrong="action: DENY\nrules:\n- to: [{operation: {methods: [DELETE]}}]\n",
    right='action: DENY\nrules:\n- to: [{operation: {methods: [DELETE], ports: ["8080"]}}]\n',
)
LITERAL_WILDCARD = Code(
    "EG6112",
    "wildcard that is a character",
    "A `*` is a wildcard only at one end of a value: a leading one, or else one at the end. Any other `*` is a "
    "character, so that the value matches nothing that exists: a DENY denies nothing.",
    wrong='paths: ["/api/*/users"]\n',
    right='paths: ["/api/{*}/users"]\n',
)
EMPTY_ENTRIES = Code(
    "EG6113",
    "empty list that matches everything",
    "Istio reads `from: []` and `to: []` like missing lists: the rule matches any source, or any operation.",
)
HOST_BITS = Code(
    "EG6114",
    "network with host bits",
    "The bits after the prefix do not count. Perhaps one address was intended, or another prefix.",
    Severity.INFO,
)
DENY_BY_DEFAULT = Code(
    "EG6115",
    "ALLOW for all workloads",
    "If an ALLOW policy applies to a workload, requests that no ALLOW policy allows are denied. Without a selector it "
    "applies to all workloads of its namespace, or of the mesh.",
    Severity.INFO,
)
NO_PROVIDER = Code(
    "EG6116",
    "provider that is not valid",
    "The MeshConfig has no valid extension provider with this name, or policies name several providers for one "
    "workload. Istio then denies requests that match the rules.",
    Severity.WARNING,
    needs_cluster=True,
)
FAILS_OPEN = Code(
    "EG6117",
    "provider that fails open",
    "With `failOpen`, requests pass if the provider cannot be reached. An attacker who can stop it can pass.",
    Severity.WARNING,
)
CROSSING_PATTERN = Code(
    "EG6118",
    "pattern of namespaces that matches all",
    "Sidecars search for a namespace as `/ns/<pattern>/` in the whole identity, and a `*` in it also matches slashes. "
    "A pattern whose end is also the end of `/sa` matches every account of every namespace.",
)
EMPTY_SELECTOR = Code(
    "EG6119",
    "empty selector that selects nothing",
    "For sidecars, `selector: {}` is the same as none. At ztunnel, a policy with it is not enforced on any workload: a "
    "DENY denies nothing.",
)
MAPPED_NETWORK = Code(
    "EG6120",
    "IPv4 network that is written as IPv6",
    "Eastgate reads `::ffff:10.0.0.0/104` as 10.0.0.0/8. Istio's proxies compare it with IPv6 callers only, so that a "
    "DENY denies no IPv4 caller there.",
)
TWO_RULES = Code(
    "EG6121",
    "two rules instead of one",
    "Rules of a policy are alternatives. A rule with `from` alone allows these callers everything, and a rule with "
    "`to` alone allows these requests to every caller. For these requests from these callers, write `from` and `to` "
    "in one rule.",
    Severity.WARNING,
    wrong="rules:\n- from:\n  - source: {namespaces: [front]}\n- to:\n  - operation: {methods: [GET]}\n",
    right="rules:\n- from:\n  - source: {namespaces: [front]}\n  to:\n  - operation: {methods: [GET]}\n",
)
NO_SUCH_REQUEST = Code(
    "EG6122",
    "value that no request has",
    "Istio compares methods, paths, hosts, namespaces and request principals with the text as it is written. Methods "
    "are in capitals, a path begins with `/` and has no query, a host has no scheme, and a request principal is the "
    "issuer of a token, a slash and its subject. Another value matches nothing: an ALLOW rule allows nothing, and a "
    "DENY rule denies nothing.",
    Severity.WARNING,
    wrong="operation: {methods: [get], paths: [health]}\n",
    right="operation: {methods: [GET], paths: [/health]}\n",
)
NO_SUCH_PRINCIPAL = Code(
    "EG6123",
    "principal that no caller has",
    "The principal of a service account is `<trust domain>/ns/<namespace>/sa/<name>`, without `spiffe://`. Istio "
    "compares any other text as it is, so that it matches no caller: an ALLOW rule allows nothing, and a DENY rule "
    "denies nothing.",
    Severity.WARNING,
    wrong='principals: ["spiffe://cluster.local/ns/front/sa/web", "front/web"]\n',
    right="principals: [cluster.local/ns/front/sa/web]\n",
)
NO_TOKENS = Code(
    "EG6124",
    "token that nothing validates",
    "A workload knows the principal and the claims of a token only if a RequestAuthentication applies to that "
    "workload; one at the ingress gateway is not enough. Without it, requests have no principal and no claims there: "
    "`requestPrincipals` and `request.auth.claims` match nothing, and `notRequestPrincipals` matches every request.",
    Severity.WARNING,
    wrong="kind: AuthorizationPolicy\n"
    "spec:\n"
    "  selector: {matchLabels: {app: web}}\n"
    "  rules:\n"
    '  - from: [{source: {requestPrincipals: ["*"]}}]\n',
    right="kind: RequestAuthentication\n"
    "spec:\n"
    "  selector: {matchLabels: {app: web}}\n"
    "  jwtRules: [{issuer: https://id.example.com, jwksUri: https://id.example.com/keys}]\n",
)
HTTP_ON_TCP = Code(
    "EG6125",
    "HTTP fields on a TCP port",
    "Istio knows from the name of a Service's port, or its `appProtocol`, that it does not speak HTTP. On such a port "
    "it drops every ALLOW rule with `methods`, `paths`, `hosts`, `requestPrincipals`, or conditions on headers or "
    "tokens. The policy still denies what no rule allows.",
    Severity.WARNING,
    wrong="# the port of the Service is called tcp-postgres\n"
    "rules:\n"
    "- from: [{source: {namespaces: [shop]}}]\n"
    "  to: [{operation: {methods: [GET]}}]\n",
    right='rules:\n- from: [{source: {namespaces: [shop]}}]\n  to: [{operation: {ports: ["5432"]}}]\n',
)
NO_MTLS = Code(
    "EG6126",
    "identity where mTLS is off",
    "A PeerAuthentication turns mutual TLS off for the workload, so that no caller has an identity there: principals, "
    "namespaces and service accounts match nothing.",
    Severity.WARNING,
)
OVERRIDDEN = Code(
    "EG6127",
    "PeerAuthentication without effect",
    "Of several PeerAuthentications at one level (the mesh, a namespace, a workload), only the oldest counts. If they "
    "have one age, the first by name counts. Istio does not merge them.",
    Severity.WARNING,
)
