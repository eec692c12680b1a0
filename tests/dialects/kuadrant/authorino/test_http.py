"""Introspection and metadata with a real HTTP server."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from eastgate.dialects.kuadrant.authorino.calls import HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import (
    Credentials,
    HttpCall,
    Identity,
    Introspection,
    LiteralValue,
    Metadata,
    Property,
    SecretRef,
    Selected,
    Where,
)
from tests.dialects.kuadrant.authorino.schemes import (
    NAMESPACE,
    Backend,
    Reply,
    backend,
    everybody,
    holding,
    pattern,
    request,
    rule,
    scheme,
    secret,
    trail,
)
from tests.patience import PATIENCE
from tests.reading.jwt.mint import NOW

TOKEN = "opaque-token-of-alice"  # noqa: S105 - made up
CLIENT = secret("client", None, clientID="us", clientSecret="t0p-s3cret")
BEARER = request(headers={"authorization": f"Bearer {TOKEN}"})


@pytest.fixture
def server() -> Iterator[Backend]:
    with backend() as running:
        yield running


def services(reply: Reply | None = None, **more: Any) -> Services:
    """Return the services of a scheme. They do not wait for a server with a delayed `reply`."""
    timeout = reply.wait / 3 if reply is not None and reply.wait else PATIENCE
    return holding(CLIENT, secret("shared", None, word="sh4red-s3cret"), fetcher=HttpFetcher(timeout=timeout), **more)


def introspecting(server: Backend, **more: Any) -> Identity:
    return Identity("oauth2", Introspection(f"{server.url}/introspect", credentials="client"), **more)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (Reply({"active": True, "sub": "alice"}), "accepted"),
        (Reply({"active": True, "sub": "alice", "exp": NOW + 60}), "accepted"),
        (Reply({"active": True, "sub": "alice", "exp": NOW - 60}), "refused"),
        (Reply({"active": False}), "refused"),
        (Reply({"active": "true", "sub": "alice"}), "refused"),
        (Reply({"active": 1, "sub": "alice"}), "refused"),
        (Reply({"sub": "alice"}), "refused"),
        (Reply([{"active": True}]), "error"),
        (Reply(b'{"active":true,"active":false}'), "error"),
        (Reply(b"not json"), "error"),
        (Reply({"active": True, "sub": "alice"}, status=500), "error"),
        (Reply({"active": True, "sub": "alice"}, wait=6), "error"),
        (Reply(b" " * (1 << 20)), "error"),
        (Reply(status=302, headers={"Location": "/elsewhere"}), "error"),
    ],
)
def test_only_an_active_token_is_recognized(server: Backend, reply: Reply, verdict: str) -> None:
    server.replies["/introspect"] = reply
    server.replies["/elsewhere"] = Reply({"active": True, "sub": "alice"})
    found = evaluate(
        scheme(rule("auth.identity.sub eq alice"), identities=[introspecting(server)]), BEARER, services(reply)
    )
    assert trail(found)[0] == ("oauth2", verdict)
    assert found.allowed is (verdict == "accepted")
    assert TOKEN not in repr(found)
    assert "t0p-s3cret" not in repr(found)
    [asked] = server.all_asked(1)
    assert parse_qs(asked.body.decode()) == {"token": [TOKEN], "token_type_hint": ["access_token"]}
    assert base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")) == b"us:t0p-s3cret"


def test_without_a_token_nobody_is_asked(server: Backend) -> None:
    found = evaluate(scheme(identities=[introspecting(server)]), request(), services())
    assert (found.allowed, server.asked) == (False, [])


def test_without_a_way_to_ask_nothing_is_known(server: Backend) -> None:
    found = evaluate(scheme(identities=[introspecting(server)]), BEARER, holding(CLIENT))
    assert trail(found) == [("oauth2", "unknown")]


def test_missing_credentials_for_the_issuer_deny(server: Backend) -> None:
    found = evaluate(scheme(identities=[introspecting(server)]), BEARER, Services(fetcher=HttpFetcher()))
    assert (trail(found), server.asked) == ([("oauth2", "error")], [])


# Servers that are asked, and those that are no longer asked


def test_after_a_decision_nobody_is_asked(server: Backend) -> None:
    server.replies["/introspect"] = Reply({"active": True, "sub": "alice"})
    server.replies["/more"] = Reply({"plan": "gold"})
    later = introspecting(server, priority=1)
    more = Metadata("more", HttpCall(f"{server.url}/more"))
    guarded = scheme(rule("auth.identity.anonymous eq true"), identities=[later, everybody()], metadata=(more,))
    assert evaluate(guarded, BEARER, services()).allowed
    assert [asked.path for asked in server.asked] == ["/more"]

    server.asked.clear()
    refused = scheme(identities=[introspecting(server)], metadata=(more,))
    server.replies["/introspect"] = Reply({"active": False})
    assert not evaluate(refused, BEARER, services()).allowed
    assert [asked.path for asked in server.asked] == ["/introspect"]

    server.asked.clear()
    unconcerned = scheme(identities=[introspecting(server)], metadata=(more,), when=pattern("request.method eq PUT"))
    assert evaluate(unconcerned, BEARER, services()).allowed
    assert server.asked == []


# Metadata


def with_metadata(
    server: Backend, call: HttpCall, condition: str, reply: Reply | None = None
) -> tuple[bool, list[tuple[str, str]]]:
    guarded = scheme(rule(condition), identities=[everybody()], metadata=(Metadata("more", call),))
    found = evaluate(guarded, request(headers={"x-user": "alice"}), services(reply))
    assert "sh4red-s3cret" not in repr(found)
    return found.allowed, trail(found)


def test_metadata_is_fetched_with_what_is_known_of_the_request(server: Backend) -> None:
    server.replies["/users/alice"] = Reply({"plan": "gold"})
    call = HttpCall(
        server.url + "/users/{request.headers.x-user}?m={request.method}",
        headers=(Property("x-path", Selected("request.url_path")), Property("x-n", LiteralValue(7))),
        shared_secret=SecretRef("shared", "word"),
    )
    allowed, _ = with_metadata(server, call, "auth.metadata.more.plan eq gold")
    assert allowed
    [asked] = server.asked
    assert (asked.method, asked.path) == ("GET", "/users/alice?m=GET")
    assert (asked.headers["x-path"], asked.headers["x-n"]) == ("/orders", "7")
    assert asked.headers["authorization"] == "Bearer sh4red-s3cret"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("application/json", b'{"user": "alice"}'), ("application/x-www-form-urlencoded", b"user=alice")],
)
def test_metadata_is_posted(server: Backend, content_type: str, body: bytes) -> None:
    server.replies["/more"] = Reply({"plan": "gold"})
    user = Property("user", Selected("request.headers.x-user"))
    call = HttpCall(
        f"{server.url}/more",
        "POST",
        body_parameters=(user,),
        content_type=content_type,
        shared_secret=SecretRef("shared", "word"),
        credentials=Credentials(Where.QUERY, "secret"),
    )
    assert with_metadata(server, call, "auth.metadata.more.plan eq gold")[0]
    [asked] = server.asked
    assert (asked.body, asked.headers["content-type"]) == (body, content_type)
    assert asked.path == "/more?secret=sh4red-s3cret"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500),
        Reply(b"["),
        Reply([1]),
        Reply(wait=6),
        Reply(b" " * (1 << 20)),
        Reply(status=302, headers={"Location": "http://localhost:1/other"}),
        Reply(status=302, headers={"Location": "file:///etc/passwd"}),
        Reply(status=302, headers={"Location": "/more"}),
    ],
)
def test_metadata_that_cannot_be_had_is_as_if_it_were_not_there(server: Backend, reply: Reply) -> None:
    server.replies["/more"] = reply
    call = HttpCall(f"{server.url}/more")
    assert with_metadata(server, call, "auth.metadata.more.plan eq gold", reply) == (
        False,
        [("everybody", "accepted"), ("more", "error"), ("rule", "refused")],
    )
    assert with_metadata(server, call, "auth.metadata.more.plan neq gold", reply)[0]


def test_a_redirect_on_the_same_server_is_followed(server: Backend) -> None:
    server.replies["/more"] = Reply(status=302, headers={"Location": "/other"})
    server.replies["/other"] = Reply({"plan": "gold"})
    assert with_metadata(server, HttpCall(f"{server.url}/more"), "auth.metadata.more.plan eq gold")[0]


def test_text_is_metadata_too(server: Backend) -> None:
    server.replies["/more"] = Reply(b"gold", headers={"Content-Type": "text/plain"})
    assert with_metadata(server, HttpCall(f"{server.url}/more"), "auth.metadata.more eq gold")[0]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/", "http://", "http://user:pw@127.0.0.1/", "x"])
def test_only_http_servers_are_asked(server: Backend, url: str) -> None:
    assert with_metadata(server, HttpCall(url), "auth.metadata.more neq x")[1][1] == ("more", "error")


def test_a_request_cannot_choose_the_server(server: Backend) -> None:
    guarded = scheme(metadata=(Metadata("more", HttpCall(server.url + "/{request.headers.x-user}")),))
    for header in ("@evil.example/", "x y", "x\\@evil", "a#b", "//evil.example/"):
        found = evaluate(guarded, request(headers={"x-user": header}), services())
        assert trail(found)[1][1] == "error"
    dynamic = scheme(metadata=(Metadata("more", HttpCall("http://127.0.0.1:{request.headers.x-user}/")),))
    assert trail(evaluate(dynamic, request(headers={"x-user": "1@evil.example:80"}), services()))[1][1] == "error"


def test_a_method_that_authorino_does_not_send_is_not_sent(server: Backend) -> None:
    call = Metadata("more", HttpCall(f"{server.url}/more", "PUT"))
    for given in (services(), Services()):
        found = evaluate(scheme(rule("auth.metadata.more.plan eq gold"), metadata=(call,)), request(), given)
        assert (found.allowed, trail(found)[1:]) == (False, [("more", "error"), ("rule", "refused")])
    assert server.asked == []


def test_without_a_way_to_ask_metadata_is_unknown() -> None:
    call = Metadata("more", HttpCall("http://127.0.0.1:1/"))
    looking = scheme(rule("auth.metadata.more.plan neq gold"), metadata=(call,))
    found = evaluate(looking, request(), Services())
    assert (found.allowed, trail(found)[1:]) == (False, [("more", "unknown"), ("rule", "unknown")])
    assert evaluate(scheme(rule("request.method eq GET"), metadata=(call,)), request(), Services()).allowed


def test_the_namespace_of_secrets_is_the_schemes() -> None:
    assert services().secret(NAMESPACE, "client") is CLIENT
    assert services().secret("other", "client") is None
