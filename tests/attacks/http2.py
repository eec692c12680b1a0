"""Malformed HTTP/2. `/api/` is allowed, `/secret` is not."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

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
    PREFACE,
    PRIORITY,
    PRIORITY_FLAG,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Field,
    frame,
    indexed,
    integer,
    literal,
    opening,
    request,
    string,
)
from tests.attacks.trying import Try

__all__ = ["SHAPES", "mixed", "tries"]

_METHOD, _SCHEME, _AUTHORITY = (b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a")
_API, _SECRET = (b":path", b"/api/x"), (b":path", b"/secret")
_GOOD = (_METHOD, _SCHEME, _API, _AUTHORITY)
_BAD = (_METHOD, _SCHEME, _SECRET, _AUTHORITY)
_HTTP1 = b"GET /secret HTTP/1.1\r\nhost: a\r\n\r\n"

# Headers of one request
SHAPES: dict[str, tuple[Field, ...]] = {
    "forbidden": _BAD,
    "two paths": (_METHOD, _SCHEME, _API, _SECRET, _AUTHORITY),
    "two paths, the allowed one last": (_METHOD, _SCHEME, _SECRET, _API, _AUTHORITY),
    "a path after headers": (_METHOD, _SCHEME, _AUTHORITY, _API, (b"x", b"y"), _SECRET),
    "a path of two lines": (_METHOD, _SCHEME, _AUTHORITY, (b":path", b"/api/x\r\nGET /secret")),
    "a path with a version": (_METHOD, _SCHEME, _AUTHORITY, (b":path", b"/api/x HTTP/1.1\r\nx: ")),
    "a path that climbs": (_METHOD, _SCHEME, _AUTHORITY, (b":path", b"/api/../secret")),
    "a path without a slash": (_METHOD, _SCHEME, _AUTHORITY, (b":path", b"secret")),
    "an empty path": (_METHOD, _SCHEME, _AUTHORITY, (b":path", b"")),
    "no path": (_METHOD, _SCHEME, _AUTHORITY),
    "a whole address as path": (_METHOD, _SCHEME, _AUTHORITY, (b":path", b"http://a/secret")),
    "a name in capitals": (_METHOD, _SCHEME, _AUTHORITY, _API, (b"X", b"y")),
    "a value of two lines": (_METHOD, _SCHEME, _AUTHORITY, _API, (b"x", b"y\r\nz: 1")),
    "a name with a colon": (_METHOD, _SCHEME, _AUTHORITY, _API, (b"x:y", b"z")),
    "chunks": (_METHOD, _SCHEME, _AUTHORITY, _API, (b"transfer-encoding", b"chunked")),
    "a length and no body": (_METHOD, _SCHEME, _AUTHORITY, _API, (b"content-length", b"9")),
    "a websocket": ((b":method", b"CONNECT"), (b":protocol", b"websocket"), _SCHEME, _SECRET, _AUTHORITY),
    "CONNECT": ((b":method", b"CONNECT"), _AUTHORITY),
    "a method of two lines": ((b":method", b"GET /secret HTTP/1.1\r\n"), _SCHEME, _API, _AUTHORITY),
}

# Values of a pseudo-header of an otherwise allowed request
_PATHS = [
    *(
        b"/secret",
        b"/api/../secret",
        b"/api/%2e%2e/secret",
        b"/api/..%2fsecret",
        b"/api\\..\\secret",
        b"//secret",
        b"/secret?",
        b"/secret#x",
    ),
    *(
        b"/api/x#/../secret",
        b"/api/x /secret",
        b"/api/x\t/secret",
        b"/api/x\0/secret",
        b"/api/x\x0b",
        b"/api/x\x7f",
        b"/api/x\xff",
        b"/api/\xc3\xa9",
    ),
    *(
        b"/api/x HTTP/1.1",
        b"/api/x HTTP/1.1\r\nhost: b\r\n\r\nGET /secret",
        b"/api/x\nGET /secret",
        b"/api/x\rGET /secret",
        b"*",
        b"?/api/x",
        b"#",
    ),
    *(
        b" /api/x",
        b"\t/api/x",
        b"/api/x ",
        b"a/api/x",
        b"a:80",
        b"http://a/secret",
        b"https://b/secret",
        b"\\secret",
        b"/api/..;/secret",
        b".",
    ),
    *(b"/api/" + b"a" * 30_000, b"/api/" + b"../" * 2000 + b"secret", b"/api/x?" + b"a" * 30_000),
]
_METHODS = [
    *(
        b"get",
        b"Get",
        b"",
        b"GET ",
        b" GET",
        b"GET\t",
        b"GET /secret HTTP/1.1\r\nx: ",
        b"GET\r\n",
        b"GET\0",
        b"G\xc9T",
        b"FOO",
        b"PRI",
        b"CONNECT",
    ),
    *(b"TRACE", b"OPTIONS", b"GET,POST", b'"GET"', b"GET:", b"M" * 300),
]
_SCHEMES = [
    *(
        b"https",
        b"HTTP",
        b"ftp",
        b"file",
        b"javascript",
        b"",
        b"http ",
        b"http://b/secret?",
        b"http\r\n",
        b"http:",
        b"ws",
        b"1http",
        b"http\0",
        b"h" * 300,
    ),
]
_AUTHORITIES = [
    *(
        b"b",
        b"",
        b"a:80",
        b"a:99999",
        b"a:",
        b"u@a",
        b"a/secret",
        b"a?x",
        b"a#x",
        b"a b",
        b"a\r\nx: y",
        b"a\0",
        b"a,b",
        b"[::1]",
        b"[::1%25eth0]",
        b"A",
    ),
    *(
        b"a.",
        b"a..",
        b".a",
        b"a\\b",
        b"a:80:80",
        b"a:+80",
        b"a\xc3\xa9",
        b"xn--a",
        b"%61",
        b"a\t",
        b" a",
        b"*",
        b"a" * 5000,
    ),
]
# Headers that HTTP/2 does not have, or that mean something else over HTTP/1
_HEADERS: list[Field] = [
    *((b"host", value) for value in (b"a", b"b", b"", b"a, b", b"a:80", b"u@a", b"a\r\nx: y", b"secret/")),
    *(
        (b"transfer-encoding", value)
        for value in (b"chunked", b"identity", b"gzip, chunked", b"", b" chunked", b"chunked\0")
    ),
    *(
        (b"content-length", value)
        for value in (
            b"0",
            b"1",
            b"35",
            b"-1",
            b"+0",
            b"0, 35",
            b"0x0",
            b"",
            b"99999999999999999999",
            b"0\r\nx: y",
            b" 0",
        )
    ),
    *(
        (b"connection", value)
        for value in (b"close", b"keep-alive", b"upgrade", b"host", b"content-length", b"te", b"")
    ),
    *((b"upgrade", value) for value in (b"websocket", b"h2c", b"foo")),
    *((b"te", value) for value in (b"trailers", b"gzip", b"trailers, chunked", b"chunked", b"")),
    *((b"expect", value) for value in (b"100-continue", b"200-ok", b"")),
    *(
        (b"keep-alive", b"timeout=1"),
        (b"proxy-connection", b"close"),
        (b"http2-settings", b"AA"),
        (b"trailer", b":path"),
        (b"cookie", b"a=b; c=d"),
    ),
    *(
        (b":status", b"200"),
        (b":protocol", b"websocket"),
        (b":foo", b"bar"),
        (b":", b""),
        (b":Path", b"/secret"),
        (b":path ", b"/secret"),
    ),
    *(
        (b"", b"y"),
        (b" x", b"y"),
        (b"x ", b"y"),
        (b"x\t", b"y"),
        (b"x\0", b"y"),
        (b"x\r\ny", b"z"),
        (b"x\ny", b"z"),
        (b"x: y\r\nz", b"w"),
        (b"x:y", b"z"),
    ),
    *(
        (b"X", b"y"),
        (b"Host", b"b"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"0"),
        (b"x(y)", b"z"),
        (b"x\xc3\xa9", b"z"),
        (b"x\x7f", b"z"),
    ),
    *(
        (b"x", value)
        for value in (
            b"\0",
            b"a\0b",
            b"a\rb",
            b"a\nb",
            b"a\r\nb: c",
            b"a\r\n\r\n" + _HTTP1,
            b"\x01",
            b"\x1b",
            b"\x7f",
            b"\xff",
            b" y",
            b"y ",
            b"\ty",
        )
    ),
    *(
        (b"x-envoy-original-path", b"/api/x"),
        (b"x-envoy-original-method", b"GET"),
        (b"x-forwarded-proto", b"https"),
        (b"x-original-url", b"/secret"),
    ),
    *(
        (b"x-http-method-override", b"DELETE"),
        (b"x" * 300, b"y"),
        (b"x", b"y" * 20_000),
        (b"x_y", b"z"),
        (b"connection ", b"close"),
        (b"grpc-timeout", b"0S"),
    ),
]
_SETTINGS = [
    *((number, value) for number in (1, 2, 3, 4, 5, 6, 8, 9, 0, 0xFFFF) for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF)),
    *((5, 16_383), (5, 16_384), (5, 16_777_216), (4, 0x80000000), (1, 100)),
]


def _setting(number: int, value: int) -> bytes:
    return number.to_bytes(2, "big") + value.to_bytes(4, "big")


def _block(*headers: Field) -> bytes:
    return b"".join(literal(name, value) for name, value in headers)


def _with(place: int, value: bytes) -> tuple[Field, ...]:
    return tuple((name, value if number == place else was) for number, (name, was) in enumerate(_GOOD))


def _requests() -> Iterator[tuple[str, tuple[Field, ...], bytes | None]]:
    """Yield complete requests, by name: their headers and their body."""
    for name, headers in SHAPES.items():
        yield name, headers, None
    for place, values in enumerate((_METHODS, _SCHEMES, _PATHS, _AUTHORITIES)):
        for value in values:
            yield f"{_GOOD[place][0].decode()} {value[:40]!r}", _with(place, value), None
        yield f"{_GOOD[place][0].decode()} is not there", tuple(one for one in _GOOD if one is not _GOOD[place]), None
        yield f"{_GOOD[place][0].decode()} twice", (*_GOOD, _GOOD[place]), None
        yield (
            f"{_GOOD[place][0].decode()} last, after a header",
            (*_GOOD[:place], *_GOOD[place + 1 :], (b"x", b"y"), _GOOD[place]),
            None,
        )
    for field in _HEADERS:
        yield f"header {field[0][:30]!r} {field[1][:30]!r}", (*_GOOD, field), None
        yield f"header {field[0][:30]!r} {field[1][:30]!r} before", (field, *_GOOD), None
        yield f"header {field[0][:30]!r} {field[1][:30]!r} with a body", (*_GOOD, field), _HTTP1
    for value in (b"websocket", b"connect-udp", b"connect-ip", b"", b"foo\r\n"):
        connect = ((b":method", b"CONNECT"), (b":protocol", value), _SCHEME, _API, _AUTHORITY)
        yield f"CONNECT for {value!r}", connect, _HTTP1
        yield f"CONNECT for {value!r}, forbidden", (*connect[:3], _SECRET, _AUTHORITY), _HTTP1
    yield "CONNECT with a path", ((b":method", b"CONNECT"), _AUTHORITY, _SECRET), _HTTP1
    yield "two hundred headers", (*_GOOD, *((b"x%d" % number, b"y") for number in range(200))), None
    yield "many cookies", (*_GOOD, *[(b"cookie", b"a=b")] * 90), None


def _frames() -> Iterator[tuple[str, bytes]]:
    """Yield the frames after the opening of a connection, by name."""
    good, bad, block = request(*_GOOD), request(*_BAD), _block(*_GOOD)
    late = request(*_BAD, stream=3)
    # Bodies and their lengths
    for length in (b"0", b"1", b"34", b"36", b"1000"):
        body = (*_GOOD, (b"content-length", length))
        yield f"a length of {length.decode()}, and more or less", request(*body, data=_HTTP1) + late
    yield "a body after the end", good + frame(DATA, END_STREAM, 1, _HTTP1) + late
    yield "headers after the end", good + request(*_BAD) + late
    yield "a body before the headers", frame(DATA, 0, 1, _HTTP1) + good
    yield (
        "a body that is only padding",
        request(*_GOOD, data=b"")[:-9] + frame(DATA, END_STREAM | PADDED, 1, b"\xff" + b"\0" * 255),
    )
    yield (
        "padding beyond the frame",
        frame(HEADERS, END_HEADERS | END_STREAM, 1, block)[:0] + frame(DATA, PADDED, 1, b"\xff"),
    )
    yield (
        "headers with padding",
        frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, b"\x05" + block + b"\0" * 5) + late,
    )
    yield (
        "headers with a request as padding",
        frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, bytes([len(_HTTP1)]) + block + _HTTP1) + late,
    )
    yield "headers with padding beyond the frame", frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, b"\xff" + block)
    # Trailers
    for trailer in (
        _SECRET,
        (b":path", b"/api/y"),
        (b"host", b"b"),
        (b"content-length", b"0"),
        (b"transfer-encoding", b"chunked"),
        (b"X", b"y"),
        (b"x", b"\r\n"),
    ):
        trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, _block(trailer))
        yield (
            f"trailers with {trailer!r}",
            frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, 0, 1, b"x") + trailers + late,
        )
        yield f"trailers with {trailer!r} and no body", frame(HEADERS, END_HEADERS, 1, block) + trailers + late
        yield (
            f"trailers with {trailer!r} that do not end",
            frame(HEADERS, END_HEADERS, 1, block) + frame(HEADERS, END_HEADERS, 1, _block(trailer)) + late,
        )
    yield (
        "a whole request as trailers",
        frame(HEADERS, END_HEADERS, 1, block) + frame(HEADERS, END_HEADERS | END_STREAM, 1, _block(*_BAD)),
    )
    # Continuations
    cut = len(block) // 2
    first, second = frame(HEADERS, END_STREAM, 1, block[:cut]), frame(CONTINUATION, END_HEADERS, 1, block[cut:])
    yield "a continuation", first + second + late
    yield "a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, _block(*_BAD))
    yield "a continuation of another stream", first + frame(CONTINUATION, END_HEADERS, 3, _block(*_BAD))
    yield "something else instead of a continuation", first + late
    yield "a ping instead of a continuation", first + frame(PING, 0, 0, b"12345678") + second
    yield "data instead of a continuation", first + frame(DATA, END_STREAM, 1, _HTTP1)
    yield "a continuation after the end of the headers", good + frame(CONTINUATION, END_HEADERS, 1, _block(_SECRET))
    yield (
        "continuations that bring another path",
        first + frame(CONTINUATION, 0, 1, block[cut:]) + frame(CONTINUATION, END_HEADERS, 1, _block(_SECRET)),
    )
    yield "fifty empty continuations", first + frame(CONTINUATION, 0, 1) * 50 + second
    yield "two thousand empty continuations", first + frame(CONTINUATION, 0, 1) * 2000 + second
    yield "a flood of continuations", first + frame(CONTINUATION, 0, 1, _block((b"x", b"y" * 1000))) * 200
    yield (
        "every byte in a frame",
        frame(HEADERS, END_STREAM, 1, block[:1])
        + b"".join(frame(CONTINUATION, 0, 1, bytes([one])) for one in block[1:])
        + frame(CONTINUATION, END_HEADERS, 1)
        + late,
    )
    # Streams
    for stream in (0, 2, 4, 0x7FFFFFFF, 0x80000001, 0x80000003):
        yield f"stream {stream}", request(*_GOOD, stream=stream) + late
        yield f"stream {stream}, forbidden", request(*_BAD, stream=stream)
    yield "a stream below the last one", request(*_GOOD, stream=5) + request(*_BAD, stream=3)
    yield "the same stream twice", good + good + bad
    yield (
        "allowed and forbidden streams in turn",
        b"".join(request(*(_GOOD if n % 2 else _BAD), stream=2 * n + 1) for n in range(40)),
    )
    yield (
        "two hundred streams at once",
        b"".join(request(*_GOOD, stream=2 * n + 1) for n in range(200)) + request(*_BAD, stream=401),
    )
    yield (
        "streams that are reset at once",
        b"".join(request(*_GOOD, stream=2 * n + 1) + frame(RST_STREAM, 0, 2 * n + 1, b"\0\0\0\x08") for n in range(60))
        + request(*_BAD, stream=201),
    )
    yield (
        "forbidden streams that are reset at once",
        b"".join(request(*_BAD, stream=2 * n + 1) + frame(RST_STREAM, 0, 2 * n + 1, b"\0\0\0\x08") for n in range(60)),
    )
    yield "a reset of a stream that is not there", frame(RST_STREAM, 0, 9, b"\0\0\0\x08") + good
    yield "a reset of nothing", frame(RST_STREAM, 0, 0, b"\0\0\0\x08") + good
    yield "a short reset", good + frame(RST_STREAM, 0, 1, b"\0") + late
    yield "a stream that depends on itself", frame(PRIORITY, 0, 1, (1).to_bytes(4, "big") + b"\x10") + good
    yield (
        "headers that depend on themselves",
        frame(HEADERS, END_HEADERS | END_STREAM | PRIORITY_FLAG, 1, (1).to_bytes(4, "big") + b"\x10" + block),
    )
    yield "a hundred priorities", b"".join(frame(PRIORITY, 0, 2 * n + 1, b"\0\0\0\0\x10") for n in range(100)) + good
    yield "a promise of a client", frame(PUSH_PROMISE, END_HEADERS, 1, (2).to_bytes(4, "big") + _block(*_BAD)) + good
    yield "a goodbye, and then a request", frame(GOAWAY, 0, 0, b"\0" * 8) + bad
    yield "a goodbye on a stream", frame(GOAWAY, 0, 1, b"\0" * 8) + good
    # Settings, pings, windows
    for number, value in _SETTINGS:
        yield f"setting {number} = {value}", frame(SETTINGS, 0, 0, _setting(number, value)) + good + late
    yield "settings on a stream", frame(SETTINGS, 0, 1) + good
    yield "settings of five bytes", frame(SETTINGS, 0, 0, b"\0" * 5) + good
    yield "an ack with settings", frame(SETTINGS, ACK, 0, _setting(1, 0)) + good
    yield "an ack for nothing", frame(SETTINGS, ACK, 0) * 3 + good
    yield "a flood of settings", frame(SETTINGS, 0, 0, _setting(4, 1)) * 300 + bad
    yield "a flood of pings", frame(PING, 0, 0, b"12345678") * 300 + bad
    yield "a short ping", frame(PING, 0, 0, b"1") + good
    yield "a ping on a stream", frame(PING, 0, 1, b"12345678") + good
    yield "a flood of empty data", frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, 0, 1) * 300 + late
    for size in (0, 0x7FFFFFFF, 0xFFFFFFFF):
        for stream in (0, 1, 9):
            yield (
                f"a window of {size} on {stream}",
                good + frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big")) * 2 + late,
            )
    # Frames with wrong types or lengths
    yield "a frame of an unknown kind", frame(0xBE, 0xFF, 1, _HTTP1) + good + late
    yield "an unknown frame among headers", first + frame(0xBE, 0, 1, _HTTP1) + second
    yield "all flags", frame(HEADERS, 0xFF, 1, b"\0" + b"\0\0\0\0\x10" + block) + late
    yield "a frame that is too long", frame(HEADERS, END_HEADERS | END_STREAM, 1, block, length=0xFFFFFF)
    yield (
        "a frame that is longer than it says",
        frame(HEADERS, END_HEADERS | END_STREAM, 1, block + _HTTP1, length=len(block)) + late,
    )
    yield (
        "a frame that is shorter than it says",
        frame(HEADERS, END_HEADERS | END_STREAM, 1, block, length=len(block) + 9) + late,
    )
    yield "HTTP/1.1 after the opening", _HTTP1
    yield "HTTP/1.1 after a request", good + _HTTP1
    yield "the opening again", good + opening() + bad
    yield "an Alt-Svc, an origin", frame(0xA, 0, 0, b"\0\x01a" + b'h2=":1"') + frame(0xC, 0, 0, b"\0\x01a") + good
    yield "a new priority for a stream", frame(0x10, 0, 0, (1).to_bytes(4, "big") + b"u=0") + good + late
    yield from (
        (f"hpack: {name}", frame(HEADERS, END_HEADERS | END_STREAM, 1, written) + late) for name, written in _blocks()
    )


def _blocks() -> Iterator[tuple[str, bytes]]:
    """Yield header blocks, by name, in HPACK encodings that a careless reader reads differently."""
    start = _block(*_GOOD)
    yield "from the table", indexed(2) + indexed(6) + literal(*_SECRET) + literal(*_AUTHORITY)
    yield "path from the table", indexed(2) + indexed(6) + indexed(4) + literal(*_AUTHORITY)
    yield "name from the table", indexed(2) + indexed(6) + integer(4, 4) + string(b"/secret") + literal(*_AUTHORITY)
    yield (
        "remembered",
        indexed(2) + indexed(6) + integer(4, 6, 0x40) + string(b"/secret") + indexed(62) + literal(*_AUTHORITY),
    )
    yield "remembered, then another", start + integer(4, 6, 0x40) + string(b"/secret") + indexed(62)
    yield "never remembered", b"".join(literal(*one, first=0x10) for one in _BAD)
    yield "index 0", start + indexed(0)
    yield "an index beyond the tables", start + indexed(200)
    yield "an index of many bytes", start + b"\xff" + b"\xff" * 9 + b"\x01"
    yield "an index that wraps", start + b"\xff\x85\xff\xff\xff\x0f"
    yield "an index with zeros", b"\xff\x80\x80\x80\x00" + start
    yield "a table of no size", integer(0, 5, 0x20) + start
    yield "a table of a great size", integer(1 << 30, 5, 0x20) + start
    yield "a table's size at the end", start + integer(0, 5, 0x20)
    yield "three sizes", integer(0, 5, 0x20) * 3 + start
    yield "a string that is longer than the block", start + b"\0\x01x\x7f\xff\x01y"
    yield "a string that never ends", start + b"\0\x7f" + b"\xff" * 8
    yield "half a header", start[:-1]
    yield "no header at all", b""
    yield "a Huffman code that ends wrong", start + b"\0\x01x\x81\x00"
    yield "Huffman padding that is too long", start + b"\0\x01x\x82\x07\xff"
    yield "Huffman's end of string", start + b"\0\x01x\x84\xff\xff\xff\xff"
    yield (
        "a path by Huffman",
        indexed(2) + indexed(6) + b"\x04\x85" + bytes.fromhex("6041410ab2")[:5] + literal(*_AUTHORITY),
    )
    yield "headers by reference, thousands", start + literal(b"x", b"y" * 2000, first=0x40, bits=6) + indexed(62) * 3000
    yield "a hundred remembered", start + b"".join(literal(b"x%d" % n, b"y", first=0x40, bits=6) for n in range(100))


def tries() -> Iterator[Try]:
    """Yield all tries, on connections that begin with the HTTP/2 preface. Some run after ALPN, too."""
    for name, headers, body in _requests():
        yield Try(f"{name}", (opening() + request(*headers, data=body) + request(*_BAD, stream=3),))
    for name, data in _frames():
        yield Try(name, (opening() + data,))
    for name, headers, body in list(_requests())[::9]:
        yield Try(f"{name}, by ALPN", (opening() + request(*headers, data=body),), ("h2",))
        yield Try(f"{name}, by ALPN for another version", (opening() + request(*headers, data=body),), ("http/1.1",))
    yield Try("HTTP/1.1 by ALPN for h2", (_HTTP1,), ("h2",))
    yield Try("HTTP/1.1 by ALPN for nothing that is known", (_HTTP1,), ("spdy/3", "foo"))
    yield from _openings()


def _openings() -> Iterator[Try]:
    """Yield invalid openings, and connections that change the protocol."""
    bad = request(*_BAD)
    for name, start in {
        "no settings": PREFACE,
        "two prefaces": PREFACE + opening(),
        "a preface in small letters": opening().lower(),
        "a preface with LF": opening().replace(b"\r\n", b"\n"),
        "half a preface": PREFACE[:16],
        "a preface of another version": opening().replace(b"2.0", b"3.0"),
        "a preface with a path": opening().replace(b"*", b"/secret"),
        "a preface with a header": opening().replace(b"\r\n\r\nSM", b"\r\nhost: a\r\n\r\nSM"),
        "no preface": frame(SETTINGS, 0, 0),
        "an ack first": PREFACE + frame(SETTINGS, ACK, 0),
        "a ping first": PREFACE + frame(PING, 0, 0, b"12345678"),
        "headers first": PREFACE + request(*_GOOD, stream=5),
    }.items():
        yield Try(f"{name}, forbidden", (start + bad,))
        yield Try(f"{name}, forbidden by HTTP/1.1", (start + _HTTP1,))
    upgrade_headers = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: %s\r\n\r\n"
    upgrade = b"GET /api/x HTTP/1.1\r\nhost: a\r\n" + upgrade_headers
    for settings in (b"", b"AA", b"AAMAAABkAAQAoAAAAAIAAAAA", b"!", b"AA\r\nhttp2-settings: AA"):
        yield Try(f"h2c with {settings!r}", (upgrade % settings, opening() + request(*_BAD, stream=3)))
        yield Try(f"h2c with {settings!r}, too early", (upgrade % settings + opening() + request(*_BAD, stream=3),))
        yield Try(f"h2c with {settings!r}, forbidden", (upgrade.replace(b"/api/x", b"/secret") % settings + opening(),))
    yield Try("an allowed request, then HTTP/2", (b"GET /api/x HTTP/1.1\r\nhost: a\r\n\r\n" + opening() + bad,))


def mixed(seed: int, number: int) -> Iterator[Try]:
    """Yield `number` random connections with odd frames."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    frames = [data for _, data in _frames()]
    requests = [request(*headers, data=body) for _, headers, body in _requests()]
    for count in range(number):
        some = [random.choice(random.choice((frames, requests))) for _ in range(random.randint(2, 5))]
        data = bytearray(b"".join(some) + request(*_BAD, stream=9))
        if random.random() < 0.3:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        yield Try(f"mixed {seed}/{count}", (opening() + bytes(data),))
