"""The codes for errors in an Invariant."""

from eastgate.basics.diagnostics import Code, Severity

ONE_STATEMENT = Code(
    "EG0310",
    "an invariant has exactly one statement",
    "An Invariant has exactly one of `never`, `always` and `only`. Write several documents for several statements: "
    "each holds or fails by itself.",
)
NO_CALLERS = Code(
    "EG0311",
    "callers missing",
    "A statement without callers would hold for any policies. `from` has at least one of `serviceAccounts`, "
    "`namespaces`, `identities`, `anonymous: true`, `any: true` and `except`, and none of them is empty.",
)
NO_DESTINATIONS = Code(
    "EG0312",
    "destinations missing",
    "A statement without destinations would hold for any policies. `to` has at least one of `pods`, `namespaces`, "
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
    "An identity is a whole SPIFFE ID, or `spiffe://<trust domain>/*` for all identities of a trust domain.",
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
    "spaces. With a value that no request has, the statement would cover nothing.",
)
FITS_NOTHING = Code(
    "EG0317",
    "a statement that no request fits",
    "An MCP message is a POST, and only some messages name a tool. A statement about requests that cannot exist "
    "would hold for any policies.",
)
NAMES_NOTHING = Code(
    "EG0318",
    "a statement about an object that no manifest declares",
    "The statement names a Service, a Gateway, a Backend, or one of their ports, that no manifest declares. Most "
    "likely the name is misspelt, and the statement would cover nothing.",
)
SELECTS_NOTHING = Code(
    "EG0319",
    "a selector that selects no existing object",
    "No workload, or no namespace, of the manifests has the labels that the statement selects callers or destinations "
    "by. Most likely a label is misspelt.",
    Severity.WARNING,
)
BEYOND_ITS_NAMESPACE = Code(
    "EG0320",
    "an Invariant about another namespace",
    "An Invariant with a namespace covers only destinations in that namespace. Write `to` without `namespaces` and "
    "with names of that namespace. To cover all namespaces, write a ClusterInvariant, or in files an Invariant "
    "without a namespace.",
)
