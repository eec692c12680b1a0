"""One connection of the gRPC server, frame by frame: valid calls are answered, and others reach no method."""

from __future__ import annotations

import logging

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
from tests.envoy.grpc.peers import (
    HELLO,
    OPENING,
    Peer,
    Service,
    block,
    call,
    later,
    message,
    number,
    on_loop,
    request,
    setting,
)


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
    start = b"".join(literal(*each) for each in ((b":method", b"POST"), (b":scheme", b"http")))
    kind = literal(b"content-type", b"application/grpc")
    echo, other = (integer(4, 6, 0x40) + string(path) for path in (b"/t.T/Echo", b"/t.T/Other"))
    peer, stream = Peer().send(OPENING), 1
    answers = []
    for written in (echo, indexed(62), indexed(62), other, indexed(62), indexed(62), indexed(63), echo, indexed(62)):
        peer.send(frame(HEADERS, END_HEADERS, stream, start + written + kind) + frame(DATA, END_STREAM, stream, HELLO))
        answers.append(peer.body(stream)[5:])
        stream += 2
    o, e = b"other hello", b"hello"
    assert answers == [e, e, e, o, o, o, e, e, e]
    empty = integer(0, 5, 0x20)
    peer.send(frame(HEADERS, END_HEADERS, stream, empty + start + echo + kind) + frame(DATA, END_STREAM, stream, HELLO))
    assert peer.body(stream) == HELLO
    peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream + 2, start + indexed(62) + kind))
    assert peer.end == ErrorCode.COMPRESSION_ERROR  # there is no such entry any more


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (block(b"/t.T/Nothing"), "12"),
        (block(b"/t.T/Echo/"), "12"),
        (block(b"/T.T/ECHO"), "12"),
        (block(grpc_encoding=b"gzip"), "12"),
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
        (request(b":method GET", b":scheme http", b":path /t.T/Echo"), "405"),
        (request(b":method CONNECT", b":authority t"), "405"),
    ],
)
@on_loop
async def test_what_is_no_call_has_a_status_of_http(written: bytes, status: str) -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, written))
    assert (peer.headers(), peer.service.calls) == ({":status": status}, [])


# Not a message


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
    peer.send(frame(SETTINGS, 0, 0, setting(4, 110_000)))  # the window of the connection limits it
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
async def test_a_peer_may_send_as_much_as_its_window_and_no_more() -> None:
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
    assert large.send(call(stream=7)).status(7) == 8  # it has used all the room itself
    small.send(call())
    assert (small.status(), service.calls) == (0, [b"hello"])
    large.hear()
    assert [large.status(stream) for stream in (1, 3, 5)] == [None, 8, None]
    small.send(frame(HEADERS, END_HEADERS, 3, block()) + frame(DATA, 0, 3, b"\0" * 61))
    large.hear()
    assert (small.status(3), large.status(1), large.end) == (8, None, None)  # it would use most itself


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


# Ends of a connection

_HEADERS_ONLY = frame(HEADERS, END_HEADERS, 1, block())
_RESET = frame(RST_STREAM, 0, 1, number(ErrorCode.CANCEL))
_REFUSED = frame(HEADERS, END_HEADERS, 1, block(b"/no"))
_TRAILERS = frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b"x-trailer", b"1"))
_WRONG = {
    "HTTP/1": (b"GET / HTTP/1.1\r\nhost: t\r\n\r\n", 1),
    "no settings": (OPENING[:24] + call(), 1),
    "an ack instead of settings": (OPENING[:24] + frame(SETTINGS, ACK, 0) + call(), 1),
    "a large frame": (OPENING + frame(DATA, 0, 1, b"", length=16_385), 6),
    "an even stream": (OPENING + frame(HEADERS, END_HEADERS, 2, block()), 1),
    "headers on no stream": (OPENING + frame(HEADERS, END_HEADERS, 0, block()), 1),
    "a lower stream": (OPENING + frame(HEADERS, END_HEADERS, 5, block()) + call(stream=3), 1),
    "data on no stream": (OPENING + frame(DATA, END_STREAM, 0, HELLO), 1),
    "data before headers": (OPENING + frame(DATA, END_STREAM, 1, HELLO), 1),
    "data after the end": (OPENING + call(b"/t.T/Later") + frame(DATA, END_STREAM, 1, HELLO), 5),
    "data after the answer": (OPENING + call(b"/t.T/Refuse") + frame(DATA, END_STREAM, 1, HELLO), 5),
    "data after a reset": (OPENING + _HEADERS_ONLY + _RESET + frame(DATA, END_STREAM, 1, HELLO), 5),
    "headers after the end": (OPENING + call(b"/t.T/Later") + _TRAILERS, 5),
    "headers after the answer": (OPENING + call(b"/t.T/Refuse") + _TRAILERS, 5),
    "headers after a reset": (OPENING + _HEADERS_ONLY + _RESET + _TRAILERS, 5),
    "a call that comes again": (OPENING + call(b"/t.T/Refuse") + call(), 5),
    "headers that depend on themselves": (
        OPENING + frame(HEADERS, END_HEADERS | PRIORITY_FLAG, 1, b"\x80\0\0\x01\x10" + block()),
        1,
    ),
    "a priority that depends on itself": (OPENING + frame(PRIORITY, 0, 5, b"\0\0\0\x05\x10"), 1),
    "a priority of no stream": (OPENING + frame(PRIORITY, 0, 0, b"\0\0\0\x05\x10"), 1),
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
    "a window that does not grow": (OPENING + frame(WINDOW_UPDATE, 0, 0, number(0)), 1),
    "half an update of a window": (OPENING + frame(WINDOW_UPDATE, 0, 0, b"\0"), 6),
    "an update of a stream that is not there": (OPENING + frame(WINDOW_UPDATE, 0, 9, number(1)), 1),
    "a reset of a stream that is not there": (OPENING + frame(RST_STREAM, 0, 9, number(8)), 1),
    "half a reset": (OPENING + _HEADERS_ONLY + frame(RST_STREAM, 0, 1, b"\0"), 6),
    "a short ping": (OPENING + frame(PING, 0, 0, b"1"), 6),
    "a ping on a stream": (OPENING + frame(PING, 0, 1, b"12345678"), 1),
    "a short priority": (OPENING + frame(PRIORITY, 0, 1, b"1"), 6),
    "a push": (OPENING + frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02"), 1),
    "an end on a stream": (OPENING + frame(GOAWAY, 0, 1, b"\0" * 8), 1),
    "data of a refused call without end": (OPENING + _REFUSED + frame(DATA, 0, 1, b"x" * 16_384) * 2000, 11),
    # Floods
    "a flood of pings": (OPENING + frame(PING, 0, 0, b"12345678") * 1001, 11),
    "a flood of settings": (OPENING + frame(SETTINGS, 0, 0, setting(4, 1)) * 1001, 11),
    "a flood of acks": (OPENING + frame(SETTINGS, ACK, 0) * 1001, 11),
    "a flood of priorities": (OPENING + frame(PRIORITY, 0, 1, b"\0\0\0\0\x01") * 1001, 11),
    "a flood of updates": (OPENING + _HEADERS_ONLY + frame(WINDOW_UPDATE, 0, 1, number(1)) * 1001, 11),
    "a flood of empty data": (OPENING + _HEADERS_ONLY + frame(DATA, 0, 1) * 1001, 11),
    "a flood of unknown frames": (OPENING + frame(0xBE, 0, 0, b"x") * 1001, 11),
    "a flood of data behind the end": (OPENING + _REFUSED + frame(DATA, 0, 1) * 1001, 11),
    "a flood of trailers behind the end": (OPENING + _REFUSED + _TRAILERS * 1001, 11),
    "a flood of malformed calls": (
        OPENING + b"".join(frame(HEADERS, END_HEADERS, 2 * n + 1, b"") for n in range(1001)),
        11,
    ),
    "a flood of calls with another length": (
        OPENING
        + b"".join(
            frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, block(content_length=b"1")) for n in range(1001)
        ),
        11,
    ),
    "a flood of headers that come twice": (
        OPENING + b"".join(frame(HEADERS, END_HEADERS, 2 * n + 1, block()) * 2 for n in range(1001)),
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
    "a flood of whole calls that are reset": (
        OPENING
        + b"".join(
            call(b"/t.T/Later", stream=2 * n + 1) + frame(RST_STREAM, 0, 2 * n + 1, number(8)) for n in range(1001)
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


@pytest.mark.parametrize("ended", [frame(RST_STREAM, 0, 1, number(8)), frame(WINDOW_UPDATE, 0, 1, number(0))])
@on_loop
async def test_calls_that_are_ended_before_their_answers_make_up_for_nothing(ended: bytes) -> None:
    peer = Peer(idle_frames=100).send(OPENING)
    for stream in range(1, 401, 2):
        peer.send(call(b"/t.T/Later", stream=stream))
        peer.send(ended[:5] + stream.to_bytes(4, "big") + ended[9:])
        await peer.settle()
    assert (peer.end, peer.service.cancelled) == (ErrorCode.ENHANCE_YOUR_CALM, 100)


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
async def test_the_rest_of_a_call_that_was_refused_may_be_on_its_way() -> None:
    peer = Peer(message=100, streams=2, idle_frames=10_000).send(OPENING)
    large = frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, 0, 1, message(b"x" * 101))
    unknown = frame(HEADERS, END_HEADERS, 3, block(b"/no"))
    malformed = frame(HEADERS, END_HEADERS, 5, block(te=b"gzip"))
    slow = frame(HEADERS, END_HEADERS, 7, block())
    peer.send(large + unknown + malformed + slow)
    later(peer, 11)
    peer.send(b"".join(frame(HEADERS, END_HEADERS, stream, block()) for stream in (9, 11, 13)))
    codes = [peer.reset(stream) for stream in (1, 3, 5, 7, 9, 11, 13)]
    assert codes == [0, 0, ErrorCode.PROTOCOL_ERROR, ErrorCode.CANCEL, None, None, ErrorCode.REFUSED_STREAM]
    for stream in (1, 3, 5, 7, 13):
        peer.send(frame(DATA, 0, stream, HELLO) + frame(HEADERS, END_HEADERS | END_STREAM, stream, literal(b"x", b"1")))
        peer.send(frame(WINDOW_UPDATE, 0, stream, number(1)) + frame(RST_STREAM, 0, stream, number(8)))
    peer.send(frame(DATA, END_STREAM, 9, HELLO) + frame(DATA, END_STREAM, 11, HELLO))
    assert (peer.status(9), peer.status(11), peer.end, len(peer.service.calls)) == (0, 0, None, 2)


@on_loop
async def test_the_rest_of_many_calls_may_be_on_its_way() -> None:
    peer = Peer(idle_frames=10_000).send(OPENING)
    streams = range(1, 4001, 2)
    peer.send(b"".join(frame(HEADERS, END_HEADERS, stream, block(b"/no")) for stream in streams))
    peer.send(b"".join(frame(DATA, END_STREAM, stream, HELLO) for stream in streams))
    assert (peer.end, len(peer.connection.calls._cut_off) < len(streams)) == (None, True)
    assert peer.send(call(stream=4001)).status(4001) == 0
    assert peer.send(frame(DATA, 0, 4001)).end == ErrorCode.STREAM_CLOSED


@on_loop
async def test_a_stream_window_of_nothing_more_resets_the_stream_alone() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later") + frame(WINDOW_UPDATE, 0, 1, number(0)) + call(stream=3))
    assert (peer.reset(1), peer.status(3), peer.end) == (ErrorCode.PROTOCOL_ERROR, 0, None)


@on_loop
async def test_a_peer_learns_that_no_table_is_used() -> None:
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
    assert len(service.calls) < 100  # it accepts no answers
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
