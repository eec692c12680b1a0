"""A parser of HTTP/1.1 requests as an application may get them: with several hosts, two lengths, or any target.

h11 refuses or normalizes some requests that a proxy may pass on. A test for attacks must see them unchanged.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from eastgate.local.machine.http1 import Malformed, Source, TooLarge

__all__ = ["Head", "body_of", "read_head"]

MAX_HEAD_BYTES = 64 * 1024
_MAX_CHUNK_LINE_BYTES = 4096
_READ_BYTES = 64 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_LENGTH = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a message, in their order."""

    start: str
    headers: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        """Return the values of a header with this name in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    def has_token(self, name: str, token: str) -> bool:
        """Return whether the comma-separated values of a header include this token."""
        return any(part.strip().lower() == token for value in self.all(name) for part in value.split(","))


async def _line(source: Source, most: int) -> bytes:
    """Return the next line with its line break, which is missing at the end of the stream."""
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
    """Return the head of the next message, or None if the stream ends before its first byte."""
    lines: list[bytes] = []
    left = MAX_HEAD_BYTES
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
        elif lines:  # skip blank lines before the first line, as RFC 9112 demands
            return Head(lines[0].decode("latin-1"), tuple(_header(one) for one in lines[1:]))


def _header(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or b"\0" in value:
        raise Malformed("a header has no proper name")
    return name.decode("ascii"), value.strip(b" \t").decode("latin-1")


async def body_of(source: Source, head: Head, *, until_close: bool = False) -> AsyncIterator[bytes]:
    """Yield the pieces of the body. With `until_close`, a body without a length ends with the connection."""
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
        piece = await source.take(min(length, _READ_BYTES))
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
            raise Malformed("a chunk is longer than its size")
    trailers = 0
    while line := await _short_line(source):
        trailers += len(line)
        if trailers > MAX_HEAD_BYTES:
            raise TooLarge("the trailers are too long")


async def _short_line(source: Source) -> bytes:
    line = await _line(source, _MAX_CHUNK_LINE_BYTES)
    if not line.endswith(b"\n"):
        raise Malformed("the stream ended inside the body")
    return line.rstrip(b"\r\n")
