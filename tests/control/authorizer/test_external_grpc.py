"""External authorizers over Envoy's gRPC protocol: the requests that they get, and the effect of each answer."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eastgate.ir import ExternalProtocol, Ruling
from tests.control.authorizer.asking import Asking, GivenBody, service
from tests.programs.processes import Processes, free_port

pytestmark = pytest.mark.real

NAME = service(ExternalProtocol.GRPC)
PATIENCE = {"seconds": 20}


class CheckServer(Processes):
    """The authorizer of `check_server` in a process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()

    def start(self) -> None:
        self.run([sys.executable, "-m", "tests.programs.check_server", str(self.port)])
        self.wait_until(lambda: is_open(self.port))


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckServer]:
    with CheckServer(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def ask(server: CheckServer) -> Iterator[Asking]:
    asking = Asking(server.port, **PATIENCE)
    yield asking
    asking.externals.close()


def test_ok_allows(ask: Asking) -> None:
    assert ask(NAME) == Ruling(True, 200, "it answers OK")


def test_a_denial_has_the_status_the_headers_and_the_body_that_the_authorizer_gives(ask: Asking) -> None:
    ruling = ask(NAME, path="/deny")
    assert (ruling.allowed, ruling.status, ruling.body) == (False, 401, "no entry")
    assert ruling.headers == (("www-authenticate", "Bearer"),)


@pytest.mark.parametrize("code", [200, 204, 0])
def test_a_denial_never_has_a_status_of_success(ask: Asking, code: int) -> None:
    ruling = ask(NAME, path=f"/status/{code}")
    assert (ruling.allowed, ruling.status) == (False, 403)


@pytest.mark.parametrize("path", ["/garbage", "/huge", "/contradiction", "/abort", "/query", "/host"])
def test_an_answer_that_is_no_clear_consent_denies(ask: Asking, path: str) -> None:
    ruling = ask(NAME, path=path)
    assert (ruling.allowed, ruling.status) == (False, 403), ruling.text


def test_a_consent_that_comes_too_late_denies(server: CheckServer) -> None:
    asking = Asking(server.port, seconds=0.3)
    assert not asking(NAME, path="/slow").allowed
    asking.externals.close()


def test_headers_for_the_application(ask: Asking) -> None:
    assert ask(NAME, path="/headers").headers == (("x-user", "erin"),)
    assert ask(NAME, path="/remove").removed == ("x-secret",)
    assert ask(NAME, path="/append", headers={"X-Team": "red"}).headers == (("x-team", "red,blue"),)
    assert ask(NAME, path="/append").headers == (("x-team", "blue"),)


def test_the_request_is_written_as_an_envoy_writes_it(ask: Asking) -> None:
    sent = {"Authorization": "Bearer x", "X-Two": ["a", "b"], "Host": "shop.example", "x-eastgate-target": "t"}
    ruling = ask(NAME, method="POST", path="/echo?q=1", headers=sent, body=GivenBody(b"secret"))
    attributes = json.loads(dict(ruling.headers)["x-echo"])["attributes"]
    assert attributes["source"]["principal"] == "spiffe://cluster.local/ns/prod/sa/agent"
    assert attributes["source"]["address"]["socketAddress"]["address"] == "10.1.2.3"
    http = attributes["request"]["http"]
    assert {name: http[name] for name in ("method", "path", "host", "scheme", "protocol", "size")} == {
        "method": "POST",
        "path": "/echo?q=1",
        "host": "shop.example",
        "scheme": "https",
        "protocol": "HTTP/1.1",
        "size": "-1",
    }
    assert http["headers"] == {
        ":authority": "shop.example",
        ":method": "POST",
        ":path": "/echo?q=1",
        ":scheme": "https",
        "authorization": "Bearer x",
        "x-two": "a,b",
    }
    assert "body" not in http


def test_only_allowed_headers_and_a_requested_body_are_sent(ask: Asking) -> None:
    name = service(ExternalProtocol.GRPC, allowed_headers=frozenset({"x-team"}), max_body=6)
    sent = {"Authorization": "Bearer x", "X-Team": "red"}
    ruling = ask(name, method="POST", path="/echo", headers=sent, body=GivenBody(b"abcdef"))
    http = json.loads(dict(ruling.headers)["x-echo"])["attributes"]["request"]["http"]
    assert (http["headers"], http["body"]) == ({"x-team": "red"}, "abcdef")


@pytest.mark.parametrize(
    ("body", "status"),
    [(GivenBody(b"abcdefg"), 413), (GivenBody(b"abc", complete=False), 413), (None, 403)],
)
def test_a_body_that_it_cannot_be_shown_in_full_is_refused(ask: Asking, body: GivenBody | None, status: int) -> None:
    ruling = ask(service(ExternalProtocol.GRPC, max_body=6), method="POST", body=body)
    assert (ruling.allowed, ruling.status) == (False, status)


@pytest.mark.parametrize("unknown", ["method", "path", "host"])
def test_an_unknown_request_is_not_sent(ask: Asking, unknown: str) -> None:
    assert not ask(NAME, **{unknown: None}).allowed


def test_two_policies_may_ask_one_service_in_two_ways(ask: Asking) -> None:
    other = service(ExternalProtocol.GRPC, max_body=1)
    assert ask(NAME).allowed
    assert not ask(other).allowed
    assert other != NAME
    assert NAME == str(other) == str(NAME)


def test_a_name_without_an_authorizer_and_one_without_an_address_deny(ask: Asking) -> None:
    assert not ask("fraud.security:9000").allowed
    ask.address = None
    assert not ask(NAME).allowed


def test_an_unreachable_authorizer_denies_until_it_is_reachable(tmp_path: Path) -> None:
    server = CheckServer(tmp_path)
    asking = Asking(server.port, **PATIENCE)
    assert not asking(NAME).allowed
    with server:
        server.wait_until(lambda: asking(NAME).allowed)
    assert not asking(NAME).allowed
    asking.externals.close()


def test_many_threads_ask_at_once_and_each_question_arrives_once(ask: Asking) -> None:
    before = int(dict(ask(NAME, path="/count").headers)["x-count"])
    with ThreadPoolExecutor(16) as pool:
        rulings = list(pool.map(lambda _: ask(NAME), range(200)))
    assert all(ruling.allowed for ruling in rulings)
    assert int(dict(ask(NAME, path="/count").headers)["x-count"]) == before + 201


def test_an_open_call_gets_its_answer_after_a_change_of_the_address(server: CheckServer, ask: Asking) -> None:
    rulings: list[Ruling] = []
    waiting = threading.Thread(target=lambda: rulings.append(ask(NAME, path="/slow")))
    waiting.start()
    ask.address = None
    waiting.join()
    assert len(rulings) == 1


def test_a_service_without_grpc_denies() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            end, _ = listener.accept()
            with end:
                end.recv(1000)
                end.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

        thread = threading.Thread(target=answer)
        thread.start()
        asking = Asking(listener.getsockname()[1], seconds=2)
        assert not asking(NAME).allowed
        thread.join()
        asking.externals.close()


def test_it_is_not_asked_without_the_headers_that_it_is_to_see(ask: Asking) -> None:
    some = service(ExternalProtocol.GRPC, allowed_headers=frozenset({"x-team", ":path"}))
    assert ask(some, shown_headers=frozenset({"x-team"})).allowed
    assert not ask(some, shown_headers=frozenset({"x-other"})).allowed
    assert ask(NAME).allowed
    assert not ask(NAME, shown_headers=frozenset({"x-team"})).allowed
