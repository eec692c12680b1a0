"""Removal of a permission closes exactly the open connections that lose it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from eastgate.local.machine.connection import CallConnection, HttpRequest
from eastgate.local.machine.echo import EchoOptions
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, PUSH, RAW, allow, deny, sa, world

_PUSHES = {PUSH: EchoOptions(push_every=0.1)}
_CLOSE_SECONDS = 2.0
_UNKNOWN = sa("somebody", "other")


@dataclass
class Held:
    """The three connections of one caller: one that pings, one that is silent, and one that receives."""

    who: str
    connections: list[CallConnection]
    at_work: list[asyncio.Task[None]]

    async def closed(self) -> list[bool]:
        return list(await asyncio.gather(*(one.peer_closed(_CLOSE_SECONDS) for one in self.connections)))

    @property
    def open(self) -> bool:
        return all(one.closed_at is None for one in self.connections)

    async def works(self) -> bool:
        """Return whether the silent connection still transfers bytes both ways."""
        await self.connections[1].send(b"still there?")
        return (await self.connections[1].raw(1, enough=12)).body == b"still there?"


@asynccontextmanager
async def holding(mesh: Running, *callers: str) -> AsyncIterator[dict[str, Held]]:
    async with AsyncExitStack() as stack:
        found = {}
        for who in callers:
            opened = [await stack.enter_async_context(await mesh.open(who, port)) for port in (RAW, RAW, PUSH)]
            tasks = [asyncio.create_task(_ping(opened[0])), asyncio.create_task(_listen(opened[2]))]
            for task in tasks:
                stack.callback(task.cancel)
            found[who] = Held(who, opened, tasks)
        for held in found.values():  # the first bytes show that the connection reached the application
            await held.connections[1].send(b"!")
            assert (await held.connections[1].raw(2, enough=1)).body == b"!", held.who
        yield found


async def _ping(connection: CallConnection) -> None:
    while connection.closed_at is None:
        await connection.send(b"ping")
        await connection.raw(1, enough=4)
        await asyncio.sleep(0.1)


async def _listen(connection: CallConnection) -> None:
    while connection.closed_at is None:
        await connection.raw(1, enough=1)


async def test_a_caller_that_loses_access_loses_all_connections_and_no_other_caller_loses_one() -> None:
    ports = world(RAW, PUSH)
    async with (
        running(*ports, allow("all", "alice", "bob", "carol"), apps=_PUSHES) as mesh,
        holding(mesh, "alice", "bob", "carol") as held,
    ):
        await mesh.change(*ports, allow("all", "alice", "carol"))
        changed = time.monotonic()
        assert await held["bob"].closed() == [True, True, True]
        assert max(one.closed_at or 0 for one in held["bob"].connections) - changed < _CLOSE_SECONDS
        assert held["alice"].open
        assert held["carol"].open
        assert await held["alice"].works()
        assert await held["carol"].works()
        assert (await mesh.call("bob", b"x", RAW)).status == 0


async def test_a_new_deny_closes_the_connections_of_the_callers_that_it_names() -> None:
    ports = [*world(RAW, PUSH), allow("all", "alice", "bob")]
    async with running(*ports, apps=_PUSHES) as mesh, holding(mesh, "alice", "bob") as held:
        await mesh.change(*ports, deny("not-bob", "bob"))
        assert await held["bob"].closed() == [True, True, True]
        assert held["alice"].open
        assert await held["alice"].works()


async def test_changes_that_take_nothing_away_close_nothing() -> None:
    """Change another policy, add an equal rule, and allow one more caller."""
    ports = world(RAW, PUSH, HTTP, servers=2)
    async with (
        running(*ports, allow("first", "alice"), apps=_PUSHES) as mesh,
        holding(mesh, "alice") as held,
    ):
        before = mesh.sent()
        await mesh.change(*ports, allow("first", "alice"), deny("elsewhere", "bob", app="server1"))
        elsewhere = mesh.sent() - before
        await mesh.change(*ports, allow("second", "carol", "alice", ports=[RAW, PUSH]))
        await mesh.change(*ports, allow("second", "carol", "alice"), allow("third", "bob"))
        assert (await mesh.call("bob", b"x", RAW)).body == b"x"
        await mesh.change(*ports, allow("fourth", "alice", "bob"))
        # A proxy closes draining connections after a second. After that, no more bytes arrive.
        assert not any(await held["alice"].closed())
        assert await held["alice"].works()
        assert elsewhere > 0
        assert (await mesh.call("alice", b"x", RAW)).body == b"x"


async def test_connections_of_an_undeclared_account_close_with_all_of_its_namespace() -> None:
    ports = world(RAW, PUSH)
    async with (
        running(*ports, allow("shop", "alice"), allow("other", "other/*"), apps=_PUSHES) as mesh,
        holding(mesh, "alice", _UNKNOWN) as held,
    ):
        await mesh.change(*ports, allow("shop", "alice"))
        assert await held[_UNKNOWN].closed() == [True, True, True]
        assert held["alice"].open
        assert await held["alice"].works()


async def test_the_next_request_on_an_open_connection_meets_the_new_policy() -> None:
    base = [*world(), allow("all", "alice")]
    before, after = allow("api", "alice", paths=["/a/*"]), allow("api", "alice", paths=["/b/*"])

    async with running(*base, before) as mesh, await mesh.open("alice") as connection:

        async def status(path: str) -> int:
            await connection.send(HttpRequest(path=path))
            return (await connection.response()).status

        assert (await status("/a/1"), await status("/b/1")) == (200, 403)
        for _ in range(3):
            changed = await mesh.change(*base, after)
            assert (await status("/a/1"), await status("/b/1")) == (403, 200)
            await mesh.change(*base, before)
            assert (await status("/a/1"), await status("/b/1")) == (200, 403)
            assert changed.milliseconds < 500  # mostly for reading manifests; a proxy needs 1 ms
        assert connection.closed_at is None


async def test_a_change_of_both_levels_allows_no_caller_that_neither_policy_allowed() -> None:
    """Before, bob may connect but every request is denied. After, bob may not connect, and every request is allowed."""
    before = [*world(), allow("connect", "alice", "bob"), allow("request", "alice", paths=["/*"])]
    after = [*world(), allow("connect", "alice"), allow("request", paths=["/*"])]
    async with running(*before) as mesh, await mesh.open("bob") as connection:
        await connection.send(HttpRequest(path="/"))
        assert (await connection.response()).status == 403
        await mesh.change(*after)
        await connection.send(HttpRequest(path="/"))
        assert b" 200 " not in (await connection.raw(0.3, enough=12)).body
