"""Ways to write a path so that a proxy and an application read it differently, through a real proxy."""

from __future__ import annotations

import json

import pytest

from eastgate.mesh.calls import make_calls
from eastgate.questions import Question
from tests.attacks.paths import DOTS_WITH_PARAMETERS, NO_PATHS, ODD, REFUSED, TABLE, read_as
from tests.faults.meshes import running
from tests.faults.worlds import HTTP, Manifest, allow, deny, world

_ONLY_API = [allow("all", "alice"), allow("api", "alice", paths=["/api/*"])]
_BUT_PRIVATE = [
    *_ONLY_API[:1],
    allow("rest", "alice", paths=["/*"]),
    deny("private", "alice", paths=["/api/private/*"]),
]
_BUT_API = [*_BUT_PRIVATE[:2], deny("api", "alice", paths=["/api/*"])]


async def _statuses(policies: list[Manifest], paths: list[str], private: str) -> list[int]:
    found = []
    async with running(*world(), *policies) as mesh:
        for path in paths:
            [made] = await make_calls(mesh.mesh, Question("sa:shop/alice", "pod:shop/server", HTTP, "GET", path))
            assert made.agrees, (path, made.called, made.decision.verdict)
            found.append(made.called.status)
            if made.called.status == 200:
                arrived = json.loads(made.called.body)["path"]
                assert not f"{read_as(arrived)}/".startswith(private), (path, arrived)
    return found


@pytest.mark.parametrize(("policies", "column"), [(_ONLY_API, 1), (_BUT_PRIVATE, 2)], ids=["only", "all but"])
async def test_no_way_to_write_a_path_leads_around_a_policy(policies: list[Manifest], column: int) -> None:
    private = "/admin/" if column == 1 else "/api/private/"
    found = await _statuses(policies, [row[0] for row in TABLE], private)
    assert [(row[0], status) for row, status in zip(TABLE, found, strict=True)] == [
        (row[0], row[column]) for row in TABLE
    ]


@pytest.mark.parametrize("policies", [_ONLY_API, _BUT_PRIVATE], ids=["only", "all but"])
async def test_proxy_and_engine_agree_on_odd_paths(policies: list[Manifest]) -> None:
    await _statuses(policies, ODD, "/admin/" if policies is _ONLY_API else "/api/private/z/")


async def test_what_is_no_path_gets_nowhere() -> None:
    async with running(*world(), *_BUT_PRIVATE) as mesh:
        for path in NO_PATHS:
            assert await mesh.get("alice", path) in (0, 400, 404), path


@pytest.mark.parametrize("path", DOTS_WITH_PARAMETERS)
async def test_proxy_and_engine_agree_on_dot_segments_with_parameters(path: str) -> None:
    for policies in (_ONLY_API, _BUT_PRIVATE, _BUT_API):
        await _statuses(policies, [path], "/nothing/")


@pytest.mark.parametrize("path", REFUSED)
async def test_dot_segments_with_parameters_that_a_proxy_leaves_are_refused(path: str) -> None:
    """Some servers, of servlets above all, cut parameters off before they go up: `/api/..;/admin` is /admin there."""
    assert await _statuses(_ONLY_API, [path], "/nothing/") == [400]
