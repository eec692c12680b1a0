"""Slow clients, and clients that close their half of a connection, get no request through that is denied meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping

import pytest

from eastgate.local.machine.connection import CallConnection
from eastgate.local.machine.wire import Wire
from tests.attacks.paths import outside
from tests.attacks.placements import Attacked, Placement
from tests.attacks.policies import ONLY_API, only
from tests.attacks.slow import HALVES, NOT_DECIDED, OPEN
from tests.attacks.trying import wrong_arrival
from tests.patience import PATIENCE

_SETTLED_SECONDS = 1.2  # until all threads of a proxy use a change
_PAUSE_SECONDS = 0.3


async def _begin(attacked: Attacked, cases: Mapping[str, tuple[bytes, bytes]]) -> dict[str, CallConnection]:
    begun: dict[str, CallConnection] = {}
    for name, (first, _) in cases.items():
        begun[name] = await attacked.open()
        if first:
            await begun[name].send(first)
    await asyncio.sleep(_PAUSE_SECONDS)
    return begun


async def _finish(begun: Mapping[str, CallConnection], cases: Mapping[str, tuple[bytes, bytes]]) -> None:
    for name, connection in begun.items():
        with contextlib.suppress(OSError):  # the connection is already closed
            await connection.send(cases[name][1])
    await asyncio.sleep(_PAUSE_SECONDS)
    for connection in begun.values():
        await connection.close()


def test_what_is_not_whole_when_it_is_denied_does_not_arrive(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    begun = attacked.run(_begin(attacked, NOT_DECIDED))
    attacked.enforce(only("/nothing"))
    attacked.run(asyncio.sleep(_SETTLED_SECONDS))
    attacked.application.arrived.clear()
    attacked.run(_finish(begun, NOT_DECIDED))
    assert attacked.application.arrived == []


def test_what_is_whole_in_the_end_is_served(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    begun = attacked.run(_begin(attacked, NOT_DECIDED))
    attacked.application.arrived.clear()
    attacked.run(_finish(begun, NOT_DECIDED))
    assert attacked.application.arrived


def test_what_is_open_when_it_is_denied_is_ended(attacked: Attacked, placement: Placement) -> None:
    if not placement.any_host:
        pytest.skip("its own sidecar answers for the one that closes")
    attacked.enforce(ONLY_API)
    begun = attacked.run(_begin(attacked, OPEN))
    attacked.application.arrived.clear()
    attacked.enforce(only("/nothing"))
    closed = {name: attacked.run(one.peer_closed(PATIENCE)) for name, one in begun.items()}
    attacked.run(_finish(begun, OPEN))
    assert (set(closed.values()), attacked.application.arrived) == ({True}, [])


def test_half_a_connection_is_decided_as_a_whole_one(attacked: Attacked) -> None:
    """A proxy may or may not read a request before it sees the end of the connection."""
    attacked.enforce(ONLY_API)
    for name, (sent, is_whole) in sorted(HALVES.items(), key=lambda half: half[1][1]):  # a whole one may arrive late
        attacked.application.arrived.clear()
        attacked.run(_half(attacked, sent))
        arrived = attacked.application.arrived
        assert is_whole or not arrived, name
        assert [wrong_arrival(attacked, one, outside("/api/")) for one in arrived] == [None] * len(arrived), name


async def _half(attacked: Attacked, sent: bytes) -> bytes:
    """Send bytes, close this half, and return all bytes until the other half closes, too."""
    async with await attacked.open() as connection:
        if sent:
            await connection.send(sent)
        assert isinstance(connection._wire, Wire)
        connection._wire._socket.shutdown(socket.SHUT_WR)
        return (await connection.raw(PATIENCE)).body
