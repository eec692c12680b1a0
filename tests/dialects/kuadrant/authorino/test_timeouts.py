"""A scheme waits for a server as long as its timeout, and never longer than a limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from eastgate.dialects.kuadrant.authorino import calls
from eastgate.dialects.kuadrant.authorino.calls import AnswerCache, HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    ClientCredentials,
    FetchedModule,
    HttpCall,
    Identity,
    Introspection,
    Metadata,
    Rego,
    SecretRef,
    UmaResources,
    UserInfo,
)
from tests.dialects.kuadrant.authorino.schemes import (
    Backend,
    Reply,
    backend,
    everybody,
    holding,
    request,
    scheme,
    secret,
    trail,
)

BEARER = request(headers={"authorization": "Bearer opaque"})
CLIENT = secret("client", None, clientID="us", clientSecret="t0p-s3cret", word="w0rd")
SLOW = 1.0  # seconds that the server waits


@pytest.fixture
def server() -> Iterator[Backend]:
    with backend() as running:
        running.replies["/more"] = Reply({"team": "blue"}, wait=SLOW)
        yield running


def verdict(server: Backend, fetcher: HttpFetcher, timeout: float | None) -> str:
    metadata = Metadata("more", HttpCall(f"{server.url}/more", timeout=timeout))
    return trail(evaluate(scheme(metadata=(metadata,)), request(), holding(fetcher=fetcher)))[1][1]


@pytest.mark.parametrize(
    ("usual", "timeout", "expected"),
    [
        (0.1, None, "error"),
        (0.1, 30, "accepted"),
        (0.1, 0, "accepted"),
        (30, None, "accepted"),
        (30, 0.1, "error"),
    ],
)
def test_a_scheme_says_how_long_to_wait(server: Backend, usual: float, timeout: float | None, expected: str) -> None:
    assert verdict(server, HttpFetcher(timeout=usual), timeout) == expected


@pytest.mark.parametrize("timeout", [0, 3600])
def test_nobody_waits_longer_than_the_bound(server: Backend, monkeypatch: pytest.MonkeyPatch, timeout: float) -> None:
    monkeypatch.setattr(calls, "MAX_WAIT_SECONDS", 0.1)
    assert verdict(server, HttpFetcher(), timeout) == "error"


# Every request has the timeout of its entry


class Noting:
    """Satisfies `Fetcher`: records the path and the timeout of each request."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._fetcher = HttpFetcher(timeout=5)
        self.timeouts: dict[str, float | None] = {}

    def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None = None
    ) -> ServerResponse:
        self.timeouts[url.removeprefix(self._url).partition("?")[0]] = timeout
        return self._fetcher.fetch(method, url, headers, body)


def parts(url: str) -> dict[str, dict[str, Any]]:
    token = ClientCredentials(f"{url}/token", "me", SecretRef("client", "word"), timeout=7)
    opaque = Identity("oauth2", Introspection(f"{url}/introspect", credentials="client", timeout=6))
    module = FetchedModule(HttpCall(f"{url}/module", timeout=8))
    return {
        "introspection": {"identities": [opaque]},
        "user info": {
            "identities": [opaque],
            "metadata": (Metadata("a", UserInfo(url=f"{url}/me", timeout=9)),),
        },
        "client": {"metadata": (Metadata("a", HttpCall(f"{url}/me", client=token, timeout=9)),)},
        "uma": {"metadata": (Metadata("a", UmaResources(url, "client", timeout=9)),)},
        "module": {"authorizations": (Authorization("a", Rego("", fetched=module)),)},
    }


@pytest.mark.parametrize(
    ("name", "timeouts"),
    [
        ("introspection", {"/introspect": 6}),
        ("user info", {"/introspect": 6, "/me": 9}),
        ("client", {"/token": 7, "/me": 9}),
        ("uma", {"/.well-known/uma2-configuration": 9, "/token": 9, "/resources": 9, "/resources/r1": 9}),
        ("module", {"/module": 8}),
    ],
)
def test_each_question_has_its_timeout(server: Backend, name: str, timeouts: dict[str, float]) -> None:
    endpoints = {"token_endpoint": "/token", "resource_registration_endpoint": "/resources"}
    configuration = {"issuer": server.url, **{key: server.url + path for key, path in endpoints.items()}}
    server.replies = {
        "/introspect": Reply({"active": True}),
        "/me": Reply({}),
        "/token": Reply({"access_token": "t"}),
        "/.well-known/uma2-configuration": Reply(configuration),
        "/resources": Reply(["r1"]),
        "/resources/r1": Reply({}),
        "/module": Reply({"result": {"raw": "allow = true"}}),
    }
    noting = Noting(server.url)
    written = parts(server.url)[name]
    rules = written.pop("authorizations", ())
    guarded = scheme(*rules, **{"identities": [everybody()], **written})
    assert evaluate(guarded, BEARER, holding(CLIENT, fetcher=noting, cache=AnswerCache())).allowed
    assert noting.timeouts == timeouts
