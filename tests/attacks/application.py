"""An application that records every request over HTTP/1.1 and HTTP/2, and marks each answer."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from hpack import Decoder, Encoder

from eastgate.local.machine.control import SocketServer
from eastgate.local.machine.http1 import Malformed, Source
from tests.attacks.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    frame,
    frames,
)
from tests.attacks.http1 import Head, body_of, read_head

__all__ = ["MARK", "SAW", "Application", "Arrived"]

MARK = "x-try"  # the header by which a client recognizes its own request
SAW = "x-saw"  # the header of the answer that repeats the mark


@dataclass(frozen=True)
class Arrived:
    """A request as the application received it. Its hosts are every Host header and `:authority`."""

    version: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(value for name, value in self.headers if name.lower() in ("host", ":authority"))

    @property
    def mark(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == MARK), None)


class Application(SocketServer):
    """An application that answers every request with 200 and the mark. It accepts websockets, but sends nothing.

    It returns bytes that are not HTTP unchanged. With `declines`, it has no websockets, and continues to read HTTP.
    """

    declines = False

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.arrived: list[Arrived] = []
        self.malformed: list[str] = []  # malformed HTTP/1.1 that a proxy sent
        self.tunnelled = bytearray()

    def answer(self, arrived: Arrived) -> tuple[tuple[tuple[str, str], ...], bytes]:  # noqa: ARG002 - for others
        """Return the headers of an answer, in addition to the mark, and its body."""
        return (), b""

    def status(self, arrived: Arrived) -> int:  # noqa: ARG002 - for others
        """Return the status of an answer."""
        return 200

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = Source(reader)
        try:
            with contextlib.suppress(OSError):
                await source.more()
                if bytes(source.seen).startswith(PREFACE[: len(source.seen)]):
                    await _Http2(self, writer).serve(source)
                elif source.seen[:1].isalpha():
                    await self._http1(source, writer)
                else:
                    await self._echo(source, writer)
        finally:
            writer.transport.abort()

    def note(self, data: bytes) -> None:
        """Record bytes that are not HTTP."""

    async def _echo(self, source: Source, writer: asyncio.StreamWriter) -> None:
        while data := await source.take():
            self.note(data)
            writer.write(data)
            await writer.drain()

    async def _http1(self, source: Source, writer: asyncio.StreamWriter) -> None:
        head: Head | None = None
        try:
            while (head := await read_head(source)) is not None:
                method, target, version = head.start.split(" ", 2)
                waits = head.has_token("expect", "100-continue")
                if waits:
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                asked = head.has_token("connection", "upgrade") and head.has_token("upgrade", "websocket")
                upgrades = asked and not self.declines
                body = b"" if upgrades else b"".join([piece async for piece in body_of(source, head)])
                arrived = Arrived(version, method, target, head.headers, body)
                self.arrived.append(arrived)
                if upgrades:
                    kind = head.all("upgrade")[0]
                    writer.write(
                        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: %s\r\n\r\n" % kind.encode()
                    )
                    while data := await source.take():
                        self.tunnelled += data
                    return
                saw = (arrived.mark or "").encode("latin-1")
                headers, content = self.answer(arrived)
                more = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
                head_lines = b"HTTP/1.1 %d OK\r\n%s: %s\r\ncontent-length: %d\r\n%s\r\n"
                writer.write(head_lines % (self.status(arrived), SAW.encode(), saw, len(content), more))
                writer.write(content if method != "HEAD" else b"")
                await writer.drain()
        except (Malformed, ValueError) as error:
            # It is no error to close in the middle of a body, nor to announce a body that never ends.
            endless = head is not None and [len(one) > 18 and one.isdigit() for one in head.all("content-length")]
            if "ended" not in str(error) and endless != [True]:
                self.malformed.append(f"{error}: {head} {bytes(source.seen[:200])!r}")


class _Http2:
    """One HTTP/2 connection of a server that checks as little as possible."""

    def __init__(self, application: Application, writer: asyncio.StreamWriter) -> None:
        self._application = application
        self._writer = writer
        self._decoder = Decoder(max_header_list_size=1 << 24)
        self._encoder = Encoder()
        self._block = b""
        self._ends = False
        self._requests: dict[int, list[tuple[str, str]]] = {}
        self._bodies: dict[int, bytearray] = {}

    async def serve(self, source: Source) -> None:
        while len(source.seen) < len(PREFACE) and await source.more():
            pass
        await source.take(len(PREFACE))
        self._writer.write(frame(SETTINGS, 0, 0))
        while True:
            for one in frames(source.seen):
                self._take(one)
            await self._writer.drain()
            if not await source.more():
                return

    def _take(self, one: Frame) -> None:
        if one.kind == SETTINGS and not one.flags & ACK:
            self._writer.write(frame(SETTINGS, ACK, 0))
        elif one.kind == PING and not one.flags & ACK:
            self._writer.write(frame(PING, ACK, 0, one.payload))
        elif one.kind == DATA:
            self._bodies.setdefault(one.stream, bytearray()).extend(one.fragment)
            if one.payload:
                credit = len(one.payload).to_bytes(4, "big")
                self._writer.write(frame(WINDOW_UPDATE, 0, 0, credit) + frame(WINDOW_UPDATE, 0, one.stream, credit))
            if one.flags & END_STREAM:
                self._answer(one.stream)
        elif one.kind in (HEADERS, CONTINUATION):
            self._ends = bool(one.flags & END_STREAM) if one.kind == HEADERS else self._ends
            self._block += one.fragment if one.kind == HEADERS else one.payload
            if one.flags & END_HEADERS:
                self._headers(one.stream)

    def _headers(self, stream: int) -> None:
        block, self._block = self._block, b""
        read = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in self._decoder.decode(block, raw=True)]
        if stream in self._requests:  # trailers: no server may read them as headers, but they must be well-formed
            if wrong := [name for name, _ in read if name.startswith(":")]:
                self._application.malformed.append(f"trailers with {wrong}")
        else:
            self._requests[stream] = read
        if self._ends or (":method", "CONNECT") in read:  # a tunnel ends when one side closes it
            self._answer(stream)

    def _answer(self, stream: int) -> None:
        headers = self._requests.pop(stream, [])
        pseudo = dict(headers)
        body = bytes(self._bodies.pop(stream, b""))
        arrived = Arrived("HTTP/2", pseudo.get(":method", ""), pseudo.get(":path", ""), tuple(headers), body)
        self._application.arrived.append(arrived)
        more, content = self._application.answer(arrived)
        status = str(self._application.status(arrived))
        block = self._encoder.encode([(":status", status), (SAW, arrived.mark or ""), *more])
        if arrived.method == "HEAD" or not content:
            self._writer.write(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))
        else:
            self._writer.write(frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, content))
