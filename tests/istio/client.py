"""Sends one request, or some bytes, like a caller: from its address, with or without its certificate."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from tests.attacks.frames import ACK, PREFACE, SETTINGS, Answers, frame, opening, request
from tests.istio.identities import TestCa
from tests.istio.listeners import BYTES_PROTOCOLS, HTTP_PROTOCOLS, REACHED, REACHED_TEXT

_SECONDS = 10.0
_BYTES = b"bytes of no protocol\r\n"
_HTTP_1_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"})
_FIRST_PORT, _PORTS = 20_000, 40_000
_BY_GRPC_STATUS = {7: 403, 12: 404, 13: 400, 14: 503, 16: 401}  # the HTTP status for Envoy's gRPC status


@dataclass(frozen=True)
class HttpRequest:
    """A request. A header may be repeated."""

    method: str
    path: str
    host: str
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def needs_http2(self) -> bool:
        """Return whether Envoy refuses the method in HTTP/1."""
        return self.method not in _HTTP_1_METHODS


@dataclass(frozen=True)
class Call:
    """The content of a call to a listener: over mutual TLS with an identity, plain TLS (`is_tls`), or neither.

    `carries_tls`: the bytes are those of a TLS handshake that is not for the listener.
    """

    source: str
    address: str
    port: int
    identity: str | None
    http: HttpRequest | None
    sni: str | None = None
    is_tls: bool = False
    carries_tls: bool = False


@dataclass(frozen=True)
class Reply:
    """The caller's view of a call: whether it was allowed, the status (0: a closed connection), address and port."""

    reached: bool
    status: int
    detail: str
    local: str


class Client:
    """Makes calls. Each has its own source address and port."""

    def __init__(self, ca: TestCa) -> None:
        self._ca = ca
        self._ports = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + _PORTS))

    def send(self, call: Call) -> Reply:
        """Make a call, and wait for the reply."""
        family = socket.AF_INET6 if ":" in call.address else socket.AF_INET
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(socket.socket(family))
            connection.settimeout(_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or TLS waits for acknowledgements
            local = self._bind(connection, call.source)
            try:
                connection.connect((call.address, call.port))
                if call.identity is not None or call.is_tls:
                    context = self._ca.client_context(call.identity, _protocols(call))
                    connection = stack.enter_context(context.wrap_socket(connection, server_hostname=call.sni))
                status, detail = _converse(connection, call)
            except (ConnectionError, ssl.SSLError, TimeoutError) as error:
                return Reply(False, 0, f"{type(error).__name__}: {error}", local)
        return Reply(status == REACHED, 200 if status == REACHED else status, detail, local)

    def _bind(self, connection: socket.socket, source: str) -> str:
        """Bind a socket, and return its address as Envoy writes it."""
        while True:
            port = next(self._ports)
            try:
                connection.bind((source, port))
            except OSError:
                continue  # a listener uses the port
            return f"[{source}]:{port}" if ":" in source else f"{source}:{port}"


def _protocols(call: Call) -> tuple[str, ...]:
    """Return the protocols that the proxy of a caller offers for this content."""
    if call.identity is None:
        return ("h2",) if call.http is not None and call.http.needs_http2 else ("http/1.1",)
    if call.http is None:
        return BYTES_PROTOCOLS
    http1, http2 = HTTP_PROTOCOLS
    return (http2,) if call.http.needs_http2 else (http1,)


def _converse(connection: socket.socket, call: Call) -> tuple[int, str]:
    """Return the status, which is 0 for a closed connection, and the reply that shows it."""
    if call.http is None:
        sent = _client_hello(call.sni) if call.carries_tls else _BYTES
        connection.sendall(sent)
        echoed = connection.recv(len(sent))
        return (REACHED, "echo") if echoed and echoed in sent else (0, f"bytes: {echoed!r}")
    if call.http.needs_http2:
        return _http2(connection, call.http, secure=call.identity is not None)
    return _http1(connection, call.http)


def _client_hello(name: str | None) -> bytes:
    """Return the first message of a TLS handshake for a server name."""
    sent = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()


def _http1(connection: socket.socket, http: HttpRequest) -> tuple[int, str]:
    fields = [f"{http.method} {http.path} HTTP/1.1", f"host: {http.host}"]
    fields += [f"{name}: {value}" for name, value in http.headers]
    names = {name.lower() for name, _ in http.headers}
    if http.method in ("POST", "PUT", "PATCH") and not names & {"content-length", "transfer-encoding"}:
        fields.append("content-length: 0")
    text = "\r\n".join([*fields, "", ""])
    connection.sendall(text.encode("utf-8", "surrogateescape"))
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(65536)
        if not data:
            break
        head += data
    line, _, rest = head.partition(b"\r\n")
    if not line.startswith(b"HTTP/1."):
        return (REACHED, "echo") if head and text.encode().startswith(head) else (0, f"bytes: {head[:80]!r}")
    headers = dict(_fields(rest.partition(b"\r\n\r\n")[0]))
    return _status(int(line.split()[1]), headers), line.decode()


def _fields(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in block.split(b"\r\n"):
        name, _, value = line.partition(b":")
        yield name.lower(), value.strip()


def _http2(connection: socket.socket, http: HttpRequest, *, secure: bool) -> tuple[int, str]:
    pseudo = ((":method", http.method), (":path", http.path), (":scheme", "https" if secure else "http"))
    fields = (*pseudo, (":authority", http.host), *((name.lower(), value) for name, value in http.headers))
    encoded = ((name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in fields)
    connection.sendall(opening() + frame(SETTINGS, ACK, 0) + request(*encoded))
    answers = Answers()
    while 1 not in answers.ended and not answers.gone:
        data = connection.recv(65536)
        if not data:
            break
        if data.startswith(PREFACE):
            return REACHED, "echo"
        answers.hear(data)
    return _status(answers.status(1), answers.headers.get(1, {})), f"HTTP/2 {answers.status(1)}"


def _status(status: int, headers: dict[bytes, bytes]) -> int:
    """Return the HTTP status of an answer, or the one for its gRPC status."""
    if b"grpc-status" not in headers:
        return status
    if REACHED_TEXT.encode() in headers.get(b"grpc-message", b"").replace(b"%20", b" "):
        return REACHED
    return _BY_GRPC_STATUS.get(int(headers[b"grpc-status"]), 500)
