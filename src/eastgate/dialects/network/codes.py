"""Codes for errors that API servers report in network policies, and for fields that they silently misread."""

from eastgate.basics.diagnostics import Code

EMPTY_PEER = Code(
    "EG2201",
    "peer without a field",
    "An entry of `from` or `to` names peers: an API server refuses `{}` there. For any peer leave the list out; for "
    "all pods of the cluster write `namespaceSelector: {}`.",
)
BLOCK_BESIDE_SELECTOR = Code(
    "EG2202",
    "ipBlock beside a selector",
    "A peer is either a block of addresses or pods by their labels. Two entries of the list match either of them.",
)
CIDR = Code("EG2203", "invalid CIDR", "A network is written as an address and the length of its prefix: 10.0.0.0/8.")
EXCEPT = Code(
    "EG2204",
    "exception outside its block",
    "An entry of `except` takes addresses out of its own `cidr`, so it must be a smaller network inside it.",
)
PROTOCOL = Code("EG2205", "invalid protocol", "Network policies support TCP, UDP and SCTP, in capitals, but not ICMP.")
PORT = Code(
    "EG2206",
    "invalid port",
    "A port is a number from 1 to 65535 without quotes, or the name of a container's port, which has a letter in it.",
)
END_PORT = Code(
    "EG2207", "invalid endPort", "A range needs a `port` that is a number, and an `endPort` that is not smaller."
)
POLICY_TYPES = Code("EG2208", "invalid policyTypes", "policyTypes are Ingress, Egress, or both.")
ONE_FIELD = Code("EG2211", "not exactly one field", "An entry of this list has exactly one of its fields.")
OLD_PEER = Code(
    "EG2212",
    "peer in the form of an earlier version",
    "Up to v0.1.1 a peer was `namespaces: {namespaceSelector: ..}`. Now `namespaces` is the label selector itself: an "
    "API server drops the old field, and the rule applies to ALL namespaces.",
)
ACTION = Code(
    "EG2213",
    "invalid action",
    "A ClusterNetworkPolicy accepts, denies or passes (Accept, Deny, Pass). An AdminNetworkPolicy writes Allow for "
    "Accept. A BaselineAdminNetworkPolicy has only Allow and Deny.",
)
TOO_MANY = Code("EG2214", "too many entries", "An API server accepts no more entries: split the rule, or the policy.")
EMPTY_LIST = Code(
    "EG2215",
    "empty list",
    "The list of peers is required, and needs an entry. A list of ports needs one, too; left out, it means all ports.",
)
RANGE = Code("EG2216", "invalid range of ports", "A range begins with a smaller port than it ends with.")
NAMED_PORT_OUTSIDE = Code(
    "EG2217",
    "named port with peers that are not pods",
    "Only pods have names for their ports. So such a port is not possible in an egress rule with networks, nodes or "
    "domainNames among its peers.",
)
DOMAIN_NAME = Code(
    "EG2218", "invalid domain name", "A domain name contains a dot. `*.` before it means its subdomains."
)
DOMAIN_DENIED = Code(
    "EG2219",
    "domain names in a rule that does not accept",
    "“Only supported for Accept rules”: the addresses of a name are known only after it was resolved. Until then, a "
    "rule would deny nothing.",
)
DUPLICATE = Code("EG2220", "entry that is written twice", "An API server refuses a set with a duplicate entry.")
BASELINE_NAME = Code(
    "EG2221", "name of the baseline", "There is one BaselineAdminNetworkPolicy in a cluster, and its name is `default`."
)
RULE_NAME = Code("EG2222", "name of a rule", "The name of a rule has at most 100 characters.")
OTHER_FORM = Code(
    "EG2223",
    "field of another version",
    "v1alpha1 has `ports` with portNumber, portRange and namedPort; v1alpha2 has `protocols` with tcp, udp, sctp and "
    "destinationNamedPort.",
)
OUTSIDE_AT_INGRESS = Code(
    "EG2224",
    "peer that ingress does not have",
    "Ingress rules of cluster-wide policies match only pods: not nodes, networks or domain names.",
)
NO_BASELINE_DOMAINS = Code(
    "EG2225", "domain names in a baseline", "A BaselineAdminNetworkPolicy has no peers by domain name."
)
EMPTY_RANGE = Code(
    "EG2226",
    "range of no port",
    "A range must end after its start. The definition of v1alpha1 does not check this. The range would have no port.",
)
