"""What the proxy answers to each shape of a request: which is refused, denied, or let through as what it is."""

from __future__ import annotations

import asyncio
import re

from eastgate.mesh.local.connection import HttpRequest
from tests.attacks.shapes import SHAPES
from tests.faults.meshes import Running, running
from tests.faults.recorder import Recorder
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
    "HTTP/1.0 with chunks": "200",
    # No HTTP to the proxy, and so nothing that is let in where requests are decided
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
    "two hosts": "400",
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
