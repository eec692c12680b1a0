"""Whatever shape a request has, the application never sees one that policy denies."""

from __future__ import annotations

import asyncio
import re

from eastgate.mesh.local.calling import HttpRequest
from tests.faults.meshes import Running, running
from tests.faults.recorder import Recorder
from tests.faults.shapes import SHAPES, h2_request
from tests.faults.worlds import HTTP, allow, world

_BASE = [*world(), allow("all", "alice"), allow("api", "alice", paths=["/api/*"])]
# The answers to each shape that is not simply refused with 400
_ANSWERS = {
    "content-length with LF only": "200 403",
    "content-length on a folded line": "200 403",
    "transfer-encoding on a folded line": "200 403",
    "a chunk that is longer than it says": "200 403",
    "an unknown transfer-encoding": "501",
    "chunked, but not at the end": "501",
    "chunked twice": "501",
    "a GET with a body": "200",
    "a bare CR in a header": "200",
    "a folded header": "200",
    "the whole address, allowed, with another host": "200",
    "an upgrade to a websocket that does not come": "200",
    "an upgrade to a websocket with a length": "200",
    "an upgrade to h2c": "200 400",
    "a body that is announced and expected": "100 200",
    # No HTTP to the proxy, and so nothing that is let in where requests are decided
    "HTTP/1.0 with chunks": "",
    "a bare CR in the path": "",
    "a NUL in the path": "",
    "blank lines before": "",
    "blanks before": "",
    "a path without a slash": "",
    "two paths": "",
    "HTTP/3 in a request line": "",
    "a path of 100 kB": "",
    # Read, and denied
    "LF only": "403",
    "the whole address of another host": "403",
    "the whole address that climbs": "403",
    "the whole address with a user": "403",
    "two slashes and a host": "403",
    "CONNECT to a host": "403",
    "TRACE": "403",
    "two blanks": "403",
    "tabs": "403",
    "HTTP/1.2": "403",
    "HTTP/2.0 in a request line": "403",
    "two hosts": "403",
    "an upgrade to a websocket, forbidden": "403",
    "an upgrade to something else": "403",
    "a path of 10 kB that climbs": "403",
    "the whole address without a path": "404",
    "an asterisk": "404",
    "a header of 100 kB": "431",
    "2000 headers": "431",
    "2000 times the same header": "431",
    "a name of 70 kB": "431",
}


async def _answers(mesh: Running, data: bytes, wanted: str) -> str:
    """The statuses of as many answers as are wanted, or of all until the proxy closes."""
    heard, found = b"", list[bytes]()
    async with await mesh.open("alice") as connection:
        await connection.send(data)
        while len(found) < max(1, len(wanted.split())) and (more := (await connection.raw(8, enough=1)).body):
            heard += more
            found = re.findall(rb"HTTP/1\.[01] (\d{3})", heard)
    return b" ".join(found).decode()


async def test_no_shape_of_a_request_gets_a_forbidden_one_through() -> None:
    async with running(*_BASE, apps={HTTP: (app := Recorder())}) as mesh:
        expected = {name: _ANSWERS.get(name, "400") for name in SHAPES}
        heard = await asyncio.gather(*(_answers(mesh, SHAPES[name], wanted) for name, wanted in expected.items()))
        assert dict(zip(SHAPES, heard, strict=True)) == expected
        assert set(app.targets) == {"GET /api/x", "POST /api/x"}
        # Nobody else gets any of it through, not even what alice may do.
        before = len(app.arrived)
        await asyncio.gather(*(mesh.exchange("bob", data, quiet=0.5) for data in SHAPES.values()))
        assert len(app.arrived) == before


async def test_each_of_several_requests_that_come_at_once_is_decided_by_itself() -> None:
    """Envoy closes a connection on which more than two answers of its own wait to be sent: so not more than two."""
    async with running(*_BASE, apps={HTTP: (app := Recorder())}) as mesh:
        for paths, statuses in (
            (["/api/1", "/secret"], [200, 403]),
            (["/secret", "/api/2"], [403, 200]),
            (["/api/3"] * 20, [200] * 20),
            (["/api/4", "/api/../secret"], [200, 403]),
        ):
            async with await mesh.open("alice") as connection:
                await connection.send(b"".join(HttpRequest(path=path).encode("a") for path in paths))
                assert [(await connection.response()).status for _ in paths] == statuses
        assert app.targets == ["GET /api/1", "GET /api/2", *["GET /api/3"] * 20, "GET /api/4"]


async def test_headers_that_come_more_than_once_are_one_value_for_policy_and_application() -> None:
    async with running(*_BASE, apps={HTTP: (app := Recorder())}) as mesh:
        headers = (("x", "1"), ("X", "2"), ("x", ""))
        assert (await mesh.call("alice", HttpRequest(path="/api/x", headers=headers))).status == 200
        assert [value for name, value in app.arrived[0].headers if name.lower() == "x"] in (["1", "2", ""], ["1,2,"])


_METHOD, _SCHEME, _AUTHORITY = (b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a")
_API, _SECRET = (b":path", b"/api/x"), (b":path", b"/secret")


_H2_SHAPES: dict[str, tuple[tuple[bytes, bytes], ...]] = {
    "forbidden": (_METHOD, _SCHEME, _SECRET, _AUTHORITY),
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


async def test_no_shape_of_http2_gets_a_forbidden_request_through() -> None:
    """The application speaks no HTTP/2, so that it counts who gets there and not what."""
    async with running(*_BASE, apps={HTTP: (app := Recorder())}) as mesh:
        for name, headers in _H2_SHAPES.items():
            await mesh.exchange("alice", h2_request(*headers), quiet=0.1)
            assert app.connections == 0, name
        await mesh.exchange("alice", h2_request(_METHOD, _SCHEME, _API, _AUTHORITY), quiet=0.2)
        assert app.connections > 0
