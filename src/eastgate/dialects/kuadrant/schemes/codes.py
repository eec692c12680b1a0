"""Codes of the errors in an embedded auth scheme."""

from eastgate.basics.diagnostics import Code, Severity

HOST = Code("EG5005", "invalid host", "A host is a DNS name, `*.` and a DNS name, or `*`, without port and path.")
MIXED_VERSIONS = Code(
    "EG5101",
    "names of two versions in one auth scheme",
    "An auth scheme is written as in AuthConfig v1beta1 (lists, `identity`, `denyWith`) or as in v1beta2 and v1beta3 "
    "(mappings, `authentication`, `response.unauthorized`). One that mixes them would be read in part by either "
    "version, and the rest dropped.",
)
ONE_METHOD = Code(
    "EG5102",
    "not exactly one method",
    "An entry has a name and exactly one method. Of two, Authorino would take the one that it looks for first.",
)
DUPLICATE_NAME = Code(
    "EG5103",
    "name used twice",
    "Entries are known by their names: `auth.metadata.<name>` is one of them, and so is a header or a property.",
)
NO_SUCH_PATTERN = Code(
    "EG5104",
    "patternRef leads nowhere",
    "`patternRef` names a set of patterns in `patterns` of the same scheme. One that is not there can never hold.",
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
    "`matches` takes an RE2 expression. One that cannot be compiled matches nothing, and Authorino denies every "
    "request because of it.",
)
SELECTOR = Code(
    "EG5108",
    "invalid selector",
    "A selector is a GJSON path into the authorization JSON, with Authorino's modifiers; a value may also be a text "
    "with selectors in braces. A path with a mistake selects nothing, and nothing is also a value to compare with.",
)
CEL = Code(
    "EG5109",
    "invalid CEL expression in an auth scheme",
    "The expression cannot be compiled, or looks at something that the authorization JSON does not have.",
)
REGO = Code(
    "EG5110",
    "invalid Rego policy",
    "The policy cannot be compiled, or has no rule `allow`, without which it allows nothing.",
)
VALUE = Code(
    "EG5111",
    "not exactly one value",
    "A value is written out, or selected from the authorization JSON. Of both, one would be ignored.",
)
URL = Code(
    "EG5112",
    "invalid URL",
    "Whom a scheme asks is an absolute http or https URL. Its host is written out, so that no request can choose it, "
    "and passwords belong in a Secret.",
)
TTL = Code("EG5113", "invalid time to live", "How long something is kept, in whole seconds.")
SECRETS = Code(
    "EG5114",
    "Secrets not selected",
    "API keys and certificate authorities are in Secrets that labels select. Without any label, every Secret of the "
    "namespace would be one.",
)
CREDENTIALS = Code(
    "EG5115",
    "invalid credentials",
    "A credential is in the Authorization header, after a prefix, or in a header, a query parameter or a cookie, "
    "which need a name.",
)
STATUS = Code("EG5116", "invalid status of a denial", "A denial has a status from 300 to 599: any other would let in.")
HEADER = Code("EG5117", "invalid header", "A header that HTTP does not allow is dropped on its way, or breaks it.")
NO_HOST = Code("EG5118", "auth scheme without hosts", "A scheme is found by the host of a request; without one, never.")
HTTP_CALL = Code(
    "EG5119",
    "parts of an HTTP request that do not fit",
    "A request has `body` or `bodyParameters`, and a GET has neither: what does not fit would not be sent.",
)
ISSUER = Code(
    "EG5120",
    "not exactly one issuer of tokens",
    "The keys that sign tokens are found at their issuer, or at the URL of a key set. Of both, Authorino refuses one.",
)
SUBJECT = Code("EG5121", "review without a subject", "The API server is asked about a user, about groups, or both.")
NAME = Code(
    "EG5122",
    "empty name",
    "What an entry finds out is known by its name, and so are audiences, keys of a Secret and keys of a response. "
    "Nothing can refer to an empty one.",
)
NO_SUCH_IDENTITY = Code(
    "EG5123",
    "identitySource leads nowhere",
    "`identitySource` names an entry of `authentication` that recognizes callers by tokens of an issuer (`issuerUrl`), "
    "which is asked about the bearer.",
)
METHOD_NOT_SENT = Code(
    "EG5124",
    "method that is never sent",
    "The CustomResourceDefinitions take every method of HTTP, but Authorino sends GET and POST only: with any other, "
    "metadata is always missing, and a callback is never made. So it is here.",
    Severity.WARNING,
)
ALL_NAMESPACES = Code(
    "EG5131",
    "Secrets of all namespaces",
    "In an AuthPolicy of 2022 Secrets are looked up in the namespace of the policy only: otherwise whoever may create "
    "a Secret anywhere could give himself a key. Today's AuthPolicy and AuthConfig have `allNamespaces`.",
)
IDENTITY_UNSUPPORTED = Code(
    "EG5132",
    "identity that is not evaluated",
    "Authorino has had, plans, or has today what this kind of policy does not have. Left out, nobody would be "
    "recognized by it; it is an error, so that nobody relies on it.",
)
METADATA_UNSUPPORTED = Code(
    "EG5133",
    "metadata that is not evaluated",
    "An AuthPolicy of 2022 cannot fetch this; today's AuthPolicy and AuthConfig can, with GET and POST. Rules that "
    "look at it would find nothing.",
)
AUTHORIZATION_UNSUPPORTED = Code(
    "EG5134",
    "authorization that is not evaluated",
    "An AuthPolicy of 2022 cannot check this; today's AuthPolicy and AuthConfig can. A check that is left out lets "
    "everybody in.",
)
RESPONSE_UNSUPPORTED = Code(
    "EG5135",
    "response that is not evaluated",
    "Authorino can issue tokens, called wristbands, for today's AuthPolicy and AuthConfig. One of 2022 issues none.",
)
CALLBACKS = Code(
    "EG5136",
    "callbacks are not made",
    "Authorino can call other services once it has decided, for today's AuthPolicy and AuthConfig. One of 2022 calls "
    "nobody afterwards.",
)
