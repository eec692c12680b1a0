"""External authorizers over HTTP: the requests that they get, and the effect of each answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from eastgate.ir import ExternalProtocol, Ruling
from tests.control.authorizer.asking import Asking, GivenBody, service

NAME = service(ExternalProtocol.HTTP)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
Script = Callable[[socket.socket, bytes], bool | None]


class Scripted:
    """A server on loopback. `script` answers each request, and returns whether the connection stays open."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.connections = 0
        self.script: Script = reply(OK)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(end,), daemon=True).start()

    def _serve(self, end: socket.socket) -> None:
        with end:
            try:
                while head := _request(end):
                    self.asked.append(head)
                    if not self.script(end, head):
                        return
            except OSError:
                return

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # a thread that waits for a connection would accept one more
        self._listener.close()


def _request(end: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := end.recv(65536)):
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += end.recv(65536)
    return head + b"\r\n\r\n" + body


def reply(*pieces: bytes, pause: float = 0, keep: bool = True) -> Script:
    def answer(end: socket.socket, _request: bytes) -> bool:
        for piece in pieces:
            end.sendall(piece)
            time.sleep(pause)
        return keep

    return answer


def response(status: str, *headers: str, body: str = "") -> Script:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", body]
    return reply("\r\n".join(lines).encode("latin-1"))


@pytest.fixture
def server() -> Iterator[Scripted]:
    running = Scripted()
    yield running
    running.close()


@pytest.fixture
def ask(server: Scripted) -> Iterator[Asking]:
    asking = Asking(server.port, seconds=20)
    yield asking
    asking.externals.close()


def test_200_allows(ask: Asking) -> None:
    assert ask(NAME) == Ruling(True, 200, "it answers 200")


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "500 Oops", "503 Busy", "299 Odd"])
def test_no_other_status_of_success_or_failure_allows(server: Scripted, ask: Asking, status: str) -> None:
    server.script = response(status)
    ruling = ask(NAME)
    assert (ruling.allowed, ruling.status) == (False, 403)


def test_a_denial_is_shown_to_the_client_as_the_authorizer_wants_it(server: Scripted, ask: Asking) -> None:
    server.script = response(
        "401 Unauthorized",
        "WWW-Authenticate: Bearer",
        "Server: x",
        "X-Internal: y",
        "Content-Type: text/plain",
        body="no",
    )
    ruling = ask(NAME)
    assert (ruling.allowed, ruling.status, ruling.body) == (False, 401, "no")
    assert ruling.headers == (("www-authenticate", "Bearer"), ("content-type", "text/plain"))


def test_a_redirect_is_for_the_client_and_never_followed(server: Scripted, ask: Asking) -> None:
    server.script = response("302 Found", "Location: https://login.example/")
    ruling = ask(NAME)
    assert (ruling.allowed, ruling.status) == (False, 302)
    assert ruling.headers == (("location", "https://login.example/"),)
    assert len(server.asked) == 1


def test_the_request_has_the_headers_that_are_always_sent_and_the_allowed_ones(server: Scripted, ask: Asking) -> None:
    name = service(
        ExternalProtocol.HTTP,
        path="/check",
        allowed_headers=frozenset({"x-team", "connection", "host", "x-eastgate-source"}),
    )
    sent = {
        "X-Eastgate-Source": "spiffe://cluster.local/ns/prod/sa/forged",
        "Authorization": "Bearer x",
        "X-Team": ["red", "blue"],
        "Cookie": "secret",
        "Content-Length": "6",
        "Host": "evil.example",
        "Connection": "keep-alive",
    }
    ask(name, method="POST", path="/toys?x=1", headers=sent, body=GivenBody(b"secret"))
    head, _, body = server.asked[0].partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    assert (first, body) == (b"POST /check/toys?x=1 HTTP/1.1", b"")
    assert sorted(line.lower() for line in headers) == [
        b"authorization: bearer x",
        b"content-length: 0",
        b"host: shop.example",
        b"x-eastgate-source: spiffe://cluster.local/ns/prod/sa/agent",
        b"x-team: blue",
        b"x-team: red",
    ]


def test_a_client_cannot_set_the_identity_header(server: Scripted, ask: Asking) -> None:
    name = service(ExternalProtocol.HTTP, allowed_headers=frozenset({"x-eastgate-source"}))
    for source in ("anonymous", "unknown"):
        ask(name, source=source, headers={"X-Eastgate-Source": "spiffe://cluster.local/ns/prod/sa/forged"})
    assert [b"x-eastgate" in asked.lower() for asked in server.asked] == [False, False]


def test_the_body_is_sent_only_on_request_of_the_policy_and_as_a_whole(server: Scripted, ask: Asking) -> None:
    name = service(ExternalProtocol.HTTP, max_body=6)
    assert ask(name, method="POST", body=GivenBody(b"abcdef")).allowed
    assert server.asked[0].endswith(b"\r\n\r\nabcdef")
    assert ask(name, method="POST", body=GivenBody(b"abcdefg")).status == 413
    assert ask(name, method="POST", body=GivenBody(b"abc", complete=False)).status == 413
    assert not ask(name, method="POST").allowed
    assert len(server.asked) == 1


def test_headers_of_the_authorizer_replace_those_of_the_client(server: Scripted, ask: Asking) -> None:
    server.script = response("200 OK", "X-User: erin", "X-Eastgate-Target: 7", "Host: evil", "Date: now", "X-User: e2")
    assert ask(NAME).headers == (("x-user", "erin,e2"),)
    name = service(ExternalProtocol.HTTP, response_headers=frozenset({"x-user", "x-role", "x-eastgate-target"}))
    ruling = ask(name)
    assert (ruling.headers, ruling.removed) == ((("x-user", "erin,e2"),), ("x-role",))


HUGE = b"x" * 200_000
LIES: dict[str, Script] = {
    "nothing": reply(keep=False),
    "garbage": reply(b"\x00\x01\x02\r\n\r\n", keep=False),
    "another protocol": reply(b"SSH-2.0-OpenSSH\r\n\r\n", keep=False),
    "half of a status line": reply(b"HTTP/1.1 20", keep=False),
    "half of the headers": reply(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", keep=False),
    "half of a body": reply(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", keep=False),
    "half of chunks": reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", keep=False),
    "two lengths": reply(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\nx", keep=False),
    "huge headers": reply(b"HTTP/1.1 200 OK\r\nX: " + HUGE + b"\r\nContent-Length: 0\r\n\r\n", keep=False),
    "a huge body": reply(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + HUGE, keep=False),
    "endless body": reply(b"HTTP/1.1 200 OK\r\n\r\n", *[HUGE] * 4, keep=False),
    "endless informational": reply(*[b"HTTP/1.1 103 Early\r\n\r\n" * 2000] * 4, OK, keep=False),
    "a switch of protocols": reply(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", OK, keep=False),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_not_whole_denies(server: Scripted, ask: Asking, lie: str) -> None:
    server.script = LIES[lie]
    ruling = ask(NAME)
    assert (ruling.allowed, ruling.status) == (False, 403), ruling.text


@pytest.mark.parametrize(
    "pieces", [[b""], [OK[:9], b""], [bytes([byte]) for byte in OK]], ids=["never", "half", "drops"]
)
def test_a_consent_that_comes_too_late_denies(server: Scripted, pieces: list[bytes]) -> None:
    server.script = reply(*pieces, OK, pause=0.2)
    asking = Asking(server.port, seconds=0.15)
    assert not asking(NAME).allowed
    asking.externals.close()


def test_an_unreachable_authorizer_denies(server: Scripted, ask: Asking) -> None:
    server.close()
    assert not ask(NAME).allowed


def test_connections_are_used_again(server: Scripted, ask: Asking) -> None:
    assert all(ask(NAME).allowed for _ in range(5))
    assert (server.connections, len(server.asked)) == (1, 5)


def test_a_connection_that_the_server_closed_meanwhile_costs_no_answer(server: Scripted, ask: Asking) -> None:
    server.script = reply(OK, keep=False)
    assert all(ask(NAME).allowed for _ in range(5))
    assert len(server.asked) == 5


def test_an_answer_is_never_taken_for_that_of_another_question(server: Scripted, ask: Asking) -> None:
    server.script = reply(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" + OK)
    assert [ask(NAME).allowed for _ in range(3)] == [False, False, False]


def test_many_threads_ask_at_once_within_the_limit(server: Scripted) -> None:
    asking = Asking(server.port, seconds=20, in_flight=4)
    server.script = reply(OK, pause=0.01)
    with ThreadPoolExecutor(16) as pool:
        rulings = list(pool.map(lambda _: asking(NAME), range(60)))
    assert all(ruling.allowed for ruling in rulings)
    assert (server.connections <= 4, len(server.asked)) == (True, 60)
    asking.externals.close()


def test_where_too_many_questions_are_open_the_next_is_denied(server: Scripted) -> None:
    asking = Asking(server.port, seconds=0.2, in_flight=1)
    server.script = reply(b"", OK, pause=1)
    with ThreadPoolExecutor(4) as pool:
        rulings = list(pool.map(lambda _: asking(NAME), range(4)))
    assert not any(ruling.allowed for ruling in rulings)
    asking.externals.close()


@pytest.mark.parametrize(
    "check",
    [
        {"method": "CONNECT"},
        {"method": "OPTIONS", "path": "*"},
        {"method": "GET X"},
        {"path": "/a b"},
        {"path": "/\r\nX-Injected: 1"},
        {"host": "a\r\nX-Injected: 1"},
        {"headers": {"Authorization": "x\r\nX-Injected: 1"}},
        {"headers": {"Authorization": "☃"}},
    ],
)
def test_a_request_that_http_cannot_express_is_not_sent(
    server: Scripted, ask: Asking, check: dict[str, object]
) -> None:
    assert not ask(NAME, **check).allowed
    assert server.asked == []


def test_it_is_not_asked_without_the_headers_that_it_is_to_see(server: Scripted, ask: Asking) -> None:
    name = service(ExternalProtocol.HTTP, allowed_headers=frozenset({"x-team", "host"}))
    for shown in ({"x-team"}, {"authorization"}, set[str]()):
        assert not ask(name, shown_headers=frozenset(shown)).allowed
    assert not server.asked
    assert ask(name, shown_headers=frozenset({"authorization", "x-team"})).allowed
