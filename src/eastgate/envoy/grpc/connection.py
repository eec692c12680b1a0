"""One HTTP/2 connection of a gRPC server: bounded in everything, and no slower than it must be.

Whatever a peer does that it must not ends its connection, and what is over a limit is refused. No call is answered
before all of it has arrived, and an error answers with a status of gRPC that no proxy takes for consent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from struct import Struct
from typing import TYPE_CHECKING, Final, cast

from eastgate.envoy.grpc.calls import CallError, CallHeaders, GrpcStatus, RefusedCall, are_trailers
from eastgate.envoy.grpc.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_HEAD,
    GOAWAY,
    HEADERS,
    LARGEST_FRAME,
    LARGEST_WINDOW,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RESPONSE_HEADERS,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    ErrorCode,
    Http2Error,
    Setting,
    frame,
    goaway,
    reset_frame,
    resets_in,
    settings_frame,
    trailers,
    without_padding,
)
from eastgate.envoy.grpc.outgoing import FIRST_WINDOW, Outgoing
from eastgate.envoy.grpc.streams import CutOffStreams, GrpcStream

if TYPE_CHECKING:
    from eastgate.envoy.grpc.server import GrpcServer

_LOG = logging.getLogger(__name__)
_RECEIVED_AT_ONCE: Final = 4 * 1024 * 1024  # bytes of all streams that may be on their way
_MOST_CONTINUED: Final = 32  # frames of one block of headers
_MOST_SETTINGS: Final = 32  # in one frame
_PREFIX: Final = Struct(">BI")  # of a message: whether it is compressed, and its length
_MOST_WRITTEN: Final = 48  # frames that wait to be sent together
_MOST_AT_ONCE: Final = 32  # calls of one connection, before it is the turn of the others
_PROBE: Final = b"eastgate"


class GrpcConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: GrpcServer) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._headers = CallHeaders(server.methods, server.limits.head)
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._answered_at_once = 0
        self._goes_on = False  # with what is unread, once the others had their turn
        self._next_turn: asyncio.Handle | None = None
        self._may_write = True
        self._outgoing = Outgoing()
        self._write = self._outgoing.write
        self._streams: dict[int, GrpcStream] = {}
        self._last_stream = 0
        self._has_gaps = False  # numbers of streams that were left out
        self._cut_off = CutOffStreams()
        self._continued: tuple[int, int, list[bytes]] | None = None  # stream, flags and parts of unfinished headers
        self._is_open = True
        self._has_greeted = False
        self._has_settings = False
        self._refuses = False  # calls that come now are too late
        self._receivable = _RECEIVED_AT_ONCE
        self._abandoned: frozenset[int] = frozenset()  # streams that are reset in what is being read
        self.arriving = 0
        """The bytes of calls that have not arrived as a whole."""
        self.called_at = 0.0
        """When the last call came; 0: there was none."""
        self._idle_frames = 0  # that brought no call forward
        self._counted_since = self._heard_at = self.began = self._loop.time()
        self._has_probed = False

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of other event loops need not be derived from it
        limits = self._limits
        settings = {
            Setting.MAX_CONCURRENT_STREAMS: limits.streams,
            Setting.INITIAL_WINDOW_SIZE: min(max(FIRST_WINDOW, limits.message + _PREFIX.size), LARGEST_WINDOW),
            Setting.MAX_HEADER_LIST_SIZE: limits.head,
        }
        more = (_RECEIVED_AT_ONCE - FIRST_WINDOW).to_bytes(4, "big")
        self._outgoing.frames += [settings_frame(settings), frame(WINDOW_UPDATE, 0, 0, more)]
        if not self._server.add(self):
            self._end(ErrorCode.ENHANCE_YOUR_CALM)
        self._flush()

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_open = False
        self._server.remove(self)
        for stream in tuple(self._streams.values()):
            self._close(stream)

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            return
        self._heard_at = self._loop.time()
        self._has_probed = False
        data = self._unread + data if self._unread else data
        self._abandoned = frozenset(resets_in(data, 0 if self._has_greeted else len(PREFACE)))
        self._read(data)

    def _read(self, data: bytes) -> None:
        self._answered_at_once = 0
        try:
            self._read_frames(data)
        except Http2Error as error:
            self._end(error.code)
        except Exception:
            _LOG.exception("a connection could not be served")
            self._end(ErrorCode.INTERNAL_ERROR)
        self._flush()
        goes_on = self._answered_at_once >= _MOST_AT_ONCE
        if goes_on or self._goes_on:
            self._goes_on = goes_on
            self._pace()

    def _read_on(self) -> None:
        self._next_turn = None
        if self._is_open:
            self._read(self._unread)

    def _pace(self) -> None:
        """Read only from a peer that takes its answers, and no more before its calls so far had their turn."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._may_write and not self._goes_on:
            transport.resume_reading()
        else:
            transport.pause_reading()
        if self._may_write and self._goes_on and self._next_turn is None:
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
        """Tell whether no call is open."""
        return not self._streams

    def announce_end(self) -> None:
        """Tell the peer to make new calls elsewhere. Those that are on their way are answered."""
        self._write(frame(GOAWAY, 0, 0, goaway(LARGEST_WINDOW, ErrorCode.NO_ERROR)))
        self._flush()

    def end_when_idle(self) -> None:
        """Take no more calls, and close once those that are open are answered."""
        if not self._refuses:
            self._refuses = True
            self._write(frame(GOAWAY, 0, 0, goaway(self._last_stream, ErrorCode.NO_ERROR)))
        self._flush()

    def refuse_largest(self) -> None:
        """Refuse the call that has brought most and has not arrived yet."""
        arriving = (stream for stream in self._streams.values() if not stream.is_whole)
        largest = max(arriving, key=lambda stream: len(stream.received))
        self._refuse(largest, GrpcStatus.RESOURCE_EXHAUSTED, "too much is waiting")
        self._flush()

    def give_way(self) -> None:
        """Close at once, for another connection."""
        self._end(ErrorCode.NO_ERROR)
        self.abort()

    def abort(self) -> None:
        """Close whatever is open."""
        self._is_open = False
        if self._transport is not None:
            self._transport.abort()

    def look_at_times(self, now: float) -> None:
        """End what takes too long, and ask a silent peer whether it is there."""
        limits = self._limits
        if not self._has_settings and now - self.began > limits.seconds:
            self.abort()
            return
        for stream in tuple(self._streams.values()):
            if stream.unsent and now - stream.began > limits.seconds:
                self.abort()  # the peer does not take its answers
                return
            if not stream.is_whole and now - stream.began > limits.seconds:
                self._reset(stream, ErrorCode.CANCEL)
        if now - self._heard_at > limits.silence:
            if self._has_probed:
                self.abort()
                return
            self._has_probed, self._heard_at = True, now - limits.silence + limits.seconds
            self._write(frame(PING, 0, 0, _PROBE))
        self._flush()

    def _end(self, code: int) -> None:
        """Say why, and close."""
        if self._is_open:
            self._write(frame(GOAWAY, 0, 0, goaway(self._last_stream, code)))
            self._flush()
            self._is_open = False
            for stream in tuple(self._streams.values()):
                self._close(stream)
            if self._transport is not None:
                self._transport.close()

    def _flush(self) -> None:
        written, transport = self._outgoing.frames, self._transport
        if written and self._is_open and transport is not None:
            transport.write(written[0] if len(written) == 1 else b"".join(written))
        written.clear()
        if self._refuses and self._is_open and not self._streams and transport is not None:
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
        head = FRAME_HEAD.unpack_from
        while size - start >= 9 and self._is_open and self._answered_at_once < _MOST_AT_ONCE:
            upper, lower, kind, flags, stream = head(data, start)
            length = (upper << 8) | lower
            if length > LARGEST_FRAME:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "a frame is too large")
            end = start + 9 + length
            if end > size:
                break
            self._read_frame(kind, flags, stream & LARGEST_WINDOW, data[start + 9 : end])
            start = end
            if len(self._outgoing.frames) >= _MOST_WRITTEN:
                self._flush()
        self._unread = data[start:]

    def _read_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._continued is not None and kind != CONTINUATION:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "headers are interrupted")
        if not self._has_settings and (kind != SETTINGS or flags & ACK):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame has no settings")
        if kind == DATA:
            self._on_data(flags, stream, payload)
        elif kind == HEADERS:
            self._on_headers(flags, stream, payload)
        elif kind == CONTINUATION:
            self._on_continuation(flags, stream, payload)
        else:
            self._count_idle()
            self._on_other(kind, flags, stream, payload)

    def _count_idle(self) -> None:
        """Count a frame that brings no call forward: with too many of them, a peer only makes work."""
        now = self._heard_at
        if now - self._counted_since > self._limits.seconds:
            self._counted_since, self._idle_frames = now, 0
        self._idle_frames += 1
        if self._idle_frames > self._limits.idle_frames:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "too many frames bring no call forward")

    def _count_answer(self) -> None:
        """Count an answer, which makes up for other frames. A call that the peer resets before its answer does not."""
        self._idle_frames = max(0, self._idle_frames - self._limits.idle_frames_of_call)

    def _on_other(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == WINDOW_UPDATE:
            self._on_window_update(stream, payload)
        elif kind == RST_STREAM:
            self._on_reset(stream, payload)
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
            _check_priority(stream, payload)
        elif kind == PUSH_PROMISE:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "clients push nothing")
        elif kind == GOAWAY and stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "an end is about a stream")

    def _on_window_update(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "an update of a window has another length")
        more = int.from_bytes(payload, "big") & LARGEST_WINDOW
        if stream == 0:
            self._outgoing.widen(more)
            for each in tuple(self._streams.values()):
                self._send(each)
            return
        if stream > self._last_stream or not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such stream")
        open_stream = self._streams.get(stream)
        if open_stream is not None:
            open_stream.window += more
            if not more:
                self._reset(open_stream, ErrorCode.PROTOCOL_ERROR)
            elif open_stream.window > LARGEST_WINDOW:
                self._reset(open_stream, ErrorCode.FLOW_CONTROL_ERROR)
            else:
                self._send(open_stream)

    def _on_reset(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "the reset of a stream has another length")
        if stream > self._last_stream or not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such stream")
        open_stream = self._streams.get(stream)
        if open_stream is not None:
            self._close(open_stream)

    def _on_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "settings are about a stream")
        if len(payload) % 6 or (flags & ACK and payload):
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "settings have another length")
        if flags & ACK:
            return
        if len(payload) > 6 * _MOST_SETTINGS:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "there are too many settings")
        self._has_settings = True
        self._outgoing.set(payload, self._streams.values())
        self._write(frame(SETTINGS, ACK, 0))
        for each in tuple(self._streams.values()):
            self._send(each)

    # Requests

    def _on_headers(self, flags: int, stream: int, payload: bytes) -> None:
        if not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "clients have odd streams")
        block = without_padding(flags, payload)
        if flags & WITH_PRIORITY:
            if len(block) < 5:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "a priority is cut off")
            _check_priority(stream, block)
            block = block[5:]
        if flags & END_HEADERS:
            self._on_block(flags, stream, block)
        else:
            self._continued = (stream, flags, [block])

    def _on_continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self._continued is None or self._continued[0] != stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there are no headers to continue")
        _, first_flags, parts = self._continued
        parts.append(payload)
        if len(parts) > _MOST_CONTINUED or sum(map(len, parts)) > self._limits.head:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "there are too many headers")
        if flags & END_HEADERS:
            self._continued = None
            self._on_block(first_flags, stream, b"".join(parts))

    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        """Read the headers of a call, or those behind its message."""
        if number <= self._last_stream:
            self._on_trailers(flags, number, block)
            return
        self._has_gaps |= number > self._last_stream + 2
        self._last_stream = number
        call = self._headers.read(block)
        if self._refuses or len(self._streams) >= self._limits.streams:
            self._refuse_headers(flags, number, None, ErrorCode.REFUSED_STREAM)
        elif isinstance(call, RefusedCall):
            self._refuse_headers(flags, number, call.headers, ErrorCode.PROTOCOL_ERROR)
        else:
            stream = self._streams[number] = GrpcStream(number, call, self._outgoing.stream_window, self._heard_at)
            if flags & END_STREAM:
                self._answer(stream)

    def _refuse_headers(self, flags: int, number: int, answer: bytes | None, code: int) -> None:
        """Answer a call that is not begun, or reset its stream with a code."""
        self._count_idle()
        if answer is not None:
            code = ErrorCode.NO_ERROR
            self._outgoing.write_headers(number, END_STREAM, answer)
        if answer is None or not flags & END_STREAM:
            self._write(reset_frame(number, code))
        if not flags & END_STREAM:
            self._cut_off.add(number)

    def _on_trailers(self, flags: int, number: int, block: bytes) -> None:
        stream = self._streams.get(number)
        headers = self._headers.decode(block)
        if stream is None and self._has_gaps and number not in self._cut_off:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a stream has a lower number than one before it")
        if stream is None or stream.is_whole:
            self._take_late(number)
        elif flags & END_STREAM and are_trailers(headers):
            self._answer(stream)
        else:
            self._count_idle()
            self._reset(stream, ErrorCode.PROTOCOL_ERROR)

    def _take_late(self, number: int) -> None:
        """Ignore a frame of a request that has ended, if it may have been sent before the end. Raises Http2Error."""
        if number not in self._cut_off:
            raise Http2Error(ErrorCode.STREAM_CLOSED, "a request goes on after its end")
        self._count_idle()

    def _on_data(self, flags: int, number: int, payload: bytes) -> None:
        size = len(payload)
        self._receivable -= size
        if self._receivable < 0:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "there is more than was to be sent")
        if self._receivable < _RECEIVED_AT_ONCE // 2:
            more = _RECEIVED_AT_ONCE - self._receivable
            self._receivable = _RECEIVED_AT_ONCE
            self._write(frame(WINDOW_UPDATE, 0, 0, more.to_bytes(4, "big")))
        stream = self._streams.get(number)
        if stream is None or stream.is_whole:
            if number > self._last_stream or not number & 1:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such stream")
            self._take_late(number)
            return
        data = without_padding(flags, payload)
        if not data and not flags & END_STREAM:
            self._count_idle()
        if len(stream.received) + len(data) > self._limits.message + _PREFIX.size:
            self._refuse(stream, GrpcStatus.RESOURCE_EXHAUSTED, "the message is too large")
        elif not self._server.hold(len(data), self):
            self._refuse(stream, GrpcStatus.RESOURCE_EXHAUSTED, "too much is waiting")
        else:
            self.arriving += len(data)
            if not stream.received:
                stream.received = data
            elif isinstance(stream.received, bytearray):
                stream.received += data
            else:
                stream.received = bytearray(stream.received + data)
            if flags & END_STREAM:
                self._answer(stream)
            elif int.from_bytes(stream.received[1:5], "big") > self._limits.message:  # there is no room for more of it
                self._refuse(stream, GrpcStatus.RESOURCE_EXHAUSTED, "the message is too large")

    # Answers

    def _answer(self, stream: GrpcStream) -> None:
        """Have a call answered that has arrived as a whole."""
        stream.is_whole = True
        self.arriving -= len(stream.received)
        if stream.call.length is not None and stream.call.length != len(stream.received):
            self._count_idle()
            return self._reset(stream, ErrorCode.PROTOCOL_ERROR)
        self.called_at = self._heard_at
        if stream.id in self._abandoned:
            return None  # its reset is read next: deciding for nobody would only make others wait
        self._answered_at_once += 1
        received = stream.received
        if len(received) < _PREFIX.size:
            return self._refuse(stream, GrpcStatus.INTERNAL, "there is no message")
        compressed, length = _PREFIX.unpack_from(received)
        if compressed:
            return self._refuse(stream, GrpcStatus.UNIMPLEMENTED, "messages must not be compressed")
        if length != len(received) - _PREFIX.size:
            return self._refuse(stream, GrpcStatus.INTERNAL, "it is not one message")
        try:
            answer = stream.call.method(bytes(received[_PREFIX.size :]))
        except CallError as error:
            return self._refuse(stream, error.status, error.message)
        except Exception:
            _LOG.exception("a call could not be answered")
            return self._refuse(stream, GrpcStatus.UNKNOWN, "it could not be answered")
        if isinstance(answer, bytes):
            stream.unsent, stream.ends = _message(answer), True
            self._send(stream)
        else:
            stream.answering = self._loop.create_task(self._answer_later(stream, answer))
        return None

    async def _answer_later(self, stream: GrpcStream, coming: Awaitable[bytes] | AsyncIterator[bytes]) -> None:
        try:
            if isinstance(coming, AsyncIterator):
                async for message in coming:
                    self._add(stream, _message(message))
            else:
                self._add(stream, _message(await coming))
            stream.ends = True
            self._send(stream)
        except CallError as error:
            self._refuse(stream, error.status, error.message)
        except Exception:
            _LOG.exception("a call could not be answered")
            self._refuse(stream, GrpcStatus.UNKNOWN, "it could not be answered")
        self._flush()

    def _add(self, stream: GrpcStream, message: bytes) -> None:
        if not stream.unsent:
            stream.began = self._loop.time()
        stream.unsent += message
        self._send(stream)
        self._flush()

    def _send(self, stream: GrpcStream) -> None:
        """Send as much of an answer as the peer takes."""
        if self._streams.get(stream.id) is stream and self._outgoing.send(stream):
            self._count_answer()
            self._close(stream)

    def _refuse(self, stream: GrpcStream, status: GrpcStatus, message: str) -> None:
        """Answer a call with a status, in the place of a message."""
        if self._streams.get(stream.id) is not stream:
            return
        told = trailers(status, message)
        self._outgoing.write_headers(stream.id, END_STREAM, told if stream.started else RESPONSE_HEADERS + told)
        if stream.is_whole:
            self._count_answer()
            self._close(stream)
        else:
            self._reset(stream, ErrorCode.NO_ERROR)

    def _reset(self, stream: GrpcStream, code: int) -> None:
        self._write(reset_frame(stream.id, code))
        if not stream.is_whole:
            self._cut_off.add(stream.id)
        self._close(stream)

    def _close(self, stream: GrpcStream) -> None:
        """Forget a call, and end what answers it."""
        if self._streams.pop(stream.id, None) is None:
            return
        self._server.release(len(stream.received))
        if not stream.is_whole:
            self.arriving -= len(stream.received)
        if stream.answering is not None and stream.answering is not asyncio.current_task(self._loop):
            self._loop.call_soon(stream.answering.cancel)  # once it has begun, so that all that it awaits has


def _check_priority(stream: int, payload: bytes) -> None:
    """Check what a priority begins with. Raises Http2Error."""
    if not stream or int.from_bytes(payload[:4], "big") & LARGEST_WINDOW == stream:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself, or a priority is about none")


def _message(content: bytes) -> bytes:
    return _PREFIX.pack(0, len(content)) + content
