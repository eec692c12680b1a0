"""HTTP/2 frames without a library, which would refuse to write most of an attacker's frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpack import Decoder, HPACKError

__all__ = [
    "ACK",
    "CONTINUATION",
    "DATA",
    "END_HEADERS",
    "END_STREAM",
    "GOAWAY",
    "HEADERS",
    "PADDED",
    "PING",
    "PREFACE",
    "PRIORITY",
    "PRIORITY_FLAG",
    "PUSH_PROMISE",
    "RST_STREAM",
    "SETTINGS",
    "WINDOW_UPDATE",
    "Answers",
    "Field",
    "Frame",
    "frame",
    "frames",
    "indexed",
    "integer",
    "literal",
    "opening",
    "request",
    "string",
]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITY_FLAG = 0x4, 0x8, 0x20
_HEADER_BYTES = 9

Field = tuple[bytes, bytes]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"", *, length: int | None = None) -> bytes:
    """Return a frame. `length` replaces its true length."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def integer(value: int, bits: int, first: int = 0) -> bytes:
    """Return an HPACK integer with a prefix of `bits` bits, in a byte that begins with `first`."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    written = bytearray([first | most])
    value -= most
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def string(value: bytes) -> bytes:
    """Return an uncompressed HPACK string."""
    return integer(len(value), 7) + value


def literal(name: bytes, value: bytes, *, first: int = 0, bits: int = 4) -> bytes:
    """Return a header that is in no HPACK table. `first` and `bits` choose another encoding."""
    return integer(0, bits, first) + string(name) + string(value)


def indexed(number: int) -> bytes:
    """Return a header by its index in the HPACK tables."""
    return integer(number, 7, 0x80)


def opening(settings: bytes = b"") -> bytes:
    """Return the first bytes of a client's connection."""
    return PREFACE + frame(SETTINGS, 0, 0, settings)


def request(*headers: Field, data: bytes | None = None, stream: int = 1, more: int = 0) -> bytes:
    """Return the frames of one request with exactly these headers, including pseudo-headers."""
    block = b"".join(literal(name, value) for name, value in headers)
    end = END_STREAM if data is None else 0
    body = frame(DATA, END_STREAM, stream, data) if data is not None else b""
    return frame(HEADERS, END_HEADERS | end | more, stream, block) + body


@dataclass(frozen=True, slots=True)
class Frame:
    """A received frame."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def fragment(self) -> bytes:
        """Return the part of a header block in a HEADERS frame, or of a body in a DATA frame."""
        payload = self.payload
        if self.flags & PADDED:
            payload = payload[1 : len(payload) - payload[0]]
        if self.kind == HEADERS and self.flags & PRIORITY_FLAG:
            payload = payload[5:]
        return payload


def frames(buffer: bytearray) -> Iterator[Frame]:
    """Yield every complete frame at the start of the buffer, and remove it."""
    while len(buffer) >= _HEADER_BYTES and len(buffer) >= (end := _HEADER_BYTES + int.from_bytes(buffer[:3], "big")):
        taken = bytes(buffer[:end])
        del buffer[:end]
        yield Frame(taken[3], taken[4], int.from_bytes(taken[5:9], "big") & 0x7FFFFFFF, taken[_HEADER_BYTES:])


class Answers:
    """The answers of a server on a connection: status, headers and end of each stream."""

    def __init__(self) -> None:
        self.headers: dict[int, dict[bytes, bytes]] = {}
        self.bodies: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.reset: set[int] = set()
        self.gone = False
        self.wants_ack = False
        self._buffer = bytearray()
        self._decoder = Decoder()
        self._block = b""

    def hear(self, data: bytes) -> None:
        """Process received bytes."""
        self._buffer += data
        for one in frames(self._buffer):
            self._take(one)

    def status(self, stream: int) -> int:
        """Return the status of the answer on a stream, or 0 without an answer."""
        return int(self.headers.get(stream, {}).get(b":status", b"0"))

    def _take(self, one: Frame) -> None:
        if one.kind in (HEADERS, CONTINUATION):
            self._block += one.fragment if one.kind == HEADERS else one.payload
            if one.flags & END_HEADERS:
                self._read(one.stream)
        elif one.kind == DATA:
            self.bodies.setdefault(one.stream, bytearray()).extend(one.fragment)
        elif one.kind == RST_STREAM:
            self.reset.add(one.stream)
            self.ended.add(one.stream)
        elif one.kind == GOAWAY:
            self.gone = True
        elif one.kind == SETTINGS and not one.flags & ACK:
            self.wants_ack = True
        if one.kind in (HEADERS, DATA) and one.flags & END_STREAM:
            self.ended.add(one.stream)

    def _read(self, stream: int) -> None:
        block, self._block = self._block, b""
        try:
            read = dict(self._decoder.decode(block, raw=True))
        except HPACKError:
            self.gone = True
            return
        if stream not in self.headers or self.headers[stream].get(b":status", b"").startswith(b"1"):
            self.headers[stream] = read
