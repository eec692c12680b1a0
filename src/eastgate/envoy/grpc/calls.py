"""The methods of a gRPC server, and the headers that call them."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from struct import unpack_from
from typing import Final

from hpack import Decoder

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.envoy.grpc.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    LARGEST_FRAME,
    LARGEST_WINDOW,
    RESPONSE_HEADERS,
    ErrorCode,
    Http2Error,
    Setting,
    frame,
    status_headers,
    trailers,
)

Method = Callable[[bytes], "bytes | Awaitable[bytes] | AsyncIterator[bytes]"]
"""Answers a message: at once, later, or with several messages. Raises CallError."""

_MAX_CACHED_BLOCKS: Final = 64  # header blocks of a connection
_MAX_CACHED_BLOCK_BYTES: Final = 1024  # bytes
_MAX_TABLE_RESIZES: Final = 2  # of the table, before the headers of one block
_MAX_LENGTH_DIGITS: Final = 18  # digits

# Valid headers (RFC 9113, 8.2 and 8.3): each name and value is followed by a NUL
_VALUE: Final = rb"(?:[^\0\r\n \t](?:[^\0\r\n]*[^\0\r\n \t])?)?\0"
_FIELDS: Final = rb"(?:[!#$%&'*+\-.^_`|~0-9a-z]+\0" + _VALUE + rb")*"
_REQUEST: Final = regex(rb"(?::(?:method|scheme|path|authority)\0" + _VALUE + rb")*" + _FIELDS)
_TRAILERS: Final = regex(_FIELDS)
_HOP_BY_HOP: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_ONCE: Final = frozenset(
    {b":method", b":scheme", b":path", b":authority", b"content-length", b"content-type", b"grpc-encoding", b"te"}
)


class GrpcStatus(IntEnum):
    """The status at the end of a call: gRPC's codes."""

    OK = 0
    UNKNOWN = 2
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13


class CallError(Exception):
    """An error that answers a call with a status. `message` is printable ASCII."""

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class GrpcCall:
    """A call of a method. `length` is the `content-length` of its headers."""

    method: Method
    length: int | None = None


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that is answered by these headers alone. Without headers it is malformed, and its stream is reset."""

    headers: bytes | None

    @classmethod
    def of(cls, status: GrpcStatus, message: str) -> RefusedCall:
        """Return the refusal with a status of gRPC."""
        return cls(RESPONSE_HEADERS + trailers(status, message))


_MALFORMED: Final = RefusedCall(None)
_NOT_POST: Final = RefusedCall(status_headers(405))
_NOT_GRPC: Final = RefusedCall(status_headers(415))
_NO_METHOD: Final = RefusedCall.of(GrpcStatus.UNIMPLEMENTED, "there is no such method")
_COMPRESSED: Final = RefusedCall.of(GrpcStatus.UNIMPLEMENTED, "messages must not be compressed")


class CallHeaders:
    """Parses the headers of one connection, in order.

    A proxy writes the same headers for each call, so that their bytes are the same as long as the connection's table
    is. The parsed result for such bytes is cached until the table changes.
    """

    def __init__(self, methods: Mapping[bytes, Method], largest: int) -> None:
        self._methods = methods
        self._decoder = Decoder(max_header_list_size=largest)
        self._remembered: dict[bytes, GrpcCall | RefusedCall] = {}

    def read(self, block: bytes) -> GrpcCall | RefusedCall:
        """Return the call of these headers, or its refusal. Raises Http2Error."""
        call = self._remembered.get(block)
        if call is None:
            before = self._table()
            call = self._call(self.decode(block))
            if self._table() == before and len(block) <= _MAX_CACHED_BLOCK_BYTES:
                if len(self._remembered) >= _MAX_CACHED_BLOCKS:
                    self._remembered.clear()
                self._remembered[block] = call
        return call

    def decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        """Decode headers. Raises Http2Error: the table is unusable afterwards."""
        if _is_resized_often(block):
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, "the table changes its size without end")
        before = self._table()
        try:
            decoded = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except Exception as error:  # any error of the library
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, "headers cannot be read") from error
        if self._table() != before:
            self._remembered.clear()
        return decoded

    def _table(self) -> _TableState:
        table = self._decoder.header_table
        return _TableState(table.dynamic_entries, table.maxsize)

    def _call(self, headers: list[tuple[bytes, bytes]]) -> GrpcCall | RefusedCall:
        named = _by_name(headers, _REQUEST)
        if named is None or b":method" not in named:
            return _MALFORMED
        if named[b":method"] == b"CONNECT":  # it has no path
            return _NOT_POST
        if b":scheme" not in named or not named.get(b":path"):
            return _MALFORMED
        if named[b":method"] != b"POST":
            return _NOT_POST
        if not _is_grpc(named.get(b"content-type", b"")):
            return _NOT_GRPC
        if named.get(b"grpc-encoding", b"identity") != b"identity":
            return _COMPRESSED
        method = self._methods.get(named[b":path"])
        if method is None:
            return _NO_METHOD
        length = named.get(b"content-length")
        return GrpcCall(method, None if length is None else int(length))


def are_trailers(headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether headers may follow the message of a request."""
    return _by_name(headers, _TRAILERS) is not None


def _by_name(headers: list[tuple[bytes, bytes]], pattern: re.Pattern[bytes]) -> dict[bytes, bytes] | None:
    """Return headers by their names; None for a malformed request."""
    named = dict(headers)
    text = b"".join([b"%b\0%b\0" % header for header in headers])
    if text.count(b"\0") != 2 * len(headers) or not pattern.fullmatch(text) or not _HOP_BY_HOP.isdisjoint(named):
        return None
    if len(named) != len(headers) and any(sum(name == once for name, _ in headers) > 1 for once in _ONCE):
        return None
    length = named.get(b"content-length", b"0")
    is_length = length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS
    return named if is_length and named.get(b"te", b"trailers") == b"trailers" else None


def _is_grpc(content_type: bytes) -> bool:
    return content_type == b"application/grpc" or content_type.startswith((b"application/grpc+", b"application/grpc;"))


def _is_resized_often(block: bytes) -> bool:
    """Return whether a block begins with more table sizes than a table can need (RFC 7541, 4.2)."""
    at = resizes = 0
    while resizes <= _MAX_TABLE_RESIZES and at < len(block) and block[at] & 0xE0 == 0x20:
        resizes += 1
        is_long = block[at] & 0x1F == 0x1F
        at += 1
        while is_long and at < len(block):
            is_long = block[at] >= 0x80
            at += 1
    return resizes > _MAX_TABLE_RESIZES


class _TableState:
    """A snapshot of the table of headers. An added header is a new first object."""

    __slots__ = ("_first", "_length", "_size")

    def __init__(self, entries: deque[tuple[bytes, bytes]], size: int) -> None:
        self._first = entries[0] if entries else None
        self._length = len(entries)
        self._size = size

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _TableState)
            and self._first is other._first
            and self._length == other._length
            and self._size == other._size
        )

    __hash__ = None  # type: ignore[assignment]


# One call on a connection, and calls that ended early.


_MAX_CUT_OFF: Final = 1024


class GrpcStream:
    """An open call: its request arrives, it is being answered, or its answer waits to be sent."""

    __slots__ = ("answering", "began", "call", "ends", "id", "is_whole", "received", "started", "unsent", "window")

    def __init__(self, number: int, call: GrpcCall, window: int, now: float) -> None:
        self.id = number
        self.call = call
        self.window = window  # bytes that the peer accepts
        self.began = now
        self.received: bytes | bytearray = b""
        self.is_whole = False
        self.answering: asyncio.Task[None] | None = None
        self.started = False  # the headers of the response are sent
        self.unsent = b""
        self.ends = False  # `unsent` has the last message


class CutOffStreams:
    """Streams that the server ended before their requests did: the peer continues to send until it learns of it.

    The numbers of the latest ones are kept. All earlier numbers, up to the highest that was dropped, count as cut off.
    """

    def __init__(self) -> None:
        self._last: dict[int, None] = {}
        self._highest_before = 0

    def add(self, number: int) -> None:
        """Add a stream."""
        self._last[number] = None
        if len(self._last) > _MAX_CUT_OFF:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._highest_before = max(self._highest_before, oldest)

    def __contains__(self, number: int) -> bool:
        return number <= self._highest_before or number in self._last

    def __len__(self) -> int:
        return len(self._last)


# Sends the frames of a connection: each answer as far as the windows of the peer allow.


FIRST_WINDOW: Final = 65_535  # of either side, before any settings
_EMPTY_TABLE: Final = b"\x20"  # headers that follow need no table
_INITIAL_TABLE_BYTES: Final = 4096
_OK: Final = trailers(GrpcStatus.OK)


class Outgoing:
    """The waiting frames of one connection, and the windows of its peer."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.stream_window = FIRST_WINDOW
        """The window of a new stream."""
        self._window = FIRST_WINDOW  # of all streams
        self._needs_empty_table = False

    def write(self, data: bytes) -> None:
        """Add a frame."""
        self.frames.append(data)

    def write_headers(self, stream: int, flags: int, block: bytes) -> None:
        """Add headers."""
        if self._needs_empty_table:
            self._needs_empty_table = False
            block = _EMPTY_TABLE + block
        self.frames.append(frame(HEADERS, END_HEADERS | flags, stream, block))

    def send(self, stream: GrpcStream) -> bool:
        """Add as much of an answer as the peer accepts. Return whether that is the whole answer."""
        if not (stream.unsent or stream.ends):
            return False
        if not stream.started:
            stream.started = True
            self.write_headers(stream.id, 0, RESPONSE_HEADERS)
        while stream.unsent:
            size = min(len(stream.unsent), self._window, stream.window, LARGEST_FRAME)
            if size <= 0:
                return False
            self._window -= size
            stream.window -= size
            self.frames.append(frame(DATA, 0, stream.id, stream.unsent[:size]))
            stream.unsent = stream.unsent[size:]
        if stream.ends:
            self.write_headers(stream.id, END_STREAM, _OK)
        return stream.ends

    def widen(self, more: int) -> None:
        """Enlarge the window of the connection. Raises Http2Error."""
        self._window += more
        if not more:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a window is not larger")
        if self._window > LARGEST_WINDOW:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")

    def set(self, settings: bytes, streams: Iterable[GrpcStream]) -> None:
        """Apply the settings of the peer. Raises Http2Error."""
        before = self.stream_window
        for start in range(0, len(settings), 6):
            self._set(*unpack_from(">HI", settings, start))
        for stream in streams:
            stream.window += self.stream_window - before
            if stream.window > LARGEST_WINDOW:
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")

    def _set(self, setting: int, value: int) -> None:
        if setting == Setting.INITIAL_WINDOW_SIZE:
            if value > LARGEST_WINDOW:
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
            self.stream_window = value
        elif setting == Setting.MAX_FRAME_SIZE:
            if not LARGEST_FRAME <= value < 1 << 24:  # the server sends no frame above the smallest limit
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such size of frames")
        elif setting == Setting.ENABLE_PUSH and value > 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "pushes are enabled or not")
        elif setting == Setting.HEADER_TABLE_SIZE and value < _INITIAL_TABLE_BYTES:
            self._needs_empty_table = True
