"""A peer of one connection of the gRPC server, in memory: it writes frames, and reads the answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any

from hpack import Decoder

from eastgate.envoy.grpc.calls import CallError, GrpcStatus, Method
from eastgate.envoy.grpc.connection import GrpcConnection
from eastgate.envoy.grpc.server import GrpcLimits, GrpcServer
from tests.attacks.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    RST_STREAM,
    Frame,
    frame,
    frames,
    literal,
    opening,
)

__all__ = [
    "HELLO",
    "OPENING",
    "Peer",
    "Service",
    "block",
    "call",
    "later",
    "message",
    "number",
    "on_loop",
    "request",
    "setting",
]

Test = Callable[..., Coroutine[Any, Any, None]]


class Service:
    """Methods under test, and the messages that they received."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.open = asyncio.Event()
        self.cancelled = 0

    @property
    def methods(self) -> Mapping[str, Method]:
        """Return the methods by their paths."""
        return {
            "/t.T/Echo": self._echo,
            "/t.T/Other": lambda content: b"other " + content,
            "/t.T/Later": self._later,
            "/t.T/Refuse": self._refuse,
            "/t.T/Break": self._break,
            "/t.T/BreakLater": self._break_later,
            "/t.T/Several": self._several,
        }

    def _echo(self, content: bytes) -> bytes:
        self.calls.append(content)
        return content

    def _later(self, content: bytes) -> Awaitable[bytes]:
        return self._wait(content)

    async def _wait(self, content: bytes) -> bytes:
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return content

    def _refuse(self, _content: bytes) -> bytes:
        raise CallError(GrpcStatus.NOT_FOUND, "there is none")

    def _break(self, _content: bytes) -> bytes:
        raise RuntimeError("a secret of ours")

    async def _break_later(self, _content: bytes) -> bytes:
        raise RuntimeError("a secret of ours")

    async def _several(self, content: bytes) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield content


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False
        self.reading = True

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Peer:
    """A client of one connection. Create it while an event loop runs."""

    def __init__(self, service: Service | None = None, server: GrpcServer | None = None, **limits: Any) -> None:
        self.service = service or Service()
        self.server = server or GrpcServer(self.service.methods, GrpcLimits(**limits))
        self.transport = _Transport()
        self.connection: GrpcConnection = self.server.protocol()
        self.connection.connection_made(self.transport)
        self._decoder = Decoder()
        self.frames: list[Frame] = []
        self._headers: dict[int, list[tuple[str, str]]] = {}

    def send(self, data: bytes, size: int | None = None) -> Peer:
        """Send bytes, in pieces of a size."""
        for start in range(0, len(data), size or len(data)):
            self.connection.data_received(data[start : start + (size or len(data))])
        self.hear()
        return self

    def hear(self) -> None:
        """Read the received bytes."""
        for each in frames(self.transport.written):
            self.frames.append(each)
            if each.kind == HEADERS:
                decoded = self._decoder.decode(each.payload)
                self._headers.setdefault(each.stream, []).extend((str(name), str(value)) for name, value in decoded)

    async def settle(self) -> None:
        """Let all waiting tasks continue."""
        for _ in range(10):
            await asyncio.sleep(0)
        self.hear()

    def headers(self, stream: int = 1) -> dict[str, str]:
        """Return the headers of an answer, and those behind it."""
        return dict(self._headers.get(stream, []))

    def status(self, stream: int = 1) -> int | None:
        """Return the status of a call, if it is answered."""
        status = self.headers(stream).get("grpc-status")
        return None if status is None else int(status)

    def body(self, stream: int = 1) -> bytes:
        """Return the data of an answer."""
        return b"".join(each.payload for each in self.frames if each.kind == DATA and each.stream == stream)

    def reset(self, stream: int = 1) -> int | None:
        """Return the code with which a stream was reset, if it was."""
        codes = [each.payload for each in self.frames if each.kind == RST_STREAM and each.stream == stream]
        return int.from_bytes(codes[0], "big") if codes else None

    @property
    def end(self) -> int | None:
        """Return the code with which the connection was ended, if it was."""
        codes = [each.payload[4:8] for each in self.frames if each.kind == GOAWAY]
        return int.from_bytes(codes[-1], "big") if codes else None


def on_loop(test: Test) -> Callable[..., None]:
    """Make a test of a coroutine, which runs on an event loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(settled(*arguments, **named))

    async def settled(*arguments: Any, **named: Any) -> None:
        try:
            await test(*arguments, **named)
        finally:
            await asyncio.sleep(0)  # answers that have just begun

    return run


def number(value: int) -> bytes:
    """Return a number of four bytes."""
    return value.to_bytes(4, "big")


def setting(name: int, value: int) -> bytes:
    """Return one setting."""
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


def request(*fields: bytes) -> bytes:
    """Return a block of headers in this order, each as its name, a space and its value."""
    return b"".join(literal(*field.split(b" ", 1)) for field in fields)


def message(content: bytes) -> bytes:
    """Return a message of gRPC."""
    return b"\0" + len(content).to_bytes(4, "big") + content


def later(peer: Peer, seconds: float) -> None:
    """Make a connection check its timeouts this number of seconds from now."""
    peer.connection.check_timeouts(asyncio.get_running_loop().time() + seconds)
    peer.hear()


def block(path: bytes = b"/t.T/Echo", *more: tuple[bytes, bytes], **replaced: bytes) -> bytes:
    """Return the headers of a call."""
    headers = {b":method": b"POST", b":scheme": b"http", b":path": path, b":authority": b"t"}
    headers |= {b"te": b"trailers", b"content-type": b"application/grpc"}
    headers |= {name.replace("_", "-").encode(): value for name, value in replaced.items()}
    return b"".join(literal(name, value) for name, value in (*headers.items(), *more))


def call(path: bytes = b"/t.T/Echo", content: bytes = b"hello", stream: int = 1) -> bytes:
    """Return the frames of a call."""
    return frame(HEADERS, END_HEADERS, stream, block(path)) + frame(DATA, END_STREAM, stream, message(content))


OPENING = opening()
HELLO = message(b"hello")
