"""The gRPC server with the clients of gRPC itself, over a socket."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from eastgate.envoy.grpc.server import GrpcLimits, GrpcServer
from tests.certificates import self_signed
from tests.envoy.grpc.peers import Service
from tests.loops import LOOPS, run_on
from tests.patience import PATIENCE


@asynccontextmanager
async def serving(service: Service, tls: ssl.SSLContext | None = None, **limits: Any) -> AsyncIterator[tuple[int, Any]]:
    server = GrpcServer(service.methods, GrpcLimits(**limits))
    listener = await asyncio.get_running_loop().create_server(server.protocol, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1], server
    finally:
        listener.close()
        await server.drain(1.0)


def connected(port: int, options: Any = None) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)


async def ask(channel: grpc.aio.Channel, method: str, content: bytes, **options: Any) -> bytes:
    call: Any = channel.unary_unary(f"/t.T/{method}")
    answer: bytes = await call(content, timeout=PATIENCE, **options)
    return answer


async def status_of(channel: grpc.aio.Channel, method: str, content: bytes, **options: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask(channel, method, content, **options)
    code: grpc.StatusCode = error.value.code()
    return code


@pytest.mark.parametrize("loop", LOOPS)
def test_calls_of_all_sizes_many_at_a_time(loop: str) -> None:
    async def run() -> None:
        service = Service()
        async with serving(service) as (port, _), connected(port) as channel:
            sizes = [0, 1, 5, 16_379, 16_380, 70_000, 1 << 20]
            contents = [bytes([n % 251]) * sizes[n % len(sizes)] for n in range(200)]
            service.open.set()
            methods = ("Echo", "Later")
            answers = await asyncio.gather(*(ask(channel, methods[n % 2], each) for n, each in enumerate(contents)))
            assert answers == contents

    run_on(loop, run())


@pytest.mark.parametrize("loop", LOOPS)
def test_errors_are_statuses(caplog: pytest.LogCaptureFixture, loop: str) -> None:
    caplog.set_level(logging.CRITICAL)

    async def run() -> None:
        service = Service()
        codes = grpc.StatusCode
        options = [("grpc.max_send_message_length", -1)]
        async with serving(service) as (port, _), connected(port, options) as channel:
            assert await status_of(channel, "Nothing", b"") is codes.UNIMPLEMENTED
            assert await status_of(channel, "Refuse", b"") is codes.NOT_FOUND
            assert await status_of(channel, "Break", b"") is codes.UNKNOWN
            assert await status_of(channel, "BreakLater", b"") is codes.UNKNOWN
            assert await status_of(channel, "Echo", b"x" * ((1 << 20) + 1)) is codes.RESOURCE_EXHAUSTED
            compressed = await status_of(channel, "Echo", b"x" * 1000, compression=grpc.Compression.Gzip)
            assert compressed is codes.UNIMPLEMENTED
            large = (("x-large", "y" * 70_000),)
            assert await status_of(channel, "Echo", b"x", metadata=large) is not codes.OK
            assert service.calls == []
            assert await ask(channel, "Echo", b"after all that") == b"after all that"

    run_on(loop, run())


@pytest.mark.parametrize("loop", LOOPS)
def test_streams(loop: str) -> None:
    async def run() -> None:
        async with serving(Service()) as (port, _), connected(port) as channel:
            several: Any = channel.unary_stream("/t.T/Several")
            assert [each async for each in several(b"x", timeout=PATIENCE)] == [b"x"] * 3

    run_on(loop, run())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_goes_on_calling_while_its_server_ends_and_another_begins(loop: str) -> None:
    async def run() -> None:
        service = Service()
        async with serving(service) as (port, server), connected(port) as channel:
            waiting = asyncio.ensure_future(ask(channel, "Later", b"open"))
            while not server._connections or all(each.is_idle for each in server._connections):
                await asyncio.sleep(0.01)
            draining = asyncio.ensure_future(server.drain(PATIENCE))
            await asyncio.sleep(0.2)
            assert not draining.done()
            service.open.set()
            assert await waiting == b"open"
            await draining

    run_on(loop, run())


@pytest.mark.parametrize("loop", LOOPS)
def test_tls_with_certificates_of_clients(tmp_path: Path, loop: str) -> None:
    pem, key = self_signed("authorizer.example")
    certificate = tmp_path / "authorizer.pem"
    certificate.write_bytes(pem + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    known = grpc.ssl_channel_credentials(pem, key, pem)
    unknown = grpc.ssl_channel_credentials(pem)
    options = [("grpc.ssl_target_name_override", "authorizer.example")]

    async def run() -> None:
        service = Service()
        async with serving(service, context) as (port, _):
            async with grpc.aio.secure_channel(f"127.0.0.1:{port}", known, options) as channel:
                assert await ask(channel, "Echo", b"x" * 100_000) == b"x" * 100_000
            service.calls.clear()
            async with grpc.aio.secure_channel(f"127.0.0.1:{port}", unknown, options) as channel:
                call: Any = channel.unary_unary("/t.T/Echo")
                with pytest.raises(grpc.aio.AioRpcError):
                    await call(b"x", timeout=2)
            assert service.calls == []

    run_on(loop, run())
