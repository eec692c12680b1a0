"""Codes of findings about network policies: valid policies that are probably not what the author meant."""

from eastgate.basics.diagnostics import Code, Severity

NO_PEER = Code(
    "EG6301",
    "peer that matches no pod",
    "No pod of the manifests has these labels in these namespaces, although there are pods in them. The entry matches "
    "nothing: connections that it should allow stay closed, or connections that it should deny stay open.",
    Severity.WARNING,
    wrong="# a policy of namespace data; the pods with this label are in shop\n"
    "from:\n"
    "- podSelector: {matchLabels: {app: orders-api}}\n",
    right="from:\n"
    "- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}\n"
    "  podSelector: {matchLabels: {app: orders-api}}\n",
)
NO_PEER_NAMESPACE = Code(
    "EG6302",
    "peer in namespaces that do not exist",
    "No namespace of the manifests has these labels. It may be missing from the manifests, or the label is wrong. "
    "Every Namespace has its name in `kubernetes.io/metadata.name`.",
    Severity.INFO,
)
ALLOWS_EVERYTHING = Code(
    "EG6303",
    "rule that allows everything",
    "A rule `{}` allows all traffic of its direction, also with addresses outside the cluster, even if other rules and "
    "policies allow less. An empty list of rules, `[]`, allows nothing.",
    Severity.INFO,
)
AND_OR = Code(
    "EG6304",
    "namespaceSelector beside a podSelector",
    "Two entries of a list of peers match either: the pods of the policy's own namespace, and ALL pods of the other "
    "namespaces. For pods with these labels in those namespaces, write both selectors in one entry.",
    Severity.WARNING,
    wrong="from:\n- namespaceSelector: {matchLabels: {team: shop}}\n- podSelector: {matchLabels: {app: orders-api}}\n",
    right="from:\n- namespaceSelector: {matchLabels: {team: shop}}\n  podSelector: {matchLabels: {app: orders-api}}\n",
)
DNS_BLOCKED = Code(
    "EG6305",
    "egress without DNS",
    "The pod may open connections, but not to the DNS of the cluster (port 53). So it cannot resolve the names of its "
    "destinations.",
    Severity.WARNING,
    wrong="egress:\n- to: [{podSelector: {matchLabels: {app: db}}}]\n",
    right="egress:\n"
    "- to: [{podSelector: {matchLabels: {app: db}}}]\n"
    "- to: [{namespaceSelector: {}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]\n"
    "  ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]\n",
)
DNS_BY_TCP = Code(
    "EG6306",
    "DNS without TCP",
    "Queries by UDP are allowed, but not by TCP: answers that are too long for UDP are lost.",
    Severity.INFO,
    wrong="ports: [{protocol: UDP, port: 53}]\n",
    right="ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]\n",
)
PORT_NAME = Code(
    "EG6307",
    "port name that no destination has",
    "A port name means the port with this name and protocol at the destination. A pod without such a port is not "
    "matched by the entry.",
    Severity.WARNING,
)
UNUSED_RULES = Code(
    "EG6308",
    "rules of a direction that is not in policyTypes",
    "A NetworkPolicy applies to the directions in its policyTypes. Rules of the other direction have no effect, and do "
    "not isolate.",
    Severity.WARNING,
)
EGRESS_OPEN = Code(
    "EG6309",
    "egress that stays open",
    "Without policyTypes, a NetworkPolicy applies to egress only if it has an egress rule. `egress: []` alone looks "
    "as if it denied all egress, and has no effect.",
    Severity.WARNING,
    wrong="egress: []\n",
    right="policyTypes: [Egress]\negress: []\n",
)
INGRESS_CLOSED = Code(
    "EG6310",
    "ingress that closes too",
    "Without policyTypes, a NetworkPolicy always applies to ingress. With only egress rules, it allows no ingress.",
    Severity.WARNING,
    wrong="egress:\n- to: [{podSelector: {matchLabels: {app: db}}}]\n",
    right="policyTypes: [Egress]\negress:\n- to: [{podSelector: {matchLabels: {app: db}}}]\n",
)
UNREACHED = Code(
    "EG6311",
    "rule that is never reached",
    "On every pod that the policy selects, earlier rules decide all connections of this one: earlier rules of its own "
    "policy, of policies with a lower priority number, or of an earlier tier. This is exact.",
    Severity.WARNING,
)
BASELINE_UNREACHED = Code(
    "EG6312",
    "baseline that is never reached",
    "NetworkPolicies select every pod of this policy, for each direction of its rules. For such pods, the baseline has "
    "no effect.",
    Severity.WARNING,
)
EQUAL_PRIORITY = Code(
    "EG6313",
    "equal priorities",
    "Two policies of one tier and priority select the same pods, and their order is not defined. Eastgate allows only "
    "connections that every order allows.",
    Severity.WARNING,
)
TWO_GENERATIONS = Code(
    "EG6314",
    "AdminNetworkPolicy beside ClusterNetworkPolicy",
    "ClusterNetworkPolicy replaces the two kinds of v1alpha1. A network that enforces both has no defined order for "
    "them, and most enforce only one of them. Eastgate allows only connections that every order allows.",
    Severity.WARNING,
)
ONE_SIDE = Code(
    "EG6315",
    "opened at one end only",
    "The rule allows these pods, but policies at the other end refuse the connection on every port. Both ends must "
    "allow. A rule for all pods of a namespace is reported only if all of them refuse.",
    Severity.WARNING,
)
HOST_NETWORK = Code(
    "EG6316",
    "pods in the network of their node",
    "Pods with `hostNetwork: true` have the address of their node. Policies do not select them, and selectors of peers "
    "do not match them. Most networks cannot distinguish them from other programs of the node.",
    Severity.INFO,
)
POD_ADDRESSES = Code(
    "EG6317",
    "block with addresses of pods",
    "This block contains addresses of pods. By the API it matches them, but Cilium does not match pods by blocks. So "
    "the effect depends on the cluster.",
    Severity.INFO,
)
EXCEPTION_REOPENED = Code(
    "EG6318",
    "exception that another entry opens",
    "An exception takes addresses out of its own block only. Another entry of the same list still matches them.",
    Severity.WARNING,
)
TUNNEL_BLOCKED = Code(
    "EG6319",
    "policy that stops the tunnel of the mesh",
    "Between pods of an ambient mesh the network sees port 15008 (HBONE), and not the port of the application. The "
    "answers of Eastgate use the port of the application.",
    Severity.WARNING,
)
