"""One connection of the gRPC server, frame by frame: what is right is answered, and nothing else reaches a method."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from eastgate.envoy.grpc.frames import ErrorCode
from eastgate.envoy.grpc.server import GrpcLimits, GrpcServer
from tests.attacks.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    PRIORITY_FLAG,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    indexed,
    integer,
    literal,
    opening,
    string,
)
from tests.envoy.grpc.peers import OPENING, Peer, Service, block, call, message

Test = Callable[..., Coroutine[Any, Any, None]]

HELLO = message(b"hello")


def on_loop(test: Test) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(settled(*arguments, **named))

    async def settled(*arguments: Any, **named: Any) -> None:
        try:
            await test(*arguments, **named)
        finally:
            await asyncio.sleep(0)  # whatever has just begun to answer

    return run


def setting(name: int, value: int) -> bytes:
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


@pytest.mark.parametrize("size", [None, 1, 7, 40])
@on_loop
async def test_calls_are_answered_however_they_arrive(size: int | None) -> None:
    peer = Peer().send(OPENING + call() + call(content=b"again", stream=3), size)
    assert [(peer.body(stream), peer.status(stream)) for stream in (1, 3)] == [(HELLO, 0), (message(b"again"), 0)]
    assert peer.headers()[":status"] == "200"
    assert peer.end is None


@on_loop
async def test_padding_priorities_continuations_and_trailers() -> None:
    written = block()
    padded = bytes([3]) + b"\0\0\0\0\x10" + written[:20] + b"\0\0\0"
    peer = Peer().send(
        OPENING
        + frame(HEADERS, PADDED | PRIORITY_FLAG, 1, padded)
        + frame(CONTINUATION, 0, 1, written[20:30])
        + frame(CONTINUATION, END_HEADERS, 1, written[30:])
        + frame(DATA, PADDED, 1, b"\x02" + HELLO[:4] + b"\0\0")
        + frame(DATA, 0, 1, HELLO[4:])
        + frame(0xBE, 0xFF, 1, b"whatever")
        + frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b"x-trailer", b"1"))
    )
    assert (peer.body(), peer.status()) == (HELLO, 0)


@on_loop
async def test_the_same_bytes_mean_something_else_once_the_table_has_changed() -> None:
    start = b"".join(literal(*each) for each in ((b":method", b"POST"), (b"content-type", b"application/grpc")))
    echo, other = (integer(4, 6, 0x40) + string(path) for path in (b"/t.T/Echo", b"/t.T/Other"))
    peer, stream = Peer().send(OPENING), 1
    answers = []
    for written in (echo, indexed(62), indexed(62), other, indexed(62), indexed(62), indexed(63), echo, indexed(62)):
        peer.send(frame(HEADERS, END_HEADERS, stream, start + written) + frame(DATA, END_STREAM, stream, HELLO))
        answers.append(peer.body(stream)[5:])
        stream += 2
    o, e = b"other hello", b"hello"
    assert answers == [e, e, e, o, o, o, e, e, e]
    empty = integer(0, 5, 0x20)
    peer.send(frame(HEADERS, END_HEADERS, stream, empty + start + echo) + frame(DATA, END_STREAM, stream, HELLO))
    assert peer.body(stream) == HELLO
    peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream + 2, start + indexed(62)))
    assert peer.end == ErrorCode.COMPRESSION_ERROR  # there is no such entry any more


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (block(b"/t.T/Nothing"), "12"),
        (block(b""), "12"),
        (block(b"/t.T/Echo/"), "12"),
        (block(b"/T.T/ECHO"), "12"),
        (block(grpc_encoding=b"gzip"), "12"),
        (literal(b":method", b"POST") + literal(b"content-type", b"application/grpc"), "12"),
    ],
)
@on_loop
async def test_what_no_method_answers_has_a_status(written: bytes, status: str) -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, written) + frame(DATA, END_STREAM, 1, HELLO))
    assert (peer.headers()["grpc-status"], peer.body(), peer.service.calls, peer.end) == (status, b"", [], None)


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (block(content_type=b"application/json"), "415"),
        (block(content_type=b"application/grpc-web"), "415"),
        (literal(b":method", b"GET") + literal(b":path", b"/t.T/Echo"), "405"),
        (b"", "405"),
    ],
)
@on_loop
async def test_what_is_no_call_has_a_status_of_http(written: bytes, status: str) -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, written))
    assert (peer.headers(), peer.service.calls) == ({":status": status}, [])


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 13),
        (b"\0\0\0\0", 13),
        (message(b"hello")[:-1], 13),
        (message(b"hello") + b"x", 13),
        (message(b"a") + message(b"b"), 13),
        (b"\1" + message(b"hello")[1:], 12),
        (b"\0\xff\xff\xff\xff", 13),
        (message(b"x" * 101), 8),
    ],
)
@on_loop
async def test_what_is_not_one_message_reaches_no_method(data: bytes, status: int) -> None:
    peer = Peer(message=100).send(OPENING + frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, END_STREAM, 1, data))
    assert (peer.status(), peer.body(), peer.service.calls) == (status, b"", [])


@pytest.mark.parametrize(("path", "status"), [(b"/t.T/Refuse", 5), (b"/t.T/Break", 2), (b"/t.T/BreakLater", 2)])
@on_loop
async def test_errors_are_a_status_and_nothing_of_ours(
    caplog: pytest.LogCaptureFixture, path: bytes, status: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    peer = Peer().send(OPENING + call(path))
    await peer.settle()
    assert (peer.status(), peer.body(), peer.end) == (status, b"", None)
    assert "secret" not in str(peer.headers())


@on_loop
async def test_answers_come_when_they_are_there_and_streams_have_several() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later") + call(b"/t.T/Several", stream=3) + call(stream=5))
    assert (peer.status(1), peer.status(5)) == (None, 0)
    peer.service.open.set()
    await peer.settle()
    assert (peer.body(1), peer.status(1)) == (HELLO, 0)
    assert (peer.body(3), peer.status(3)) == (HELLO * 3, 0)


@on_loop
async def test_a_call_that_is_reset_or_whose_peer_is_gone_is_ended() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later") + call(b"/t.T/Later", stream=3))
    await peer.settle()
    peer.send(frame(RST_STREAM, 0, 1, number(ErrorCode.CANCEL)))
    await peer.settle()
    assert peer.service.cancelled == 1
    peer.connection.connection_lost(None)
    await peer.settle()
    assert (peer.service.cancelled, peer.body()) == (2, b"")


@on_loop
async def test_nothing_is_decided_for_a_call_whose_reset_has_come() -> None:
    calls = b"".join(call(content=bytes([stream]), stream=stream) for stream in (1, 3, 5))
    peer = Peer().send(OPENING + calls + frame(RST_STREAM, 0, 3, number(ErrorCode.CANCEL)))
    assert (peer.service.calls, peer.body(3), peer.connection.is_idle) == ([b"\1", b"\5"], b"", True)
    assert peer.send(call(stream=7) + frame(RST_STREAM, 0, 7, number(ErrorCode.CANCEL))[:-1]).status(7) == 0


# Flow control


@on_loop
async def test_an_answer_waits_for_the_windows_of_its_peer() -> None:
    content = b"x" * 100_000
    peer = Peer().send(opening(setting(4, 10)))
    written = message(content)
    peer.send(frame(HEADERS, END_HEADERS, 1, block()))
    for start in range(0, len(written), 16_384):
        part = written[start : start + 16_384]
        peer.send(frame(DATA, END_STREAM if start + 16_384 >= len(written) else 0, 1, part))
    assert peer.body() == written[:10]
    peer.send(frame(WINDOW_UPDATE, 0, 1, number(20_000)))
    assert peer.body() == written[:20_010]
    peer.send(frame(SETTINGS, 0, 0, setting(4, 110_000)))  # the window of the connection is what is left
    assert peer.body() == written[:65_535]
    assert peer.status() is None
    peer.send(frame(WINDOW_UPDATE, 0, 0, number(1 << 20)))
    assert (peer.body(), peer.status()) == (written, 0)
    assert max(len(each.payload) for each in peer.frames) <= 16_384


@on_loop
async def test_a_smaller_window_may_leave_less_than_nothing() -> None:
    peer = Peer().send(opening(setting(4, 8)) + call())
    peer.send(frame(SETTINGS, 0, 0, setting(4, 0)) + frame(WINDOW_UPDATE, 0, 1, number(8)))
    assert peer.body() == HELLO[:8]
    peer.send(frame(WINDOW_UPDATE, 0, 1, number(2)))
    assert (peer.body(), peer.status()) == (HELLO, 0)


@on_loop
async def test_a_peer_may_send_as_much_as_it_was_told_and_no_more() -> None:
    peer = Peer(message=1 << 20, idle_frames=10_000).send(OPENING)
    for stream in range(1, 41, 2):  # more than one window of the connection, in all
        peer.send(frame(HEADERS, END_HEADERS, stream, block()))
        for _ in range(32):
            peer.send(frame(DATA, 0, stream, b"x" * 16_384))
    assert peer.end is None
    assert any(each.kind == WINDOW_UPDATE and each.stream == 0 for each in peer.frames[2:])
    assert peer.service.calls == []


@on_loop
async def test_all_calls_together_hold_so_much_and_no_more() -> None:
    service = Service()
    server = GrpcServer(service.methods, GrpcLimits(held=30))
    first, second = Peer(service, server).send(OPENING), Peer(service, server).send(OPENING)
    first.send(call(b"/t.T/Later", b"x" * 15))
    second.send(call(content=b"x" * 15))
    assert (second.status(), service.calls) == (8, [])
    first.send(frame(RST_STREAM, 0, 1, number(8)))
    second.send(call(content=b"x" * 15, stream=3))
    assert second.status(3) == 0


@on_loop
async def test_who_holds_most_gives_way_to_who_holds_less() -> None:
    service = Service()
    server = GrpcServer(service.methods, GrpcLimits(held=100))
    large, small = Peer(service, server).send(OPENING), Peer(service, server).send(OPENING)
    for stream, size in ((1, 30), (3, 60), (5, 10)):
        large.send(frame(HEADERS, END_HEADERS, stream, block()) + frame(DATA, 0, stream, b"\0" * size))
    assert large.send(call(stream=7)).status(7) == 8  # it has taken all the room itself
    small.send(call())
    assert (small.status(), service.calls) == (0, [b"hello"])
    large.hear()
    assert [large.status(stream) for stream in (1, 3, 5)] == [None, 8, None]
    small.send(frame(HEADERS, END_HEADERS, 3, block()) + frame(DATA, 0, 3, b"\0" * 61))
    large.hear()
    assert (small.status(3), large.status(1), large.end) == (8, None, None)  # it would hold most itself


@on_loop
async def test_of_several_windows_in_one_frame_the_last_counts() -> None:
    peer = Peer().send(opening(setting(4, 2)) + call() + call(stream=3))
    peer.send(frame(SETTINGS, 0, 0, setting(4, 10_000) + setting(4, 0) + setting(4, 4)))
    assert [peer.body(stream) for stream in (1, 3)] == [HELLO[:4]] * 2


@on_loop
async def test_a_table_may_shrink_and_grow_again_before_headers() -> None:
    sizes = integer(0, 5, 0x20) + integer(4096, 5, 0x20)
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, sizes + block()) + frame(DATA, END_STREAM, 1, HELLO))
    assert (peer.body(), peer.status()) == (HELLO, 0)


# What ends a connection

_HEADERS_ONLY = frame(HEADERS, END_HEADERS, 1, block())
_WRONG = {
    "HTTP/1": (b"GET / HTTP/1.1\r\nhost: t\r\n\r\n", 1),
    "no settings": (OPENING[:24] + call(), 1),
    "an ack instead of settings": (OPENING[:24] + frame(SETTINGS, ACK, 0) + call(), 1),
    "a large frame": (OPENING + frame(DATA, 0, 1, b"", length=16_385), 6),
    "an even stream": (OPENING + frame(HEADERS, END_HEADERS, 2, block()), 1),
    "headers on no stream": (OPENING + frame(HEADERS, END_HEADERS, 0, block()), 1),
    "headers twice": (OPENING + _HEADERS_ONLY + _HEADERS_ONLY, 1),
    "data on no stream": (OPENING + frame(DATA, END_STREAM, 0, HELLO), 5),
    "data before headers": (OPENING + frame(DATA, END_STREAM, 1, HELLO), 5),
    "data after the end": (OPENING + call(b"/t.T/Later") + frame(DATA, END_STREAM, 1, HELLO), 5),
    "padding longer than data": (OPENING + _HEADERS_ONLY + frame(DATA, PADDED | END_STREAM, 1, b"\x05" + HELLO[:4]), 1),
    "padding of nothing": (OPENING + _HEADERS_ONLY + frame(DATA, PADDED | END_STREAM, 1), 1),
    "a priority that is cut off": (OPENING + frame(HEADERS, END_HEADERS | PRIORITY_FLAG, 1, b"\0\0"), 6),
    "a continuation of nothing": (OPENING + frame(CONTINUATION, END_HEADERS, 1, block()), 1),
    "a continuation of another": (
        OPENING + frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, END_HEADERS, 3, b""),
        1,
    ),
    "headers interrupted by a call": (OPENING + frame(HEADERS, 0, 1, block()) + call(stream=3), 1),
    "headers interrupted by an unknown frame": (OPENING + frame(HEADERS, 0, 1, block()) + frame(0xBE, 0, 1), 1),
    "continuations without end": (OPENING + frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1) * 40, 11),
    "headers without end": (OPENING + frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1, b"\0" * 16_384) * 5, 11),
    "headers by reference, thousands": (
        OPENING
        + frame(
            HEADERS, END_HEADERS | END_STREAM, 1, literal(b"x", b"y" * 2000, first=0x40, bits=6) + indexed(62) * 3000
        ),
        9,
    ),
    "a header that is cut off": (OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, block()[:-1]), 9),
    "an index beyond the tables": (OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, block() + indexed(99)), 9),
    "a table of a great size": (
        OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, integer(1 << 20, 5, 0x20) + block()),
        9,
    ),
    "sizes of the table without end": (
        OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, integer(0, 5, 0x20) * 3 + block()),
        9,
    ),
    "long sizes of the table without end": (
        OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, integer(4096, 5, 0x20) * 3 + block()),
        9,
    ),
    "trailers that cannot be read": (
        OPENING + _HEADERS_ONLY + frame(HEADERS, END_HEADERS | END_STREAM, 1, indexed(0)),
        9,
    ),
    "a path twice": (
        OPENING + frame(HEADERS, END_HEADERS, 1, block(b"/t.T/Other", (b":path", b"/t.T/Echo"))) + call(stream=3),
        1,
    ),
    "settings on a stream": (OPENING + frame(SETTINGS, 0, 1), 1),
    "settings of five bytes": (OPENING + frame(SETTINGS, 0, 0, b"\0" * 5), 6),
    "settings without end": (OPENING + frame(SETTINGS, 0, 0, setting(4, 1) * 33), 11),
    "an ack with settings": (OPENING + frame(SETTINGS, ACK, 0, setting(1, 0)), 6),
    "a window that is too large from the start": (opening(setting(4, 1 << 31)), 3),
    "a frame size that is too small": (opening(setting(5, 100)), 1),
    "a frame size that is too large": (opening(setting(5, 1 << 24)), 1),
    "a push that is neither": (opening(setting(2, 2)), 1),
    "a window that overflows": (OPENING + frame(WINDOW_UPDATE, 0, 0, number((1 << 31) - 1)) * 2, 3),
    "settings that overflow a window": (
        OPENING
        + call(b"/t.T/Later")
        + frame(WINDOW_UPDATE, 0, 1, number((1 << 31) - 1 - 65_535))
        + frame(SETTINGS, 0, 0, setting(4, 65_536)),
        3,
    ),
    "a window that does not grow": (OPENING + frame(WINDOW_UPDATE, 0, 0, number(0)), 3),
    "half an update of a window": (OPENING + frame(WINDOW_UPDATE, 0, 0, b"\0"), 6),
    "an update of a stream that is not there": (OPENING + frame(WINDOW_UPDATE, 0, 9, number(1)), 1),
    "a reset of a stream that is not there": (OPENING + frame(RST_STREAM, 0, 9, number(8)), 1),
    "half a reset": (OPENING + _HEADERS_ONLY + frame(RST_STREAM, 0, 1, b"\0"), 6),
    "a short ping": (OPENING + frame(PING, 0, 0, b"1"), 6),
    "a ping on a stream": (OPENING + frame(PING, 0, 1, b"12345678"), 1),
    "a short priority": (OPENING + frame(PRIORITY, 0, 1, b"1"), 6),
    "a push": (OPENING + frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02"), 1),
    "an end on a stream": (OPENING + frame(GOAWAY, 0, 1, b"\0" * 8), 1),
    "more data than was to be sent": (
        OPENING + _HEADERS_ONLY + frame(RST_STREAM, 0, 1, number(8)) + frame(DATA, 0, 1, b"x" * 16_384) * 2000,
        11,
    ),
    # Floods
    "a flood of pings": (OPENING + frame(PING, 0, 0, b"12345678") * 1001, 11),
    "a flood of settings": (OPENING + frame(SETTINGS, 0, 0, setting(4, 1)) * 1001, 11),
    "a flood of acks": (OPENING + frame(SETTINGS, ACK, 0) * 1001, 11),
    "a flood of priorities": (OPENING + frame(PRIORITY, 0, 1, b"\0\0\0\0\x01") * 1001, 11),
    "a flood of updates": (OPENING + _HEADERS_ONLY + frame(WINDOW_UPDATE, 0, 1, number(1)) * 1001, 11),
    "a flood of empty data": (OPENING + _HEADERS_ONLY + frame(DATA, 0, 1) * 1001, 11),
    "a flood of unknown frames": (OPENING + frame(0xBE, 0, 0, b"x") * 1001, 11),
    "a flood of data behind the end": (
        OPENING + _HEADERS_ONLY + frame(RST_STREAM, 0, 1, number(8)) + frame(DATA, 0, 1) * 1001,
        11,
    ),
    "a flood of refused calls": (
        OPENING + b"".join(frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, block(b"/no")) for n in range(1001)),
        11,
    ),
    "a flood of calls that are reset": (
        OPENING
        + b"".join(
            frame(HEADERS, END_HEADERS, 2 * n + 1, block()) + frame(RST_STREAM, 0, 2 * n + 1, number(8))
            for n in range(1001)
        ),
        11,
    ),
    "a flood of calls over the limit": (
        OPENING + b"".join(frame(HEADERS, END_HEADERS, 2 * n + 1, block()) for n in range(1300)),
        11,
    ),
}


@pytest.mark.parametrize("name", _WRONG)
@on_loop
async def test_what_a_peer_must_not_do_ends_its_connection(name: str) -> None:
    data, code = _WRONG[name]
    peer = Peer().send(data)
    assert (peer.end, peer.transport.closed, peer.service.calls) == (code, True, [])
    sent = len(peer.frames)
    peer.send(OPENING + call(stream=4001))
    assert (len(peer.frames), peer.service.calls) == (sent, [])


@on_loop
async def test_calls_make_up_for_other_frames() -> None:
    peer = Peer().send(OPENING)
    for stream in range(1, 2001, 2):
        peer.send(frame(PING, 0, 0, b"12345678") + frame(WINDOW_UPDATE, 0, 0, number(10)) + call(stream=stream))
    assert (peer.end, len(peer.service.calls)) == (None, 1000)


@on_loop
async def test_calls_over_the_limit_are_refused_until_others_end() -> None:
    peer = Peer(streams=2).send(OPENING + b"".join(call(b"/t.T/Later", stream=n) for n in (1, 3, 5)))
    assert (peer.reset(1), peer.reset(3), peer.reset(5)) == (None, None, ErrorCode.REFUSED_STREAM)
    peer.service.open.set()
    await peer.settle()
    assert peer.send(call(stream=7)).status(7) == 0


@on_loop
async def test_what_is_no_mistake_of_the_peer_goes_on() -> None:
    peer = Peer().send(
        OPENING
        + frame(PING, 0, 0, b"12345678")
        + frame(GOAWAY, 0, 0, b"\0" * 8)
        + frame(PRIORITY, 0, 7, b"\0\0\0\0\x01")
        + frame(SETTINGS, 0, 0, setting(0x99, 1) + setting(5, 1 << 20) + setting(2, 0))
        + frame(WINDOW_UPDATE, 0, 0, number(1))
        + call()
    )
    peer.send(frame(WINDOW_UPDATE, 0, 1, number(1)) + frame(RST_STREAM, 0, 1, number(8)) + call(stream=9))
    assert (peer.status(1), peer.status(9), peer.end) == (0, 0, None)
    assert [each.payload for each in peer.frames if each.kind == PING] == [b"12345678"]


@on_loop
async def test_a_stream_window_of_nothing_more_resets_the_stream_alone() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later") + frame(WINDOW_UPDATE, 0, 1, number(0)) + call(stream=3))
    assert (peer.reset(1), peer.status(3), peer.end) == (ErrorCode.FLOW_CONTROL_ERROR, 0, None)


@on_loop
async def test_a_peer_without_a_table_is_told_that_none_is_used() -> None:
    peer = Peer().send(opening(setting(1, 0)) + call())
    assert next(each for each in peer.frames if each.kind == HEADERS).payload[0] == 0x20
    assert peer.status() == 0


@on_loop
async def test_a_peer_with_many_calls_lets_others_have_their_turn() -> None:
    service = Service()
    server = GrpcServer(service.methods, GrpcLimits())
    many, other = Peer(service, server).send(OPENING), Peer(service, server).send(OPENING)
    streams = range(1, 401, 2)
    many.send(b"".join(call(content=b"many", stream=stream) for stream in streams))
    assert not many.transport.reading
    other.send(call(content=b"other"))
    assert 0 < service.calls.index(b"other") < 64
    many.connection.pause_writing()
    await many.settle()
    assert len(service.calls) < 100  # it takes no answers
    many.connection.resume_writing()
    await many.settle()
    assert (len(service.calls), many.transport.reading, many.end) == (201, True, None)
    assert {many.status(stream) for stream in streams} == {0}


@on_loop
async def test_a_peer_that_reads_nothing_is_not_read_either() -> None:
    peer = Peer().send(OPENING)
    peer.connection.pause_writing()
    assert not peer.transport.reading
    peer.connection.resume_writing()
    assert peer.transport.reading


# Times


def later(peer: Peer, seconds: float) -> None:
    peer.connection.look_at_times(asyncio.get_running_loop().time() + seconds)
    peer.hear()


@on_loop
async def test_who_does_not_begin_is_left() -> None:
    peer = Peer().send(OPENING[:10])
    later(peer, 9)
    assert not peer.transport.closed
    later(peer, 11)
    assert peer.transport.closed


@on_loop
async def test_a_call_that_does_not_arrive_is_reset_and_one_that_waits_is_not() -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, block()) + call(b"/t.T/Later", stream=3))
    later(peer, 11)
    assert (peer.reset(1), peer.reset(3), peer.transport.closed) == (ErrorCode.CANCEL, None, False)
    peer.service.open.set()
    await peer.settle()
    assert peer.status(3) == 0


@on_loop
async def test_who_does_not_take_an_answer_is_left() -> None:
    peer = Peer().send(opening(setting(4, 0)) + call())
    later(peer, 9)
    assert not peer.transport.closed
    later(peer, 11)
    assert peer.transport.closed


@on_loop
async def test_who_is_silent_is_asked_and_then_left() -> None:
    peer = Peer().send(OPENING)
    later(peer, 121)
    probes = [each.payload for each in peer.frames if each.kind == PING]
    assert (len(probes), peer.transport.closed) == (1, False)
    peer.send(frame(PING, ACK, 0, probes[0]))
    later(peer, 121)
    assert not peer.transport.closed
    later(peer, 140)
    assert peer.transport.closed


# The end


@on_loop
async def test_at_the_end_calls_on_their_way_are_answered_and_then_none() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later"))
    draining = asyncio.create_task(peer.server.drain(60))
    await asyncio.sleep(0)
    peer.hear()
    assert peer.end == ErrorCode.NO_ERROR
    assert peer.send(call(stream=3)).status(3) == 0  # it was on its way
    while sum(each.kind == GOAWAY for each in peer.frames) < 2:
        await asyncio.sleep(0.01)
        peer.hear()
    assert peer.send(call(stream=5)).reset(5) == ErrorCode.REFUSED_STREAM
    assert not peer.transport.closed
    peer.service.open.set()
    await peer.settle()
    assert (peer.status(1), peer.transport.closed) == (0, True)
    peer.connection.connection_lost(None)
    await draining
    late = Peer(peer.service, peer.server)
    late.hear()
    assert late.transport.closed


@on_loop
async def test_what_is_open_after_the_grace_is_cut_off() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later"))
    await peer.server.drain(0.0)
    assert peer.transport.closed


@on_loop
async def test_connections_over_the_limit_take_the_room_of_idle_ones_or_are_closed() -> None:
    busy = Peer(connections=3).send(OPENING + call(b"/t.T/Later"))
    called, idle = (Peer(busy.service, busy.server).send(OPENING) for _ in range(2))
    called.send(call())
    fresh = Peer(busy.service, busy.server).send(OPENING)
    idle.hear()
    assert (idle.end, idle.transport.closed) == (ErrorCode.NO_ERROR, True)  # it never made a call
    assert fresh.send(call(b"/t.T/Later")).end is None
    last = Peer(busy.service, busy.server).send(OPENING)
    assert called.transport.closed
    last.send(call(b"/t.T/Later"))
    refused = Peer(busy.service, busy.server)
    refused.hear()
    assert (refused.end, refused.transport.closed) == (ErrorCode.ENHANCE_YOUR_CALM, True)
    assert not any(peer.transport.closed for peer in (busy, fresh, last))
