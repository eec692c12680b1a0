"""Codes of findings about Istio's policies: valid policies that are probably not what the author meant."""

from eastgate.basics.diagnostics import Code, Severity

# Codes of findings about the proxies: valid policies that proxies enforce differently from their text


NOTHING_AT_ZTUNNEL = Code(
    "EG6131",
    "rule that does nothing at ztunnel",
    "ztunnel sees connections and no HTTP. A DENY rule of which a part looks at HTTP alone denies nothing there, and "
    "so does one that looks at trustDomains alone. A waypoint enforces such rules, by a policy with targetRefs.",
)
WIDER_AT_ZTUNNEL = Code(
    "EG6132",
    "rule that is wider at ztunnel",
    "ztunnel leaves out the fields that need HTTP, and trustDomains, so that the rule matches more than it says.",
)
LEFT_OUT_AT_ZTUNNEL = Code(
    "EG6133",
    "rule that allows nothing at ztunnel",
    "An ALLOW rule that looks at anything of HTTP is left out at ztunnel, and its policy still denies what no rule "
    "allows. A waypoint enforces such rules, by a policy with targetRefs.",
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
    "No label of the pod and its namespace gives it a sidecar or ztunnel, so that nobody enforces the policy. Label "
    "it, or say with istioDataPlane which proxies there are. Connections to a port that the annotation "
    "`traffic.sidecar.istio.io/excludeInboundPorts` names, or `includeInboundPorts` does not, go round the sidecar.",
    Severity.WARNING,
    wrong="kind: Namespace\nmetadata: {name: shop}\n",
    right="kind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n",
)
NOT_BOUND = Code(
    "EG6136",
    "target that no waypoint enforces",
    "A policy on a Service is enforced by its waypoint alone: one that istio.io/use-waypoint names, that takes "
    "Services, and whose listener lets the namespace in. A headless Service (clusterIP: None) has none: who calls it "
    "calls its pods, which have the waypoint of the workload.",
)
ONLY_WAYPOINTS = Code(
    "EG6137",
    "selector that meets only waypoints",
    "Waypoints take policies with targetRefs alone: what selects their pods by labels is ignored.",
)
MODES_OF_ONE_AGE = Code(
    "EG6139",
    "PeerAuthentications of one age that differ",
    "Of several PeerAuthentications at one level the oldest counts. If they have one age, ztunnel may obey any of "
    "them, and another one after a restart of istiod. Eastgate tries each, and allows only what all of them allow. "
    "Policies without a creationTimestamp have one age.",
    Severity.WARNING,
)
MODE_NOT_ENFORCED = Code(
    "EG6138",
    "mode of mTLS that is not enforced",
    "Istio ignores a selector in the root namespace. At ztunnel, the mode STRICT of a port may be lost where modes of "
    "ports and of the mesh meet, and DISABLE of a port makes no exception.",
)
UNKNOWN_PROXY = Code(
    "EG6140",
    "policy on a workload whose proxy is unknown",
    "The manifests label no namespace and no pod for Istio, so that they do not say whether the pod has a proxy that "
    "enforces the policy. Eastgate tries a sidecar and no proxy, and allows only what both allow. Label the namespace, "
    "or say with istioDataPlane which proxies there are.",
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
    "Fields of HTTP do not count where there is no HTTP. Of a DENY rule that looks at them nothing is left there, or "
    "only the rest, so that connections are denied which the rule does not mean. Name the ports that speak HTTP.",
    Severity.WARNING,
    wrong="action: DENY\nrules:\n- to: [{operation: {methods: [DELETE]}}]\n",
    right='action: DENY\nrules:\n- to: [{operation: {methods: [DELETE], ports: ["8080"]}}]\n',
)
LITERAL_WILDCARD = Code(
    "EG6112",
    "wildcard that is a character",
    "A `*` stands for any text only at one end of a value: a leading one is looked for first, then one at the end. Any "
    "other is compared as it is, so that the value matches nothing that exists: a DENY denies nothing.",
    wrong='paths: ["/api/*/users"]\n',
    right='paths: ["/api/{*}/users"]\n',
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
    needs_cluster=True,
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
TWO_RULES = Code(
    "EG6121",
    "two rules where one was meant",
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
    "PeerAuthentication that does not count",
    "Of several PeerAuthentications of one level (the mesh, a namespace, a workload) only the oldest counts, and of "
    "those of one age the first by name. Istio does not merge them.",
    Severity.WARNING,
)
