"""Bytes that two readers may read as different requests, by generators. `/api/` is allowed, `/secret` is not."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.attacks.shapes import CHUNKED, CHUNKS, LENGTH, SECRET, SHAPES, get, post
from tests.attacks.trying import Try

__all__ = ["smuggled", "tries", "upgrades"]

# Headers that say how long a body is, which are no plain ones
_LENGTHS = [
    *(
        b"content-length: 0",
        b"content-length: 00",
        b"content-length: +0",
        b"content-length: -0",
        b"content-length: 0x0",
    ),
    *(
        b"content-length: 0 0",
        b"content-length: 0,0",
        b"content-length: 0, 0",
        b"content-length: 0;",
        b"content-length: 0.0",
    ),
    *(
        b"content-length:0",
        b"content-length:\t0",
        b"content-length: 0\t",
        b"content-length: \x0b0",
        b"content-length: 0\x0c",
    ),
    *(
        b"content-length : 0",
        b"content-length\t: 0",
        b" content-length: 0",
        b"\tcontent-length: 0",
        b"content-length:\r\n 0",
    ),
    *(b"content-length: 0\0", b"content-length\0: 0", b"content-length: \xd9\xa0", b"content-length: \xef\xbc\x90"),
    *(b"content_length: 0", b"content length: 0", b"content-length;: 0", b"content-length: ''", b'content-length: "0"'),
    *(
        b"Content-Length: 0",
        b"CONTENT-LENGTH: 0",
        b"x-content-length: 0",
        b"content-length: 1e0",
        b"content-length: 0 \r",
    ),
    *(b"content-length: 4294967296", b"content-length: 9223372036854775808", b"content-length: 0\r\ncontent-length: 0"),
    *(
        b"content-length: 0\r\ncontent-length: %d" % len(SECRET),
        b"content-length: %d\r\ncontent-length: 0" % len(SECRET),
    ),
    *(
        b"content-length: %d, 0" % len(SECRET),
        b"content-length: 0, %d" % len(SECRET),
        b"content-length: 0%d" % len(SECRET),
    ),
    *(
        b"x: y\ncontent-length: 0",
        b"x: y\rcontent-length: 0",
        b"x: y\r\r\ncontent-length: 0",
        b"x: \r\n\tcontent-length: 0",
    ),
]
_CODINGS = [
    *(
        b"chunked",
        b"Chunked",
        b"CHUNKED",
        b" chunked",
        b"chunked ",
        b"\tchunked",
        b"chunked\t",
        b"\x0bchunked",
        b"chunked\x0b",
    ),
    *(
        b"chunked\0",
        b"\0chunked",
        b"chunked\r",
        b"'chunked'",
        b'"chunked"',
        b"chunked;q=1",
        b"chunked;",
        b";chunked",
        b"chunked,",
    ),
    *(
        b",chunked",
        b"chunked, identity",
        b"identity, chunked",
        b"identity",
        b"gzip",
        b"gzip, chunked",
        b"chunked, gzip",
        b"chunked chunked",
    ),
    *(
        b"chunked, chunked",
        b"x-chunked",
        b"xchunked",
        b"chunkedx",
        b"chunke",
        b"chunk\xc3\xa9d",
        b"\xef\xbd\x83hunked",
        b"cow",
        b"",
        b" ",
    ),
    *(
        b"\r\n chunked",
        b"\r\n\tchunked",
        b"chun\r\n ked",
        b"identity\r\ntransfer-encoding: chunked",
        b"chunked\r\ntransfer-encoding: x",
    ),
    *(
        b"chunked\ntransfer-encoding: identity",
        b"deflate, chunked",
        b"compress",
        b"trailers, chunked",
        b"null",
        b"false",
        b"[chunked]",
    ),
]
_CODING_NAMES = [
    *(
        b"transfer-encoding: ",
        b"Transfer-Encoding:",
        b"transfer-encoding : ",
        b"transfer-encoding\t: ",
        b" transfer-encoding: ",
    ),
    *(
        b"transfer_encoding: ",
        b"transfer encoding: ",
        b"transfer-encoding\0: ",
        b"x\ntransfer-encoding: ",
        b"x: y\ntransfer-encoding: ",
    ),
    *(
        b"x: y\rtransfer-encoding: ",
        b"te: ",
        b"content-encoding: ",
        b"x-transfer-encoding: ",
        b"\xefransfer-encoding: ",
        b"transfer-encoding:\n ",
    ),
    *(b"connection: transfer-encoding\r\ntransfer-encoding: ", b"connection: content-length\r\ntransfer-encoding: "),
]
# First lines of chunks, of a chunked body that ends there for some reader
_SIZES = [
    *(
        b"0",
        b"00",
        b"0000000000000000000000",
        b"0x0",
        b"0X0",
        b"+0",
        b"-0",
        b" 0",
        b"\t0",
        b"0 ",
        b"0\t",
        b"0;",
        b"0;a",
        b"0;a=b",
        b"0 ;a",
    ),
    *(
        b'0;a="b"',
        b'0;a="\r\n"',
        b"0;a\rb",
        b"0;a\nb",
        b"0;a\0b",
        b"0\0",
        b"0\r",
        b"0\x0b",
        b"0,0",
        b"0.0",
        b"0h",
        b"",
        b"-",
        b"g",
        b"0_0",
    ),
    *(
        b"\xef\xbc\x90",
        b"\xd9\xa0",
        b"fffffffffffffffff",
        b"10000000000000000",
        b"8000000000000000",
        b"7fffffffffffffff",
        b"-1",
        b"0" * 5000,
    ),
    *(b"0;" + b"a" * 5000, b"0;a=" + b"b" * 20_000, b'0;a="' + SECRET + b'"', b"0\r\n\r\n0"),
]
_BREAKS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\r\n",
    b"\n\r",
    b"\r\n\n",
    b"\n\n",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\0\r\n",
    b"\x0b",
    b"\x0c",
]
_TRAILERS = [
    *(
        b"x: y",
        b"content-length: 100",
        b"transfer-encoding: chunked",
        b"host: b",
        b":path: /secret",
        b":method: DELETE",
        b": y",
        b"x",
    ),
    *(
        b"x:",
        b" x: y",
        b"x : y",
        b"x\0: y",
        b"x: y\0",
        b"connection: close",
        b"upgrade: websocket",
        b"GET /secret HTTP/1.1",
        b"x: y\rz: w",
    ),
    *(
        b"authorization: x",
        b"x-envoy-original-path: /secret",
        b"x-forwarded-for: 1.2.3.4",
        b"te: trailers",
        b"x: " + b"y" * 70_000,
    ),
]
_LINES = [
    *(
        b"get /secret HTTP/1.1",
        b"GET /secret http/1.1",
        b"GET /secret HTTP/1.1 ",
        b"GET /secret  HTTP/1.1",
        b"GET /secret\tHTTP/1.1",
    ),
    *(
        b" GET /secret HTTP/1.1",
        b"\tGET /secret HTTP/1.1",
        b"GET\x0b/secret HTTP/1.1",
        b"GET /secret\x0cHTTP/1.1",
        b"GET\xa0/secret HTTP/1.1",
    ),
    *(
        b"GET /secret HTTP/01.1",
        b"GET /secret HTTP/1.01",
        b"GET /secret HTTP/1.1.1",
        b"GET /secret HTTP/1,1",
        b"GET /secret HTTP/+1.1",
    ),
    *(
        b"GET /secret HTTP/1",
        b"GET /secret HTTP/",
        b"GET /secret HTTP",
        b"GET /secret HTP/1.1",
        b"GET /secret HTTPS/1.1",
        b"GET /secret HTTP/0.9",
    ),
    *(
        b"GET /secret HTTP/9.9",
        b"GET /secret HTTP/2",
        b"GET /secret HTTP/1.1\0",
        b"GET /secret\0 HTTP/1.1",
        b"GET\0 /secret HTTP/1.1",
    ),
    *(
        b"G\xc9T /secret HTTP/1.1",
        b"GET /secr\xc3\xa9t HTTP/1.1",
        b"\xef\xbb\xbfGET /secret HTTP/1.1",
        b"GET /secret#x HTTP/1.1",
    ),
    *(
        b"GET /secret? HTTP/1.1",
        b"GET ?/secret HTTP/1.1",
        b"GET #/secret HTTP/1.1",
        b"GET  HTTP/1.1",
        b"GET HTTP/1.1",
        b"/secret",
        b"GET",
        b"GET /secret",
    ),
    *(
        b"GET a/secret HTTP/1.1",
        b"GET a:80 HTTP/1.1",
        b"GET a:80/secret HTTP/1.1",
        b"GET secret:// HTTP/1.1",
        b"GET http:/secret HTTP/1.1",
    ),
    *(
        b"GET http:///secret HTTP/1.1",
        b"GET http://a HTTP/1.1",
        b"GET http://a#/secret HTTP/1.1",
        b"GET http://a\\secret HTTP/1.1",
    ),
    *(
        b"GET http://a@b/secret HTTP/1.1",
        b"GET http://a:b/secret HTTP/1.1",
        b"GET http://[::1]/secret HTTP/1.1",
        b"GET ws://a/secret HTTP/1.1",
    ),
    *(
        b"GET javascript:/secret HTTP/1.1",
        b"GET \\secret HTTP/1.1",
        b"GET \\\\a\\secret HTTP/1.1",
        b"GET * HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
    ),
    *(
        b"CONNECT a:80 HTTP/1.1",
        b"CONNECT /secret HTTP/1.1",
        b"CONNECT http://a/secret HTTP/1.1",
        b"CONNECT * HTTP/1.1",
        b"TRACE /secret HTTP/1.1",
    ),
    *(
        b"TRACK /secret HTTP/1.1",
        b"DEBUG /secret HTTP/1.1",
        b"M-SEARCH /secret HTTP/1.1",
        b"PROPFIND /secret HTTP/1.1",
        b"PRI /secret HTTP/1.1",
    ),
    *(
        b"PRI * HTTP/2.0",
        b"SSTP_DUPLEX_POST /secret HTTP/1.1",
        b"GET,POST /secret HTTP/1.1",
        b"G" * 9000 + b" /secret HTTP/1.1",
        b": /secret HTTP/1.1",
    ),
]
_NAMES = [
    *(
        b"x: y",
        b"x : y",
        b"x\t: y",
        b" x: y",
        b"\tx: y",
        b"x",
        b"x y: z",
        b"x\0: y",
        b"x\x7f: y",
        b"\x80: y",
        b"x\xc3\xa9: y",
        b": y",
        b"::y",
        b":path: /secret",
    ),
    *(
        b":authority: b",
        b":method: DELETE",
        b":scheme: https",
        b":status: 200",
        b"(x): y",
        b"x@: y",
        b"x/y: z",
        b'"x": y',
        b"x=y: z",
        b"{x}: y",
        b"[x]: y",
    ),
    *(
        b"x: \0",
        b"x: \x01",
        b"x: \x1b[2J",
        b"x: \x7f",
        b"x: \xff",
        b"x: y\rz: w",
        b"x: y\nz: w",
        b"x: y\r\n z",
        b"x:\r\n\r\n",
        b"X" * 300 + b": y",
    ),
    *(
        b"host: b",
        b"Host: b",
        b"host : b",
        b"host\t: b",
        b"HOST: a",
        b" host: b",
        b"x: y\r\n host: b",
        b"host: a\r\nhost: a",
        b"host: a, b",
        b"host:",
    ),
]
_UPGRADES = [
    *(
        b"websocket",
        b"WebSocket",
        b"websocket, h2c",
        b"h2c",
        b"h2c, websocket",
        b"h2",
        b"tls/1.0",
        b"TLS/1.2, HTTP/1.1",
        b"HTTP/2.0",
        b"connect-udp",
    ),
    *(
        b"foo",
        b"",
        b"websocket/13",
        b"websocket\0",
        b" websocket ",
        b"\tchunked",
        b"http/1.1",
        b"HTTP/1.0",
        b"IRC/6.9",
        b"raw",
    ),
]


def _post_body(
    headers: list[bytes], body: bytes, *, line: bytes = b"POST /api/x HTTP/1.1", end: bytes = b"\r\n"
) -> bytes:
    return end.join([line, b"host: a", *headers]) + end * 2 + body


def tries() -> Iterator[Try]:
    """Every shape, and every part of a message in each of its odd forms."""
    for name, data in SHAPES.items():
        yield Try(name, (data,))
    whole = b"content-length: %d" % len(CHUNKS)
    for coding in _CODINGS:
        line = b"transfer-encoding: " + coding
        yield Try(f"coding {coding!r}", (_post_body([line], CHUNKS),))
        yield Try(f"coding {coding!r} after a length", (_post_body([whole, line], CHUNKS),))
        yield Try(f"coding {coding!r} before a short length", (_post_body([line, b"content-length: 5"], CHUNKS),))
    for written in _CODING_NAMES:
        yield Try(f"name {written!r}", (_post_body([written + b"chunked"], CHUNKS),))
        yield Try(f"name {written!r} and a length", (_post_body([whole, written + b"chunked"], CHUNKS),))
    for length in _LENGTHS:
        yield Try(f"length {length[:60]!r}", (_post_body([length], SECRET),))
        yield Try(f"length {length[:60]!r} and chunked", (_post_body([length, CHUNKED], CHUNKS),))
        yield Try(f"length {length[:60]!r} of a GET", (_post_body([length], SECRET, line=b"GET /api/x HTTP/1.1"),))
    for size in _SIZES:
        yield Try(f"size {size[:40]!r}", (_post_body([CHUNKED], size + b"\r\n\r\n" + SECRET),))
        yield Try(
            f"size {size[:40]!r} after a chunk", (_post_body([CHUNKED], b"1\r\na\r\n" + size + b"\r\n\r\n" + SECRET),)
        )
    for end in _BREAKS:
        yield Try(f"break {end!r} of every line", (SECRET.replace(b"\r\n", end),))
        yield Try(f"break {end!r} of a head", (_post_body([CHUNKED], CHUNKS, end=end),))
        yield Try(f"break {end!r} after a chunk's size", (_post_body([CHUNKED], b"1" + end + b"a\r\n" + CHUNKS),))
        yield Try(f"break {end!r} after a chunk", (_post_body([CHUNKED], b"1\r\na" + end + CHUNKS),))
        yield Try(f"break {end!r} after the last chunk", (_post_body([CHUNKED], b"0" + end + end + SECRET),))
        yield Try(f"break {end!r} between requests", (get(b"/api/x") + end + SECRET,))
        yield Try(
            f"break {end!r} in a value", (get(b"/api/x", b"x: y" + end + b"content-length: 0" + end + end + SECRET),)
        )
    for trailer in _TRAILERS:
        yield Try(f"trailer {trailer[:40]!r}", (_post_body([CHUNKED], b"0\r\n" + trailer + b"\r\n\r\n" + SECRET),))
        said = [CHUNKED, b"te: trailers", b"trailer: " + trailer.partition(b":")[0][:50].strip(b"\0 \r")]
        yield Try(f"trailer {trailer[:40]!r}, told of", (_post_body(said, b"0\r\n" + trailer + b"\r\n\r\n"),))
    for line in _LINES:
        yield Try(f"line {line[:40]!r}", (line + b"\r\nhost: a\r\n\r\n",))
        yield Try(f"line {line[:40]!r} after another", (get(b"/api/x") + line + b"\r\nhost: a\r\n\r\n",))
    for header in _NAMES:
        yield Try(f"header {header[:40]!r}", (get(b"/api/x", header) + SECRET,))
        yield Try(
            f"header {header[:40]!r} first", (b"GET /api/x HTTP/1.1\r\n" + header + b"\r\nhost: a\r\n\r\n" + SECRET,)
        )
    yield from upgrades()
    yield from _in_turn()


def upgrades() -> Iterator[Try]:
    """Upgrades, with a forbidden request behind them: an application that declines reads on."""
    for kind in _UPGRADES:
        more = (b"connection: upgrade", b"upgrade: " + kind, b"sec-websocket-version: 13", b"sec-websocket-key: eA==")
        yield Try(f"upgrade {kind!r}", (get(b"/api/x", *more), SECRET))
        yield Try(f"upgrade {kind!r}, too early", (get(b"/api/x", *more) + SECRET,))
        yield Try(f"upgrade {kind!r}, forbidden", (get(b"/secret", *more),))
        yield Try(f"upgrade {kind!r} with a body", (get(b"/api/x", *more, LENGTH) + SECRET, SECRET))


def _in_turn() -> Iterator[Try]:
    """Several requests on one connection, of which some are forbidden."""
    allowed, head = get(b"/api/x"), get(b"/api/x").replace(b"GET", b"HEAD")
    yield Try("allowed, forbidden", (allowed + SECRET,))
    yield Try("forbidden, allowed", (SECRET + allowed,))
    yield Try("a HEAD, forbidden", (head + SECRET,))
    yield Try("many allowed, forbidden", (allowed * 30 + SECRET,))
    yield Try("forbidden ten times", (SECRET * 10,))
    yield Try("allowed, forbidden, in turn", ((allowed + SECRET) * 5,))
    yield Try("byte by byte", tuple(bytes([byte]) for byte in allowed + SECRET))
    yield Try("a forbidden one in two halves", (SECRET[:9], SECRET[9:]))
    for place in range(1, len(SECRET), 3):
        yield Try(f"a cut at byte {place}", (allowed + SECRET[:place], SECRET[place:]))
    for verb in (
        b"100-continue",
        b"100-Continue",
        b"100-continue, x",
        b"200-ok",
        b"",
        b"100-continue\r\nexpect: 100-continue",
    ):
        expect = b"expect: " + verb
        yield Try(f"expect {verb!r}", (post(expect, LENGTH), SECRET))
        yield Try(f"expect {verb!r}, and chunks", (post(expect, CHUNKED), CHUNKS))
        yield Try(f"expect {verb!r}, not waited for", (post(expect, LENGTH, body=SECRET) + SECRET,))
        yield Try(f"expect {verb!r}, and no body", (get(b"/api/x", expect), SECRET))
    for connection in (
        b"close",
        b"keep-alive",
        b"Close",
        b"close, keep-alive",
        b"x",
        b"host",
        b"content-length",
        b"upgrade",
        b"te",
        b"",
    ):
        yield Try(f"connection {connection!r}", (get(b"/api/x", b"connection: " + connection) + SECRET,))
        old = get(b"/api/x", b"connection: " + connection, version=b"HTTP/1.0") + SECRET
        yield Try(f"connection {connection!r} of HTTP/1.0", (old,))
        body = post(b"connection: " + connection, LENGTH, body=SECRET)
        yield Try(f"connection {connection!r} with a body", (body + SECRET,))


def smuggled(seed: int, number: int) -> Iterator[Try]:
    """So many new requests of which some part of each is odd, with a forbidden request inside or behind."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    for count in range(number):
        headers = [
            random.choice(_LENGTHS),
            random.choice(_CODING_NAMES) + random.choice(_CODINGS),
            random.choice(_NAMES),
        ]
        headers = random.sample(headers, random.randint(1, 3))
        body = random.choice([SECRET, CHUNKS, random.choice(_SIZES) + random.choice(_BREAKS) + CHUNKS])
        end = random.choice([b"\r\n", b"\r\n", b"\r\n", *_BREAKS])
        line = random.choice([b"POST /api/x HTTP/1.1", b"GET /api/x HTTP/1.1", b"POST /api/x HTTP/1.0", *_LINES])
        data = _post_body(headers, body, line=line, end=end) + random.choice([b"", SECRET])
        cut = random.randrange(1, len(data))
        pieces = (data,) if random.random() < 0.7 else (data[:cut], data[cut:])
        yield Try(f"smuggled {seed}/{count}: {data[:300]!r}", pieces)
