"""The open calls of one HTTP/2 connection: they arrive within limits, are answered, and send their answers.

A call is answered only after all of it has arrived. An error answers with a status of gRPC that no proxy treats as an
allow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from eastgate.envoy.grpc.calls import (
    CallError,
    CallHeaders,
    CutOffStreams,
    GrpcStatus,
    GrpcStream,
    Outgoing,
    RefusedCall,
    are_trailers,
)
from eastgate.envoy.grpc.frames import (
    END_HEADERS,
    END_STREAM,
    LARGEST_WINDOW,
    RESPONSE_HEADERS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    ErrorCode,
    Http2Error,
    frame,
    reset_frame,
    trailers,
    without_padding,
)

if TYPE_CHECKING:
    from eastgate.envoy.grpc.server import GrpcServer

_LOG = logging.getLogger(__name__)
RECEIVED_AT_ONCE: Final = 4 * 1024 * 1024  # bytes of all streams that a peer may send ahead
PREFIX: Final = Struct(">BI")  # of a message: whether it is compressed, and its length
_MAX_CONTINUATIONS: Final = 32  # frames of one block of headers


class OpenCalls:
    """The calls of one connection, by the numbers of their streams."""

    def __init__(self, server: GrpcServer, outgoing: Outgoing, flush: Callable[[], None]) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._headers = CallHeaders(server.methods, server.limits.head)
        self._outgoing = outgoing
        self._write = outgoing.write
        self._flush = flush
        self.streams: dict[int, GrpcStream] = {}
        self.last_stream = 0
        self._has_gaps = False  # numbers of streams that were left out
        self._cut_off = CutOffStreams()
        self.continued: tuple[int, int, list[bytes]] | None = None
        """The stream, the flags and the parts of unfinished headers."""
        self.refuses = False
        """Whether new calls come too late."""
        self._receivable = RECEIVED_AT_ONCE
        self.abandoned: frozenset[int] = frozenset()
        """The streams with a reset in the bytes that are being read."""
        self.answered_at_once = 0
        self.arriving = 0
        """The bytes of incomplete calls."""
        self.called_at = 0.0
        """The time of the last call; 0: there was none."""
        self.now = self._counted_since = self._loop.time()
        self._idle_frames = 0  # frames without progress of a call

    def refuse_largest(self) -> None:
        """Refuse the incomplete call with the most bytes."""
        arriving = (stream for stream in self.streams.values() if not stream.is_whole)
        largest = max(arriving, key=lambda stream: len(stream.received))
        self._refuse(largest, GrpcStatus.RESOURCE_EXHAUSTED, "too much is waiting")
        self._flush()

    def end_late(self, now: float) -> bool:
        """Reset calls that arrive too slowly. Return whether the peer accepts its answers in time."""
        for stream in tuple(self.streams.values()):
            if stream.unsent and now - stream.began > self._limits.seconds:
                return False
            if not stream.is_whole and now - stream.began > self._limits.seconds:
                self._reset(stream, ErrorCode.CANCEL)
        return True

    def close(self) -> None:
        """Close all calls."""
        for stream in tuple(self.streams.values()):
            self._close(stream)

    def send(self) -> None:
        """Send as much of the answers as the peer accepts."""
        for stream in tuple(self.streams.values()):
            self._send(stream)

    def count_idle(self) -> None:
        """Count a frame without progress of a call. A peer with too many of them loses its connection."""
        now = self.now
        if now - self._counted_since > self._limits.seconds:
            self._counted_since, self._idle_frames = now, 0
        self._idle_frames += 1
        if self._idle_frames > self._limits.idle_frames:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "too many frames bring no call forward")

    def _count_answer(self) -> None:
        """Count an answer: it permits some further frames without progress. A call that was reset before does not."""
        self._idle_frames = max(0, self._idle_frames - self._limits.idle_frames_of_call)

    def on_window_update(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "an update of a window has another length")
        more = int.from_bytes(payload, "big") & LARGEST_WINDOW
        if stream == 0:
            self._outgoing.widen(more)
            self.send()
            return
        if stream > self.last_stream or not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such stream")
        open_stream = self.streams.get(stream)
        if open_stream is not None:
            open_stream.window += more
            if not more:
                self._reset(open_stream, ErrorCode.PROTOCOL_ERROR)
            elif open_stream.window > LARGEST_WINDOW:
                self._reset(open_stream, ErrorCode.FLOW_CONTROL_ERROR)
            else:
                self._send(open_stream)

    def on_reset(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "the reset of a stream has another length")
        if stream > self.last_stream or not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such stream")
        open_stream = self.streams.get(stream)
        if open_stream is not None:
            self._close(open_stream)

    # Requests

    def on_headers(self, flags: int, stream: int, payload: bytes) -> None:
        if not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "clients have odd streams")
        block = without_padding(flags, payload)
        if flags & WITH_PRIORITY:
            if len(block) < 5:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "a priority is cut off")
            check_priority(stream, block)
            block = block[5:]
        if flags & END_HEADERS:
            self._on_block(flags, stream, block)
        else:
            self.continued = (stream, flags, [block])

    def on_continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self.continued is None or self.continued[0] != stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there are no headers to continue")
        _, first_flags, parts = self.continued
        parts.append(payload)
        if len(parts) > _MAX_CONTINUATIONS or sum(map(len, parts)) > self._limits.head:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "there are too many headers")
        if flags & END_HEADERS:
            self.continued = None
            self._on_block(first_flags, stream, b"".join(parts))

    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        """Read the headers of a call, or the trailers behind its message."""
        if number <= self.last_stream:
            self._on_trailers(flags, number, block)
            return
        self._has_gaps |= number > self.last_stream + 2
        self.last_stream = number
        call = self._headers.read(block)
        if self.refuses or len(self.streams) >= self._limits.streams:
            self._refuse_headers(flags, number, None, ErrorCode.REFUSED_STREAM)
        elif isinstance(call, RefusedCall):
            self._refuse_headers(flags, number, call.headers, ErrorCode.PROTOCOL_ERROR)
        else:
            stream = self.streams[number] = GrpcStream(number, call, self._outgoing.stream_window, self.now)
            if flags & END_STREAM:
                self._answer(stream)

    def _refuse_headers(self, flags: int, number: int, answer: bytes | None, code: int) -> None:
        """Answer a new call with a refusal, or reset its stream with a code."""
        self.count_idle()
        if answer is not None:
            code = ErrorCode.NO_ERROR
            self._outgoing.write_headers(number, END_STREAM, answer)
        if answer is None or not flags & END_STREAM:
            self._write(reset_frame(number, code))
        if not flags & END_STREAM:
            self._cut_off.add(number)

    def _on_trailers(self, flags: int, number: int, block: bytes) -> None:
        stream = self.streams.get(number)
        headers = self._headers.decode(block)
        if stream is None and self._has_gaps and number not in self._cut_off:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a stream has a lower number than one before it")
        if stream is None or stream.is_whole:
            self._take_late(number)
        elif flags & END_STREAM and are_trailers(headers):
            self._answer(stream)
        else:
            self.count_idle()
            self._reset(stream, ErrorCode.PROTOCOL_ERROR)

    def _take_late(self, number: int) -> None:
        """Ignore a frame of a request that has ended, if it may have been sent before the end. Raises Http2Error."""
        if number not in self._cut_off:
            raise Http2Error(ErrorCode.STREAM_CLOSED, "a request goes on after its end")
        self.count_idle()

    def on_data(self, flags: int, number: int, payload: bytes) -> None:
        size = len(payload)
        self._receivable -= size
        if self._receivable < 0:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "the data exceeds the window of the connection")
        if self._receivable < RECEIVED_AT_ONCE // 2:
            more = RECEIVED_AT_ONCE - self._receivable
            self._receivable = RECEIVED_AT_ONCE
            self._write(frame(WINDOW_UPDATE, 0, 0, more.to_bytes(4, "big")))
        stream = self.streams.get(number)
        if stream is None or stream.is_whole:
            if number > self.last_stream or not number & 1:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "there is no such stream")
            self._take_late(number)
            return
        data = without_padding(flags, payload)
        if not data and not flags & END_STREAM:
            self.count_idle()
        if len(stream.received) + len(data) > self._limits.message + PREFIX.size:
            self._refuse(stream, GrpcStatus.RESOURCE_EXHAUSTED, "the message is too large")
        elif not self._server.hold(len(data), self.arriving):
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
            elif int.from_bytes(stream.received[1:5], "big") > self._limits.message:  # no room for more of it
                self._refuse(stream, GrpcStatus.RESOURCE_EXHAUSTED, "the message is too large")

    # Answers

    def _answer(self, stream: GrpcStream) -> None:
        """Answer a call that has arrived completely."""
        stream.is_whole = True
        self.arriving -= len(stream.received)
        if stream.call.length is not None and stream.call.length != len(stream.received):
            self.count_idle()
            return self._reset(stream, ErrorCode.PROTOCOL_ERROR)
        self.called_at = self.now
        if stream.id in self.abandoned:
            return None  # its reset is read next: a decision without a reader would only delay others
        self.answered_at_once += 1
        received = stream.received
        if len(received) < PREFIX.size:
            return self._refuse(stream, GrpcStatus.INTERNAL, "there is no message")
        compressed, length = PREFIX.unpack_from(received)
        if compressed:
            return self._refuse(stream, GrpcStatus.UNIMPLEMENTED, "messages must not be compressed")
        if length != len(received) - PREFIX.size:
            return self._refuse(stream, GrpcStatus.INTERNAL, "it is not one message")
        try:
            answer = stream.call.method(bytes(received[PREFIX.size :]))
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
        """Send as much of an answer as the peer accepts."""
        if self.streams.get(stream.id) is stream and self._outgoing.send(stream):
            self._count_answer()
            self._close(stream)

    def _refuse(self, stream: GrpcStream, status: GrpcStatus, message: str) -> None:
        """Answer a call with a status, in the place of a message."""
        if self.streams.get(stream.id) is not stream:
            return
        end_headers = trailers(status, message)
        self._outgoing.write_headers(
            stream.id, END_STREAM, end_headers if stream.started else RESPONSE_HEADERS + end_headers
        )
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
        """Close a call, and cancel its answer."""
        if self.streams.pop(stream.id, None) is None:
            return
        self._server.release(len(stream.received))
        if not stream.is_whole:
            self.arriving -= len(stream.received)
        if stream.answering is not None and stream.answering is not asyncio.current_task(self._loop):
            self._loop.call_soon(stream.answering.cancel)  # after its start, so that all its awaits end too


def check_priority(stream: int, payload: bytes) -> None:
    """Check the fields of a priority. Raises Http2Error."""
    if not stream or int.from_bytes(payload[:4], "big") & LARGEST_WINDOW == stream:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself, or a priority is about none")


def _message(content: bytes) -> bytes:
    return PREFIX.pack(0, len(content)) + content
