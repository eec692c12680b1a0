"""One connection to a workload, plain or with TLS, which sends requests exactly as they are given.

Libraries for HTTP normalise requests: they resolve `/a/../b`, decode `%2f`, join headers. Policies are about these
bytes, so this module writes requests itself.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from typing import Literal

from eastgate.basics.records import dataclass
from eastgate.local.machine.http1 import Headers, Malformed, Source, read_response
from eastgate.local.machine.tunnel import Tunnel
from eastgate.local.machine.wire import HandshakeClosed, Wire

OPEN = 200
_MAX_RAW_BYTES = 16 * 1024 * 1024
_CLOSED = "closed before any byte"


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a call. `server_name` is the server name for TLS.

    `through`: the address of the proxy where a tunnel begins, for callers with a certificate, in an ambient mesh.
    """

    address: str
    port: int
    server_name: str | None = None
    through: tuple[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, sent as it is: no part is resolved, joined or re-encoded.

    Missing `Host` and `Content-Length` are added; `complete=False` adds nothing.
    """

    method: str = "GET"
    path: str = "/"
    headers: Headers = ()
    body: bytes = b""
    complete: bool = True

    def encode(self, authority: str) -> bytes:
        """Return the bytes to send. A line break inside would make two requests of one: send bytes for such tests."""
        headers = list(self.headers)
        names = {name.lower() for name, _ in headers}
        if self.complete and not names & {"host"}:
            headers.insert(0, ("host", authority))
        if self.complete and self.body and not names & {"content-length", "transfer-encoding"}:
            headers.append(("content-length", str(len(self.body))))
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if any(set(line) & {"\r", "\n"} for line in lines):
            raise ValueError("a request cannot have line breaks in its method, path or headers")
        return "".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape") + b"\r\n" + self.body


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a call. Status 0: no answer, and `error` has the reason. OPEN: an allowed raw connection."""

    status: int
    headers: Headers = ()
    body: bytes = b""
    bytes_received: int = 0
    elapsed_ms: float = 0.0
    error: str | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of a header, or None."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class CallConnection:
    """An open connection. Errors of the network are raised; `problem` describes them."""

    def __init__(self, target: Target, wire: Wire | Tunnel) -> None:
        self.target = target
        self._wire = wire
        self._source = Source(wire)
        self._methods: deque[str] = deque()

    @classmethod
    async def open(
        cls,
        target: Target,
        *,
        tls: ssl.SSLContext | None = None,
        source_address: str | None = None,
        timeout: float = 15.0,
    ) -> CallConnection:
        """Connect, from this source address if one is given, and do the TLS handshake."""
        async with asyncio.timeout(timeout):
            name = target.server_name or target.address
            if target.through is not None and tls is not None:
                return cls(target, await Tunnel.open(target.through, source_address, tls, str(target)))
            return cls(target, await Wire.open((target.address, target.port), source_address, tls, name))

    @property
    def local_address(self) -> tuple[str, int]:
        return self._wire.source

    @property
    def bytes_received(self) -> int:
        return self._source.total

    @property
    def closed_at(self) -> float | None:
        """Return the time when the peer closed, by the monotonic clock, or None."""
        return self._wire.closed_at

    async def peer_closed(self, timeout: float) -> bool:
        """Wait until the peer closes; return False after a timeout. Another task must read meanwhile."""
        try:
            await asyncio.wait_for(self._wire.closed.wait(), timeout)
        except TimeoutError:
            return False
        return True

    async def send(self, request: HttpRequest | bytes) -> None:
        """Send a request, or bytes. Several may be sent before the first answer is read."""
        await self._wire.write(self.prepare(request))

    def prepare(self, request: HttpRequest | bytes) -> bytes:
        """Return the bytes of a request, and expect its answer from now on."""
        if isinstance(request, bytes):
            return request
        encoded = request.encode(str(self.target))
        self._methods.append(request.method)
        return encoded

    async def response(self, timeout: float = 15.0) -> Called:
        """Return the response to the oldest unanswered request."""
        began, before = time.monotonic(), self._source.total
        async with asyncio.timeout(timeout):
            response = await read_response(self._source, self._methods.popleft() if self._methods else "GET")
        if response is None:
            raise EOFError(_CLOSED)
        received, took = self._source.total - before, (time.monotonic() - began) * 1000
        return Called(response.status, response.headers, response.body, received, took)

    async def raw(self, timeout: float = 5.0, enough: int | None = None) -> Called:
        """Read until the peer closes, the time is over, or enough bytes have arrived."""
        began, body, error = time.monotonic(), bytearray(), None
        try:
            async with asyncio.timeout(timeout):
                while (enough is None or len(body) < enough) and len(body) < _MAX_RAW_BYTES:
                    piece = await self._source.take()
                    if not piece:
                        error = None if body else _CLOSED
                        break
                    body += piece
        except TimeoutError:
            pass
        except OSError as failure:
            error = problem(failure)
        took = (time.monotonic() - began) * 1000
        return Called(OPEN if body or error is None else 0, (), bytes(body), len(body), took, error)

    async def close(self, *, reset: bool = False) -> None:
        """Close at once; `reset`: also end data that the peer might still wait for."""
        await self._wire.close(reset=reset)

    async def __aenter__(self) -> CallConnection:
        return self

    async def __aexit__(self, *_: object) -> Literal[False]:
        await self.close()
        return False


def problem(error: BaseException) -> str:
    """Describe the reason of a missing answer. Equal reasons have equal beginnings."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"tls: {error.verify_message}"
        case ssl.SSLError():
            return f"tls: {(error.reason or str(error)).lower().replace('_', ' ')}"
        case HandshakeClosed():
            return f"tls: {error}"
        case TimeoutError():
            return "timeout"
        case ConnectionRefusedError():
            return "refused"
        case ConnectionResetError() | BrokenPipeError() | ConnectionAbortedError():
            return "reset"
        case EOFError():
            return _CLOSED
        case Malformed():
            return f"bad response: {error}"
        case OSError():
            return f"unreachable: {error.strerror or error}"
        case _:
            return f"{type(error).__name__}: {error}"
