"""Codes of the errors in RequestAuthentications and PeerAuthentications."""

from eastgate.basics.diagnostics import Code, Severity

MTLS_MODE = Code("EG2131", "invalid mode of mTLS", "The mode is UNSET, DISABLE, PERMISSIVE or STRICT.")
PORT_MODES = Code(
    "EG2132",
    "modes of ports without workloads",
    "`portLevelMtls` has at least one port, and needs a selector with labels: a namespace has no ports of its own.",
)
PORT_NUMBER = Code("EG2133", "invalid port", "The keys of `portLevelMtls` are ports of the workload, from 1 to 65535.")
NO_ISSUER = Code(
    "EG2134",
    "rule without issuer and jwksUri",
    "A rule says whose tokens are accepted, by `issuer`, or by the keys at `jwksUri`.",
)
EMPTY_TEXT = Code("EG2135", "empty value", "Issuers, audiences and locations of tokens are not empty.")
KEYS = Code(
    "EG2136",
    "keys that cannot be read",
    "`jwks` is the text of a JSON Web Key Set. A rule has it or `jwksUri`, an http or https URL, and not both.",
)
CLAIM_HEADER = Code(
    "EG2137", "invalid name of a header", "Claims are copied to headers of letters, digits, `-` and `_`."
)
DURATION = Code("EG2138", "invalid duration", "A timeout is a number with a unit, of 1ms or more: 5s, or 1m30s.")
PRESENCE = Code(
    "EG2139",
    "presence: REQUIRED does nothing",
    "Istio accepts `presence` and does not look at it: requests without a token pass. An AuthorizationPolicy that "
    "allows only `requestPrincipals: ['*']` demands one.",
    Severity.WARNING,
)
PRIVATE_KEY = Code(
    "EG2140",
    "private key in a policy",
    "Verifying tokens needs public keys alone. Whoever can read this policy can sign tokens.",
    Severity.WARNING,
)
