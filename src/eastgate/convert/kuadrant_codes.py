"""The losses of a conversion from and to the APIs of Kuadrant."""

from eastgate.basics.diagnostics import Code, Severity

NO_GATEWAY = Code(
    "EG7201",
    "the Gateway is not known",
    "The converted policies are in the namespace of the Gateway. No manifest declares the Gateway, or the route to "
    "it. The policy is not converted.",
    Severity.WARNING,
)
NOT_IN_FORCE = Code(
    "EG7202",
    "the policy is not in force",
    "Another policy with the same target is in force instead. This policy is not converted, because in Istio both "
    "would be in force.",
    Severity.WARNING,
)
SECRETS = Code(
    "EG7203",
    "Authorino looks for Secrets in the namespace of the AuthConfig",
    "The scheme finds its Secrets (API keys, CA certificates) in the namespace of the AuthPolicy. Authorino looks for "
    "them in the namespace of the AuthConfig, which is the Gateway's. Until the Secrets are there, every caller is "
    "denied.",
    Severity.WARNING,
)
HOST_PORTS = Code(
    "EG7204",
    "Istio compares hosts with their port",
    "A Host header may have a port, and then a pattern such as *.example.com does not match it. If a route takes "
    "every host, requests to all hosts are sent to authorization instead. Let the Gateway strip ports, and add "
    "--assume istio-hosts.",
    Severity.WARNING,
)
SHARED_HOST = Code(
    "EG7205",
    "two schemes for one host",
    "Every AuthPolicy that selects a request must allow it, and the scheme with the closest host decides. Authorino "
    "asks one AuthConfig. If the hosts of two AuthConfigs overlap, it asks the one that it read first "
    "(`*.example.com` overlaps with example.com). The policy is not converted.",
    Severity.WARNING,
)
OTHER_ROUTES = Code(
    "EG7206",
    "other routes have the same host",
    "Istio selects requests by host, method and path, and not by route: requests to other routes of these hosts "
    "are authorized too.",
    Severity.WARNING,
)
ERRING_WHEN = Code(
    "EG7207",
    "a `when` that may err",
    "If a condition errs, Authorino skips the guarded part, which may allow a request. Eastgate denies. The policy is "
    "converted only with the setting authorinoCompat, which accepts that parts are skipped.",
    Severity.WARNING,
)
METADATA_STATUS = Code(
    "EG7208",
    "metadata of any status",
    "Authorino accepts metadata from a response of any status, so an error page becomes metadata. The policy is not "
    "converted.",
    Severity.WARNING,
)
CHECKED_CLAIM = Code(
    "EG7209",
    "a property in place of a claim that is compared",
    "An authorization of the AuthConfig compares issuer and audience of a token. It sees the identity with its "
    "properties, so a property `iss` or `aud` would be compared instead of the claim. The policy is not converted.",
    Severity.WARNING,
)
NEXT_IDENTITY = Code(
    "EG7210",
    "a token of another issuer or audience does not reach the next identity",
    "If a token has another issuer or audience, an AuthPolicy tries the next identity of the scheme. Authorino has "
    "recognized the caller by then, and denies.",
    Severity.WARNING,
)
REGO_FUNCTION = Code(
    "EG7211",
    "Rego with functions",
    "Authorino does not load an AuthConfig whose Rego defines functions. Until it does, everything is denied (404).",
    Severity.WARNING,
)
TWO_LEVELS = Code(
    "EG7212",
    "another policy governs the same rules",
    "In AuthPolicies of 2022, a policy on a Gateway and a policy on its route must both allow. AuthPolicies of today "
    "merge into one effective policy. So a policy is not converted if its requests are also governed by a policy of "
    "today or by a converted policy. It stays in force beside that policy.",
    Severity.WARNING,
)
SCHEMES_BY_HOST = Code(
    "EG7213",
    "several schemes by host",
    "An AuthPolicy of today has one auth scheme for all hosts of its target. An AuthPolicy of 2022 with several "
    "schemes is converted only if each listener of its Gateway has the hosts of one scheme.",
    Severity.WARNING,
)
UNCOVERED_HOSTS = Code(
    "EG7214",
    "hosts without a scheme",
    "An AuthPolicy of 2022 denies selected requests without a scheme with 404. In an AuthPolicy of today, an "
    "authorization of the scheme denies them with its own status. If the scheme has conditions, the policy is not "
    "converted. Authorino treats example.com as a host of `*.example.com`. If example.com has no scheme, no "
    "AuthConfig is written.",
    Severity.WARNING,
)
SERVER_NAME = Code(
    "EG7215",
    "hosts by the name in the TLS handshake",
    "Rules of an AuthPolicy of 2022 select requests by their host, or by the server name of the TLS handshake. "
    "Conditions of a policy of today see the host only, and would allow requests with another host. The policy is not "
    "converted.",
    Severity.WARNING,
)
GATEWAY_CONDITION = Code(
    "EG7216",
    "a `when` that is evaluated elsewhere",
    "The filter of the gateway evaluates the `when` of an AuthPolicy. Authorino evaluates the `when` of an AuthConfig "
    "or of a scheme. Only conditions on method, path and host mean the same to both. The policy is not converted.",
    Severity.WARNING,
)
NOT_EXPRESSIBLE = Code(
    "EG7217",
    "a scheme that the target cannot express",
    "The requested kind cannot express a part of the scheme. The policy is not converted.",
    Severity.WARNING,
)
SPELLED_PATH = Code(
    "EG7218",
    "a path that can be spelled in several ways",
    "Rules of 2022 compare normalized paths. Conditions of today compare the path that the proxy sends, where `@` and "
    "`%40` are different. A condition could miss a spelling and allow the request. The policy is not converted.",
    Severity.WARNING,
)
STREAMS = Code(
    "EG7219",
    "traffic that is not HTTP",
    "An AuthPolicy of 2022 on a Gateway governs all of its traffic. An AuthPolicy of today governs HTTP only. The "
    "policy is not converted.",
    Severity.WARNING,
)
MESH_IDENTITIES = Code(
    "EG7220",
    "callers by their identity in the mesh",
    "GEP-3779 and AccessPolicy name callers by the identities that the mesh gives to workloads, and attach to "
    "workloads and backends. An AuthPolicy is enforced at a Gateway. The Gateway does not see these identities, and "
    "recognizes callers by the credentials that they send. The policy is not converted.",
    Severity.WARNING,
)
ONE_HOST = Code(
    "EG7221",
    "different policies for one host",
    "Authorino finds one AuthConfig by the host of a request. AuthPolicies may target a listener or a rule of a "
    "route. If routes of one host have different effective policies, no AuthConfig is written for the host.",
    Severity.WARNING,
)
NOT_ASKED_YET = Code(
    "EG7222",
    "a proxy must ask Authorino",
    "An AuthConfig decides only requests that a proxy asks Authorino about, and no manifest shows such a proxy. A "
    "policy that is converted to AuthConfigs stays in force until a proxy asks. An AuthConfig that is converted stays "
    "in force until no proxy asks any more.",
    Severity.WARNING,
)
NO_ROUTE = Code(
    "EG7223",
    "hosts that no route has alone",
    "An AuthPolicy of today targets routes, and an AuthConfig covers hosts. It is converted for each route whose "
    "hosts it covers. No AuthPolicy is written for other hosts, or for a route with other hosts.",
    Severity.WARNING,
)
