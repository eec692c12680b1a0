"""Codes of the errors in a GEP-3779 policy."""

from eastgate.basics.diagnostics import Code, Severity

NO_TARGET = Code(
    "EG2001",
    "no target",
    "A policy needs a target. The draft considered an empty targetRefs for a whole namespace and rejected it: “an "
    "empty field or absence of a it does not mean select all” elsewhere in the API.",
)
ROUTE_TARGET = Code(
    "EG2002",
    "a route as target",
    "The draft considered xRoute targets and rejected them: “we don't have the route information that was responsible "
    "for the routing”, and “it is likely that users would expect this Authorization to work for N/S traffic”.",
)
NAMESPACE_TARGET = Code(
    "EG2003",
    "a namespace as target",
    "The draft considered `kind: Namespace` and rejected it: it “gives the (confusing) impression that Gateways "
    "(whether in-cluster or off-cluster gateways) are targeted as well”.",
)
TARGET_KIND = Code(
    "EG2004", "unsupported target kind", "A policy targets Pods by label selector, or a Service by name."
)
TARGET_GROUP = Code(
    "EG2005", "wrong target group", "Pods and Services are in the core group, written as an empty string."
)
SELECTOR_NOT_ON_POD = Code(
    "EG2006",
    "selector on a target that is no Pod",
    "“Selector may only be set when targeting Pods.” The draft keeps label selectors limited to Pods on purpose.",
)
POD_NEEDS_SELECTOR = Code(
    "EG2007",
    "Pod target without selector",
    "A Pod target selects by label; `selector: {}` is every pod of the policy's namespace.",
)
POD_HAS_NAME = Code(
    "EG2008", "Pod target with a name", "Pods are targeted by label; the name of a Pod target must be empty."
)
SERVICE_NEEDS_NAME = Code("EG2009", "Service target without name", "A Service is targeted by its name.")
ONE_POD_TARGET = Code(
    "EG2010",
    "more than one target beside a Pod",
    "In XAuthorizationPolicy a policy that targets Pods has exactly one targetRef; only other kinds may be listed "
    "together.",
)
ACTION = Code(
    "EG2013",
    "invalid action",
    "The action is ALLOW or DENY (in XAuthorizationPolicy ALLOW only, in a cluster policy also PASS).",
)
DENY_WITHOUT_RULES = Code(
    "EG2015",
    "DENY without rules",
    "A policy matches if any of its rules matches, so a DENY policy without rules looks like “deny all” and denies "
    "nothing.",
)
LEVEL = Code("EG2016", "invalid enforcementLevel", "The level is NETWORK (L4) or APPLICATION (L7), in any letter case.")
LEVEL_IN_V1ALPHA1 = Code(
    "EG2017",
    "enforcementLevel in v1alpha1",
    "The Provisional draft has no enforcementLevel: every policy is enforced at L4.",
)
LEVEL_REQUIRED = Code(
    "EG2018",
    "enforcementLevel missing",
    "XAuthorizationPolicy has no default level: its authors “do not want to default”.",
)
LEVEL_RESERVED = Code(
    "EG2019", "enforcementLevel Application is reserved", "XAuthorizationPolicy enforces at the Network level only."
)
APPLICATION_ATTRIBUTES_AT_NETWORK = Code(
    "EG2020",
    "applicationAttributes at NETWORK level",
    "“Implementations MUST ignore or reject these fields if used at NETWORK level.” Ignoring them would make the rule "
    "wider than written, so they are rejected.",
)
SIDECAR_APPLICATION_SERVICE = Code(
    "EG2021",
    "Service target for APPLICATION in a sidecar mesh",
    "A sidecar does not know which Service the traffic was addressed to: application-level policies use label "
    "selectors.",
)
AMBIENT_APPLICATION_SELECTOR = Code(
    "EG2022",
    "label selector for APPLICATION in an ambient mesh",
    "Application-level policies are enforced at a waypoint, which is in front of a Service: they target the Service.",
)
NETWORK_NEEDS_SELECTOR = Code(
    "EG2023",
    "NETWORK without label selector",
    "In sidecar and ambient meshes alike, network level policies use label selectors.",
)
SERVICE_ACCOUNT = Code(
    "EG2024", "invalid service account", "A service account is `<namespace>/<name>`, `<namespace>/*` or `<name>`."
)
EVERY_SERVICE_ACCOUNT = Code(
    "EG2025",
    "every service account of every namespace",
    '“Use of "*" alone (i.e., all Serviceaccounts in all namespaces) is not allowed.” Leave the source out to match '
    "any caller.",
)
SERVICE_ACCOUNT_V1ALPHA1 = Code(
    "EG2026",
    "service account form not in v1alpha1",
    "In the Provisional draft “each service account must be specified in the format "
    '"<namespace>/<service-account-name>"”.',
)
BARE_SERVICE_ACCOUNT = Code(
    "EG2027",
    "service account without namespace in a cluster policy",
    "A cluster policy has no namespace, so a name alone is ambiguous.",
)
SPIFFE_ID = Code(
    "EG2028",
    "invalid SPIFFE ID",
    "Identities are full SPIFFE IDs, `spiffe://<trust domain>/<path>`, and are compared exactly.",
)
ONE_SOURCE_LIST = Code(
    "EG2029",
    "not exactly one list in a source",
    "“Exactly one of identities, serviceAccounts, or namespaces must be specified.”",
)
EMPTY_LIST_V1ALPHA1 = Code(
    "EG2030",
    "empty sources or attributes in v1alpha1",
    "In the Provisional draft an empty list matches everything. In its successor it matches nothing. Neither reading "
    "is safe to guess.",
)
PORT_RANGE = Code("EG2031", "port out of range", "Ports are 1 to 65535.")
PATH_PATTERN = Code(
    "EG2032",
    "invalid path",
    "A path is exact, or has one `*` at its end or at its start; it begins with `/` (or with the `*`).",
)
METHOD = Code("EG2033", "invalid method", "A method is an HTTP token such as GET.")
METHOD_CASE = Code(
    "EG2034",
    "method in the wrong letter case",
    "Methods are case-sensitive: `get` is not GET, so this rule matches no request of a usual client.",
    Severity.WARNING,
)
SOURCE_MEMBER_MISSING = Code(
    "EG2035", "source without its member", "The type of a source names the member that must be set."
)
SOURCE_MEMBER_FOREIGN = Code(
    "EG2036", "source with a member of another type", "Only the member that the type of a source names may be set."
)
