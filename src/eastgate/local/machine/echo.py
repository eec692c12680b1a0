"""The built-in application of a workload: it returns the received request to callers of HTTP, and echoes other bytes.

It listens on a unix socket, so that only the sidecar of its workload reaches it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import cast

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.control.authorizer.http_server import HttpLimits, HttpServer, ServedRequest, ServedResponse

_REQUEST_LINE = regex(rb"(?:\r?\n)*[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [^\r\n]+ HTTP/1\.[0-9]\r?\n")
_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"PATCH ", b"OPTIONS ", b"TRACE ", b"CONNECT ")
_MAX_FIRST_LINE_BYTES = 64 * 1024
_TICK = b"tick\n"
_MAX_BODY_BYTES = 64 * 1024 * 1024
_MAX_BODIES_BYTES = 4 * _MAX_BODY_BYTES
_MAX_CONNECTIONS = 100_000
_JSON = (("content-type", "application/json"),)


@dataclass(frozen=True, slots=True)
class EchoTimes:
    """The seconds that a connection may be silent, in each of its states, and the seconds that a request may take."""

    idle: float = 3600.0
    head: float = 30.0
    sniff: float = 1.0
    write: float = 30.0
    request: float = 600.0


@dataclass(frozen=True, slots=True)
class EchoOptions:
    """Other behaviours, for tests, without HTTP: a greeting, and periodic bytes."""

    greeting: bytes = b""
    push_every: float | None = None
    times: EchoTimes = EchoTimes()

    @property
    def raw(self) -> bool:
        """Return whether all connections are echoed as bytes."""
        return bool(self.greeting) or self.push_every is not None


class EchoServer:
    """The application behind one port of one workload. It counts its connections and requests."""

    def __init__(self, path: str, workload: str, port: int, options: EchoOptions | None = None) -> None:
        self.path = path
        self.workload = workload
        self.port = port
        self.options = options or EchoOptions()
        self.connections = 0
        self.requests = 0
        self.raw: set[asyncio.Transport] = set()
        """The open connections without HTTP."""
        times = self.options.times
        limits = HttpLimits(
            body=_MAX_BODY_BYTES,
            bodies=_MAX_BODIES_BYTES,
            seconds=times.request,
            idle=times.idle,
            connections=_MAX_CONNECTIONS,
        )
        self.http = HttpServer(self._describe_request, limits)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to listen, for this user only."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Arriving(self), self.path, backlog=512)
        os.chmod(self.path, 0o600)

    async def stop(self) -> None:
        """Stop listening, and end open connections."""
        if self._server is not None:
            self._server.close()
        for transport in tuple(self.raw):
            transport.abort()
        await self.http.drain(0)
        await asyncio.sleep(0)  # ended connections report it in the next turn of the loop
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _describe_request(self, request: ServedRequest) -> ServedResponse:
        self.requests += 1
        headers: dict[str, str] = {}
        for name, value in request.headers:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        received = {
            "workload": self.workload,
            "port": self.port,
            "method": request.method,
            "path": request.target,
            "headers": headers,
            "body_bytes": len(request.body),
        }
        return ServedResponse(200, _JSON, json.dumps(received).encode() + b"\n")


class _Arriving(asyncio.Protocol):
    """A new connection, until its first bytes show whether it has requests. Otherwise its bytes are echoed."""

    def __init__(self, server: EchoServer) -> None:
        self._server = server
        self._times = server.options.times
        self._echoes = server.options.raw
        self._seen = b""
        self._timer: asyncio.TimerHandle | None = None
        self._pushing: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # other event loops have transports of other classes
        self._server.connections += 1
        self._server.raw.add(self._transport)
        self._wait(self._times.idle)
        self._transport.write(self._server.options.greeting)
        self._push_later()

    def connection_lost(self, _error: Exception | None) -> None:
        self._leave()

    def _leave(self) -> None:
        self._server.raw.discard(self._transport)
        for timer in (self._timer, self._pushing):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._echoes:
            self._wait(self._times.idle)
            self._transport.write(data)
            return
        self._seen += data
        if (is_http := _is_http(self._seen)) is None:
            self._wait(self._times.head if self._seen.lstrip(b"\r\n").startswith(_METHODS) else self._times.sniff)
        elif is_http:
            self._serve_http()
        else:
            self._echo()

    def eof_received(self) -> None:
        self._echo()

    def pause_writing(self) -> None:
        self._transport.pause_reading()
        self._wait(self._times.write)

    def resume_writing(self) -> None:
        self._transport.resume_reading()
        self._wait(self._times.idle)

    def _echo(self) -> None:
        self._echoes = True
        self._wait(self._times.idle)
        self._transport.write(self._seen)
        self._seen = b""

    def _serve_http(self) -> None:
        self._leave()
        http = self._server.http.protocol()
        self._transport.set_protocol(http)
        http.connection_made(self._transport)
        http.data_received(self._seen)

    def _push_later(self) -> None:
        if (seconds := self._server.options.push_every) is not None:
            self._pushing = self._loop.call_later(seconds, self._push)

    def _push(self) -> None:
        self._transport.write(_TICK)
        self._push_later()

    def _wait(self, seconds: float) -> None:
        """Give the peer this number of seconds to continue."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._end_wait)

    def _end_wait(self) -> None:
        if self._seen:
            self._echo()  # no request: a request comes at once
        else:
            self._transport.abort()


def _is_http(seen: bytes) -> bool | None:
    """Return whether bytes begin a request; None if that is still open."""
    if _REQUEST_LINE.match(seen):
        return True
    first = seen.lstrip(b"\r\n")
    is_method = first.startswith(_METHODS)
    if b"\n" in first or not (is_method or any(method.startswith(first) for method in _METHODS)):
        return False
    return None if len(seen) < _MAX_FIRST_LINE_BYTES else is_method  # too long, and answered as such
