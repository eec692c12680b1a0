"""Handwritten bytes that two readers may read as different requests. `/api/` is allowed, `/secret` is not."""

from __future__ import annotations

__all__ = ["CHUNKED", "CHUNKS", "LENGTH", "SECRET", "SHAPES", "UPGRADE", "get", "post"]

SECRET = b"GET /secret HTTP/1.1\r\nhost: a\r\n\r\n"


def get(path: bytes, *headers: bytes, version: bytes = b"HTTP/1.1", host: bool = True) -> bytes:
    lines = [b"GET " + path + b" " + version, *([b"host: a"] if host else []), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def post(*headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([b"POST /api/x HTTP/1.1", b"host: a", *headers]) + b"\r\n\r\n" + body


LENGTH = b"content-length: %d" % len(SECRET)
CHUNKED = b"transfer-encoding: chunked"
CHUNKS = b"0\r\n\r\n" + SECRET
UPGRADE = (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: eA==")

SHAPES: dict[str, bytes] = {
    # End of a body
    "content-length and chunked": post(b"content-length: %d" % len(CHUNKS), CHUNKED, body=CHUNKS),
    "chunked and content-length": post(CHUNKED, b"content-length: %d" % len(CHUNKS), body=CHUNKS),
    "content-length of the last chunk only, and chunked": post(b"content-length: 5", CHUNKED, body=CHUNKS),
    "two content-lengths": post(b"content-length: 0", LENGTH, body=SECRET),
    "two content-lengths, the long one first": post(LENGTH, b"content-length: 0", body=SECRET),
    "two content-lengths in one": post(b"content-length: 0, %d" % len(SECRET), body=SECRET),
    "the same content-length twice": post(LENGTH, LENGTH, body=SECRET),
    "a content-length with a sign": post(b"content-length: +%d" % len(SECRET), body=SECRET),
    "a content-length in hexadecimal": post(b"content-length: 0x%x" % len(SECRET), body=SECRET),
    "a negative content-length": post(b"content-length: -1", body=SECRET),
    "a content-length beyond all bounds": post(b"content-length: 18446744073709551616", body=SECRET),
    "an empty content-length": post(b"content-length:", body=SECRET),
    "content-length before a blank": post(b"content-length : %d" % len(SECRET), body=SECRET),
    "content-length with LF only": b"POST /api/x HTTP/1.1\nhost: a\ncontent-length: 0\n\n" + SECRET,
    "content-length on a folded line": post(b"x: y", b" content-length: %d" % len(SECRET), body=SECRET),
    "transfer-encoding on a folded line": post(b"transfer-encoding:", b" chunked", body=CHUNKS),
    "an unknown transfer-encoding": post(b"transfer-encoding: xchunked", body=CHUNKS),
    "chunked, but not at the end": post(b"transfer-encoding: chunked, identity", body=CHUNKS),
    "chunked twice": post(CHUNKED, CHUNKED, body=CHUNKS),
    "transfer-encoding in capitals, and content-length": post(b"TRANSFER-ENCODING: CHUNKED", LENGTH, body=CHUNKS),
    "transfer-encoding after a vertical tab": post(b"transfer-encoding:\x0bchunked", LENGTH, body=SECRET),
    "a chunk with a size beyond all bounds": post(CHUNKED, body=b"1" + b"0" * 16 + b"\r\n" + CHUNKS),
    "a chunk with a negative size": post(CHUNKED, body=b"-1\r\n" + CHUNKS),
    "a chunk extension with LF only": post(CHUNKED, body=b"5;a\nhello\r\n" + CHUNKS),
    "a chunk that is longer than it says": post(CHUNKED, body=b"1\r\nhello\r\n" + CHUNKS),
    "trailers with a request": post(CHUNKED, body=b"0\r\nx: y\r\nGET /secret HTTP/1.1\r\nhost: a\r\n\r\n"),
    "trailers with a path": post(CHUNKED, body=b"0\r\n:path: /secret\r\nhost: b\r\ncontent-length: 5\r\n\r\n"),
    "a GET with a body": get(b"/api/x", LENGTH) + SECRET,
    "a body that is announced and expected": post(b"expect: 100-continue", LENGTH, body=SECRET),
    "HTTP/1.0 with chunks": post(CHUNKED, body=CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    # End of a line
    "LF only": SECRET.replace(b"\r\n", b"\n"),
    "a bare CR in a header": get(b"/api/x", b"x: y\rGET /secret HTTP/1.1\rhost: a\r"),
    "a bare CR in the path": get(b"/api/x\rGET /secret"),
    "a folded header": get(b"/api/x", b"x: y", b" GET /secret HTTP/1.1", b" host: a"),
    "a NUL in a header": get(b"/api/x", b"x: y\0z"),
    "a NUL in the path": get(b"/api/x\0/../../secret"),
    "blank lines before": b"\r\n\r\n" + SECRET,
    "blanks before": b" " + SECRET,
    "a header without a name": get(b"/api/x", b": /secret"),
    "a header that looks like a pseudo-header": get(b"/api/x", b":path: /secret", b":method: DELETE"),
    "a name in brackets": get(b"/secret", b"(x): y"),
    # Target of a request
    "the whole address of another host": get(b"http://b/secret"),
    "the whole address, allowed, with another host": get(b"http://b/api/x"),
    "the whole address that climbs": get(b"http://b/api/../secret"),
    "the whole address without a path": get(b"http://b?/api/x"),
    "the whole address with a user": get(b"http://api/x@b/secret"),
    "the whole address of a file": get(b"file:///secret"),
    "two slashes and a host": get(b"//b/secret"),
    "a path without a slash": get(b"secret"),
    "an asterisk": get(b"*").replace(b"GET", b"OPTIONS"),
    "CONNECT to a host": b"CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n" + SECRET,
    "CONNECT to a path": b"CONNECT /api/x HTTP/1.1\r\nhost: a\r\n\r\n" + SECRET,
    "TRACE": SECRET.replace(b"GET", b"TRACE"),
    "a method in small letters": SECRET.replace(b"GET", b"get"),
    "an unknown method": SECRET.replace(b"GET", b"FOO"),
    "two paths": b"GET /api/x /secret HTTP/1.1\r\nhost: a\r\n\r\n",
    "two blanks": b"GET  /secret HTTP/1.1\r\nhost: a\r\n\r\n",
    "tabs": b"GET\t/secret\tHTTP/1.1\r\nhost: a\r\n\r\n",
    "HTTP/0.9": b"GET /secret\r\n",
    "HTTP/0.9, allowed": b"GET /api/x\r\n",
    "HTTP/1.0": b"GET /secret HTTP/1.0\r\n\r\n",
    "HTTP/1.2": get(b"/secret", version=b"HTTP/1.2"),
    "HTTP/2.0 in a request line": get(b"/secret", version=b"HTTP/2.0"),
    "HTTP/3 in a request line": get(b"/secret", version=b"HTTP/3"),
    "no host": get(b"/secret", host=False),
    "two hosts": get(b"/secret", b"host: b"),
    "a host with a path": b"GET /secret HTTP/1.1\r\nhost: a/api/x\r\n\r\n",
    # Another protocol on the same connection
    "an upgrade to h2c": get(b"/api/x", b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AA")
    + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + SECRET,
    "an upgrade to a websocket that does not come": get(b"/api/x", *UPGRADE) + SECRET,
    "an upgrade to a websocket with a length": get(b"/api/x", *UPGRADE, b"content-length: 0") + SECRET,
    "an upgrade to a websocket, forbidden": get(b"/secret", *UPGRADE),
    "an upgrade to something else": get(b"/api/x", b"connection: upgrade", b"upgrade: foo") + SECRET,
    # Large amounts
    "a header of 100 kB": get(b"/secret", b"x: " + b"y" * 100_000),
    "a path of 100 kB": get(b"/api/" + b"y" * 100_000 + b"/../../secret"),
    "a path of 10 kB that climbs": get(b"/api/" + b"y/" * 2500 + b"../" * 2502 + b"secret"),
    "2000 headers": get(b"/secret", *(b"x%d: y" % number for number in range(2000))),
    "2000 times the same header": get(b"/secret", *([b"x: y"] * 2000)),
    "a name of 70 kB": get(b"/secret", b"x" * 70_000 + b": y"),
}
