"""A scheme reads the path if any field of any part does. Every field counts, or is a known constant."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from eastgate.cluster import Selector
from eastgate.dialects.kuadrant.authorino import model
from eastgate.dialects.kuadrant.authorino.authorization_json import authorization_json_of
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    All,
    AnonymousAccess,
    AnyOf,
    ApiKeys,
    Authorization,
    Cache,
    Callback,
    CelExpression,
    CelPredicate,
    CertificateFormat,
    CertificateHeader,
    ClientCredentials,
    Credentials,
    Denial,
    FetchedModule,
    HttpCall,
    Identity,
    Introspection,
    Json,
    Jwt,
    LiteralValue,
    Metadata,
    MissingPatterns,
    Part,
    Pattern,
    PatternOperator,
    PatternRules,
    PermissionCheck,
    Plain,
    PlainResponse,
    Property,
    Rego,
    Response,
    Scheme,
    SecretRef,
    Selected,
    SigningKey,
    SubjectAccess,
    TokenReview,
    UmaResources,
    UserInfo,
    Wristband,
)
from eastgate.dialects.kuadrant.authorino.paths import PATH_OF_REQUEST
from eastgate.ir.attributes import UNKNOWN

HOST = Selected("request.host")
PATTERN = Pattern("request.host", PatternOperator.EQ, "a")
CALL = HttpCall("https://a.example/{request.host}")
RULES = PatternRules(PATTERN)
# For each kind of part, one that does not read the path.
PARTS: tuple[Part, ...] = (
    *(LiteralValue("path"), HOST, CelExpression("request.host")),
    *(PATTERN, CelPredicate("true"), MissingPatterns("a"), All(), AnyOf()),
    *(Credentials(), SecretRef("a", "b"), Jwt("https://a.example"), ApiKeys(Selector()), X509(Selector())),
    *(TokenReview(), Introspection("https://a.example"), Plain("request.host"), AnonymousAccess()),
    *(Property("a", HOST), Cache(HOST), Identity("a", AnonymousAccess()), CALL, Metadata("a", CALL)),
    *(RULES, Rego("allow = true"), SubjectAccess(HOST, resource={"verb": HOST}), Authorization("a", RULES)),
    *(PlainResponse(HOST), Json(()), Response("a", PlainResponse(HOST), "a"), Denial(), Callback("a", CALL)),
    *(CertificateHeader("a", CertificateFormat.XFCC), ClientCredentials("https://a", "a", SecretRef("a", "b"))),
    *(FetchedModule(CALL), UserInfo("a"), PermissionCheck("a:1", HOST, HOST, HOST, HOST, HOST)),
    *(SigningKey("a", "ES256"), Wristband("a", (SigningKey("a", "ES256"),))),
    Scheme("shop", ("*",)),
)

PATH = Selected("request.path")
LOOKS = Pattern("request.path", PatternOperator.EQ, "/")
LOOKS_UP = UmaResources("https://a.example", "a")  # always by the path
NAMED = (Property("a", HOST), Property("a", PATH))
# For each field with expressions, a value that reads the path.
LOOKING: dict[str, object] = {
    "Selected.path": "a {request.path}",
    "CelExpression.text": "request.path",
    "Pattern.selector": "context.request.http.path",
    "CelPredicate.text": "request.url_path == '/'",
    "All.parts": (PATTERN, LOOKS),
    "AnyOf.parts": (PATTERN, LOOKS),
    "Plain.selector": "request.path",
    "Plain.expression": "request.path",
    "X509.source": CelExpression("request.path"),
    "Property.value": PATH,
    "Cache.key": PATH,
    "Identity.method": Plain("request.path"),
    "Identity.when": LOOKS,
    "Identity.properties": NAMED,
    "Identity.cache": Cache(PATH),
    "HttpCall.url": "https://a.example/{request.path}",
    "HttpCall.url_expression": CelExpression("request.path"),
    "HttpCall.headers": NAMED,
    "HttpCall.body": PATH,
    "HttpCall.body_parameters": NAMED,
    "Metadata.source": HttpCall("https://a.example", body=PATH),
    "Metadata.when": LOOKS,
    "Metadata.cache": Cache(PATH),
    "PatternRules.condition": LOOKS,
    "Rego.module": "allow { input.request.path }",
    "Rego.fetched": FetchedModule(CALL),
    "SubjectAccess.selected_groups": PATH,
    "SubjectAccess.user": PATH,
    **{
        f"PermissionCheck.{name}": PATH
        for name in ("subject", "subject_kind", "resource", "resource_kind", "permission")
    },
    "Wristband.claims": NAMED,
    "SubjectAccess.resource": None,
    "Authorization.rule": Rego("allow { input.request.path }"),
    "Authorization.when": LOOKS,
    "Authorization.cache": Cache(PATH),
    "PlainResponse.value": PATH,
    "Json.properties": NAMED,
    "Response.content": PlainResponse(PATH),
    "Response.when": LOOKS,
    "Response.cache": Cache(PATH),
    "Denial.message": PATH,
    "Denial.headers": NAMED,
    "Denial.body": PATH,
    "Scheme.identities": (Identity("a", Plain("request.path")),),
    "Scheme.metadata": (Metadata("a", HttpCall("{request.path}")),),
    "Scheme.authorizations": (Authorization("a", SubjectAccess(None)),),
    "Scheme.responses": (Response("a", PlainResponse(PATH), "a"),),
    "Scheme.when": LOOKS,
    "Scheme.unauthenticated": Denial(body=PATH),
    "Scheme.unauthorized": Denial(body=PATH),
}
STEPS = ("Identity", "Metadata", "Authorization", "Response")
# Fields without expressions.
CONSTANTS = {
    "LiteralValue.value",
    *("Pattern.operator", "Pattern.value"),
    "AnyOf.apart",
    *("Credentials.where", "Credentials.key", "SecretRef.name", "SecretRef.key"),
    *("Jwt.issuer", "Jwt.jwks_url", "Jwt.audiences", "ApiKeys.secrets", "X509.secrets", "TokenReview.audiences"),
    *("Introspection.url", "Introspection.token_type_hint", "Introspection.credentials"),
    *("Property.name", "Property.overwrite", "Cache.seconds"),
    *("Identity.credentials", "HttpCall.method", "HttpCall.content_type", "HttpCall.shared_secret"),
    *("HttpCall.credentials", "Rego.all_values", "Rego.version", "SubjectAccess.groups"),
    *("Response.key", "Response.in_header", "Denial.code", "Scheme.namespace", "Scheme.hosts"),
    *(
        f"{kind}.{name}"
        for kind in ("Identity", "Metadata", "Authorization", "Response", "Callback")
        for name in ("name", "priority")
    ),
    *(f"{kind}.span" for kind in ("Pattern", "CelPredicate", "MissingPatterns")),
    *(f"{kind}.span" for kind in ("Identity", "Metadata", "Authorization", "Response", "Callback")),
    *("ApiKeys.all_namespaces", "X509.all_namespaces", "CertificateHeader.name", "CertificateHeader.format"),
    *("HttpCall.client", "FetchedModule.call", "FetchedModule.seconds", "UserInfo.identity", "UserInfo.url"),
    *(f"ClientCredentials.{name}" for name in ("token_url", "client", "secret", "scopes", "parameters", "cached")),
    *("UmaResources.url", "UmaResources.credentials", "SigningKey.name", "SigningKey.algorithm"),
    *("PermissionCheck.endpoint", "PermissionCheck.insecure", "PermissionCheck.shared_secret"),
    *("Wristband.issuer", "Wristband.keys", "Wristband.seconds"),
    "CelPredicate.at_gateway",
    *(f"{kind}.timeout" for kind in ("Introspection", "HttpCall", "ClientCredentials", "UserInfo", "UmaResources")),
    *("MissingPatterns.name", "Callback.call", "Callback.when", "Scheme.callbacks", "Scheme.span"),
}


def test_every_kind_of_part_and_every_field_is_tried() -> None:
    kinds = [kind for kind in vars(model).values() if isinstance(kind, type)]
    parts: list[Any] = [kind for kind in kinds if is_dataclass(kind)]
    assert set(parts) == {type(part) for part in (*PARTS, LOOKS_UP)}
    assert all(issubclass(kind, Part) for kind in parts)
    every_field = {f"{kind.__name__}.{field.name}" for kind in parts for field in fields(kind)}
    assert every_field == LOOKING.keys() | CONSTANTS
    assert LOOKING.keys().isdisjoint(CONSTANTS)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_looks_at_the_path_if_a_field_of_it_does(part: Any) -> None:
    assert not part.looks_at_path
    for field in fields(part):
        name = f"{type(part).__name__}.{field.name}"
        if name in LOOKING:
            assert replace(part, **{field.name: LOOKING[name]}).looks_at_path, name


def test_resources_are_looked_up_by_the_path() -> None:
    assert LOOKS_UP.looks_at_path
    assert Metadata("a", LOOKS_UP).looks_at_path


REACHING = (
    *("request.*", "request|@values", "request", "@this", "context", "context|@tostr", "context.request.http.@values"),
    *("request.p\\ath", "[request.host,request.path]", "..0", "request.headers", "request.grpc.method"),
)
ELSEWHERE = ("request.host", "request.query", "request.headers.x-path", "auth.identity.path", "context.request.http.id")


@pytest.mark.parametrize("selector", REACHING)
def test_a_selector_looks_at_the_path_if_it_can_reach_it(selector: str) -> None:
    assert Pattern(selector, PatternOperator.EQ, "a").looks_at_path
    assert Selected(selector).looks_at_path
    assert Selected(f"a {{{selector}}}").looks_at_path


@pytest.mark.parametrize("selector", ELSEWHERE)
def test_a_selector_that_leads_elsewhere_does_not_look_at_the_path(selector: str) -> None:
    assert not Pattern(selector, PatternOperator.EQ, "/path").looks_at_path
    assert not Selected(selector).looks_at_path
    assert not Selected(f"path {{{selector}}}").looks_at_path


@pytest.mark.parametrize(
    "text",
    [
        *("request == {}", "request['pa' + 'th'] == '/'", "context.request.size() > 1", "request["),
        *("':path' in request.headers", "request.method in request.headers", "request.exists(k, request[k] == '/')"),
    ],
)
def test_cel_looks_at_the_path_if_it_can_reach_it_or_is_not_understood(text: str) -> None:
    assert CelPredicate(text).looks_at_path
    assert CelExpression(text).looks_at_path


@pytest.mark.parametrize(
    "text",
    [
        *(
            "'referer' in request.headers",
            "has(request.headers.path)",
            "request.headers['x-envoy-original-path'] == '/'",
        ),
        *("'path' in auth.identity.groups", "request.query == 'path'", "'/path' in ['/path', request.method]"),
    ],
)
def test_cel_that_leads_elsewhere_does_not_look_at_the_path(text: str) -> None:
    assert not CelPredicate(text).looks_at_path
    assert not CelExpression(text).looks_at_path


@pytest.mark.parametrize("reference", ["input", "input.request[_]", 'input["request"]', "input[x].y", "input.context"])
def test_rego_looks_at_the_path_if_it_can_reach_it(reference: str) -> None:
    assert Rego(f"allow {{ {reference} }}").looks_at_path


def test_the_path_is_where_the_document_has_it() -> None:
    request = RequestFacts(time=0.0, path=UNKNOWN, headers={"content-type": "application/grpc"})
    unknown = authorization_json_of(request, ()).unknown
    assert {*PATH_OF_REQUEST, ("request", "query")} == {
        path for path, called in unknown.items() if called == "the path"
    }


def test_a_new_kind_of_part_counts_as_looking_until_it_says_otherwise() -> None:
    class NewKind(Part):
        pass

    assert NewKind().looks_at_path
