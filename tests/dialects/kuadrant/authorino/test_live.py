"""Schemes for real requests: their input, the output for application and client, and the servers that they ask."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.cluster import World
from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer, services_in
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.model import (
    Cache,
    HttpCall,
    LiteralValue,
    Metadata,
    PlainResponse,
    Response,
    Selected,
)
from eastgate.ir import RawRequest, Request, Ruling
from eastgate.ir.attributes import ADDRESS, AUTHORITY, IDENTITY, METHOD, TARGET, UNKNOWN
from tests.dialects.kuadrant.authorino.schemes import (
    Reply,
    api_keys,
    backend,
    holding,
    pattern,
    request,
    rule,
    scheme,
    secret,
)

REQUEST = Request({IDENTITY: None, ADDRESS: "10.0.0.7", METHOD: "POST", TARGET: "/orders", AUTHORITY: "shop.example"})


def header(name: str, value: str, key: str | None = None, **more: Any) -> Response:
    return Response(name, PlainResponse(LiteralValue(value)), key or name, **more)


def ruling(condition: str, **raw: Any) -> Ruling:
    return SchemeAuthorizer(scheme(rule(condition))).answer(REQUEST, RawRequest(headers={}, **raw))


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        ("request.scheme eq https", {"scheme": "https"}),
        ("source.port eq 4711", {"port": 4711}),
        ("request.body eq hello", {"body": "hello"}),
        ("request.size eq 5", {"size": 5}),
        ("request.context_extensions.tenant eq blue", {"extensions": {"tenant": "blue"}}),
        ("context.context_extensions.tenant eq blue", {"extensions": {"tenant": "blue"}}),
    ],
)
def test_a_scheme_sees_what_the_proxy_tells(condition: str, known: dict[str, object]) -> None:
    assert ruling(condition, **known).allowed
    assert not ruling(condition).allowed


def test_a_body_that_is_not_known_in_full_decides_nothing() -> None:
    assert not ruling("request.body neq secret", body=UNKNOWN).allowed
    assert ruling("request.body neq secret", body="hello").allowed


def test_headers_of_a_scheme_replace_those_of_the_client_and_those_it_does_not_make_are_removed() -> None:
    responses = (
        header("x-made", "yes"),
        header("skipped", "no", "X-Skipped", when=pattern("request.method eq GET")),
        header("broken", "two\nlines", "X-Broken"),
        header("missing", "", "X-Missing", in_header=False),
    )
    judged = SchemeAuthorizer(scheme(responses=responses)).answer(REQUEST, RawRequest(headers={}))
    assert (judged.allowed, judged.headers, judged.removed) == (True, (("x-made", "yes"),), ("X-Skipped", "X-Broken"))
    assert judged.metadata == {"X-Missing": ""}


def test_a_scheme_that_does_not_concern_a_request_still_takes_its_headers_from_the_client() -> None:
    guarded = scheme(responses=(header("x-user", "erin"),), when=pattern("request.method eq GET"))
    judged = SchemeAuthorizer(guarded).answer(REQUEST, RawRequest(headers={}))
    assert (judged.allowed, judged.headers, judged.removed) == (True, (), ("x-user",))


@pytest.mark.parametrize("name", ["x-eastgate-target", "X-Envoy-Original-Path", ":path", "Host", "Transfer-Encoding"])
def test_a_policy_cannot_steer_the_proxy(name: str) -> None:
    judged = SchemeAuthorizer(scheme(responses=(header("r", "x", name),))).answer(REQUEST, RawRequest(headers={}))
    assert (judged.allowed, judged.headers, judged.removed) == (True, (), ())


def test_without_an_explanation_the_ruling_is_the_same() -> None:
    guarded = scheme(rule("request.method eq GET"), identities=[api_keys()])
    services = holding(secret("a", "SECRET-KEY"))
    for sent in ({}, {"authorization": "APIKEY SECRET-KEY"}, {"authorization": "APIKEY WRONG"}):
        authorizer = SchemeAuthorizer(guarded, services)
        explained = authorizer.answer(REQUEST, RawRequest(headers=sent))
        brief = authorizer.answer(REQUEST, RawRequest(headers=sent, explain=False))
        assert explained == brief
        assert (explained.headers, explained.body) == (brief.headers, brief.body)
        assert explained.steps
        assert not brief.is_explained


def test_servers_are_asked_only_where_it_is_live() -> None:
    with backend() as server:
        server.replies["/user"] = Reply({"team": "blue"})
        asked = scheme(
            rule("auth.metadata.user.team eq blue"), metadata=(Metadata("user", HttpCall(f"{server.url}/user")),)
        )
        for live in (False, True):
            services = services_in(World.of(()), None, authorino_compat=False, live=live)
            assert evaluate(asked, request(), services).allowed is live


def test_an_answer_about_a_key_is_never_used_again() -> None:
    keys = [secret("a", "SECRET-KEY")]
    cached = scheme(identities=[api_keys(cache=Cache(Selected("request.host"), 3600))])
    services = services_in(World.of(keys), None, authorino_compat=False, live=True)
    good = request(headers={"authorization": "APIKEY SECRET-KEY"})
    assert evaluate(cached, good, services).allowed
    assert not evaluate(cached, request(headers={"authorization": "APIKEY OTHER"}), services).allowed
