"""Rego modules from a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eastgate.dialects.kuadrant.authorino.calls import AnswerCache, HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    FetchedModule,
    HttpCall,
    Rego,
    Scheme,
    SecretRef,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from tests.dialects.kuadrant.authorino.schemes import Backend, Reply, backend, holding, request, scheme, secret
from tests.patience import PATIENCE

MODULE = 'allow { input.request.method == "GET" }'
TEXT = {"Content-Type": "text/plain"}


@pytest.fixture
def server() -> Iterator[Backend]:
    with backend() as running:
        yield running


def guarded(server: Backend, **more: object) -> Scheme:
    call = HttpCall(f"{server.url}/module", shared_secret=SecretRef("registry", "word"))
    return scheme(Authorization("rego", Rego("", fetched=FetchedModule(call, 60), **more)))  # type: ignore[arg-type]


def live() -> Services:
    return holding(secret("registry", None, word="s3cret"), fetcher=HttpFetcher(timeout=PATIENCE), cache=AnswerCache())


def asked(policy: Scheme, services: Services, method: str = "GET") -> Judgement:
    return evaluate(policy, request(method=method), services)


def test_a_module_is_fetched_once_and_decides(server: Backend) -> None:
    server.replies["/module"] = Reply(MODULE.encode(), headers=TEXT)
    policy, services = guarded(server), live()
    assert asked(policy, services).allowed
    assert not asked(policy, services, "POST").allowed
    (fetch,) = server.asked
    assert fetch.headers["authorization"] == "Bearer s3cret"


def test_a_module_as_opa_itself_publishes_it(server: Backend) -> None:
    server.replies["/module"] = Reply({"result": {"id": "x", "raw": f"package x\n{MODULE}"}})
    assert asked(guarded(server), live()).allowed


def test_a_module_in_the_syntax_of_its_version(server: Backend) -> None:
    server.replies["/module"] = Reply(b'allow if input.request.method == "GET"', headers=TEXT)
    assert asked(guarded(server, version=1), live()).allowed
    assert not asked(guarded(server), live()).allowed


@pytest.mark.parametrize(
    "reply",
    [
        Reply(MODULE.encode(), status=404, headers=TEXT),
        Reply(MODULE.encode(), status=201, headers=TEXT),
        Reply(b"allow {", headers=TEXT),
        Reply(b"\xff", headers=TEXT),
        Reply({"result": {}}),
        Reply({}),
        Reply(b"[]"),
    ],
)
def test_what_is_not_a_module_denies(server: Backend, reply: Reply) -> None:
    server.replies["/module"] = reply
    assert not asked(guarded(server), live()).allowed


def test_a_module_that_cannot_be_asked_for(server: Backend) -> None:
    server.replies["/module"] = Reply(MODULE.encode(), headers=TEXT)
    registry = secret("registry", None, word="s3cret")
    assert asked(guarded(server), holding(registry)).is_undecided
    assert not asked(guarded(server), holding(fetcher=HttpFetcher(timeout=PATIENCE))).allowed, "there is no Secret"
    assert server.asked == []
