"""Malformed requests (RFC 9113, 8.1 to 8.3): their streams are reset, and their connections continue."""

from __future__ import annotations

import pytest

from eastgate.envoy.grpc.frames import ErrorCode
from tests.attacks.frames import DATA, END_HEADERS, END_STREAM, HEADERS, frame, literal
from tests.envoy.grpc.peers import HELLO, OPENING, Peer, block, call, on_loop, request

_USUAL = (b":method POST", b":scheme http", b":path /t.T/Echo", b":authority t")
_GRPC = b"content-type application/grpc"
_MALFORMED = {
    "no headers": b"",
    "a path twice": block(b"/t.T/Other", (b":path", b"/t.T/Echo")),
    "a path twice, in front": request(*_USUAL, b":path /t.T/Other", _GRPC),
    "an authority twice": request(*_USUAL, b":authority u", _GRPC),
    "no method": request(*_USUAL[1:], _GRPC),
    "no scheme": request(_USUAL[0], *_USUAL[2:], _GRPC),
    "no path": request(*_USUAL[:2], _USUAL[3], _GRPC),
    "an empty path": block(b""),
    "a path behind other headers": request(*_USUAL[:2], _GRPC, *_USUAL[2:]),
    "a pseudo-header of nobody": request(*_USUAL, b":test 1", _GRPC),
    "a pseudo-header of responses": request(*_USUAL, b":status 200", _GRPC),
    "an extended CONNECT": request(b":method CONNECT", *_USUAL[1:], b":protocol websocket", _GRPC),
    "a pseudo-header in upper case": request(b":METHOD POST", *_USUAL[1:], _GRPC),
    "a name in upper case": block(b"/t.T/Echo", (b"X-Test", b"1")),
    "an empty name": block(b"/t.T/Echo", (b"", b"1")),
    "a name with a space": block(b"/t.T/Echo", (b"x test", b"1")),
    "a name with a colon": block(b"/t.T/Echo", (b"x:", b"1")),
    "a name with a NUL": block(b"/t.T/Echo", (b"x\0y", b"1")),
    "a name with a NUL behind": block(b"/t.T/Echo", (b"x\0", b"1")),
    "a name that is not ASCII": block(b"/t.T/Echo", (b"x-\xc3\xa4", b"1")),
    "a name with a line break": block(b"/t.T/Echo", (b"x\n", b"1")),
    "a value with a line break": block(b"/t.T/Echo", (b"x", b"1\r\ny: 2")),
    "a value that ends with a line break": block(b"/t.T/Echo", (b"x", b"1\n")),
    "a value with a NUL": block(b"/t.T/Echo", (b"x", b"1\0")),
    "a value with a space in front": block(b"/t.T/Echo", (b"x", b" 1")),
    "a value with a tab behind": block(b"/t.T/Echo", (b"x", b"1\t")),
    "a path with a line break": block(b"/t.T/Echo\n"),
    "connection": block(connection=b"close"),
    "keep-alive": block(keep_alive=b"timeout=5"),
    "proxy-connection": block(proxy_connection=b"keep-alive"),
    "transfer-encoding": block(transfer_encoding=b"chunked"),
    "upgrade": block(upgrade=b"h2c"),
    "te of something else": block(te=b"gzip"),
    "te of trailers and something else": block(te=b"trailers, gzip"),
    "another length": block(content_length=b"9"),
    "no length": block(content_length=b""),
    "a length with a sign": block(content_length=b"+10"),
    "a length below zero": block(content_length=b"-1"),
    "a length that is no number": block(content_length=b"1_0"),
    "a length without end": block(content_length=b"0" * 5000 + b"10"),
    "a length twice": block(b"/t.T/Echo", (b"content-length", b"10"), (b"content-length", b"10")),
    "two types": block(b"/t.T/Echo", (b"content-type", b"application/grpc")),
}


@pytest.mark.parametrize("name", _MALFORMED)
@on_loop
async def test_a_malformed_request_reaches_no_method_and_its_connection_goes_on(name: str) -> None:
    headers = _MALFORMED[name]
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, HELLO))
    peer.send(frame(HEADERS, END_HEADERS, 3, headers))  # the cached form
    peer.send(frame(DATA, 0, 3, HELLO[:3]) + frame(DATA, END_STREAM, 3, HELLO[3:]))
    assert (peer.reset(1), peer.reset(3)) == (ErrorCode.PROTOCOL_ERROR, ErrorCode.PROTOCOL_ERROR)
    assert (peer.headers(1), peer.service.calls, peer.end) == ({}, [], None)
    assert (peer.send(call(stream=5)).status(5), peer.connection.is_idle) == (0, True)


@pytest.mark.parametrize(
    "headers",
    [
        block(content_length=b"10"),
        block(content_length=b"010"),
        request(_USUAL[2], _USUAL[1], _USUAL[0], _GRPC),
        block(b"/t.T/Echo", (b"x", b""), (b"x", b"a b\tc"), (b"x-!#$%&'*+-.^_`|~09", b"\xff")),
    ],
)
@on_loop
async def test_an_unusual_request_is_answered(headers: bytes) -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, HELLO))
    assert (peer.body(), peer.status()) == (HELLO, 0)


@pytest.mark.parametrize(
    ("flags", "trailers"),
    [
        (END_STREAM, literal(b":path", b"/t.T/Other")),
        (END_STREAM, literal(b"X-Trailer", b"1")),
        (END_STREAM, literal(b"transfer-encoding", b"chunked")),
        (0, literal(b"x-trailer", b"1")),
        (0, block()),
    ],
)
@on_loop
async def test_malformed_trailers_reset_the_stream(flags: int, trailers: bytes) -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, 0, 1, HELLO))
    peer.send(frame(HEADERS, END_HEADERS | flags, 1, trailers) + call(content=b"next", stream=3))
    assert (peer.reset(1), peer.status(1)) == (ErrorCode.PROTOCOL_ERROR, None)
    assert (peer.service.calls, peer.end) == ([b"next"], None)


@on_loop
async def test_a_length_that_no_data_follow() -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, block(content_length=b"10")))
    assert (peer.reset(), peer.status(), peer.end) == (ErrorCode.PROTOCOL_ERROR, None, None)
