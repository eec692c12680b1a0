"""The HTTP client: its requests, its servers, and the answers that it does not accept as a response."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http.client import parse_headers

import pytest

from eastgate.basics.http import Failure, HttpClient, HttpResponse, RequestFailed
from tests.missing import lacks

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """Answers each connection with the next of `replies`, and keeps the received request lines and headers."""

    def __init__(self, listener: socket.socket, *replies: bytes) -> None:
        self.listener = listener
        self.replies = replies
        self.lines: list[str] = []
        self.headers: list[Message] = []

    def serve(self) -> None:
        for reply in self.replies:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as stream:
                self.lines.append(stream.readline().decode().strip())
                self.headers.append(parse_headers(stream))
                connection.sendall(reply)


@contextmanager
def peer(*replies: bytes, family: socket.AddressFamily = socket.AF_INET) -> Iterator[tuple[Peer, str]]:
    host = "127.0.0.1" if family is socket.AF_INET else "::1"
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        running = Peer(listener, *replies)
        thread = threading.Thread(target=running.serve)
        thread.start()
        port = listener.getsockname()[1]
        yield running, f"127.0.0.1:{port}" if family is socket.AF_INET else f"[::1]:{port}"
        thread.join(10)


def failure(send: Callable[[], HttpResponse]) -> Failure:
    with pytest.raises(RequestFailed) as failed:
        send()
    return failed.value.failure


def test_a_header_replaces_one_that_is_spelled_in_other_cases() -> None:
    client = HttpClient(5)
    with peer(OK) as (server, address):
        sent = {"Authorization": "Bearer secret", "authorization": "Bearer other", "accept-encoding": "br"}
        assert client.request("GET", f"http://{address}/a?b#c", sent).body == b"ok"
    [headers] = server.headers
    assert server.lines == ["GET /a?b HTTP/1.1"]
    assert headers.get_all("Authorization") == ["Bearer other"]
    assert headers.get_all("Accept-Encoding") == ["br"]
    assert headers.get_all("Host") == [address]


def test_a_server_has_an_address_of_six_parts_too() -> None:
    if not socket.has_ipv6:
        pytest.skip(lacks("IPv6", "let loopback have ::1"))
    try:
        with peer(OK, family=socket.AF_INET6) as (server, address):
            assert HttpClient(5).request("GET", f"http://{address}/", {}).status == 200
    except OSError:
        pytest.skip(lacks("IPv6", "let loopback have ::1"))
    assert server.headers[0]["Host"] == address


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nok",
        b"HTTP/1.1 2",
        b"",
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
def test_half_a_response_is_none(reply: bytes) -> None:
    with peer(reply) as (_, address):
        assert failure(lambda: HttpClient(5).request("GET", f"http://{address}/", {})) is Failure.BROKEN


HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def endless(begin: bytes, piece: bytes, pause: float = 0) -> Iterator[str]:
    """Serve a response without end on one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(begin)
                while piece or connection.recv(1):  # until the client closes
                    connection.sendall(piece)
                    time.sleep(pause)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("begin", "piece", "why"),
    [
        (b"", b"x" * 1000, Failure.BROKEN),
        (HEAD, b"x: " + b"x" * 1000 + b"\r\n", Failure.BROKEN),
        (HEAD + b"x: ", b"x" * 1000, Failure.BROKEN),
        (HEAD + b"\r\n", b"x" * 10_000, Failure.LONG),
        (HEAD + b"content-length: 9999999\r\n\r\n", b"x" * 10_000, Failure.LONG),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n", Failure.LONG),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1;", b"x" * 1000, Failure.BROKEN),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x: " + b"x" * 1000 + b"\r\n", Failure.BROKEN),
    ],
)
def test_a_response_without_end_is_read_to_a_bound(begin: bytes, piece: bytes, why: Failure) -> None:
    with endless(begin, piece) as url:
        assert failure(lambda: HttpClient(60).request("GET", url, {})) is why


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"", b""),
        (HEAD, b"x: y\r\n"),
        (HEAD + b"content-length: 1000\r\n\r\n", b"x"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    ],
    ids=["silence", "head", "body", "chunks", "informational"],
)
def test_a_response_that_comes_drop_by_drop_is_not_waited_for(begin: bytes, piece: bytes) -> None:
    began = time.monotonic()
    with endless(begin, piece, 0.02) as url:
        assert failure(lambda: HttpClient(0.3).request("GET", url, {})) is Failure.SLOW
        assert time.monotonic() - began < 5


def test_redirects_share_the_time_and_end_somewhere() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
    with peer(*[moved] * 4) as (server, address):
        assert failure(lambda: HttpClient(5).request("GET", f"http://{address}/", {})) is Failure.REDIRECTS
    assert server.lines == ["GET / HTTP/1.1", *["GET /again HTTP/1.1"] * 3]


@pytest.mark.parametrize("header", [("x", "a\r\ny: b"), ("x", "a\0"), ("x y", "a"), ("x\r\ny", "a"), ("x", "☃")])
def test_a_header_that_cannot_be_written_is_not_sent(header: tuple[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert failure(lambda: HttpClient(5).request("GET", url, dict([header]))) is Failure.BROKEN


@pytest.mark.parametrize(("method", "body", "length"), [("GET", None, None), ("POST", None, "0"), ("POST", b"ab", "2")])
def test_a_body_has_a_length(method: str, body: bytes | None, length: str | None) -> None:
    with peer(OK) as (server, address):
        assert HttpClient(5).request(method, f"http://{address}/", {}, body).status == 200
    assert server.headers[0]["Content-Length"] == length
    assert server.headers[0]["Transfer-Encoding"] is None


def test_a_compressed_body_stays_compressed() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok"
    with peer(reply) as (_, address):
        assert HttpClient(5).request("GET", f"http://{address}/", {}).body == b"ok"


@pytest.mark.parametrize(
    "location", ["http://user@ADDRESS/", "https://ADDRESS/", "http://[/", "/a b", "ftp://ADDRESS/"]
)
def test_a_redirect_to_anything_but_the_same_server_is_not_followed(location: str) -> None:
    client = HttpClient(5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        reply = f"HTTP/1.1 302 Found\r\nLocation: {location.replace('ADDRESS', address)}\r\n\r\n".encode()
        thread = threading.Thread(target=Peer(listener, reply).serve)
        thread.start()
        assert failure(lambda: client.request("GET", f"http://{address}/", {})) is Failure.ELSEWHERE
        thread.join(10)


def test_only_a_get_follows_a_redirect() -> None:
    reply = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /there\r\n\r\n"
    with peer(reply) as (server, address):
        send = lambda: HttpClient(5).request("POST", f"http://{address}/", {}, b"secret")  # noqa: E731
        assert failure(send) is Failure.ELSEWHERE
    assert server.lines == ["POST / HTTP/1.1"]


def test_an_error_that_asks_to_be_retried_is_a_response() -> None:
    with peer(b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") as (server, address):
        assert HttpClient(5).request("GET", f"http://{address}/", {}).status == 503
    assert len(server.lines) == 1


def test_a_proxy_sees_no_more_than_the_name_of_an_https_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with peer(b"HTTP/1.1 403 Forbidden\r\n\r\n") as (proxy, address):
        monkeypatch.setenv("https_proxy", f"http://me:pass@{address}")
        client = HttpClient(5, proxy_https=True)
        assert failure(lambda: client.request("GET", "https://127.0.0.2:1/secret", {})) is Failure.UNREACHABLE
    assert [line.rpartition(" ")[0] for line in proxy.lines] == ["CONNECT 127.0.0.2:1"]
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic bWU6cGFzcw=="


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"])
def test_no_proxy_sees_a_request_without_tls(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    with peer(OK) as (_, address):
        assert HttpClient(5, proxy_https=True).request("GET", f"http://{address}/", {}).body == b"ok"


def test_a_proxy_that_does_not_speak_http_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    send = lambda: HttpClient(5, proxy_https=True).request("GET", "https://127.0.0.2:1/", {})  # noqa: E731
    assert failure(send) is Failure.BROKEN


@pytest.mark.parametrize("bypassed", [True, False])
def test_a_proxy_is_used_only_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, bypassed: bool) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1" if bypassed else "")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        hangs_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hangs_up.start()
        client = HttpClient(5, ssl.create_default_context(), proxy_https=bypassed)
        with pytest.raises(RequestFailed) as failed:
            client.request("GET", f"https://127.0.0.1:{listener.getsockname()[1]}/", {})
        hangs_up.join(10)
    assert not isinstance(failed.value.cause, ConnectionRefusedError), "a proxy was asked"


def test_a_server_that_closes_without_saying_so_is_asked_again_on_a_new_connection() -> None:
    """HTTP/1.1 permits a server that got `Connection: close` to leave that out of its answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            ends = []
            for _ in range(3):
                end, _ = listener.accept()
                end.recv(65536)
                end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                ends.append(end)  # open still: a request is answered only on another connection
            for end in ends:
                end.close()

        thread = threading.Thread(target=serve)
        thread.start()
        client = HttpClient(5)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert [client.request("GET", url, {}).body for _ in range(3)] == [b"ok"] * 3
        thread.join()
