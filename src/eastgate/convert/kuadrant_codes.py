"""The losses of a conversion from and to the APIs of Kuadrant."""

from eastgate.basics.diagnostics import Code, Severity

NO_GATEWAY = Code(
    "EG7201",
    "the Gateway is not known",
    "The converted policies live in the namespace of the Gateway, and no manifest declares it, or the route that "
    "leads to it. The policy is not converted.",
    Severity.WARNING,
)
NOT_IN_FORCE = Code(
    "EG7202",
    "the policy is not in force",
    "Another policy has the same target and counts, so this one is not converted: in Istio both would.",
    Severity.WARNING,
)
SECRETS = Code(
    "EG7203",
    "Authorino looks for Secrets in the namespace of the AuthConfig",
    "The scheme finds its Secrets (API keys, CA certificates) in the namespace of the AuthPolicy. Authorino looks "
    "in that of the AuthConfig, which is the Gateway's: until the Secrets are there, nobody gets in.",
    Severity.WARNING,
)
HOST_PORTS = Code(
    "EG7204",
    "Istio compares hosts with their port",
    "A Host header may name a port, and a pattern such as *.example.com does not match it then. Where a route takes "
    "every host, requests to all hosts are sent to authorization instead. Let the Gateway strip ports, and say so with "
    "--assume istio-hosts.",
    Severity.WARNING,
)
SHARED_HOST = Code(
    "EG7205",
    "two schemes for one host",
    "Every AuthPolicy that selects a request must allow it, and of its schemes the one with the closest host decides. "
    "Authorino asks one AuthConfig, and of two whose hosts overlap (*.example.com is taken for example.com as well) "
    "the one that it has read first. The policy is not converted.",
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
    "Where a condition errs, Authorino skips what it guards, which may let somebody in; Eastgate denies. The policy is "
    "not converted, unless the setting authorinoCompat says that skipping is meant.",
    Severity.WARNING,
)
METADATA_STATUS = Code(
    "EG7208",
    "metadata of any status",
    "Authorino reads the answer of a server for metadata whatever its status is: an error page becomes metadata. The "
    "policy is not converted.",
    Severity.WARNING,
)
CHECKED_CLAIM = Code(
    "EG7209",
    "a property in place of a claim that is compared",
    "Issuer and audience of a token are compared by an authorization of the AuthConfig, which sees the identity with "
    "its properties. One named `iss` or `aud` would be compared instead. The policy is not converted.",
    Severity.WARNING,
)
NEXT_IDENTITY = Code(
    "EG7210",
    "a token of another issuer or audience goes no further",
    "Where a token has another issuer or audience, an AuthPolicy goes on to the next identity of the scheme. Authorino "
    "has recognized the caller by then, and denies.",
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
    "another policy is on the same way",
    "Of AuthPolicies of 2022 on a Gateway and on its route both must allow; of those of today one effective policy is "
    "left. A policy whose requests meet another one that is of today, or was converted, is not converted, and stays in "
    "force beside it.",
    Severity.WARNING,
)
SCHEMES_BY_HOST = Code(
    "EG7213",
    "several schemes by host",
    "An AuthPolicy of today has one auth scheme for all hosts of its target. One of 2022 with several is converted "
    "only where each listener of its Gateway has hosts of one scheme.",
    Severity.WARNING,
)
UNCOVERED_HOSTS = Code(
    "EG7214",
    "hosts that no scheme is for",
    "An AuthPolicy of 2022 denies what its rules select and none of its schemes is for, with 404. In one of today an "
    "authorization of the scheme does, with the status of the scheme; where the scheme has conditions, the policy is "
    "not converted. Authorino takes `*.example.com` for example.com as well: where no scheme is for that, no "
    "AuthConfig is written.",
    Severity.WARNING,
)
SERVER_NAME = Code(
    "EG7215",
    "hosts by the name in the TLS handshake",
    "Rules of an AuthPolicy of 2022 select requests by their host, or by the name that the client gave in the TLS "
    "handshake. Conditions of a policy of today see the host only, and would let a request in that has another one. "
    "The policy is not converted.",
    Severity.WARNING,
)
GATEWAY_CONDITION = Code(
    "EG7216",
    "a `when` that is evaluated elsewhere",
    "The filter of the gateway evaluates the `when` of an AuthPolicy, and Authorino that of an AuthConfig or of a "
    "scheme. Only conditions on method, path and host mean the same to both. The policy is not converted.",
    Severity.WARNING,
)
NO_WORDS = Code(
    "EG7217",
    "words that the target does not have",
    "The kind that is asked for has no words for a part of the scheme. The policy is not converted.",
    Severity.WARNING,
)
SPELLED_PATH = Code(
    "EG7218",
    "a path that can be spelled in several ways",
    "Rules of 2022 compare paths in one form, and conditions of today as the proxy hands them on: `@` and `%40` are "
    "two. A condition could miss a spelling, and let it in. The policy is not converted.",
    Severity.WARNING,
)
STREAMS = Code(
    "EG7219",
    "traffic that is no HTTP",
    "An AuthPolicy of 2022 on a Gateway is about all that comes in, and one of today about HTTP. The policy is not "
    "converted.",
    Severity.WARNING,
)
WHO_CALLS = Code(
    "EG7220",
    "callers by their identity in the mesh",
    "GEP-3779 and AccessPolicy name callers by the identities that the mesh gives to workloads, and attach to "
    "workloads and backends. An AuthPolicy is enforced at a Gateway, which does not see these identities, and "
    "recognizes callers by what they send. The policy is not converted.",
    Severity.WARNING,
)
ONE_HOST = Code(
    "EG7221",
    "different policies for one host",
    "Authorino finds one AuthConfig by the host of a request, and AuthPolicies may be for a listener or a rule of a "
    "route. Where ways of one host have different effective policies, no AuthConfig is written for it.",
    Severity.WARNING,
)
ASKED_BY_NOBODY = Code(
    "EG7222",
    "a proxy must ask Authorino",
    "An AuthConfig decides about requests that some proxy asks Authorino about, and no manifest says that one does. "
    "What is converted to AuthConfigs stays in force until one does, and an AuthConfig that is converted until none "
    "does any more.",
    Severity.WARNING,
)
NO_ROUTE = Code(
    "EG7223",
    "hosts that no route has for itself",
    "An AuthPolicy of today is for routes, and an AuthConfig for hosts. It is converted for each route all of whose "
    "hosts it is for. No AuthPolicy is written for hosts that no such route has, nor for a route with other hosts.",
    Severity.WARNING,
)
