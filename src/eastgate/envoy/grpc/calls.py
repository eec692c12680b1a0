"""The methods of a gRPC server, and which of them the headers of a request call."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import IntEnum
from typing import Final

from hpack import Decoder

from eastgate.envoy.grpc.frames import (
    RESPONSE_HEADERS,
    ErrorCode,
    Http2Error,
    status_headers,
    trailers,
)
from eastgate.records import dataclass

__all__ = ["CallError", "CallHeaders", "GrpcStatus", "Method", "RefusedCall"]

Method = Callable[[bytes], "bytes | Awaitable[bytes] | AsyncIterator[bytes]"]
"""Answers a message: at once, later, or with several messages. Raises CallError."""

_MOST_REMEMBERED: Final = 64  # header blocks of a connection
_LONGEST_REMEMBERED: Final = 1024  # bytes
_MOST_RESIZES: Final = 2  # of the table, before the headers of one block


class GrpcStatus(IntEnum):
    """How a call ended: gRPC's codes."""

    OK = 0
    UNKNOWN = 2
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13


class CallError(Exception):
    """A call is answered with a status. `message` is printable ASCII."""

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that is answered by these headers alone."""

    headers: bytes

    @classmethod
    def of(cls, status: GrpcStatus, message: str) -> RefusedCall:
        """Return the refusal with a status of gRPC."""
        return cls(RESPONSE_HEADERS + trailers(status, message))


_NOT_POST: Final = RefusedCall(status_headers(405))
_NOT_GRPC: Final = RefusedCall(status_headers(415))
_NO_METHOD: Final = RefusedCall.of(GrpcStatus.UNIMPLEMENTED, "there is no such method")
_COMPRESSED: Final = RefusedCall.of(GrpcStatus.UNIMPLEMENTED, "messages must not be compressed")


class CallHeaders:
    """Reads the headers of one connection, in order.

    A proxy writes the same headers for each call, so that their bytes are the same as long as the table of the
    connection is. What such bytes mean is remembered until the table changes.
    """

    def __init__(self, methods: Mapping[bytes, Method], largest: int) -> None:
        self._methods = methods
        self._decoder = Decoder(max_header_list_size=largest)
        self._remembered: dict[bytes, Method | RefusedCall] = {}

    def read(self, block: bytes) -> Method | RefusedCall:
        """Return the method that headers call, or how they are refused. Raises Http2Error."""
        call = self._remembered.get(block)
        if call is None:
            before = self._table()
            call = self._call(self.decode(block))
            if self._table() == before and len(block) <= _LONGEST_REMEMBERED:
                if len(self._remembered) >= _MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[block] = call
        return call

    def decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        """Return headers. Raises Http2Error: the table is of no use any more."""
        if _is_resized_often(block):
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, "the table changes its size without end")
        before = self._table()
        try:
            decoded = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except Exception as error:  # whatever the library stumbles over
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, "headers cannot be read") from error
        if self._table() != before:
            self._remembered.clear()
        return decoded

    def _table(self) -> _TableState:
        table = self._decoder.header_table
        return _TableState(table.dynamic_entries, table.maxsize)

    def _call(self, headers: list[tuple[bytes, bytes]]) -> Method | RefusedCall:
        named = dict(headers)
        if sum(name.startswith(b":") for name, _ in headers) != sum(name.startswith(b":") for name in named):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a pseudo-header is there twice")
        if named.get(b":method") != b"POST":
            return _NOT_POST
        if not _is_grpc(named.get(b"content-type", b"")):
            return _NOT_GRPC
        if named.get(b"grpc-encoding", b"identity") != b"identity":
            return _COMPRESSED
        return self._methods.get(named.get(b":path", b""), _NO_METHOD)


def _is_grpc(content_type: bytes) -> bool:
    return content_type == b"application/grpc" or content_type.startswith((b"application/grpc+", b"application/grpc;"))


def _is_resized_often(block: bytes) -> bool:
    """Tell whether a block begins with more new sizes of the table than it can need (RFC 7541, 4.2)."""
    at = resizes = 0
    while resizes <= _MOST_RESIZES and at < len(block) and block[at] & 0xE0 == 0x20:
        resizes += 1
        is_long = block[at] & 0x1F == 0x1F
        at += 1
        while is_long and at < len(block):
            is_long = block[at] >= 0x80
            at += 1
    return resizes > _MOST_RESIZES


class _TableState:
    """The table of headers at a time. Whatever is added to it is a new object in front."""

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
