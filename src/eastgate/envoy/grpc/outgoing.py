"""Sends the frames of a connection: each answer as far as the windows of the peer allow."""

from __future__ import annotations

from collections.abc import Iterable
from struct import unpack_from
from typing import Final

from eastgate.envoy.grpc.calls import GrpcStatus
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
    trailers,
)
from eastgate.envoy.grpc.streams import GrpcStream

FIRST_WINDOW: Final = 65_535  # of either side, before any settings
_EMPTY_TABLE: Final = b"\x20"  # headers that follow need no table
_FIRST_TABLE: Final = 4096
_OK: Final = trailers(GrpcStatus.OK)


class Outgoing:
    """The frames of one connection that wait to be sent, and the windows of its peer."""

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
        """Add as much of an answer as the peer takes. Return whether that is the whole answer."""
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
        """Enlarge the window of all streams together. Raises Http2Error."""
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
            if not LARGEST_FRAME <= value < 1 << 24:  # we send none that is larger than the least of these
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such size of frames")
        elif setting == Setting.ENABLE_PUSH and value > 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "pushes are enabled or not")
        elif setting == Setting.HEADER_TABLE_SIZE and value < _FIRST_TABLE:
            self._needs_empty_table = True
