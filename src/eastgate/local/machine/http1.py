"""Responses of HTTP/1.1 on a stream, parsed by h11 within limits."""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol, TypeAlias

import h11

from eastgate.basics.records import dataclass

MAX_HEAD = 64 * 1024
_MAX_BODY_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_NO_RESPONSE = "this is no HTTP/1.1 response"
_HEAD_CHUNK_BYTES = 4096  # so that a head cannot be much longer than its limit

Headers: TypeAlias = tuple[tuple[str, str], ...]


class Malformed(Exception):  # noqa: N818 - a property of the peer's bytes
    """The bytes are no HTTP/1.1 message."""


class TooLarge(Malformed):
    """A line, or the head as a whole, is longer than the limit."""


class ByteReader(Protocol):
    """A stream of asyncio, or an object with its interface."""

    async def read(self, most: int, /) -> bytes:
        """Return the next bytes; empty at the end."""
        ...


class Source:
    """The incoming bytes of a stream. They can be inspected before they are taken."""

    def __init__(self, reader: ByteReader) -> None:
        self._reader = reader
        self.seen = bytearray()
        self.total = 0

    async def more(self) -> bool:
        """Wait for more bytes, which are then in `seen`; False at the end of the stream."""
        data = await self._reader.read(_CHUNK_BYTES)
        self.seen += data
        self.total += len(data)
        return bool(data)

    async def take(self, most: int = _CHUNK_BYTES) -> bytes:
        """Return the next bytes, at least one; empty at the end of the stream."""
        if not self.seen:
            await self.more()
        taken = bytes(self.seen[:most])
        del self.seen[:most]
        return taken


@dataclass(frozen=True, slots=True)
class Http1Response:
    """A final response, or the 101 after which another protocol begins."""

    status: int
    headers: Headers
    body: bytes


async def read_response(source: Source, method: str) -> Http1Response | None:
    """Return the response to a request of this method; None if the stream ends before its first byte.

    Bytes after the response stay in the source. The request itself may be one that h11 would not send.
    """
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    # h11 must know whether a body follows, and whether another protocol may.
    sent = [("host", "x"), ("connection", "upgrade"), ("upgrade", "x")]
    parser.send(h11.Request(method="HEAD" if method == "HEAD" else "GET", target="/", headers=sent))
    parser.send(h11.EndOfMessage())
    if not source.seen and not await source.more():
        return None
    parsing = _Parsing(parser, source)
    head = await parsing.event()
    while isinstance(head, h11.InformationalResponse) and head.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
        head = await parsing.event()
    if not isinstance(head, h11.Response | h11.InformationalResponse):
        raise Malformed(_NO_RESPONSE)
    body = bytearray()
    if isinstance(head, h11.Response):
        _check_length(head)
        while isinstance(event := await parsing.event(), h11.Data):
            body += event.data
            if len(body) > _MAX_BODY_BYTES:
                raise Malformed("the body is too long")
    source.seen[:0] = parser.trailing_data[0]
    return Http1Response(head.status_code, _texts(head), bytes(body))


class _Parsing:
    """The events of one response, parsed on demand."""

    def __init__(self, parser: h11.Connection, source: Source) -> None:
        self._parser = parser
        self._source = source
        self._in_body = False
        self._ended = False

    async def event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event, which is never NEED_DATA; raises `Malformed`."""
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                raise self._problem(error) from None
            if event is not h11.NEED_DATA:
                self._in_body = isinstance(event, h11.Response | h11.Data)
                return event
            data = await self._source.take(_CHUNK_BYTES if self._in_body else _HEAD_CHUNK_BYTES)
            self._ended = not data
            self._parser.receive_data(data)

    def _problem(self, error: h11.RemoteProtocolError) -> Malformed:
        if error.error_status_hint == 431:
            return TooLarge("a line is too long")
        if self._ended:
            return Malformed(f"the stream ended inside the {'body' if self._in_body else 'head'}")
        return Malformed("the body is not one" if self._in_body else _NO_RESPONSE)


def _check_length(message: h11.Response) -> None:
    """Refuse a message with two lengths: h11 takes one of them, and other programs may take the other."""
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in message.headers}:
        raise Malformed("the length of the body is ambiguous")


def _texts(message: h11.Response | h11.InformationalResponse) -> Headers:
    return tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in message.headers.raw_items())
