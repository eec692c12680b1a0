"""Frames of HTTP/2 (RFC 9113), and the headers of gRPC's responses, which never change."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD: Final = Struct(">HBBBI")
"""Length (its upper 16 bits, and the lower 8), kind, flags and stream of a frame."""
LARGEST_FRAME: Final = 16_384
LARGEST_WINDOW: Final = 2**31 - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20


class ErrorCode:
    """The reason for the end of a stream or a connection."""

    NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED = range(6)
    FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM = range(6, 12)


class Setting:
    """Parameters of a connection."""

    HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(1, 6)
    MAX_HEADER_LIST_SIZE = 6


class Http2Error(Exception):
    """A violation of the protocol by a peer: its connection ends."""

    def __init__(self, code: int, problem: str) -> None:
        super().__init__(problem)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    size = len(payload)
    return FRAME_HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def settings_frame(settings: dict[int, int]) -> bytes:
    """Return the frame that states settings."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in settings.items()))


_SETTING: Final = Struct(">HI")


def without_padding(flags: int, payload: bytes) -> bytes:
    """Return the payload of a frame without its padding. Raises Http2Error."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is more padding than payload")
    return payload[1 : len(payload) - payload[0]]


# Headers, encoded without a table


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\x00" + _text(name) + _text(value)


def _text(text: bytes) -> bytes:
    if len(text) >= 127:
        raise ValueError("such a text needs a length of several bytes")
    return bytes([len(text)]) + text


_STATUS_200: Final = b"\x88"  # of the static table
RESPONSE_HEADERS: Final = _STATUS_200 + _literal(b"content-type", b"application/grpc")


def trailers(status: int, message: str = "") -> bytes:
    """Return the headers behind a response. `message` is printable ASCII, without `%`."""
    message_header = _literal(b"grpc-message", message.encode("ascii")) if message else b""
    return _literal(b"grpc-status", str(status).encode()) + message_header


def status_headers(status: int) -> bytes:
    """Return the headers of a response outside of gRPC."""
    return _literal(b":status", str(status).encode())


def resets_in(data: bytes, start: int) -> Iterator[int]:
    """Yield the streams that complete frames reset."""
    size, head = len(data), FRAME_HEAD.unpack_from
    while size - start >= 9:
        upper, lower, kind, _, stream = head(data, start)
        start += 9 + ((upper << 8) | lower)
        if kind == RST_STREAM and start <= size:
            yield stream & LARGEST_WINDOW


def reset_frame(stream: int, code: int) -> bytes:
    """Return a frame that ends a stream."""
    return frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def goaway(last_stream: int, code: int) -> bytes:
    """Return the payload of a frame that ends a connection."""
    return last_stream.to_bytes(4, "big") + code.to_bytes(4, "big")
