"""Codes of the errors in an embedded auth scheme."""

from eastgate.basics.diagnostics import Code, Severity

HOST = Code("EG5005", "invalid host", "A host is a DNS name, `*.` and a DNS name, or `*`, without port and path.")
MIXED_VERSIONS = Code(
    "EG5101",
    "names of two versions in one auth scheme",
    "An auth scheme has the form of AuthConfig v1beta1 (lists, `identity`, `denyWith`), or the form of v1beta2 and "
    "v1beta3 (mappings, `authentication`, `response.unauthorized`). In a mixed scheme, each version would read one "
    "part and drop the other.",
)
ONE_METHOD = Code(
    "EG5102",
    "not exactly one method",
    "An entry has a name and exactly one method. Of two methods, Authorino would use the one that it checks first.",
)
DUPLICATE_NAME = Code(
    "EG5103",
    "name used twice",
    "Names identify entries, such as `auth.metadata.<name>`, headers and properties.",
)
NO_SUCH_PATTERN = Code(
    "EG5104",
    "patternRef without patterns",
    "`patternRef` names a set in `patterns` of the same scheme. A missing set can never hold.",
)
CONDITION = Code(
    "EG5105",
    "invalid condition",
    "A condition is a selector with an operator and a value, or one of `patternRef`, `predicate`, `all` and `any`. A "
    "list without conditions would always hold, or never.",
)
OPERATOR = Code("EG5106", "unknown operator", "A pattern compares with eq, neq, incl, excl or matches.")
REGEX = Code(
    "EG5107",
    "invalid regular expression",
    "`matches` takes an RE2 expression. An expression that cannot be compiled matches nothing, and makes Authorino "
    "deny every request.",
)
SELECTOR = Code(
    "EG5108",
    "invalid selector",
    "A selector is a GJSON path into the authorization JSON, with Authorino's modifiers. A value may also be a text "
    "with selectors in braces. A path with a mistake selects nothing, and that is also a value for comparisons.",
)
CEL = Code(
    "EG5109",
    "invalid CEL expression in an auth scheme",
    "The expression cannot be compiled, or reads something that the authorization JSON does not have.",
)
REGO = Code(
    "EG5110",
    "invalid Rego policy",
    "The policy cannot be compiled, or has no rule `allow`. Without that rule it allows nothing.",
)
VALUE = Code(
    "EG5111",
    "not exactly one value",
    "A value is a literal, or selected from the authorization JSON. If both are written, one would be ignored.",
)
URL = Code(
    "EG5112",
    "invalid URL",
    "The server of a scheme has an absolute http or https URL. Its host must be a literal, so that no request can "
    "choose it. Passwords belong in a Secret.",
)
TTL = Code("EG5113", "invalid time to live", "The time for which a value is kept, in whole seconds.")
SECRETS = Code(
    "EG5114",
    "Secrets not selected",
    "Labels select the Secrets with API keys and CA certificates. Without any label, every Secret of the namespace "
    "would be selected.",
)
CREDENTIALS = Code(
    "EG5115",
    "invalid credentials",
    "A credential is in the Authorization header after a prefix, or in a header, a query parameter or a cookie with a "
    "name.",
)
STATUS = Code(
    "EG5116",
    "invalid status of a denial",
    "A denial has a status from 300 to 599. Any other status would allow the request.",
)
HEADER = Code("EG5117", "invalid header", "HTTP does not allow this header. Proxies drop it, or fail because of it.")
NO_HOST = Code(
    "EG5118",
    "auth scheme without hosts",
    "Authorino finds a scheme by the host of a request. A scheme without hosts is never found.",
)
HTTP_CALL = Code(
    "EG5119",
    "parts of an HTTP request that do not fit",
    "A request has `body` or `bodyParameters`, and a GET has neither. Other parts would not be sent.",
)
ISSUER = Code(
    "EG5120",
    "not exactly one issuer of tokens",
    "The keys for tokens are found at their issuer, or at the URL of a key set. Authorino refuses both together.",
)
SUBJECT = Code("EG5121", "review without a subject", "The API server is asked about a user, about groups, or both.")
NAME = Code(
    "EG5122",
    "empty name",
    "Names identify the results of entries, audiences, keys of a Secret and keys of a response. Nothing can refer to "
    "an empty name.",
)
NO_SUCH_IDENTITY = Code(
    "EG5123",
    "identitySource without an identity",
    "`identitySource` names an entry of `authentication` that recognizes callers by tokens of an issuer "
    "(`issuerUrl`). That issuer is asked about the bearer.",
)
METHOD_NOT_SENT = Code(
    "EG5124",
    "method that Authorino does not send",
    "The CustomResourceDefinitions accept every HTTP method, but Authorino sends GET and POST only. With any other "
    "method, metadata is always missing, and a callback is never made. Eastgate does the same.",
    Severity.WARNING,
)
ALL_NAMESPACES = Code(
    "EG5131",
    "Secrets of all namespaces",
    "In an AuthPolicy of 2022, Secrets are only looked up in the namespace of the policy. Otherwise any user who may "
    "create a Secret could create an API key. Today's AuthPolicy and AuthConfig have `allNamespaces`.",
)
IDENTITY_UNSUPPORTED = Code(
    "EG5132",
    "identity that is not evaluated",
    "This kind of policy does not have this feature of Authorino, today's or a former one. If it were left out, no "
    "caller would be recognized by it. It is an error, so that no policy relies on it.",
)
METADATA_UNSUPPORTED = Code(
    "EG5133",
    "metadata that is not evaluated",
    "An AuthPolicy of 2022 cannot fetch this. Today's AuthPolicy and AuthConfig can, with GET and POST. Rules that "
    "read it would find nothing.",
)
AUTHORIZATION_UNSUPPORTED = Code(
    "EG5134",
    "authorization that is not evaluated",
    "An AuthPolicy of 2022 cannot check this. Today's AuthPolicy and AuthConfig can. If the check were left out, "
    "every caller would be allowed.",
)
RESPONSE_UNSUPPORTED = Code(
    "EG5135",
    "response that is not evaluated",
    "Authorino can issue tokens, called wristbands, for today's AuthPolicy and AuthConfig. One of 2022 issues none.",
)
CALLBACKS = Code(
    "EG5136",
    "callbacks are not made",
    "For today's AuthPolicy and AuthConfig, Authorino can call other services after the decision. An AuthPolicy of "
    "2022 has no callbacks.",
)
