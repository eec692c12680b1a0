"""Codes of findings about network policies: valid, and probably not what the author meant."""

from eastgate.basics.diagnostics import Code, Severity

NO_PEER = Code(
    "EG6301",
    "peer that no pod is",
    "No pod of the manifests has these labels in these namespaces, although there are pods in them. The entry matches "
    "nothing, and what it was meant to allow is closed, or what it was meant to deny is open.",
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
    "No namespace of the manifests has these labels. It may be missing from the manifests; or a label is meant that no "
    "Namespace has: the name of a namespace is in `kubernetes.io/metadata.name`, which every one has.",
    Severity.INFO,
)
ALLOWS_EVERYTHING = Code(
    "EG6303",
    "rule that allows everything",
    "A rule `{}` allows all traffic of its direction, also with addresses outside of the cluster, whatever other rules "
    "and policies allow. An empty list of rules, `[]`, allows nothing.",
    Severity.INFO,
)
AND_OR = Code(
    "EG6304",
    "namespaceSelector beside a podSelector",
    "Two entries of a list of peers mean either: the pods of the policy's own namespace, and ALL pods of the other "
    "namespaces. For pods with these labels in those namespaces, write both selectors in one entry.",
    Severity.WARNING,
    wrong="from:\n- namespaceSelector: {matchLabels: {team: shop}}\n- podSelector: {matchLabels: {app: orders-api}}\n",
    right="from:\n- namespaceSelector: {matchLabels: {team: shop}}\n  podSelector: {matchLabels: {app: orders-api}}\n",
)
DNS_BLOCKED = Code(
    "EG6305",
    "egress without DNS",
    "Something may go out, but no query to the DNS of the cluster (port 53): the pod cannot resolve the names of what "
    "it may reach.",
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
    "Queries by UDP may go out, those by TCP may not: answers that are too long for UDP are lost.",
    Severity.INFO,
    wrong="ports: [{protocol: UDP, port: 53}]\n",
    right="ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]\n",
)
PORT_NAME = Code(
    "EG6307",
    "port name that no destination has",
    "The name of a port means the port of that name and protocol of the destination. Where a pod has none, the entry "
    "matches nothing there.",
    Severity.WARNING,
)
UNUSED_RULES = Code(
    "EG6308",
    "rules of a direction that is not in policyTypes",
    "A NetworkPolicy is about the directions that its policyTypes list. Rules of the other do nothing, and do not "
    "isolate.",
    Severity.WARNING,
)
EGRESS_OPEN = Code(
    "EG6309",
    "egress that stays open",
    "Without policyTypes, a NetworkPolicy is about egress only if it has an egress rule. `egress: []` alone reads as "
    "if nothing may go out, and changes nothing.",
    Severity.WARNING,
    wrong="egress: []\n",
    right="policyTypes: [Egress]\negress: []\n",
)
INGRESS_CLOSED = Code(
    "EG6310",
    "ingress that closes too",
    "Without policyTypes, a NetworkPolicy is always about ingress: one with egress rules alone lets nothing in.",
    Severity.WARNING,
    wrong="egress:\n- to: [{podSelector: {matchLabels: {app: db}}}]\n",
    right="policyTypes: [Egress]\negress:\n- to: [{podSelector: {matchLabels: {app: db}}}]\n",
)
UNREACHED = Code(
    "EG6311",
    "rule that is never reached",
    "On every pod that the policy selects, other rules decide all that this one matches before it: earlier ones of its "
    "own policy, those of a lower priority number, or of a tier before. This is exact.",
    Severity.WARNING,
)
BASELINE_UNREACHED = Code(
    "EG6312",
    "baseline that is never reached",
    "NetworkPolicies select every pod of this policy, for each direction that it has rules for. Where one does, the "
    "baseline has no say.",
    Severity.WARNING,
)
EQUAL_PRIORITY = Code(
    "EG6313",
    "equal priorities",
    "Two policies of one tier and priority select the same pods: which of them is asked first is not defined. Eastgate "
    "allows only what every order allows.",
    Severity.WARNING,
)
TWO_GENERATIONS = Code(
    "EG6314",
    "AdminNetworkPolicy beside ClusterNetworkPolicy",
    "ClusterNetworkPolicy replaces the two kinds of v1alpha1. A network that applies both has no defined order between "
    "them, and most apply only one of them. Eastgate allows only what every order allows.",
    Severity.WARNING,
)
ONE_SIDE = Code(
    "EG6315",
    "opened at one end only",
    "The rule allows these pods, and policies at the other end of the connection refuse it, whatever the port. Both "
    "ends must allow. A rule about all pods of a namespace leaves it to each of them, and counts only if all refuse.",
    Severity.WARNING,
)
HOST_NETWORK = Code(
    "EG6316",
    "pods in the network of their node",
    "Pods with `hostNetwork: true` have the address of their node. Policies do not select them, and selectors of peers "
    "do not match them; most networks cannot tell them from other programs of the node.",
    Severity.INFO,
)
POD_ADDRESSES = Code(
    "EG6317",
    "block with addresses of pods",
    "Addresses of pods are in this block. The API says that it matches them; Cilium's network does not match pods by "
    "blocks, so that clusters differ.",
    Severity.INFO,
)
EXCEPTION_REOPENED = Code(
    "EG6318",
    "exception that another entry opens",
    "An exception takes addresses out of its own block only. Another entry of the same list means them all the same.",
    Severity.WARNING,
)
TUNNEL_BLOCKED = Code(
    "EG6319",
    "policy that stops the tunnel of the mesh",
    "Between pods of an ambient mesh the network sees port 15008 (HBONE), and not the port of the application. The "
    "answers of Eastgate are about the latter.",
    Severity.WARNING,
)
