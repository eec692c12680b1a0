"""Bytes that two readers may read as different requests. `/api/` is allowed, `/secret` is not."""

from __future__ import annotations

__all__ = ["SHAPES", "h2_request"]

_SECRET = b"GET /secret HTTP/1.1\r\nhost: a\r\n\r\n"


def _get(path: bytes, *headers: bytes, version: bytes = b"HTTP/1.1", host: bool = True) -> bytes:
    lines = [b"GET " + path + b" " + version, *([b"host: a"] if host else []), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _post(*headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([b"POST /api/x HTTP/1.1", b"host: a", *headers]) + b"\r\n\r\n" + body


_LENGTH = b"content-length: %d" % len(_SECRET)
_CHUNKED = b"transfer-encoding: chunked"
_CHUNKS = b"0\r\n\r\n" + _SECRET
_UPGRADE = (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: eA==")

SHAPES: dict[str, bytes] = {
    # Where a body ends
    "content-length and chunked": _post(b"content-length: %d" % len(_CHUNKS), _CHUNKED, body=_CHUNKS),
    "chunked and content-length": _post(_CHUNKED, b"content-length: %d" % len(_CHUNKS), body=_CHUNKS),
    "content-length of the last chunk only, and chunked": _post(b"content-length: 5", _CHUNKED, body=_CHUNKS),
    "two content-lengths": _post(b"content-length: 0", _LENGTH, body=_SECRET),
    "two content-lengths, the long one first": _post(_LENGTH, b"content-length: 0", body=_SECRET),
    "two content-lengths in one": _post(b"content-length: 0, %d" % len(_SECRET), body=_SECRET),
    "the same content-length twice": _post(_LENGTH, _LENGTH, body=_SECRET),
    "a content-length with a sign": _post(b"content-length: +%d" % len(_SECRET), body=_SECRET),
    "a content-length in hexadecimal": _post(b"content-length: 0x%x" % len(_SECRET), body=_SECRET),
    "a negative content-length": _post(b"content-length: -1", body=_SECRET),
    "a content-length beyond all bounds": _post(b"content-length: 18446744073709551616", body=_SECRET),
    "an empty content-length": _post(b"content-length:", body=_SECRET),
    "content-length before a blank": _post(b"content-length : %d" % len(_SECRET), body=_SECRET),
    "content-length with LF only": b"POST /api/x HTTP/1.1\nhost: a\ncontent-length: 0\n\n" + _SECRET,
    "content-length on a folded line": _post(b"x: y", b" content-length: %d" % len(_SECRET), body=_SECRET),
    "transfer-encoding on a folded line": _post(b"transfer-encoding:", b" chunked", body=_CHUNKS),
    "an unknown transfer-encoding": _post(b"transfer-encoding: xchunked", body=_CHUNKS),
    "chunked, but not at the end": _post(b"transfer-encoding: chunked, identity", body=_CHUNKS),
    "chunked twice": _post(_CHUNKED, _CHUNKED, body=_CHUNKS),
    "transfer-encoding in capitals, and content-length": _post(b"TRANSFER-ENCODING: CHUNKED", _LENGTH, body=_CHUNKS),
    "transfer-encoding after a vertical tab": _post(b"transfer-encoding:\x0bchunked", _LENGTH, body=_SECRET),
    "a chunk with a size beyond all bounds": _post(_CHUNKED, body=b"1" + b"0" * 16 + b"\r\n" + _CHUNKS),
    "a chunk with a negative size": _post(_CHUNKED, body=b"-1\r\n" + _CHUNKS),
    "a chunk extension with LF only": _post(_CHUNKED, body=b"5;a\nhello\r\n" + _CHUNKS),
    "a chunk that is longer than it says": _post(_CHUNKED, body=b"1\r\nhello\r\n" + _CHUNKS),
    "trailers with a request": _post(_CHUNKED, body=b"0\r\nx: y\r\nGET /secret HTTP/1.1\r\nhost: a\r\n\r\n"),
    "trailers with a path": _post(_CHUNKED, body=b"0\r\n:path: /secret\r\nhost: b\r\ncontent-length: 5\r\n\r\n"),
    "a GET with a body": _get(b"/api/x", _LENGTH) + _SECRET,
    "a body that is announced and expected": _post(b"expect: 100-continue", _LENGTH, body=_SECRET),
    "HTTP/1.0 with chunks": _post(_CHUNKED, body=_CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    # Where a line ends
    "LF only": _SECRET.replace(b"\r\n", b"\n"),
    "a bare CR in a header": _get(b"/api/x", b"x: y\rGET /secret HTTP/1.1\rhost: a\r"),
    "a bare CR in the path": _get(b"/api/x\rGET /secret"),
    "a folded header": _get(b"/api/x", b"x: y", b" GET /secret HTTP/1.1", b" host: a"),
    "a NUL in a header": _get(b"/api/x", b"x: y\0z"),
    "a NUL in the path": _get(b"/api/x\0/../../secret"),
    "blank lines before": b"\r\n\r\n" + _SECRET,
    "blanks before": b" " + _SECRET,
    "a header without a name": _get(b"/api/x", b": /secret"),
    "a header that looks like a pseudo-header": _get(b"/api/x", b":path: /secret", b":method: DELETE"),
    "a name in brackets": _get(b"/secret", b"(x): y"),
    # What is asked for
    "the whole address of another host": _get(b"http://b/secret"),
    "the whole address, allowed, with another host": _get(b"http://b/api/x"),
    "the whole address that climbs": _get(b"http://b/api/../secret"),
    "the whole address without a path": _get(b"http://b?/api/x"),
    "the whole address with a user": _get(b"http://api/x@b/secret"),
    "the whole address of a file": _get(b"file:///secret"),
    "two slashes and a host": _get(b"//b/secret"),
    "a path without a slash": _get(b"secret"),
    "an asterisk": _get(b"*").replace(b"GET", b"OPTIONS"),
    "CONNECT to a host": b"CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n" + _SECRET,
    "CONNECT to a path": b"CONNECT /api/x HTTP/1.1\r\nhost: a\r\n\r\n" + _SECRET,
    "TRACE": _SECRET.replace(b"GET", b"TRACE"),
    "a method in small letters": _SECRET.replace(b"GET", b"get"),
    "a method of nobody": _SECRET.replace(b"GET", b"FOO"),
    "two paths": b"GET /api/x /secret HTTP/1.1\r\nhost: a\r\n\r\n",
    "two blanks": b"GET  /secret HTTP/1.1\r\nhost: a\r\n\r\n",
    "tabs": b"GET\t/secret\tHTTP/1.1\r\nhost: a\r\n\r\n",
    "HTTP/0.9": b"GET /secret\r\n",
    "HTTP/0.9, allowed": b"GET /api/x\r\n",
    "HTTP/1.0": b"GET /secret HTTP/1.0\r\n\r\n",
    "HTTP/1.2": _get(b"/secret", version=b"HTTP/1.2"),
    "HTTP/2.0 in a request line": _get(b"/secret", version=b"HTTP/2.0"),
    "HTTP/3 in a request line": _get(b"/secret", version=b"HTTP/3"),
    "no host": _get(b"/secret", host=False),
    "two hosts": _get(b"/secret", b"host: b"),
    "a host with a path": b"GET /secret HTTP/1.1\r\nhost: a/api/x\r\n\r\n",
    # Another protocol on the same connection
    "an upgrade to h2c": _get(b"/api/x", b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AA")
    + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + _SECRET,
    "an upgrade to a websocket that does not come": _get(b"/api/x", *_UPGRADE) + _SECRET,
    "an upgrade to a websocket with a length": _get(b"/api/x", *_UPGRADE, b"content-length: 0") + _SECRET,
    "an upgrade to a websocket, forbidden": _get(b"/secret", *_UPGRADE),
    "an upgrade to something else": _get(b"/api/x", b"connection: upgrade", b"upgrade: foo") + _SECRET,
    # Much
    "a header of 100 kB": _get(b"/secret", b"x: " + b"y" * 100_000),
    "a path of 100 kB": _get(b"/api/" + b"y" * 100_000 + b"/../../secret"),
    "a path of 10 kB that climbs": _get(b"/api/" + b"y/" * 2500 + b"../" * 2502 + b"secret"),
    "2000 headers": _get(b"/secret", *(b"x%d: y" % number for number in range(2000))),
    "2000 times the same header": _get(b"/secret", *([b"x: y"] * 2000)),
    "a name of 70 kB": _get(b"/secret", b"x" * 70_000 + b": y"),
}


# HTTP/2, by hand: a library would refuse to write most of this


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _literal(name: bytes, value: bytes) -> bytes:
    assert len(name) < 127
    assert len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def h2_request(*headers: tuple[bytes, bytes], data: bytes | None = None) -> bytes:
    """A connection's preface and one request with exactly these headers, pseudo-headers among them."""
    block = b"".join(_literal(name, value) for name, value in headers)
    end = 0x1 if data is None else 0
    request = _frame(1, 0x4 | end, 1, block) + (_frame(0, 0x1, 1, data) if data is not None else b"")
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"") + request
