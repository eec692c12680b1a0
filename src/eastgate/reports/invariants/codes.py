"""The codes for errors in an Invariant."""

from eastgate.basics.diagnostics import Code, Severity

ONE_STATEMENT = Code(
    "EG0310",
    "an invariant states exactly one thing",
    "An Invariant has exactly one of `never`, `always` and `only`. Write several documents for several statements: "
    "each holds or fails by itself.",
)
NO_CALLERS = Code(
    "EG0311",
    "callers missing",
    "A statement that is about nobody holds whatever policies say. `from` has at least one of `serviceAccounts`, "
    "`namespaces`, `identities`, `anonymous: true`, `any: true` and `except`, and none of them is empty.",
)
NO_DESTINATIONS = Code(
    "EG0312",
    "destinations missing",
    "A statement that is about nothing holds whatever policies say. `to` has at least one of `pods`, `namespaces`, "
    "`services`, `gateways` and `backends`, and `namespaces` narrows `pods` alone.",
)
BAD_ACCOUNT = Code(
    "EG0313",
    "name not understood",
    "A service account is `<namespace>/<name>`, or `<namespace>/*` for all of a namespace; a Service, a Gateway and a "
    "Backend are `<namespace>/<name>`.",
)
BAD_IDENTITY = Code(
    "EG0314",
    "identity not understood",
    "An identity is a whole SPIFFE ID, or `spiffe://<trust domain>/*` for everybody in a trust domain.",
)
BAD_PATH = Code(
    "EG0315",
    "path not understood",
    "A path is exact, or ends with `/*` for everything below; no request has any other once its path is normalized.",
)
BAD_WORD = Code(
    "EG0316",
    "value that no request has",
    "Methods are in capitals, hosts in small letters and without a port, names of tools and of MCP methods without "
    "spaces. What no request has would make the statement hold for nothing.",
)
FITS_NOTHING = Code(
    "EG0317",
    "a statement that no request fits",
    "An MCP message is a POST, and only some messages name a tool. A statement about requests that do not exist "
    "holds whatever policies say.",
)
NAMES_NOTHING = Code(
    "EG0318",
    "a statement about what nobody declares",
    "A Service, a Gateway, a Backend, or one of their ports, that no manifest declares: most likely it is misspelt, "
    "and the statement would hold for nothing.",
)
SELECTS_NOTHING = Code(
    "EG0319",
    "a selector that selects nothing that exists",
    "No workload, or no namespace, of the manifests has the labels that the statement selects callers or destinations "
    "by. Most likely a label is misspelt.",
    Severity.WARNING,
)
BEYOND_ITS_NAMESPACE = Code(
    "EG0320",
    "an Invariant about another namespace",
    "An Invariant with a namespace is about what is in that namespace. Write `to` without `namespaces` and with names "
    "of that namespace; a ClusterInvariant, or in files an Invariant without a namespace, is about all of them.",
)
