"""Servers that speak first, such as databases: a denied caller gets no byte, and does not reach the server."""

from __future__ import annotations

import asyncio

from eastgate.local.machine.echo import EchoOptions
from tests.faults.meshes import running
from tests.faults.worlds import RAW, allow, world

_GREETING = b"220 welcome to the database\r\n"


async def test_a_denied_caller_gets_no_byte_of_a_greeting_and_does_not_reach_the_server() -> None:
    options = EchoOptions(greeting=_GREETING)
    async with running(*world(RAW), allow("alice", "alice"), apps={RAW: options}) as mesh:
        denied = [mesh.call(who, silence, RAW, enough=None) for who in ("bob", None) for silence in (None, b"x") * 5]
        for called in await asyncio.gather(*denied):
            assert (called.status, called.bytes_received) == (0, 0)
        assert mesh.apps[RAW].connections == 0
        async with await mesh.open("alice", RAW) as connection:  # alice sends nothing either
            assert (await connection.raw(3, enough=len(_GREETING))).body == _GREETING
        assert mesh.apps[RAW].connections == 1


async def test_a_connection_that_is_denied_is_closed_at_once_and_not_when_it_speaks() -> None:
    options = EchoOptions(greeting=_GREETING)
    async with (
        running(*world(RAW), allow("alice", "alice"), apps={RAW: options}) as mesh,
        await mesh.open("bob", RAW) as connection,
    ):
        assert await connection.peer_closed(2)
        assert connection.bytes_received == 0


async def test_a_silent_caller_without_tls_gets_the_greeting() -> None:
    """A proxy must wait for some time to know whether a caller speaks TLS."""
    usual = 3306
    options = EchoOptions(greeting=_GREETING)
    async with running(*world(RAW, usual), allow("all"), apps={RAW: options, usual: options}) as mesh:
        for port in (usual, RAW):
            async with await mesh.open(None, port) as connection:
                assert (await connection.raw(40, enough=len(_GREETING))).body == _GREETING
