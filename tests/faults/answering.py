"""An application whose answers end in every way of HTTP/1, or, without HTTP, when it closes.

The path chooses the way:

- `/api/sized/1000`: a thousand bytes with a length
- `/api/chunked/...`: in chunks
- `/api/bye/...`: with a length and `Connection: close`
- `/api/closing/...`: ended by closing the connection
- `/api/endless/1000`: a thousand bytes ten times a second, without an end

The application accepts websockets. It echoes their bytes, or pushes bytes for the path `/api/push/...`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import lru_cache

from eastgate.local.machine.http1 import Malformed, Source
from tests.attacks.http1 import Head, body_of, read_head
from tests.faults.recorder import Recorder

__all__ = ["Answering", "body"]

_UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
_INTERVAL_SECONDS = 0.1


@lru_cache(maxsize=8)
def body(size: int) -> bytes:
    """Return `size` bytes without repetition."""
    block = b"".join(b"%07d\n" % number for number in range(size // 8 + 1))
    return block[:size]


def _sized(data: bytes, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (more, len(data), data)


def _chunked(data: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


_ANSWERS: dict[str, Callable[[bytes], bytes]] = {
    "sized": _sized,
    "chunked": _chunked,
    "bye": lambda data: _sized(data, b"connection: close\r\n"),
    "closing": lambda data: b"HTTP/1.1 200 OK\r\n\r\n" + data,
    "old": lambda data: b"HTTP/1.0 200 OK\r\n\r\n" + data,
}
_LAST = ("bye", "closing", "old")


class Answering(Recorder):
    """The application. `raw`: without HTTP, it reads lines such as `<100>` and sends as many bytes. After a line like
    `<!100>` it also closes. No HTTP request begins like that.
    """

    def __init__(self, name: str = "answering", *, raw: bool = False, pause: float = 0.0) -> None:
        super().__init__(name)
        self.raw = raw
        self.pause = pause
        self.uploaded = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = Source(reader)
        try:
            with contextlib.suppress(OSError, Malformed):
                if self.raw:
                    await self._numbers(source, writer)
                else:
                    while (head := await read_head(source)) is not None and await self._answer(head, source, writer):
                        pass
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    async def _numbers(self, source: Source, writer: asyncio.StreamWriter) -> None:
        line = b""
        while not line.startswith(b"<!"):
            line = b""
            while not line.endswith(b"\n"):
                line += await source.take()
            writer.write(body(int(line.strip(b"<!>\n"))))
            await writer.drain()

    async def _answer(self, head: Head, source: Source, writer: asyncio.StreamWriter) -> bool:
        """Answer one request, and return whether another one may follow."""
        _, _, how, size = head.start.split(" ")[1].partition("?")[0].split("/")
        if head.has_token("connection", "upgrade"):
            await self._websocket(how, source, writer)
            return False
        if how != "endless":
            async for piece in body_of(source, head):
                self.uploaded += len(piece)
        await asyncio.sleep(self.pause)
        if how == "endless":
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"%x\r\n%b\r\n" % (int(size), body(int(size))))
                await writer.drain()
                await asyncio.sleep(_INTERVAL_SECONDS)
        writer.write(_ANSWERS[how](body(int(size))))
        await writer.drain()
        return how not in _LAST

    async def _websocket(self, how: str, source: Source, writer: asyncio.StreamWriter) -> None:
        writer.write(_UPGRADED)
        while how == "push":
            writer.write(b"tick")
            await writer.drain()
            await asyncio.sleep(_INTERVAL_SECONDS)
        while piece := await source.take():
            writer.write(piece)
            await writer.drain()
