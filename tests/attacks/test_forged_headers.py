"""What a client writes into headers is never who it is, where it comes from, or what it asks for."""

from __future__ import annotations

import pytest

from eastgate.mesh.local.connection import HttpRequest
from tests.attacks.headers import FORGED
from tests.faults.meshes import running
from tests.faults.recorder import Recorder
from tests.faults.worlds import HTTP, allow, sa, world

_BASE = [*world(), allow("all", "alice", "bob"), allow("api", "alice", paths=["/api/*"])]


@pytest.mark.parametrize("folded", [str.lower, str.upper, str.title])
async def test_no_forged_header_changes_a_verdict_or_what_is_logged(folded: object) -> None:
    assert callable(folded)
    async with running(*_BASE) as mesh:
        asked: list[tuple[tuple[str, str], ...]] = [((folded(name), value),) for name, value in FORGED]
        asked.append(tuple((folded(name), value) for name, value in FORGED))
        for who, path, status in (("alice", "/api/x", 200), ("alice", "/secret", 403), ("bob", "/api/x", 403)):
            async with await mesh.open(who) as connection:
                for headers in asked:
                    await connection.send(HttpRequest(path=path, headers=headers))
                    assert (await connection.response()).status == status, headers
                for seen in await mesh.logged(connection, len(asked)):
                    assert (seen.peer, seen.method, seen.path, seen.status) == (sa(who), "GET", path, status)
                    assert seen.host == f"{mesh.target().address}:{HTTP}"


async def test_a_caller_who_is_kept_out_gets_in_by_no_header() -> None:
    async with running(*_BASE) as mesh:
        assert (await mesh.call("carol", HttpRequest(path="/api/x", headers=FORGED))).status == 0
        assert (await mesh.call(None, HttpRequest(path="/api/x", headers=FORGED))).status == 0


async def test_the_application_is_told_nothing_that_a_client_forged_in_the_name_of_the_proxy() -> None:
    async with running(*_BASE, apps={HTTP: (app := Recorder())}) as mesh:
        assert (await mesh.call("alice", HttpRequest(path="/api/x", headers=FORGED))).status == 200
        [arrived] = app.arrived
        names = {name.lower() for name, _ in arrived.headers}
        assert not {name for name in names if name.startswith("x-envoy-")}
        assert "x-forwarded-client-cert" not in names


async def test_a_path_in_a_forged_header_is_not_the_path_that_is_compared_or_logged() -> None:
    """Envoy's own words for the path of a request prefer this header over the request."""
    async with running(*_BASE) as mesh, await mesh.open("alice") as connection:
        for path, forged, status in (("/secret", "/api/x", 403), ("/api/x", "/secret", 200)):
            await connection.send(HttpRequest(path=path, headers=(("x-envoy-original-path", forged),)))
            assert (await connection.response()).status == status
        logged = await mesh.logged(connection, 2)
        assert [(one.path, one.status) for one in logged] == [("/secret", 403), ("/api/x", 200)]
