"""The answers to a caller reveal nothing about policies, and little about the proxy."""

from __future__ import annotations

import re

from eastgate.local.machine.connection import HttpRequest
from tests.faults.meshes import running
from tests.faults.worlds import allow, deny, world

_NAMES = ("quince", "medlar", "damson", "bullace")
_BASE = [
    *world(),
    allow("quince", "alice", "bob"),
    allow("medlar", "alice", paths=["/api/*", "/open/*"]),
    deny("damson", "alice", paths=["/api/private/*"]),
    deny("bullace", "alice", methods=["DELETE"]),
]
_DENIED = [
    ("alice", HttpRequest(path="/api/private/z")),
    ("alice", HttpRequest(path="/elsewhere")),
    ("alice", HttpRequest("DELETE", "/open/x")),
    ("alice", HttpRequest("DELETE", "/api/private/z")),
    ("bob", HttpRequest(path="/api/x")),
    ("bob", HttpRequest("POST", "/api/private/z")),
]
_DATE = re.compile(rb"date: [^\r]+\r\n")


async def test_denials_of_different_policies_are_the_same_byte_for_byte() -> None:
    async with running(*_BASE) as mesh:
        answers = set()
        for who, request in _DENIED:
            received = await mesh.exchange(who, request.encode("a"), quiet=0.1)
            answers.add(_DATE.sub(b"", received))
        assert len(answers) == 1, answers
        [received] = answers
        assert received.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert received.endswith(b"\r\n\r\nforbidden\n")
        assert set(re.findall(rb"\r\n([^:\r]+):", received)) == {b"content-length", b"content-type"}
        # A different policy denied each request, as the proxy's log shows.
        assert len({one.decision for one in mesh.seen() if one.status == 403}) == 3


async def test_no_answer_names_a_policy_or_the_proxy() -> None:
    async with running(*_BASE) as mesh:
        asked = [*_DENIED, ("alice", HttpRequest(path="/api/x")), ("alice", HttpRequest(path="/api%2fx"))]
        received = [await mesh.exchange(who, request.encode("a"), quiet=0.1) for who, request in asked]
        received += [
            await mesh.exchange("alice", data, quiet=0.1) for data in (b"GET * HTTP/1.1\r\n\r\n", b"x", b"GET / X")
        ]
        for one in received:
            head = one.partition(b"\r\n\r\n")[0].lower()
            assert not [name for name in _NAMES if name.encode() in one]
            for word in (b"envoy", b"rbac", b"eastgate", b"spiffe", b"policy", b"server:"):
                assert word not in head, one
                assert word not in one.lower() or b" 200 " in head, one  # the application may send any text


async def test_a_caller_that_may_not_connect_gets_no_byte() -> None:
    async with running(*_BASE) as mesh:
        for who in ("carol", None):
            called = await mesh.call(who, HttpRequest(path="/api/x").encode("a"), enough=None)
            assert (called.status, called.bytes_received) == (0, 0)
