"""Requests of HTTP/1.1 as an application may get them: with several hosts, with two lengths, with any target.

h11 refuses or tidies up some of what a proxy may pass on. An application that looks for attacks has to see it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from eastgate.local.machine.http1 import Malformed, Source, TooLarge

__all__ = ["Head", "body_of", "read_head"]

MOST_HEAD = 64 * 1024
_LONGEST_CHUNK_LINE = 4096
_PIECE = 64 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_LENGTH = re.compile(r"[0-9]{1,18}")


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


async def _line(source: Source, most: int) -> bytes:
    """Return the next line with its end. At the end of the stream it has none."""
    looked = 0
    while (end := source.seen.find(b"\n", looked)) < 0:
        looked = len(source.seen)
        if looked > most:
            raise TooLarge("a line is too long")
        if not await source.more():
            return await source.take()
    if end >= most:
        raise TooLarge("a line is too long")
    return await source.take(end + 1)


async def read_head(source: Source) -> Head | None:
    """The head of the next message; None when the stream ends before its first byte."""
    lines: list[bytes] = []
    left = MOST_HEAD
    while True:
        line = await _line(source, left)
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
    line = await _line(source, _LONGEST_CHUNK_LINE)
    if not line.endswith(b"\n"):
        raise Malformed("the stream ended inside the body")
    return line.rstrip(b"\r\n")
