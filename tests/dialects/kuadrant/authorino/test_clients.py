"""Requests of schemes with their own credentials: OAuth2 clients, UserInfo, UMA, computed addresses."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from eastgate.dialects.kuadrant.authorino.calls import AnswerCache, HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import (
    CelExpression,
    ClientCredentials,
    Credentials,
    HttpCall,
    Identity,
    Introspection,
    Jwt,
    Metadata,
    MetadataSource,
    SecretRef,
    UmaResources,
    UserInfo,
    Where,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from tests.dialects.kuadrant.authorino.schemes import (
    Backend,
    Reply,
    backend,
    everybody,
    holding,
    request,
    rule,
    scheme,
    secret,
    trail,
)
from tests.patience import PATIENCE

TOKEN = "opaque-token-of-alice"  # noqa: S105 - made up
BEARER = request(headers={"authorization": f"Bearer {TOKEN}"}, path="/greetings/1")
CLIENT = secret("client", None, clientID="us", clientSecret="t0p-s3cret", word="w/rd")


@pytest.fixture
def server() -> Iterator[Backend]:
    with backend() as running:
        yield running


def live(**more: Any) -> Services:
    return holding(CLIENT, fetcher=HttpFetcher(timeout=PATIENCE), cache=AnswerCache(), **more)


def fetched(source: MetadataSource, services: Services, *identities: Identity) -> Judgement:
    guarded = scheme(
        rule("auth.metadata.more.team eq blue"),
        identities=identities or [everybody()],
        metadata=(Metadata("more", source),),
    )
    return evaluate(guarded, BEARER, services)


# Computed addresses


def test_an_address_may_be_computed(server: Backend) -> None:
    server.replies["/greetings/1"] = Reply({"team": "blue"})
    call = HttpCall("", url_expression=CelExpression(f"'{server.url}' + request.path"))
    assert fetched(call, live()).allowed
    assert fetched(call, holding()).is_undecided


@pytest.mark.parametrize("expression", ["'ftp://a'", "1", "request.headers['missing']", "'http://u:p@host/'"])
def test_an_address_that_is_none_is_not_asked(expression: str) -> None:
    judged = fetched(HttpCall("", url_expression=CelExpression(expression)), live())
    assert not judged.allowed
    assert trail(judged)[1] == ("more", "error")


# OAuth2 clients


def client(server: Backend, **more: Any) -> HttpCall:
    credentials = ClientCredentials(f"{server.url}/token", "me & you", SecretRef("client", "word"), **more)
    return HttpCall(f"{server.url}/more", client=credentials, credentials=Credentials(Where.CUSTOM_HEADER, "X-Token"))


def paths(server: Backend) -> list[str]:
    return [asked.path.partition("?")[0] for asked in server.asked]


def test_a_token_is_asked_for_and_sent_at_its_location(server: Backend) -> None:
    server.replies = {"/token": Reply({"access_token": "t1", "expires_in": 60}), "/more": Reply({"team": "blue"})}
    judged = fetched(client(server, scopes=("a", "b"), parameters=(("x", "y"),)), live())
    assert judged.allowed
    token, more = server.asked
    assert parse_qs(token.body.decode()) == {"grant_type": ["client_credentials"], "scope": ["a b"], "x": ["y"]}
    pair = base64.b64encode(b"me+%26+you:w%2Frd").decode()
    assert token.headers["authorization"] == f"Basic {pair}"
    assert more.headers["x-token"] == "t1"
    assert "w/rd" not in repr(judged)


@pytest.mark.parametrize(("cached", "expires", "asked"), [(True, 60, 1), (False, 60, 2), (True, 5, 2)])
def test_a_token_is_kept_until_it_expires(server: Backend, cached: bool, expires: int, asked: int) -> None:
    server.replies = {"/token": Reply({"access_token": "t1", "expires_in": expires}), "/more": Reply({"team": "blue"})}
    services = live()
    for _ in range(2):
        assert fetched(client(server, cached=cached), services).allowed
    assert paths(server).count("/token") == asked


@pytest.mark.parametrize(
    "reply", [Reply(status=500), Reply({}), Reply({"access_token": ""}), Reply(b"[]"), Reply(status=401)]
)
def test_without_a_token_nothing_is_asked(server: Backend, reply: Reply) -> None:
    server.replies = {"/token": reply, "/more": Reply({"team": "blue"})}
    assert not fetched(client(server), live()).allowed
    assert "/more" not in paths(server)


def test_a_server_that_takes_no_header_gets_the_credentials_in_the_body(server: Backend) -> None:
    server.replies = {"/token": Reply(status=401)}
    fetched(client(server), live())
    first, second = server.asked
    assert "authorization" not in second.headers
    assert parse_qs(second.body.decode())["client_secret"] == ["w/rd"]
    assert b"client_secret" not in first.body


def test_offline_the_answer_is_unknown(server: Backend) -> None:
    assert fetched(client(server), holding(CLIENT)).is_undecided
    assert not fetched(client(server), holding(fetcher=HttpFetcher(timeout=PATIENCE))).allowed, "there is no Secret"
    assert server.asked == []


# UserInfo


def introspecting(server: Backend) -> Identity:
    return Identity("opaque", Introspection(f"{server.url}/introspect"))


def test_user_info_at_a_url_of_its_own(server: Backend) -> None:
    server.replies = {"/introspect": Reply({"active": True}), "/me": Reply({"team": "blue"})}
    judged = fetched(UserInfo(url=f"{server.url}/me"), live(), introspecting(server))
    assert judged.allowed
    assert server.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("recognized", [everybody(), None], ids=["anonymous", "another issuer"])
def test_user_info_needs_a_token_of_its_issuer(server: Backend, recognized: Identity | None) -> None:
    server.replies = {"/introspect": Reply({"active": True})}
    issuer = Identity("idp", Jwt(server.url), priority=1)
    judged = fetched(UserInfo("idp"), live(), recognized or introspecting(server), issuer)
    assert not judged.allowed
    assert trail(judged)[1] == ("more", "error")


def by_claims(source: UserInfo, services: Services, issuer: str) -> Judgement:
    guarded = scheme(
        rule("auth.metadata.more.team eq blue"),
        identities=[Identity("idp", Jwt(issuer))],
        metadata=(Metadata("more", source),),
    )
    known = request(headers={"authorization": f"Bearer {TOKEN}"}, claims={"sub": "alice"})
    return evaluate(guarded, known, services)


def test_user_info_is_where_the_issuer_says(server: Backend) -> None:
    server.replies = {
        "/realm/.well-known/openid-configuration": Reply({"userinfo_endpoint": f"{server.url}/me"}),
        "/me": Reply({"team": "blue"}),
    }
    issuer, services = f"{server.url}/realm", live()
    assert by_claims(UserInfo("idp"), services, issuer).allowed
    assert by_claims(UserInfo("idp"), services, issuer).allowed
    assert paths(server) == ["/realm/.well-known/openid-configuration", "/me", "/me"]
    assert by_claims(UserInfo("idp"), holding(), issuer).is_undecided
    assert not by_claims(UserInfo("none"), services, issuer).allowed


@pytest.mark.parametrize(
    "reply", [Reply(status=404), Reply({}), Reply({"userinfo_endpoint": "file:///etc"}), Reply(b"x")]
)
def test_an_issuer_without_user_info(server: Backend, reply: Reply) -> None:
    server.replies = {"/.well-known/openid-configuration": reply}
    assert not by_claims(UserInfo("idp"), live(), server.url).allowed


# UMA


def uma(server: Backend, **more: Reply) -> None:
    server.replies = {
        "/.well-known/uma2-configuration": Reply(
            {
                "issuer": server.url,
                "token_endpoint": f"{server.url}/token",
                "resource_registration_endpoint": f"{server.url}/resources",
            }
        ),
        "/token": Reply({"access_token": "pat"}),
        "/resources": Reply(["r1", "r2"]),
        "/resources/r1": Reply({"owner": {"id": "alice"}}),
        **{f"/{name}": reply for name, reply in more.items()},
    }


def resources(server: Backend, services: Services, **facts: Any) -> Judgement:
    guarded = scheme(
        rule("auth.metadata.uma.0.owner.id eq alice"),
        metadata=(Metadata("uma", UmaResources(server.url, "client")),),
    )
    return evaluate(guarded, request(path="/greetings/1", **facts), services)


def test_resources_are_found_by_the_path(server: Backend) -> None:
    uma(server)
    judged = resources(server, live())
    assert judged.allowed
    assert judged.document["auth"]["metadata"]["uma"] == [{"owner": {"id": "alice"}}]  # type: ignore[index]
    assert server.asked[2].path == "/resources?uri=%2Fgreetings%2F1"
    assert server.asked[2].headers["authorization"] == "Bearer pat"
    assert resources(server, holding(CLIENT)).is_undecided


@pytest.mark.parametrize(
    "more", [{"resources": Reply({})}, {"resources": Reply(status=500)}, {"token": Reply(status=403)}], ids=str
)
def test_a_server_of_resources_that_fails(server: Backend, more: dict[str, Reply]) -> None:
    uma(server, **more)
    assert not resources(server, live()).allowed


def test_the_configuration_must_be_that_of_the_endpoint(server: Backend) -> None:
    uma(server, **{".well-known/uma2-configuration": Reply({"issuer": "https://other"})})
    assert not resources(server, live()).allowed
    assert not resources(server, holding(fetcher=HttpFetcher(timeout=PATIENCE))).allowed, "there is no Secret"
