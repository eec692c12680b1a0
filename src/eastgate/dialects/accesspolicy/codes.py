"""Codes of the errors in an AccessPolicy or a Backend."""

from eastgate.basics.diagnostics import Code, Severity

NO_TARGET = Code(
    "EG3001", "no target", "A policy targets at least one Gateway or Backend; an empty list targets nothing."
)
TARGET_KIND = Code(
    "EG3002",
    "unsupported target",
    "“TargetRef must have group agentic.prototype.x-k8s.io and kind XBackend, or group gateway.networking.k8s.io and "
    "kind Gateway” (the kind without the X, and the group that the API has moved to, are accepted too). v1alpha1 "
    "leaves other kinds to the implementation. A policy on a target without enforcement would look like protection.",
)
MIXED_TARGETS = Code(
    "EG3003",
    "targets of two kinds",
    "“All targetRefs must have the same Kind”: a policy that targets a Gateway and a Backend at the same time is not "
    "allowed.",
)
SECTION_NAME = Code(
    "EG3004",
    "sectionName on a target",
    "A policy targets a whole Gateway or Backend. The reference implementation ignores sectionName, which makes the "
    "policy wider than written; here it is rejected.",
)
TOO_MANY = Code("EG3005", "too many entries", "The API server refuses lists that are longer than the resource allows.")
RULE_NAMES = Code("EG3006", "rule names not unique", "“AccessRule names must be unique” within one policy.")
NO_RULES = Code("EG3007", "no rules", "In this form a policy has at least one rule.")
ONE_EXTERNAL_AUTH = Code(
    "EG3008",
    "more than one ExternalAuth rule",
    "“A maximum of one rule per policy can specify 'ExternalAuth' authorization type.”",
)
MIXED_AUTHORIZATION = Code(
    "EG3009",
    "InlineTools and ExternalAuth in one policy",
    "“We will disallow the combination of InlineTools and ExternalAuth in the same AccessPolicy”, so that it is easy "
    "to understand why access to a tool is allowed or denied. A rule without authorization counts as InlineTools: it "
    "allows no tool.",
)
SOURCE_MEMBER = Code(
    "EG3010",
    "source without its member",
    "The type of a source names the member that must be set. The reference implementation allows every caller if the "
    "member is missing.",
)
FOREIGN_MEMBER = Code(
    "EG3011", "member of another type", "Only the members that the type names may be set. Others would be ignored."
)
TOOLS_MISSING = Code(
    "EG3012", "InlineTools without tools", "“tools must be specified when type is set to 'InlineTools'”."
)
EXTERNAL_AUTH_MISSING = Code(
    "EG3013",
    "ExternalAuth without externalAuth",
    "“externalAuth must be specified when type is set to 'ExternalAuth'”, or when the action is.",
)
DENY_ASKS = Code(
    "EG3014",
    "ExternalAuth in a Deny policy",
    "An external authorizer decides for itself; it cannot be a reason to deny.",
)
TOOL_NAME = Code(
    "EG3015",
    "invalid tool",
    "A tool is named by its name, compared exactly; on a Gateway `backend/tool` names one backend's tool.",
)
DUPLICATE = Code(
    "EG3016",
    "entry written twice",
    "The list is a set, or has one entry for each name: the API server refuses the same entry twice. Of two matches "
    "for one header, some would read the first and some both.",
)
PROTOCOL = Code(
    "EG3017",
    "protocol and its settings",
    "An external authorizer of protocol GRPC has `grpc`, one of protocol HTTP has `http`, and neither has the other.",
)
AUTHORIZER = Code("EG3018", "invalid authorizer", "An external authorizer is a Service, with its name and port.")
PARAMS = Code(
    "EG3019",
    "params on a method without them",
    "“Params can only be specified for get, call, subscribe, unsubscribe, or read methods”.",
)
CEL_MISSING = Code("EG3020", "CEL without cel", "“cel must be specified when type is set to 'CEL'”.")
CEL_FOREIGN = Code("EG3021", "cel without CEL", "“cel must not be specified when type is set to 'Inline'”.")
CEL_EXPRESSION = Code(
    "EG3022",
    "invalid CEL expression",
    "The expression cannot be compiled, reads something that requests do not have, or is not boolean. Such an "
    "expression can neither allow nor deny, so it is an error.",
)
HTTP_VALUE = Code(
    "EG3023", "invalid HTTP attribute", "A method, path, header or host that no request can have matches nothing."
)
EXACTLY_ONE = Code(
    "EG3024", "not exactly one destination", "“exactly one of the fields in [serviceName hostname] must be set”."
)
RULE_NAME = Code("EG3025", "invalid rule name", "The name of a rule is a DNS name of 1 to 63 characters.")
SPIFFE_ID = Code(
    "EG3026", "invalid SPIFFE ID", "Identities are full SPIFFE IDs, `spiffe://<trust domain>/<path>`, compared exactly."
)
ACCOUNT = Code("EG3027", "invalid service account", "A service account is named by its name; here `*` is not a name.")
PARAM_LENGTH = Code(
    "EG3028",
    "param too long",
    "In v1alpha1 the API server refuses params of more than 20 characters, and many tools have longer names.",
)
DESTINATION = Code(
    "EG3029",
    "invalid destination",
    "A Backend is reached at one Service or at one host, on a port and a path; a pattern of hosts is no destination.",
)
NO_EFFECT = Code(
    "EG3030",
    "policy without effect",
    "In v1alpha1 a policy without `rules` governs every request, and a policy with an empty list governs none. A Deny "
    "or ExternalAuth policy without requests looks like protection and is none.",
    Severity.WARNING,
)
QUALIFIED_ON_BACKEND = Code(
    "EG3031",
    "tool named with its Backend on that Backend",
    "Only on a Gateway does `backend/tool` name one backend's tool. On a Backend it is the whole name of a tool, which "
    "the server most likely does not have: a Deny rule with it denies nothing.",
    Severity.WARNING,
)
