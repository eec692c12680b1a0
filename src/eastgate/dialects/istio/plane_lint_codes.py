"""Codes of findings about what Istio's proxies make of policies: valid, and enforced otherwise than they say."""

from eastgate.basics.diagnostics import Code, Severity

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
