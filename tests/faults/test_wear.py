"""Many connections, in sequence and at once: each one is served, and few resources stay in use."""

from __future__ import annotations

import asyncio

from eastgate.local.machine.connection import HttpRequest
from eastgate.local.machine.echo import EchoOptions, EchoServer
from tests.faults.meshes import running, until
from tests.faults.worlds import HTTP, allow, world

_MORE_THAN_ENVOYS_OWN_LIMIT = 1_100


async def test_closed_connections_block_no_caller_and_are_also_closed_behind_the_proxy() -> None:
    async with running(*world(), allow("any", paths=["/*"]), apps={HTTP: EchoOptions()}) as mesh:
        for _ in range(_MORE_THAN_ENVOYS_OWN_LIMIT // 20):
            answers = await asyncio.gather(*(mesh.get(None, "/x") for _ in range(20)))
            assert set(answers) == {200}
        app = mesh.apps[HTTP]
        assert isinstance(app, EchoServer)
        assert app.connections < _MORE_THAN_ENVOYS_OWN_LIMIT  # callers with one identity share connections
        await until(lambda: not (app.raw or app.http.connections))


async def test_more_connections_are_open_at_once_than_envoys_own_limit() -> None:
    async with running(*world(), allow("any", paths=["/*"])) as mesh:
        connections = [await mesh.open(None) for _ in range(_MORE_THAN_ENVOYS_OWN_LIMIT)]
        try:
            for first in range(0, len(connections), 20):  # an application accepts this many at a time
                some = connections[first : first + 20]
                await asyncio.gather(*(one.send(HttpRequest(path="/x")) for one in some))
                assert {(await one.response(20)).status for one in some} == {200}
            assert not any(one.closed_at for one in connections)
        finally:
            await asyncio.gather(*(one.close() for one in connections))
