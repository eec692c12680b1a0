"""Requests that arrive in two pieces with a pause. `/api/` is allowed until the policies change."""

from __future__ import annotations

from collections.abc import Mapping

from tests.attacks.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PREFACE,
    SETTINGS,
    Field,
    frame,
    literal,
    opening,
    request,
)
from tests.attacks.shapes import SECRET, get

__all__ = ["HALVES", "NOT_DECIDED", "OPEN"]

_FIELDS: tuple[Field, ...] = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/api/x"),
    (b":authority", b"a"),
)
_BLOCK = b"".join(literal(name, value) for name, value in _FIELDS)
_WHOLE = get(b"/api/x")

# No proxy can have decided after the first piece: the policies at the second piece decide
NOT_DECIDED: Mapping[str, tuple[bytes, bytes]] = {
    "nothing": (b"", _WHOLE),
    "one byte": (_WHOLE[:1], _WHOLE[1:]),
    "half a line": (_WHOLE[:9], _WHOLE[9:]),
    "half of the headers": (_WHOLE[:-6], _WHOLE[-6:]),
    "all but one byte": (_WHOLE[:-1], _WHOLE[-1:]),
    "a request, and half of another": (_WHOLE + _WHOLE[:9], _WHOLE[9:]),
    "half a preface": (PREFACE[:20], PREFACE[20:] + frame(SETTINGS, 0, 0) + request(*_FIELDS)),
    "a preface": (opening(), request(*_FIELDS)),
    "half of a header block": (
        opening() + frame(HEADERS, END_STREAM, 1, _BLOCK[:9]),
        frame(CONTINUATION, END_HEADERS, 1, _BLOCK[9:]),
    ),
    "headers without their end": (
        opening() + frame(HEADERS, END_STREAM, 1, _BLOCK),
        frame(CONTINUATION, END_HEADERS, 1),
    ),
    "a goodbye": (opening() + frame(GOAWAY, 0, 0, b"\0" * 8), request(*_FIELDS)),
}

# A proxy has allowed the request, and the application waits for the rest
_LENGTH = b"POST /api/x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n"
OPEN: Mapping[str, tuple[bytes, bytes]] = {
    "half a body": (_LENGTH + b"\r\n1", b"2"),
    "a body that is to be waited for": (_LENGTH + b"expect: 100-continue\r\n\r\n", b"12"),
    "half of the chunks": (
        b"POST /api/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\n1\r\n",
        b"0\r\n\r\n",
    ),
    "half of the data": (
        opening() + frame(HEADERS, END_HEADERS, 1, _BLOCK) + frame(DATA, 0, 1, b"1"),
        frame(DATA, END_STREAM, 1, b"2"),
    ),
}

# Bytes that a client sends before it closes its half of the connection, and whether they are a complete request
HALVES: Mapping[str, tuple[bytes, bool]] = {
    "a request": (_WHOLE, True),
    "the last request": (get(b"/api/x", b"connection: close"), True),
    "a request of HTTP/2": (opening() + request(*_FIELDS), True),
    "a request, and a forbidden one": (_WHOLE + SECRET, True),
    "a forbidden request, and another": (SECRET + _WHOLE, True),
    "an upgrade, and a forbidden request": (
        get(b"/api/x", b"connection: upgrade", b"upgrade: websocket") + SECRET,
        True,
    ),
    "nothing": (b"", False),
    "half of the headers": (_WHOLE[:-6], False),
    "half a preface": (PREFACE[:20], False),
    "half a body": (_LENGTH + b"\r\n1", False),
    "half of a header block": (opening() + frame(HEADERS, END_STREAM, 1, _BLOCK[:9]), False),
}
