"""Codes of errors in Istio's policies, and in the MeshConfig that they depend on."""

from eastgate.basics.diagnostics import Code, Severity

# Codes of errors in RequestAuthentications and PeerAuthentications


MTLS_MODE = Code("EG2131", "invalid mode of mTLS", "The mode is UNSET, DISABLE, PERMISSIVE or STRICT.")
PORT_MODES = Code(
    "EG2132",
    "modes of ports without workloads",
    "`portLevelMtls` has at least one port, and needs a selector with labels, because a namespace has no ports.",
)
PORT_NUMBER = Code("EG2133", "invalid port", "The keys of `portLevelMtls` are ports of the workload, from 1 to 65535.")
NO_ISSUER = Code(
    "EG2134",
    "rule without issuer and jwksUri",
    "A rule names the issuer of accepted tokens by `issuer`, or by the keys at `jwksUri`.",
)
EMPTY_TEXT = Code("EG2135", "empty value", "Issuers, audiences and locations of tokens must not be empty.")
KEYS = Code(
    "EG2136",
    "keys that cannot be read",
    "`jwks` is the text of a JSON Web Key Set. A rule has either `jwks` or `jwksUri`, an http or https URL.",
)
CLAIM_HEADER = Code(
    "EG2137", "invalid name of a header", "Claims are copied to headers of letters, digits, `-` and `_`."
)
DURATION = Code("EG2138", "invalid duration", "A timeout is a number with a unit, of 1ms or more: 5s, or 1m30s.")
PRESENCE = Code(
    "EG2139",
    "presence: REQUIRED has no effect",
    "Istio accepts `presence` and ignores it: requests without a token pass. To require a token, write an "
    "AuthorizationPolicy that allows only `requestPrincipals: ['*']`.",
    Severity.WARNING,
)
PRIVATE_KEY = Code(
    "EG2140",
    "private key in a policy",
    "To verify tokens, only public keys are necessary. Anyone with read access to this policy can sign tokens.",
    Severity.WARNING,
)


# Targets

SELECTOR_AND_TARGETS = Code(
    "EG2101",
    "more than one way to choose workloads",
    "A policy has a `selector`, or `targetRefs`, or neither, which means all workloads of its namespace. It never has "
    "two of them.",
)
TARGET_KIND = Code(
    "EG2102",
    "unsupported target",
    "Istio's policies target a Gateway or a GatewayClass of Gateway API, a Service, or a ServiceEntry.",
)
TARGET_NAMESPACE = Code(
    "EG2103", "target in another namespace", "“Cross namespace referencing is currently not supported.”"
)
SELECTOR_LABEL = Code(
    "EG2104",
    "label that no workload can have",
    "A selector compares labels exactly: it has no wildcards, and no empty keys.",
)
TOO_MANY = Code(
    "EG2105",
    "longer than an API server accepts",
    "The CustomResourceDefinition limits this list: 512 rules, 512 sources of a rule, 16 targets, 16 service accounts.",
)

# Actions

ACTION = Code("EG2106", "invalid action", "The action is ALLOW (which is the default), DENY, AUDIT or CUSTOM.")
WITHOUT_RULES = Code(
    "EG2107",
    "DENY or CUSTOM without rules",
    "Such an action “without `rules` is meaningless as it will never be triggered”. An ALLOW policy without rules "
    "allows nothing.",
)
PROVIDER = Code(
    "EG2108",
    "CUSTOM without a provider",
    "A CUSTOM policy names the extension provider of the MeshConfig that decides.",
)
PROVIDER_FOREIGN = Code("EG2109", "provider without CUSTOM", "Only a CUSTOM policy has a provider.")
NOT_WITH_CUSTOM = Code(
    "EG2110",
    "field that CUSTOM does not have",
    "Identities and claims are “currently not supported with CUSTOM action”: such policies decide before tokens are "
    "verified.",
)
DRY_RUN = Code(
    "EG2111",
    "invalid istio.io/dry-run",
    "The annotation is true or false, and “currently only supports action ALLOW/DENY”.",
)

# Rules

EMPTY_SOURCE = Code(
    "EG2112",
    "source without values",
    "Each entry of `from` needs a `source` with at least one list that is not empty. Leave `from` out for any source.",
)
EMPTY_OPERATION = Code(
    "EG2113",
    "operation without values",
    "Each entry of `to` needs an `operation` with at least one list that is not empty. Leave `to` out for any "
    "operation.",
)
EMPTY_VALUE = Code("EG2114", "empty value", "An empty string would match nothing that exists.")
ADDRESS = Code("EG2115", "invalid address", "Addresses are single ones, or networks in CIDR notation.")
PORT = Code("EG2116", "invalid port", "Ports are numbers from 0 to 65535, written as strings.")
SERVICE_ACCOUNT = Code(
    "EG2117",
    "invalid service account",
    "A service account is `<namespace>/<name>`, or `<name>` in the namespace of the policy, without wildcards.",
)
ACCOUNTS_WITH_OTHERS = Code(
    "EG2118",
    "serviceAccounts beside principals or namespaces",
    "“Cannot set serviceAccounts with namespaces or principals.” A service account has its namespace.",
)
TRUST_DOMAIN = Code(
    "EG2119",
    "invalid trust domain",
    "A trust domain has no `/`, and at most one `*`, at its beginning or its end.",
)
PATH_TEMPLATE = Code(
    "EG2120",
    "invalid path template",
    "In a path, `{*}` matches one segment and `{**}` any number of them. Each is a whole segment, `{**}` is the last "
    "of them, and there are no other braces.",
)
CONDITION_KEY = Code(
    "EG2121", "unknown attribute", "The keys of conditions are those in Istio's reference, with names in brackets."
)
CONDITION_VALUES = Code(
    "EG2122", "condition without values", "A condition needs at least one of `values` and `notValues`."
)

# MeshConfig

MESH_CONFIG = Code(
    "EG2123",
    "MeshConfig that cannot be read",
    "Trust domains, the normalization of paths and providers come from the ConfigMap `istio`, or from the objects that "
    "install Istio. If they cannot be read, the meaning of policies is unknown.",
)
OTHER_MESH = Code(
    "EG2124",
    "settings of another mesh",
    "The MeshConfig names a root namespace or a trust domain that differs from the settings. These decide where "
    "policies apply and which identities callers have. Or there are several MeshConfigs: revisions of the control "
    "plane have different ones, and the objects that install Istio may contradict each other.",
)
