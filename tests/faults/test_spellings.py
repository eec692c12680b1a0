"""A character of a path is equal to its %XX form, in policies and in requests, through a real proxy."""

from __future__ import annotations

import pytest

from eastgate.authority.questions import Question
from eastgate.local.calls import make_calls
from tests.attacks.frames import opening, request
from tests.faults.linkerd import only_for_bob
from tests.faults.meshes import running
from tests.faults.recorder import Recorder
from tests.faults.worlds import HTTP, allow, deny, world

_CHARACTERS = [
    allow("all", "alice"),
    allow("rest", "alice", paths=["/*"]),
    deny(
        "characters",
        "alice",
        paths=["/café/*", "/a b", "/users/@me", "/users/%3ame", "*:delete", "/$metadata", "*0data"],
    ),
]
# Other spellings of the path in the policy
_SAME = [
    *(
        "/caf%C3%A9/x",
        "/caf%c3%a9/x",
        "/caf%C3%a9/",
        "/a%20b",
        "/users/@me",
        "/users/%40me",
        "/users/:me",
        "/users/%3Ame",
    ),
    *("/x:delete", "/x%3Adelete", "/x%3adelete", "/$metadata", "/%24metadata", "/x/%2e%2e/%24metadata", "/10data"),
]
_OTHERS = [
    "/caf%C3%A8/x",
    "/users/%2540me",
    "/x%2Fy:delet",
    "/x%253Adelete",
    "/%4024metadata",
    "/%40data",
]


async def test_a_character_and_its_encoding_are_the_same() -> None:
    found = []
    async with running(*world(), *_CHARACTERS) as mesh:
        for path in (*_SAME, *_OTHERS):
            [made] = await make_calls(
                mesh.mesh, Question.of("sa:shop/alice", "pod:shop/server", port=HTTP, method="GET", path=path)
            )
            assert made.agrees, (path, made.called, made.decision.verdict)
            found.append(made.called.status)
    expected = [403] * len(_SAME) + [400 if "%2F" in path else 200 for path in _OTHERS]
    assert list(zip(_SAME + _OTHERS, found, strict=True)) == list(zip(_SAME + _OTHERS, expected, strict=True))


async def test_raw_bytes_of_a_path_over_http2_are_their_encoding() -> None:
    async with running(*world(), *_CHARACTERS, apps={HTTP: (app := Recorder())}) as mesh:
        await mesh.exchange("alice", _over_h2("/café/x"), quiet=0.2)
        await mesh.exchange("alice", _over_h2("/caf%c3%a9/x"), quiet=0.2)
        assert app.connections == 0
        await mesh.exchange("alice", _over_h2("/cafe/x"), quiet=0.2)
        assert app.connections > 0


def _over_h2(path: str) -> bytes:
    return opening() + request(
        (b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"h"), (b":path", path.encode())
    )


@pytest.mark.parametrize(
    ("pattern", "path", "status"),
    [
        ("/a:b", "/a:b", 403),
        ("/a:b", "/a%3Ab", 400),  # a pattern may not read it as `:`, and the route depends on it
        ("/a:b", "/b", 200),
        ("/[^/]+/private", "/a%3Ab/private", 403),  # this pattern does
        ("/[^/]+/private", "/a%3Ab/public", 200),
    ],
)
async def test_a_pattern_sees_a_path_in_one_spelling_or_not_at_all(pattern: str, path: str, status: int) -> None:
    guarded = only_for_bob({"path": {"type": "RegularExpression", "value": pattern}})
    async with running(*guarded) as mesh:
        [made] = await make_calls(
            mesh.mesh, Question.of("sa:shop/alice", "pod:shop/server", port=HTTP, method="GET", path=path)
        )
        assert made.agrees
        assert (made.called.status, made.decision.status) == (status, status)
