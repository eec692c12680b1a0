"""HTTP/1.1 messages on a stream, read with limits; for both ends, the built-in application and the caller."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

__all__ = ["MOST_HEAD", "Head", "Malformed", "Readable", "Source", "TooLarge", "body_of", "read_head"]

MOST_HEAD = 64 * 1024
_LONGEST_CHUNK_LINE = 4096
_PIECE = 64 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_LENGTH = re.compile(r"[0-9]{1,18}")


class Malformed(Exception):  # noqa: N818 - what is wrong with the peer's bytes
    """The bytes are no HTTP/1.1 message."""


class TooLarge(Malformed):
    """A line, or the head as a whole, is longer than the limit."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a message, in their order."""

    start: str
    headers: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        """The values of a header, whose name is given in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    def has_token(self, name: str, token: str) -> bool:
        """Whether the comma-separated values of a header have this one among them."""
        return any(part.strip().lower() == token for value in self.all(name) for part in value.split(","))


class Readable(Protocol):
    """A stream of asyncio, or what reads like one."""

    async def read(self, most: int, /) -> bytes:
        """The next bytes; empty at the end."""
        ...


class Source:
    """What comes in on a stream. It can be looked at before it is taken."""

    def __init__(self, reader: Readable) -> None:
        self._reader = reader
        self.seen = bytearray()
        self.total = 0

    async def more(self) -> bool:
        """Waits for more bytes, which are then in `seen`; False when the stream has ended."""
        data = await self._reader.read(_PIECE)
        self.seen += data
        self.total += len(data)
        return bool(data)

    async def take(self, most: int = _PIECE) -> bytes:
        """The next bytes, at least one; empty when the stream has ended."""
        if not self.seen:
            await self.more()
        taken = bytes(self.seen[:most])
        del self.seen[:most]
        return taken

    async def line(self, most: int) -> bytes:
        """The next line with its end. At the end of the stream it has none."""
        looked = 0
        while (end := self.seen.find(b"\n", looked)) < 0:
            looked = len(self.seen)
            if looked > most:
                raise TooLarge("a line is too long")
            if not await self.more():
                return await self.take()
        if end >= most:
            raise TooLarge("a line is too long")
        return await self.take(end + 1)


async def read_head(source: Source) -> Head | None:
    """The head of the next message; None when the stream ends before its first byte."""
    lines: list[bytes] = []
    left = MOST_HEAD
    while True:
        line = await source.line(left)
        left -= len(line)
        if not line.endswith(b"\n"):
            if not lines and not line:
                return None
            raise Malformed("the stream ended inside the head")
        line = line.rstrip(b"\r\n")
        if line:
            lines.append(line)
        elif lines:  # blank lines before the first one are passed over, as RFC 9112 asks
            return Head(lines[0].decode("latin-1"), tuple(_header(one) for one in lines[1:]))


def _header(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or b"\0" in value:
        raise Malformed("a header has no proper name")
    return name.decode("ascii"), value.strip(b" \t").decode("latin-1")


async def body_of(source: Source, head: Head, *, until_close: bool = False) -> AsyncIterator[bytes]:
    """The body that follows a head, piece by piece. `until_close` says what it means when no length is given."""
    lengths, codings = set(head.all("content-length")), head.all("transfer-encoding")
    if codings:
        if lengths or [coding.strip().lower() for coding in codings] != ["chunked"]:
            raise Malformed("the length of the body is ambiguous")
        async for piece in _chunks(source):
            yield piece
    elif lengths:
        length = lengths.pop()
        if lengths or not _LENGTH.fullmatch(length):
            raise Malformed("the length of the body is ambiguous")
        async for piece in _exactly(source, int(length)):
            yield piece
    elif until_close:
        while piece := await source.take():
            yield piece


async def _exactly(source: Source, length: int) -> AsyncIterator[bytes]:
    while length:
        piece = await source.take(min(length, _PIECE))
        if not piece:
            raise Malformed("the stream ended inside the body")
        length -= len(piece)
        yield piece


async def _chunks(source: Source) -> AsyncIterator[bytes]:
    while True:
        size = (await _short_line(source)).partition(b";")[0].strip()
        if not _SIZE.fullmatch(size):
            raise Malformed("a chunk has no proper size")
        if not int(size, 16):
            break
        async for piece in _exactly(source, int(size, 16)):
            yield piece
        if await _short_line(source):
            raise Malformed("a chunk is longer than it said")
    trailers = 0
    while line := await _short_line(source):
        trailers += len(line)
        if trailers > MOST_HEAD:
            raise TooLarge("the trailers are too long")


async def _short_line(source: Source) -> bytes:
    line = await source.line(_LONGEST_CHUNK_LINE)
    if not line.endswith(b"\n"):
        raise Malformed("the stream ended inside the body")
    return line.rstrip(b"\r\n")
