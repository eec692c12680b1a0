"""A scheme becomes the same model from either style, with its defaults and its spans."""

from __future__ import annotations

import pytest

from eastgate.cluster import Selector
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    All,
    AnonymousAccess,
    AnyOf,
    ApiKeys,
    Authorization,
    Cache,
    CelExpression,
    CelPredicate,
    Credentials,
    Denial,
    HttpCall,
    Introspection,
    Json,
    Jwt,
    LiteralValue,
    Pattern,
    PatternOperator,
    PatternRules,
    Plain,
    PlainResponse,
    Property,
    Rego,
    Response,
    SecretRef,
    Selected,
    SubjectAccess,
    TokenReview,
    Where,
)
from tests.dialects.kuadrant.scheme_texts import NEW, NEW_START, OLD, OLD_START, content, scheme

STAFF = All(
    (
        Pattern("auth.identity.groups", PatternOperator.INCL, "staff"),
        Pattern("auth.identity.email_verified", PatternOperator.EQ, "true"),
    )
)
READS = All((Pattern("request.method", PatternOperator.MATCHES, "^(GET|HEAD)$"),))


def test_both_styles_are_the_same_scheme() -> None:
    assert content(scheme(OLD)) == content(scheme(NEW))


def test_the_schemes_of_the_proposal() -> None:
    read = scheme(
        """
hosts: ["admin.toystore.com"]
identity:
- name: idp-users
  oidc:
    endpoint: https://my-idp.com/auth/realm
authorization:
- name: check-claim
  json:
    rules:
    - selector: auth.identity.group
      operator: eq
      value: allowed-users
"""
    )
    assert read.namespace == "shop"
    assert read.hosts == ("admin.toystore.com",)
    (identity,) = read.identities
    assert identity.method == Jwt("https://my-idp.com/auth/realm")
    assert identity.credentials == Credentials(Where.AUTHORIZATION_HEADER, "Bearer")
    rule = PatternRules(All((Pattern("auth.identity.group", PatternOperator.EQ, "allowed-users"),)))
    assert read.authorizations == (Authorization("check-claim", rule),)
    assert (read.metadata, read.responses, read.when) == ((), (), None)
    assert (read.unauthenticated, read.unauthorized) == (Denial(), Denial())


@pytest.mark.parametrize("text", [OLD, NEW], ids=["old", "new"])
class TestTheWholeOfIt:
    def test_identities(self, text: str) -> None:
        idp, keys, certificates, accounts, opaque, proxy, rest = scheme(text).identities
        assert idp.method == Jwt("https://idp.example/realms/shop", None, frozenset({"shop"}))
        assert idp.credentials == Credentials(Where.COOKIE, "TOKEN")
        assert idp.properties == (
            Property("roles", Selected("auth.identity.realm_access.roles")),
            Property("source", LiteralValue(["idp", 1]), overwrite=True),
        )
        assert isinstance(keys.method, ApiKeys)
        assert keys.method.secrets.matches({"group": "friends"})
        assert not keys.method.secrets.matches({"group": "friends", "old": "1"})
        assert keys.credentials == Credentials(key="APIKEY")
        assert certificates.method == X509(Selector.of({"ca": "shop"}))
        assert accounts.method == TokenReview(("shop", "api"))
        assert accounts.credentials == Credentials(Where.CUSTOM_HEADER, "X-Token")
        assert opaque.method == Introspection("https://idp.example/introspect", "requesting_party_token", "client")
        assert opaque.credentials == Credentials(Where.QUERY, "token")
        assert opaque.cache == Cache(Selected("request.headers.authorization"), 30)
        assert isinstance(proxy.method, Plain)
        assert rest.method == AnonymousAccess()
        assert rest.when == All((READS,))
        assert [one.priority for one in (idp, keys, rest)] == [0, 1, 2]

    def test_metadata(self, text: str) -> None:
        geo, orders, raw = scheme(text).metadata
        assert isinstance(geo.source, HttpCall)
        assert isinstance(raw.source, HttpCall)
        assert geo.source.shared_secret == SecretRef("geo", "token")
        assert geo.source.credentials == Credentials(Where.CUSTOM_HEADER, "X-Key")
        assert geo.source.headers == (Property("Accept", LiteralValue("application/json")),)
        assert orders.source == HttpCall(
            "http://orders.example/",
            "POST",
            body_parameters=(Property("id", Selected("auth.identity.sub")), Property("all", LiteralValue(False))),
            content_type="application/json",
        )
        assert (orders.priority, orders.cache) == (1, Cache(LiteralValue("orders"), 60))
        assert raw.source.body == Selected("Hello, {auth.identity.name}!")

    def test_authorization(self, text: str) -> None:
        claims, rego, rbac, endpoint = scheme(text).authorizations
        assert claims.rule == PatternRules(
            All((STAFF, Pattern("auth.metadata.geo.country", PatternOperator.EXCL, "XX"))),
        )
        assert rego.rule == Rego('allow { input.auth.identity.sub == "jane" }\n', all_values=True)
        assert rego.when == All((Pattern("auth.identity.anonymous", PatternOperator.NEQ, "true"),))
        assert rbac.rule == SubjectAccess(
            Selected("auth.identity.user.username"),
            ("readers",),
            {
                "namespace": LiteralValue("shop"),
                "group": LiteralValue("shop.example"),
                "resource": LiteralValue("orders"),
                "name": Selected('request.path.@extract:{"sep":"/","pos":2}'),
                "verb": Selected("request.method.@case:lower"),
            },
        )
        assert endpoint.rule == SubjectAccess(LiteralValue("jane"))

    def test_responses(self, text: str) -> None:
        who = Property("who", Selected("auth.identity.sub"))
        assert scheme(text).responses == (
            Response("x-user", PlainResponse(Selected("auth.identity.sub")), "x-user"),
            Response("data", Json((who, Property("when", LiteralValue({"now": True})))), "x-data", priority=1),
            Response(
                "limits", Json((Property("user", Selected("auth.identity.sub")),)), "ext_auth_data", in_header=False
            ),
        )

    def test_denials(self, text: str) -> None:
        read = scheme(text)
        location = Property("Location", Selected("https://a.example/login?to={request.path}"))
        assert read.unauthenticated == Denial(302, headers=(location,))
        assert read.unauthorized == Denial(message=LiteralValue("no"), body=Selected("Not for {auth.identity.sub}"))

    def test_conditions(self, text: str) -> None:
        assert scheme(text).when == All(
            (
                Pattern("request.path", PatternOperator.NEQ, "/health"),
                AnyOf((*READS.parts, All((STAFF, Pattern("request.host", PatternOperator.EQ, ""))))),
                CelPredicate("request.method != 'TRACE'"),
            )
        )


def test_places_are_kept() -> None:
    read = scheme(
        """
hosts: [a.example]
patterns: {p: [{selector: a, operator: eq, value: b}]}
authentication:
  all: {anonymous: {}}
authorization:
  one: {patternMatching: {patterns: [{patternRef: p}, {predicate: request.method == 'GET'}]}}
"""
    )
    (identity,), (authorization,) = read.identities, read.authorizations
    assert identity.span is not None
    assert (identity.span.line, identity.span.underlined) == (8, "{anonymous: {}}")
    assert authorization.span is not None
    assert authorization.span.line == 10
    assert isinstance(authorization.rule, PatternRules)
    assert isinstance(authorization.rule.condition, All)
    named, predicate = authorization.rule.condition.parts
    assert isinstance(named, All)
    (pattern,) = named.parts
    assert isinstance(pattern, Pattern)
    assert isinstance(predicate, CelPredicate)
    assert pattern.span is not None
    assert predicate.span is not None
    assert pattern.span.underlined == "{selector: a, operator: eq, value: b}"
    assert predicate.span.underlined == "request.method == 'GET'"
    assert read.span is not None
    assert read.span.line == 5


ALIKE = {
    "labels of API keys, as the proposal has them": (
        "identity: [{name: keys, apiKey: {labelSelectors: {group: friends, tier: gold}}}]",
        "authentication: {keys: {apiKey: {selector: {matchLabels: {group: friends, tier: gold}}}}}",
    ),
    "a prefix that is left out": (
        "identity: [{name: k, kubernetes: {}, credentials: {in: authorization_header}}]",
        "authentication: {k: {kubernetesTokenReview: {}, credentials: {authorizationHeader: {}}}}",
    ),
    "credentials that are left out": (
        "identity: [{name: k, kubernetes: {}, credentials: {keySelector: Bearer}}]",
        "authentication: {k: {kubernetesTokenReview: {}, credentials: {}}}",
    ),
    "an issuer's usual hint": (
        "identity: [{name: k, oauth2: {tokenIntrospectionUrl: 'https://i/', credentialsRef: {name: c}}}]",
        "authentication: {k: {oauth2Introspection: {endpoint: 'https://i/', tokenTypeHint: access_token, "
        "credentialsRef: {name: c}}}}",
    ),
    "no conditions at all": (
        "identity: [{name: k, anonymous: {}, when: []}]\nwhen: []",
        "authentication: {k: {anonymous: {}}}",
    ),
    "sections decide where no word does": (
        "authorization: [{name: p, json: {rules: [{selector: a, operator: eq, value: b}]}}]",
        "authorization: {p: {patternMatching: {patterns: [{selector: a, operator: eq, value: b}]}}}",
    ),
    "the words of AuthPolicy": (
        "response: [{name: x, wrapper: envoyDynamicMetadata, plain: {value: 1}}]",
        "response: {success: {filters: {x: {plain: {value: 1}}}}}",
    ),
    "Rego as it is written today": (
        "authorization: [{name: r, opa: {inlineRego: 'allow if true', version: v1}}]",
        "authorization: {r: {opa: {rego: 'allow if true', version: v1}}}",
    ),
    "nothing but hosts": ("", ""),
}


@pytest.mark.parametrize("what", ALIKE)
def test_the_same_in_the_other_style(what: str) -> None:
    old, new = ALIKE[what]
    assert content(scheme(f"hosts: [a]\n{old}")) == content(scheme(f"hosts: [a]\n{new}"))


def test_what_only_the_new_style_has() -> None:
    read = scheme(
        """
hosts: [a]
authentication:
  keys: {jwt: {jwksUrl: https://idp.example/keys}}
  other: {jwt: {issuerUrl: https://idp.example, jwksUrl: null, timeout: 500}, metrics: true, when: null}
authorization:
  groups: {kubernetesSubjectAccessReview: {groups: [admins]}}
metadata:
  post: {http: {url: https://a.example, method: POST, body: {expression: "{'id': auth.identity.sub}"}}}
response:
  success: {headers: {x-id: {plain: {expression: auth.identity.sub, value: null, selector: null}}}}
"""
    )
    assert [identity.method for identity in read.identities] == [
        Jwt(None, "https://idp.example/keys"),
        Jwt("https://idp.example", None),
    ]
    assert read.authorizations[0].rule == SubjectAccess(None, ("admins",))
    source = read.metadata[0].source
    assert isinstance(source, HttpCall)
    assert source.body == CelExpression("{'id': auth.identity.sub}")
    assert read.responses[0].content == PlainResponse(CelExpression("auth.identity.sub"))


def test_a_named_set_may_be_referred_to_more_than_once() -> None:
    for start, rules in (
        (OLD_START, "[{name: x, json: {rules: %s}}]"),
        (NEW_START, "{x: {patternMatching: {patterns: %s}}}"),
    ):
        read = scheme(
            start
            + "patterns: {p: [{selector: a, operator: eq, value: b}, {predicate: 'true'}]}\nwhen: [{patternRef: p}]\n"
            + f"authorization: {rules % '[{patternRef: p}, {any: [{patternRef: p}]}]'}"
        )
        named = All((Pattern("a", PatternOperator.EQ, "b"), CelPredicate("true")))
        assert read.when == All((named,))
        assert read.authorizations[0].rule == PatternRules(All((named, AnyOf(named.parts))))
