"""The answers of a proxy to each shape of a request: refused, denied, or passed on with the same meaning."""

from __future__ import annotations

import asyncio
import re

from eastgate.local.machine.connection import HttpRequest
from tests.attacks.placements import HOST, Attacked, Placement
from tests.attacks.policies import ONLY_API, only_accounts
from tests.attacks.shapes import SHAPES
from tests.attacks.trying import send_and_receive

# The answers to each shape, except those with 400
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
    "an upgrade to a websocket that does not come": "101",
    "an upgrade to a websocket with a length": "101",
    "an upgrade to h2c": "200 400",
    "a body that is announced and expected": "100 200",
    "HTTP/1.0 with chunks": "200",
    # Not HTTP for the proxy, so denied at a port whose policies decide requests
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
# A gateway passes on the request without the upgrade
_GATEWAY_ANSWERS = {"an upgrade to something else": "200"}
# This placement reads all bytes as HTTP without websockets, and another host has no route
_OUTBOUND_ANSWERS = {
    "HTTP/1.0 with chunks": "426",
    "a bare CR in the path": "400",
    "a NUL in the path": "400",
    "blank lines before": "403",
    "blanks before": "400",
    "the whole address of another host": "404",
    "the whole address, allowed, with another host": "404",
    "the whole address that climbs": "404",
    "the whole address with a user": "404",
    "a path without a slash": "400",
    "CONNECT to a host": "404",
    "two paths": "400",
    "HTTP/0.9": "426",
    "HTTP/0.9, allowed": "426",
    "HTTP/1.0": "426",
    "HTTP/1.2": "426",
    "HTTP/2.0 in a request line": "426",
    "HTTP/3 in a request line": "400",
    "two hosts": "404",
    "an upgrade to a websocket that does not come": "403",
    "an upgrade to a websocket with a length": "403",
    "a path of 100 kB": "431",
}


def _expected(placement: Placement) -> dict[str, str]:
    """Return the answers to each shape at a placement."""
    others = _GATEWAY_ANSWERS if placement.is_gateway else {} if placement.any_host else _OUTBOUND_ANSWERS
    return {name: others.get(name, _ANSWERS.get(name, "400")) for name in SHAPES}


async def _answers(attacked: Attacked, data: bytes, wanted: str) -> str:
    """Return the statuses of as many answers as `wanted` has, or of all until the proxy closes."""
    received, found = b"", list[bytes]()
    async with await attacked.open() as connection:
        await connection.send(data)
        while len(found) < max(1, len(wanted.split())) and (more := (await connection.raw(8, enough=1)).body):
            received += more
            found = re.findall(rb"HTTP/1\.[01] (\d{3})", received)
    return b" ".join(found).decode()


def test_no_shape_of_a_request_gets_a_forbidden_one_through(attacked: Attacked, placement: Placement) -> None:
    attacked.enforce(ONLY_API)
    attacked.application.arrived.clear()
    expected = _expected(placement)

    async def send() -> list[str]:
        return await asyncio.gather(*(_answers(attacked, SHAPES[name], wanted) for name, wanted in expected.items()))

    assert dict(zip(SHAPES, attacked.run(send()), strict=True)) == expected
    assert {f"{each.method} {each.target}" for each in attacked.application.arrived} == {"GET /api/x", "POST /api/x"}


def test_who_may_do_nothing_gets_no_shape_through(attacked: Attacked) -> None:
    attacked.enforce(only_accounts("nobody"))
    attacked.application.arrived.clear()

    async def send() -> None:
        await asyncio.gather(*(send_and_receive(attacked.open(), (data,)) for data in SHAPES.values()))

    attacked.run(send())
    assert attacked.application.arrived == []


def test_each_of_several_requests_that_come_at_once_is_decided_by_itself(attacked: Attacked) -> None:
    """Send at most two denied requests: Envoy closes a connection on which more than two of its own answers wait."""
    attacked.enforce(ONLY_API)
    attacked.application.arrived.clear()

    async def send(paths: list[str]) -> list[int]:
        async with await attacked.open() as connection:
            await connection.send(b"".join(HttpRequest(path=path).encode(HOST) for path in paths))
            return [(await connection.response()).status for _ in paths]

    for paths, statuses in (
        (["/api/1", "/secret"], [200, 403]),
        (["/secret", "/api/2"], [403, 200]),
        (["/api/3"] * 20, [200] * 20),
        (["/api/4", "/api/../secret"], [200, 403]),
    ):
        assert attacked.run(send(paths)) == statuses
    targets = [each.target for each in attacked.application.arrived]
    assert targets == ["/api/1", "/api/2", *["/api/3"] * 20, "/api/4"]


def test_headers_that_come_more_than_once_are_one_value_for_policy_and_application(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    attacked.application.arrived.clear()
    sent = HttpRequest(path="/api/x", headers=(("host", HOST), ("x", "1"), ("X", "2"), ("x", "")))

    async def send() -> int:
        async with await attacked.open() as connection:
            await connection.send(sent)
            return (await connection.response()).status

    assert attacked.run(send()) == 200
    [arrived] = attacked.application.arrived
    assert [value for name, value in arrived.headers if name.lower() == "x"] in (["1", "2", ""], ["1,2,"])
