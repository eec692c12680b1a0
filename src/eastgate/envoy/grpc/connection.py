"""One HTTP/2 connection of a gRPC server. All its resources have limits.

A peer that violates the protocol loses its connection, and a call beyond a limit is refused.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from eastgate.envoy.grpc.calls import FIRST_WINDOW, Outgoing
from eastgate.envoy.grpc.frames import (
    ACK,
    CONTINUATION,
    DATA,
    FRAME_HEAD,
    GOAWAY,
    HEADERS,
    LARGEST_FRAME,
    LARGEST_WINDOW,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    Http2Error,
    Setting,
    frame,
    goaway,
    resets_in,
    settings_frame,
)
from eastgate.envoy.grpc.open_calls import PREFIX, RECEIVED_AT_ONCE, OpenCalls, check_priority

if TYPE_CHECKING:
    from eastgate.envoy.grpc.server import GrpcServer

_LOG = logging.getLogger(__name__)
_MAX_SETTINGS: Final = 32  # in one frame
_MAX_BATCHED_FRAMES: Final = 48  # frames that are sent together
_MAX_CALLS_PER_TURN: Final = 32  # calls of one connection, before other connections have their turn
_PROBE: Final = b"eastgate"


class GrpcConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: GrpcServer) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._has_unread = False  # with unread bytes, after other connections had their turn
        self._next_turn: asyncio.Handle | None = None
        self._may_write = True
        self._outgoing = Outgoing()
        self._write = self._outgoing.write
        self.calls = OpenCalls(server, self._outgoing, self._flush)
        self._is_open = True
        self._has_greeted = False
        self._has_settings = False
        self._heard_at = self.began = self._loop.time()
        self._has_probed = False

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # other event loops have transports of other classes
        limits = self._limits
        settings = {
            Setting.MAX_CONCURRENT_STREAMS: limits.streams,
            Setting.INITIAL_WINDOW_SIZE: min(max(FIRST_WINDOW, limits.message + PREFIX.size), LARGEST_WINDOW),
            Setting.MAX_HEADER_LIST_SIZE: limits.head,
        }
        more = (RECEIVED_AT_ONCE - FIRST_WINDOW).to_bytes(4, "big")
        self._outgoing.frames += [settings_frame(settings), frame(WINDOW_UPDATE, 0, 0, more)]
        if not self._server.add(self):
            self._end(ErrorCode.ENHANCE_YOUR_CALM)
        self._flush()

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_open = False
        self._server.remove(self)
        self.calls.close()

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            return
        self._heard_at = self.calls.now = self._loop.time()
        self._has_probed = False
        data = self._unread + data if self._unread else data
        self.calls.abandoned = frozenset(resets_in(data, 0 if self._has_greeted else len(PREFACE)))
        self._read(data)

    def _read(self, data: bytes) -> None:
        self.calls.answered_at_once = 0
        try:
            self._read_frames(data)
        except Http2Error as error:
            self._end(error.code)
        except Exception:
            _LOG.exception("a connection could not be served")
            self._end(ErrorCode.INTERNAL_ERROR)
        self._flush()
        goes_on = self.calls.answered_at_once >= _MAX_CALLS_PER_TURN
        if goes_on or self._has_unread:
            self._has_unread = goes_on
            self._pace()

    def _read_on(self) -> None:
        self._next_turn = None
        if self._is_open:
            self._read(self._unread)

    def _pace(self) -> None:
        """Read only while the peer accepts its answers, and after its calls so far had their turn."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._may_write and not self._has_unread:
            transport.resume_reading()
        else:
            transport.pause_reading()
        if self._may_write and self._has_unread and self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._read_on)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._may_write = False
        self._pace()

    def resume_writing(self) -> None:
        self._may_write = True
        self._pace()

    @property
    def is_idle(self) -> bool:
        """Return whether no call is open."""
        return not self.calls.streams

    def announce_end(self) -> None:
        """Announce the end to the peer. Calls that it has already sent are answered."""
        self._write(frame(GOAWAY, 0, 0, goaway(LARGEST_WINDOW, ErrorCode.NO_ERROR)))
        self._flush()

    def end_when_idle(self) -> None:
        """Refuse new calls, and close after the open calls are answered."""
        if not self.calls.refuses:
            self.calls.refuses = True
            self._write(frame(GOAWAY, 0, 0, goaway(self.calls.last_stream, ErrorCode.NO_ERROR)))
        self._flush()

    def evict(self) -> None:
        """Close at once, to make room for another connection."""
        self._end(ErrorCode.NO_ERROR)
        self.abort()

    def abort(self) -> None:
        """Close at once, with open calls."""
        self._is_open = False
        if self._transport is not None:
            self._transport.abort()

    def check_timeouts(self, now: float) -> None:
        """End late calls, and ping a silent peer."""
        limits = self._limits
        if not self._has_settings and now - self.began > limits.seconds:
            self.abort()
            return
        if not self.calls.end_late(now):
            self.abort()
            return
        if now - self._heard_at > limits.silence:
            if self._has_probed:
                self.abort()
                return
            self._has_probed, self._heard_at = True, now - limits.silence + limits.seconds
            self._write(frame(PING, 0, 0, _PROBE))
        self._flush()

    def _end(self, code: int) -> None:
        """Send the reason, and close."""
        if self._is_open:
            self._write(frame(GOAWAY, 0, 0, goaway(self.calls.last_stream, code)))
            self._flush()
            self._is_open = False
            self.calls.close()
            if self._transport is not None:
                self._transport.close()

    def _flush(self) -> None:
        written, transport = self._outgoing.frames, self._transport
        if written and self._is_open and transport is not None:
            transport.write(written[0] if len(written) == 1 else b"".join(written))
        written.clear()
        if self.calls.refuses and self._is_open and not self.calls.streams and transport is not None:
            self._is_open = False
            transport.close()

    # Frames

    def _read_frames(self, data: bytes) -> None:
        start, size = 0, len(data)
        if not self._has_greeted:
            if not data.startswith(PREFACE[:size]):
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "this is not HTTP/2")
            if size < len(PREFACE):
                self._unread = data
                return
            self._has_greeted, start = True, len(PREFACE)
        head, calls = FRAME_HEAD.unpack_from, self.calls
        while size - start >= 9 and self._is_open and calls.answered_at_once < _MAX_CALLS_PER_TURN:
            upper, lower, kind, flags, stream = head(data, start)
            length = (upper << 8) | lower
            if length > LARGEST_FRAME:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "a frame is too large")
            end = start + 9 + length
            if end > size:
                break
            self._read_frame(kind, flags, stream & LARGEST_WINDOW, data[start + 9 : end])
            start = end
            if len(self._outgoing.frames) >= _MAX_BATCHED_FRAMES:
                self._flush()
        self._unread = data[start:]

    def _read_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        calls = self.calls
        if calls.continued is not None and kind != CONTINUATION:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "headers are interrupted")
        if not self._has_settings and (kind != SETTINGS or flags & ACK):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame has no settings")
        if kind == DATA:
            calls.on_data(flags, stream, payload)
        elif kind == HEADERS:
            calls.on_headers(flags, stream, payload)
        elif kind == CONTINUATION:
            calls.on_continuation(flags, stream, payload)
        else:
            calls.count_idle()
            self._on_other(kind, flags, stream, payload)

    def _on_other(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == WINDOW_UPDATE:
            self.calls.on_window_update(stream, payload)
        elif kind == RST_STREAM:
            self.calls.on_reset(stream, payload)
        elif kind == SETTINGS:
            self._on_settings(flags, stream, payload)
        elif kind == PING:
            if stream:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a ping is about a stream")
            if len(payload) != 8:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "a ping has another length")
            if not flags & ACK:
                self._write(frame(PING, ACK, 0, payload))
        elif kind == PRIORITY:
            if len(payload) != 5:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "a priority has another length")
            check_priority(stream, payload)
        elif kind == PUSH_PROMISE:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "clients push nothing")
        elif kind == GOAWAY and stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "an end is about a stream")

    def _on_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "settings are about a stream")
        if len(payload) % 6 or (flags & ACK and payload):
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "settings have another length")
        if flags & ACK:
            return
        if len(payload) > 6 * _MAX_SETTINGS:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "there are too many settings")
        self._has_settings = True
        self._outgoing.set(payload, self.calls.streams.values())
        self._write(frame(SETTINGS, ACK, 0))
        self.calls.send()
