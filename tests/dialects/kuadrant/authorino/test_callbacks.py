"""Callbacks are sent after every decision of a scheme, in the background. Their results change nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from eastgate.cluster import World
from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer, services_in
from eastgate.dialects.kuadrant.authorino.callbacks import CallbackThreads
from eastgate.dialects.kuadrant.authorino.calls import HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import Callback, CelPredicate, HttpCall, Property, Scheme, Selected
from eastgate.ir import RawRequest, Request
from eastgate.ir.attributes import ADDRESS, AUTHORITY, IDENTITY, METHOD, TARGET
from tests.dialects.kuadrant.authorino.schemes import Backend, Reply, api_keys, backend, pattern, request, rule, scheme
from tests.patience import PATIENCE

REQUEST = Request({IDENTITY: None, ADDRESS: "10.0.0.7", METHOD: "GET", TARGET: "/orders", AUTHORITY: "shop.example"})


@pytest.fixture
def server() -> Iterator[Backend]:
    with backend() as running:
        running.replies["/log"] = Reply({})
        yield running


def logged(server: Backend, *rules: Any, path: str = "/log", **more: Any) -> Scheme:
    parameters = (Property("path", Selected("request.path")), Property("who", Selected("auth.identity.anonymous")))
    call = HttpCall(f"{server.url}{path}", "POST", body_parameters=parameters, content_type="application/json")
    callback = Callback("log", call, when=more.pop("only", None))
    return scheme(*rules, callbacks=(callback,), **more)


def answered(policy: Scheme, **raw: Any) -> bool:
    threads = CallbackThreads(HttpFetcher(timeout=PATIENCE))
    services = Services(background=threads, at_once=Services(background=threads))
    allowed = SchemeAuthorizer(policy, services).answer(REQUEST, RawRequest(headers={}, **raw)).allowed
    threads.wait()
    return allowed


@pytest.mark.parametrize(("method", "allowed"), [("GET", True), ("POST", False)])
def test_a_callback_is_made_whatever_the_answer(server: Backend, method: str, allowed: bool) -> None:
    assert answered(logged(server, rule(f"request.method eq {method}"))) is allowed
    (asked,) = server.asked
    assert json.loads(asked.body) == {"path": "/orders", "who": True}


def test_a_callback_with_a_method_that_authorino_does_not_send_is_not_made(server: Backend) -> None:
    call = HttpCall(f"{server.url}/log", "PUT")
    assert answered(scheme(callbacks=(Callback("log", call),)))
    assert server.asked == []


def test_a_callback_is_made_for_a_caller_who_is_not_recognized(server: Backend) -> None:
    assert not answered(logged(server, identities=[api_keys()]))
    assert [asked.path for asked in server.asked] == ["/log"]


@pytest.mark.parametrize(
    ("more", "made"),
    [
        ({"when": pattern("request.method eq POST")}, 0),
        ({"when": pattern("request.method eq GET")}, 1),
        ({"only": pattern("request.method eq POST")}, 0),
        ({"only": pattern("request.method eq GET")}, 1),
        ({"only": CelPredicate("auth.identity.missing == 'a'")}, 0),
    ],
)
def test_conditions_of_the_scheme_and_of_the_callback(server: Backend, more: dict[str, Any], made: int) -> None:
    assert answered(logged(server, **more))
    assert len(server.asked) == made


def test_a_callback_that_fails_changes_nothing(server: Backend) -> None:
    assert answered(logged(server, path="/missing"))
    assert answered(scheme(callbacks=(Callback("log", HttpCall("http://127.0.0.1:1/")),)))


def test_an_answer_at_once_makes_its_callbacks_too(server: Backend) -> None:
    assert answered(logged(server), may_wait=False)
    assert len(server.asked) == 1


def test_offline_nobody_is_called(server: Backend) -> None:
    judged = evaluate(logged(server), request(), Services())
    assert (judged.allowed, judged.follow_up) == (True, None)
    services = services_in(World(), None, authorino_compat=False)
    assert SchemeAuthorizer(logged(server), services).answer(REQUEST, RawRequest(headers={})).allowed
    assert services.background is None
    assert server.asked == []


def test_live_services_make_callbacks() -> None:
    services = services_in(World(), None, authorino_compat=False, live=True)
    assert services.background is not None
    assert services.at_once is not None
    assert services.at_once.background is services.background


def test_tasks_that_fail_or_find_no_room_harm_nobody() -> None:
    threads = CallbackThreads(HttpFetcher(timeout=PATIENCE), threads=1, size=1)
    done: list[str] = []
    began, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        go_on.wait()
        raise ValueError("nobody hears it")

    threads.submit(slow)
    began.wait()
    threads.submit(partial(done.append, "first"))
    threads.submit(partial(done.append, "second"))
    go_on.set()
    threads.wait()
    assert done == ["first"]


def test_threads_end_when_there_is_nothing_to_do_and_start_again() -> None:
    threads = CallbackThreads(HttpFetcher(timeout=PATIENCE), threads=1, idle=0.01)
    workers: list[threading.Thread] = []
    for count in (1, 2):
        threads.submit(lambda: workers.append(threading.current_thread()))
        threads.wait()
        assert len(workers) == count
        workers[-1].join(timeout=10)
        assert not workers[-1].is_alive()
