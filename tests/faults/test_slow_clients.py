"""Connections of stalled clients are closed, and other clients need not wait."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2

from eastgate.control import sidecars
from eastgate.envoy.config import sidecar
from eastgate.envoy.server.resources import LISTENER, XdsResource
from eastgate.local.machine.connection import HttpRequest
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, allow, sa, world
from tests.patience import PATIENCE

_BASE = [*world(), allow("all", "alice"), allow("api", "alice", paths=["/api/*"])]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce all longer timeouts of a proxy to one second."""

    def hurry(listener: Any) -> Any:
        if listener.listener_filters:
            assert listener.listener_filters_timeout.seconds == 10
            listener.listener_filters_timeout.seconds = 1
        for chain in listener.filter_chains:
            if chain.HasField("transport_socket_connect_timeout"):
                assert chain.transport_socket_connect_timeout.seconds == 15
                chain.transport_socket_connect_timeout.seconds = 1
            for one in chain.filters:
                manager = http_connection_manager_pb2.HttpConnectionManager()
                if one.typed_config.Unpack(manager):
                    assert manager.request_headers_timeout.seconds == 30
                    manager.request_headers_timeout.seconds = 1
                    one.typed_config.Pack(manager)
        return listener

    def resources(*arguments: Any) -> Iterator[XdsResource]:
        for one in sidecar.inbound_resources(*arguments):
            if one.type_url == LISTENER:
                body = hurry(listener_pb2.Listener.FromString(one.body)).SerializeToString(deterministic=True)
                yield replace(one, body=body)
            else:
                yield one

    monkeypatch.setattr(sidecars, "inbound_resources", resources)


async def _never_ends(mesh: Running, first: bytes, piece: bytes) -> bytes:
    """Send a piece every tenth of a second until the connection closes, and return the answer."""
    async with await mesh.open("alice") as connection:
        began = time.monotonic()
        await connection.send(first)
        while not await connection.peer_closed(0.1):
            assert time.monotonic() - began < PATIENCE, "it goes on for ever"
            await connection.send(piece)
        return (await connection.raw(0.1)).body


async def test_headers_that_never_end_are_cut_off(hurried: None) -> None:
    async with running(*_BASE) as mesh:
        ended = await asyncio.gather(
            _never_ends(mesh, b"GET /api/x HTTP/1.1\r\nhost: a\r\n", b"x: y\r\n"),
            _never_ends(mesh, b"GET /api/x HTTP/1.1\r\nhost: a\r\nx: ", b"y"),
        )
        for answer in ended:
            assert b" 200 " not in answer
        assert await mesh.get("alice", "/api/x") == 200


async def test_a_request_line_that_never_ends_is_cut_off(hurried: None) -> None:
    """Before its end, the proxy does not know that the request is HTTP."""
    async with running(*_BASE) as mesh:
        for first, piece in ((b"G", b"E"), (b"GET /api/", b"x"), (b"\r\n", b"\r\n")):
            assert not await _never_ends(mesh, first, piece)


async def test_a_handshake_that_never_ends_is_cut_off(hurried: None) -> None:
    async with running(*_BASE) as mesh:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = await mesh.mesh.certificates.context(sa("alice"))
        with pytest.raises(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing).do_handshake()
        hello = outgoing.read()
        await asyncio.gather(*(_until_closed(mesh, data) for data in (hello, hello[:100], hello[:1], b"")))
        assert await mesh.get("alice", "/api/x") == 200


async def _until_closed(mesh: Running, data: bytes) -> None:
    reader, writer = await asyncio.open_connection(mesh.target().address, mesh.target().port)
    try:
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.transport.abort()


class _Slow:
    """A slow client: it pauses before its first byte, within every message of the handshake, and between messages."""

    def __init__(self, mesh: Running, pause: float) -> None:
        self._mesh = mesh
        self._pause = pause

    async def shaken(self) -> None:
        """Connect, and complete the handshake."""
        self._reader, self._writer = await asyncio.open_connection(
            self._mesh.target().address, self._mesh.target().port
        )
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = await self._mesh.mesh.certificates.context(sa("alice"))
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        while True:
            try:
                self._tls.do_handshake()
                await self._send(3)
                return
            except ssl.SSLWantReadError:
                await self._send(3)
                await self._hear()

    async def _send(self, pieces: int) -> None:
        data = self._outgoing.read()
        size = len(data) // pieces + 1
        for at in range(0, len(data), size):
            await asyncio.sleep(self._pause)
            self._writer.write(data[at : at + size])
            await self._writer.drain()

    async def _hear(self) -> None:
        received = await asyncio.wait_for(self._reader.read(65536), PATIENCE)
        assert received, "closed"
        self._incoming.write(received)

    async def request(self, *pieces: bytes) -> bytes:
        """Send a request in pieces, and return the first bytes of the answer."""
        for piece in pieces:
            await asyncio.sleep(self._pause)
            self._tls.write(piece)
            await self._send(1)
        while True:
            try:
                return self._tls.read(12)
            except ssl.SSLWantReadError:
                await self._hear()

    def close(self) -> None:
        self._writer.transport.abort()


async def test_a_client_that_takes_many_seconds_for_its_handshake_and_its_request_is_served() -> None:
    async with running(*_BASE) as mesh:

        async def served(pause: float) -> None:
            slow = _Slow(mesh, pause)
            try:
                await slow.shaken()
                assert await slow.request(b"GET /api/x HT", b"TP/1.1\r\nhost:", b" a\r\n\r\n") == b"HTTP/1.1 200"
            finally:
                slow.close()

        await asyncio.gather(served(0.2), served(1.0), served(1.7))


async def test_a_client_that_says_nothing_for_seconds_is_waited_for() -> None:
    async with running(*_BASE) as mesh, await mesh.open("alice") as connection:
        await asyncio.sleep(4)
        await connection.send(HttpRequest(path="/api/x"))
        assert (await connection.response()).status == 200


async def test_many_half_open_connections_do_not_block_other_clients() -> None:
    async with running(*_BASE) as mesh:
        idle = [socket.socket() for _ in range(300)]
        try:
            for number, one in enumerate(idle):
                one.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    one.connect((mesh.target().address, mesh.target().port))
                if number % 3 == 0:
                    with contextlib.suppress(OSError):
                        one.send(b"\x16\x03\x01")
            assert [await mesh.get("alice", "/api/x") for _ in range(10)] == [200] * 10
            assert [await mesh.get("bob", "/api/x") for _ in range(3)] == [0] * 3
        finally:
            for one in idle:
                one.close()


async def test_a_client_that_does_not_read_does_not_block_other_clients() -> None:
    async with running(*_BASE, allow("big", "alice", paths=["/*"])) as mesh:
        request = b"GET /api/x HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 20_000 + b"\r\n\r\n"
        async with await mesh.open("alice", HTTP) as deaf:
            sending = asyncio.create_task(deaf.send(request * 100))
            try:
                for _ in range(10):
                    assert await mesh.get("alice", "/api/x") == 200
            finally:
                sending.cancel()
                await asyncio.wait([sending])
