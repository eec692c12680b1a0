"""An HTTP/1.1 client for external authorizers, with one deadline for each exchange and reused connections."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final

import h11

from eastgate.basics.records import dataclass

# Addresses of external authorizers, and connections to them.


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service. With a context `tls`, connections use TLS.

    `verify` is called with each new TLS connection, and raises an error if its peer is not the right one. For a gRPC
    service the context should offer `h2` (ALPN).
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    verify: Callable[[ssl.SSLSocket], object] | None = field(default=None, repr=False)


def connect(address: ServiceAddress, deadline: float) -> socket.socket:
    """Open a connection. Raises OSError, also if the deadline (of the monotonic clock) passes."""
    connection = socket.create_connection((address.host, address.port), timeout=seconds_until(deadline))
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            connection.settimeout(seconds_until(deadline))
            connection = secured = address.tls.wrap_socket(connection, server_hostname=address.server_name)
            if address.verify is not None:
                address.verify(secured)
    except OSError:
        connection.close()
        raise
    except Exception as error:  # an error of `verify`
        connection.close()
        raise ssl.SSLError("the service is not the right one") from error
    return connection


def seconds_until(deadline: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


_CHUNK_BYTES: Final = 64 * 1024
_IDLE_SECONDS: Final = 20.0  # some servers close connections that are idle for longer
_MAX_IDLE_CONNECTIONS: Final = 64


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A complete response. Header names are in lower case; a name may occur several times."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


class ExchangeFailed(Exception):  # noqa: N818 - the outcome of an exchange
    """There is no response, or an unreadable one. The message may be shown to users."""


class _ConnectionLostError(Exception):
    """The server had closed an idle connection."""


class _Connection:
    def __init__(self, end: socket.socket, max_bytes: int) -> None:
        self.socket = end
        self.state = h11.Connection(h11.CLIENT, max_incomplete_event_size=max_bytes)
        self.idle_since = 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether the connection can be reused: it is not too old, and its server has not closed it."""
        return time.monotonic() - self.idle_since < _IDLE_SECONDS and not select.select([self.socket], [], [], 0)[0]


class HttpConnections:
    """The connections to one server, each for one exchange at a time. Threads may share them."""

    def __init__(self, address: ServiceAddress, *, max_bytes: int) -> None:
        self._address = address
        self._max_bytes = max_bytes
        self._idle: deque[_Connection] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def exchange(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, deadline: float
    ) -> HttpReply:
        """Send a request and return the whole response. Raises ExchangeFailed."""
        try:
            request = h11.Request(method=method, target=target, headers=[_encoded(*header) for header in headers])
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise ExchangeFailed("the request cannot be written in HTTP/1.1") from None
        try:
            connection = self._reused()
            if connection is not None:
                try:
                    return self._on(connection, request, body, deadline)
                except _ConnectionLostError:
                    pass
            return self._on(_Connection(connect(self._address, deadline), self._max_bytes), request, body, deadline)
        except TimeoutError:
            raise ExchangeFailed("it takes too long") from None
        except _ConnectionLostError:
            raise ExchangeFailed("it closes the connection without an answer") from None
        except h11.ProtocolError:
            raise ExchangeFailed("its answer is not HTTP/1.1") from None
        except OSError as error:
            raise ExchangeFailed(f"it cannot be reached: {type(error).__name__}") from None

    def close(self) -> None:
        """Close idle connections now, and the others after their exchange."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
        for connection in idle:
            connection.socket.close()

    def _reused(self) -> _Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_idle:
                return connection
            connection.socket.close()

    def _on(self, connection: _Connection, request: h11.Request, body: bytes, deadline: float) -> HttpReply:
        """Send a request on a connection, and keep that for reuse if possible. Raises _ConnectionLostError if no byte
        came back.
        """
        try:
            reply = self._exchanged(connection, request, body, deadline)
        except BaseException:
            connection.socket.close()
            raise
        state = connection.state
        if state.our_state is h11.DONE and state.their_state is h11.DONE and not state.trailing_data[0]:
            state.start_next_cycle()
            connection.idle_since = time.monotonic()
            with self._lock:
                if not self._closed and len(self._idle) < _MAX_IDLE_CONNECTIONS:
                    self._idle.append(connection)
                    return reply
        connection.socket.close()
        return reply

    def _exchanged(self, connection: _Connection, request: h11.Request, body: bytes, deadline: float) -> HttpReply:
        end, state = connection.socket, connection.state
        sent = state.send(request) or b""
        if body:
            sent += state.send(h11.Data(data=body)) or b""
        sent += state.send(h11.EndOfMessage()) or b""
        try:
            end.settimeout(seconds_until(deadline))
            end.sendall(sent)
        except (BrokenPipeError, ConnectionResetError):
            raise _ConnectionLostError from None
        response: h11.Response | None = None
        content = bytearray()
        received = 0
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                piece = _receive(end, deadline, started=received > 0)
                received += len(piece)
                if received > 2 * self._max_bytes:
                    raise ExchangeFailed("its answer is too long")
                state.receive_data(piece)
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                content += event.data
                if len(content) > self._max_bytes:
                    raise ExchangeFailed("its answer is too long")
            elif isinstance(event, h11.EndOfMessage) and response is not None:
                break
            elif not isinstance(event, h11.InformationalResponse):
                raise ExchangeFailed("its answer is incomplete")
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        return HttpReply(response.status_code, headers, bytes(content))


def _receive(end: socket.socket, deadline: float, *, started: bool) -> bytes:
    end.settimeout(seconds_until(deadline))
    try:
        piece = end.recv(_CHUNK_BYTES)
    except ConnectionResetError:
        piece = b""
    if not piece and not started:
        raise _ConnectionLostError
    return piece


def _encoded(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode("latin-1"), value.encode("latin-1")
