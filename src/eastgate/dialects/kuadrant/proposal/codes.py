"""Codes of the errors in an AuthPolicy of 2022. The codes of its auth schemes are in `schemes`."""

from eastgate.basics.diagnostics import Code, Severity

TARGET_GROUP = Code("EG5001", "wrong target group", "“Only valid option is gateway.networking.k8s.io.”")
TARGET_KIND = Code("EG5002", "unsupported target kind", "“Only valid options are HTTPRoute and Gateway.”")
OTHER_NAMESPACE = Code(
    "EG5003",
    "a target in another namespace",
    "“Currently only local objects can be referred”: the target is in the policy's own namespace.",
)
EMPTY_LIST = Code(
    "EG5004",
    "empty list in a rule",
    "Inner fields follow OR semantics, so an empty list would match nothing, and look like no restriction.",
)
METHOD = Code("EG5006", "invalid method", "A method is an HTTP method in upper case, such as DELETE.")
PATH = Code("EG5007", "invalid path", "A path begins with `/`; it may end, or begin, with one `*`.")
RULE_HOST = Code(
    "EG5008",
    "rule host outside of the route",
    "“Each rule's host in a route level policy must match at least one hostname regex described in HTTPRoute's "
    "hostnames”.",
)
SCHEME_HOST = Code(
    "EG5009",
    "scheme host outside of the rules",
    "“Following the heirarchial constraints, spec.AuthSchemes.Hosts must match at least one spec.Hosts for AuthPolicy "
    "to be validated”, which are the hosts of its rules.",
)
SAME_HOST = Code(
    "EG5010",
    "two schemes for one host",
    "A host has one auth scheme. With two, it would be open which of them decides.",
)
NO_SCHEME = Code(
    "EG5011",
    "no auth scheme",
    "The selected requests are sent to authorization. Without a scheme they are denied (404).",
    Severity.WARNING,
)
TARGET_NOT_FOUND = Code(
    "EG5012",
    "target that no manifest declares",
    "The policy guards nothing, and the hosts of its rules cannot be compared with the hosts of the target.",
    Severity.WARNING,
    needs_cluster=True,
)
CONFLICTED = Code(
    "EG5013",
    "two policies on one target",
    "The older policy is in force, and the other one is not. If the creation times are equal or missing, the first by "
    "name is in force.",
    Severity.WARNING,
)
TWO_LISTS = Code(
    "EG5014",
    "both `authSchemes` and `authScheme`",
    "A policy has a list of auth schemes, or one scheme for all of its hosts. With both, two schemes could decide "
    "about one host.",
)
