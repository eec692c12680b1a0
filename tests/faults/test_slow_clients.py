"""Clients that do not go on are let go, and keep nobody else waiting."""

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

from eastgate.mesh import enforcement
from eastgate.xds import sidecar
from eastgate.xds.server.resources import LISTENER, Resource
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, allow, sa, world

_BASE = [*world(), allow("all", "alice"), allow("api", "alice", paths=["/api/*"])]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the time that a proxy gives its clients for headers, a fifth for a handshake."""

    def hurry(listener: Any) -> Any:
        for chain in listener.filter_chains:
            if chain.HasField("transport_socket_connect_timeout"):
                assert chain.transport_socket_connect_timeout.seconds == 5
                chain.transport_socket_connect_timeout.seconds = 1
            for one in chain.filters:
                manager = http_connection_manager_pb2.HttpConnectionManager()
                if one.typed_config.Unpack(manager):
                    assert manager.request_headers_timeout.seconds == 10
                    manager.request_headers_timeout.seconds = 1
                    one.typed_config.Pack(manager)
        return listener

    def resources(*arguments: Any) -> Iterator[Resource]:
        for one in sidecar.inbound_resources(*arguments):
            if one.type_url == LISTENER:
                body = hurry(listener_pb2.Listener.FromString(one.body)).SerializeToString(deterministic=True)
                yield replace(one, body=body)
            else:
                yield one

    monkeypatch.setattr(enforcement, "inbound_resources", resources)


async def _never_ends(mesh: Running, first: bytes, piece: bytes) -> tuple[float, bytes]:
    """How long somebody is listened to who sends a piece every tenth of a second, and what is answered."""
    async with await mesh.open("alice") as connection:
        began = time.monotonic()
        await connection.send(first)
        while not await connection.peer_closed(0.1):
            assert time.monotonic() - began < 8, "it goes on for ever"
            await connection.send(piece)
        return time.monotonic() - began, (await connection.raw(0.1)).body


async def test_headers_that_never_end_are_cut_off(hurried: None) -> None:
    async with running(*_BASE) as mesh:
        ended = await asyncio.gather(
            _never_ends(mesh, b"GET /api/x HTTP/1.1\r\nhost: a\r\n", b"x: y\r\n"),
            _never_ends(mesh, b"GET /api/x HTTP/1.1\r\nhost: a\r\nx: ", b"y"),
        )
        for seconds, answer in ended:
            assert seconds < 5
            assert b" 200 " not in answer
        assert await mesh.get("alice", "/api/x") == 200


async def test_a_request_line_that_never_ends_is_cut_off() -> None:
    """Until it does, it is not even known to be HTTP."""
    async with running(*_BASE) as mesh:
        for first, piece in ((b"G", b"E"), (b"GET /api/", b"x"), (b"\r\n", b"\r\n")):
            seconds, answer = await _never_ends(mesh, first, piece)
            assert seconds < 5
            assert not answer


async def test_a_handshake_that_never_ends_is_cut_off(hurried: None) -> None:
    async with running(*_BASE) as mesh:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = await mesh.mesh.certificates.context(sa("alice"))
        with pytest.raises(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing).do_handshake()
        hello = outgoing.read()
        took = await asyncio.gather(*(_until_closed(mesh, data) for data in (hello, hello[:100], hello[:1], b"")))
        assert max(took) < 5
        assert await mesh.get("alice", "/api/x") == 200


async def _until_closed(mesh: Running, data: bytes) -> float:
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(mesh.target().address, mesh.target().port)
    try:
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 10)
        return time.monotonic() - began
    finally:
        writer.transport.abort()


async def test_many_half_open_connections_keep_nobody_from_being_served() -> None:
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
            began = time.monotonic()
            assert [await mesh.get("alice", "/api/x") for _ in range(10)] == [200] * 10
            assert [await mesh.get("bob", "/api/x") for _ in range(3)] == [0] * 3
            assert time.monotonic() - began < 3
        finally:
            for one in idle:
                one.close()


async def test_a_client_that_does_not_read_keeps_nobody_from_being_served() -> None:
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
