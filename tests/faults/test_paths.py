"""Ways to write a path so that a proxy and an application read it differently, through a real proxy."""

from __future__ import annotations

import json
import posixpath
from urllib.parse import unquote

import pytest

from eastgate.mesh.calls import make_calls
from eastgate.questions import Question
from tests.faults.linkerd_routes import only_for_bob
from tests.faults.meshes import running
from tests.faults.recorder import Recorder
from tests.faults.shapes import h2_request
from tests.faults.worlds import HTTP, Manifest, allow, deny, world

_ONLY_API = [allow("all", "alice"), allow("api", "alice", paths=["/api/*"])]
_BUT_PRIVATE = [
    *_ONLY_API[:1],
    allow("rest", "alice", paths=["/*"]),
    deny("private", "alice", paths=["/api/private/*"]),
]
_BUT_API = [*_BUT_PRIVATE[:2], deny("api", "alice", paths=["/api/*"])]

# Path, and what comes of it: where only /api/ is allowed, and where all but /api/private/ is
_PATHS: list[tuple[str, int, int]] = [
    ("/api/x", 200, 200),
    ("/api/x?y", 200, 200),
    ("/api/x?/../../admin", 200, 200),
    ("/api/x?p=/api/private/z", 200, 200),
    ("/admin", 403, 200),
    ("/admin?/api/x", 403, 200),
    ("/api/private/z", 200, 403),
    ("/apiary", 403, 200),
    ("/API/x", 403, 200),
    ("//api/x", 200, 200),
    ("///api////x", 200, 200),
    ("/%61pi/x", 200, 200),
    ("/%61%70%69/%70%72ivate/z", 200, 403),
    ("/api/./x", 200, 200),
    ("/api/%2e/private/z", 200, 403),
    ("/api/../admin", 403, 200),
    ("/api/%2e%2e/admin", 403, 200),
    ("/api/%2E./admin", 403, 200),
    ("/api/.%2e/admin", 403, 200),
    ("/api/x/../../admin", 403, 200),
    ("/admin/../api/private/z", 200, 403),
    ("/admin/%2e%2e/api/private/z", 200, 403),
    ("/api//private/z", 200, 403),
    ("/api/private//z", 200, 403),
    ("/api/./private/z", 200, 403),
    ("/api/%70rivate/z", 200, 403),
    ("/api/privat%65/z", 200, 403),
    ("/api/x/../private/z", 200, 403),
    ("/api/private/../x", 200, 200),
    ("/api\\private\\z", 200, 403),
    ("/api/x\\..\\..\\admin", 403, 200),
    ("/api/x\\..\\private\\z", 200, 403),
    ("/api%2fx", 400, 400),
    ("/api%2F..", 400, 400),
    ("/api/..%2fadmin", 400, 400),
    ("/api/%2e%2e%2fadmin", 400, 400),
    ("/api/%2fprivate/z", 400, 400),
    ("/api%2fprivate/z", 400, 400),
    ("/api/private%2fz", 400, 400),
    ("/api%5cprivate/z", 400, 400),
    ("/api/x%5c..%5c..%5cadmin", 400, 400),
]
# The same, where no more is wanted than that proxy and engine agree, and that nothing private gets through
_ODD = [
    "/",
    "/api",
    "/api/",
    "/api/private",
    "/api/private/",
    "/api/private/.",
    "/api/private/..",
    "/api/%252fprivate/z",
    "/api/..%3b/private/z",
    "/api/%252e%252e/private/z",
    "/api;v=1/private/z",
    "/api/private;v=1/z",
    "/api/;/private/z",
    "/api/private%3bv=1/z",
    "/api/private%3f/z",
    "/api/private%23/z",
    "/api/private%20/z",
    "/api/private+/z",
    "/api/private./z",
    "/api/PRIVATE/z",
    "/api/x%3f/../private/z",
    "/api/x%23/../private/z",
    "/api/%",
    "/api/%7",
    "/api/%zz/../private/z",
    "/api/%u0070rivate/z",
    "/api/%c0%afprivate/z",
    "/api/%c0%ae%c0%ae/private/z",
    "/api/%ef%bc%8fprivate/z",
    "/api/%F0%9F%92%A9",
    "/../../api/private/z",
    "/..//..//api//private//z",
    "/./././api/./private/./z",
    "/api/" + "a/" * 500 + "../" * 500 + "private/z",
    "/api/" + "x" * 8000,
]

# What a proxy refuses before any policy is asked
_NO_PATHS = ["/api/privat\u0435/z", "/api/private#z", "/api#/private/z", "/api/x#/../private/z", "*", "api/x"]
# Segments with parameters, which Envoy takes for dot segments
_WITH_PARAMETERS = [
    "/api/..;/admin",
    "/api/..;v=1/admin",
    "/x/..;/api/private/z",
    "/x/.;/../api/private/z",
    "/api/..;",
]


async def _statuses(policies: list[Manifest], paths: list[str], private: str) -> list[int]:
    found = []
    async with running(*world(), *policies) as mesh:
        for path in paths:
            [made] = await make_calls(mesh.mesh, Question("sa:shop/alice", "pod:shop/server", HTTP, "GET", path))
            assert made.agrees, (path, made.called, made.decision.verdict)
            found.append(made.called.status)
            if made.called.status == 200:
                arrived = json.loads(made.called.body)["path"]
                read = posixpath.normpath(unquote(arrived.partition("?")[0]).replace("\\", "/"))
                assert not f"{read}/".startswith(private), (path, arrived)
    return found


@pytest.mark.parametrize(("policies", "column"), [(_ONLY_API, 1), (_BUT_PRIVATE, 2)], ids=["only", "all but"])
async def test_no_way_to_write_a_path_leads_around_a_policy(policies: list[Manifest], column: int) -> None:
    private = "/admin/" if column == 1 else "/api/private/"
    found = await _statuses(policies, [row[0] for row in _PATHS], private)
    assert [(row[0], status) for row, status in zip(_PATHS, found, strict=True)] == [
        (row[0], row[column]) for row in _PATHS
    ]


@pytest.mark.parametrize("policies", [_ONLY_API, _BUT_PRIVATE], ids=["only", "all but"])
async def test_proxy_and_engine_agree_on_odd_paths(policies: list[Manifest]) -> None:
    await _statuses(policies, _ODD, "/admin/" if policies is _ONLY_API else "/api/private/z/")


_CHARACTERS = [
    *_BUT_PRIVATE[:2],
    deny(
        "characters",
        "alice",
        paths=["/café/*", "/a b", "/users/@me", "/users/%3ame", "*:delete", "/$metadata", "*0data"],
    ),
]
# Each is what the policy names, in another spelling
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
    found = await _statuses(_CHARACTERS, [*_SAME, *_OTHERS], "/nothing/")
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
    return h2_request((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"h"), (b":path", path.encode()))


@pytest.mark.parametrize(
    ("pattern", "path", "status"),
    [
        ("/a:b", "/a:b", 403),
        ("/a:b", "/a%3Ab", 400),  # a pattern may not take it for what it is, and the route depends on it
        ("/a:b", "/b", 200),
        ("/[^/]+/private", "/a%3Ab/private", 403),  # this one does
        ("/[^/]+/private", "/a%3Ab/public", 200),
    ],
)
async def test_a_pattern_sees_a_path_in_one_spelling_or_not_at_all(pattern: str, path: str, status: int) -> None:
    guarded = only_for_bob({"path": {"type": "RegularExpression", "value": pattern}})
    async with running(*guarded) as mesh:
        [made] = await make_calls(mesh.mesh, Question("sa:shop/alice", "pod:shop/server", HTTP, "GET", path))
        assert made.agrees
        assert (made.called.status, made.decision.status) == (status, status)


async def test_what_is_no_path_gets_nowhere() -> None:
    async with running(*world(), *_BUT_PRIVATE) as mesh:
        for path in _NO_PATHS:
            assert await mesh.get("alice", path) in (0, 400, 404), path


@pytest.mark.parametrize("path", _WITH_PARAMETERS)
async def test_proxy_and_engine_agree_on_dot_segments_with_parameters(path: str) -> None:
    for policies in (_ONLY_API, _BUT_PRIVATE, _BUT_API):
        await _statuses(policies, [path], "/nothing/")


@pytest.mark.parametrize("path", ["/api/%2e%2e;/admin", "/api/.%2e;v=1/admin", "/api/%2e;/x", "/api/x\\..;\\y"])
async def test_dot_segments_with_parameters_that_a_proxy_leaves_are_refused(path: str) -> None:
    """Some servers, of servlets above all, cut parameters off before they go up: `/api/..;/admin` is /admin there."""
    assert await _statuses(_ONLY_API, [path], "/nothing/") == [400]
