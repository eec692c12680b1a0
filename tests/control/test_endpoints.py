"""The authorizer of gateways as a service over TLS, which only gateways can use."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from eastgate.control.authorizer.checks import Body, ProxyCheck
from eastgate.control.authorizer.external import ExternalAuthorizers
from eastgate.control.authorizing import MeshAuthorizer, _with_notes
from eastgate.control.gateways import gateway_identity
from eastgate.control.identity import EmbeddedCa, client_context, server_context
from eastgate.control.sites import TlsEndpoint
from eastgate.envoy.config.gateway_filters import LARGEST_MESSAGE
from eastgate.envoy.config.gateway_routes import AuthorizerAddress
from tests.local.toystore import ToyStore, toy_store
from tests.loops import LOOPS, run_on
from tests.programs.processes import free_port

_KEY = "EXAMPLE-KEY-PAPER-KITES"
_CONTROL_PLANE = "spiffe://cluster.local/ns/eastgate-system/sa/eastgate"
_GATEWAY = "spiffe://cluster.local/ns/shop/sa/gw"


def _endpoint(ca: EmbeddedCa, port: int, admits: Callable[[str], bool]) -> TlsEndpoint:
    def context() -> ssl.SSLContext:
        return server_context(ca.issue(_CONTROL_PLANE), ca.bundles, [ca.trust_domain])

    return TlsEndpoint("127.0.0.1", port, context, lambda: ca.bundles, admits)


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


@pytest.mark.parametrize(("size", "complete"), [(LARGEST_MESSAGE, True), (LARGEST_MESSAGE + 1, False)])
def test_a_body_as_large_as_a_gateway_shows_any_may_have_more(size: int, complete: bool) -> None:
    check = _with_notes(ProxyCheck(body=Body(b"x" * size, complete=True)), {})
    assert check.body is not None
    assert check.body.complete is complete


class TestAdmission:
    async def _call(self, port: int, ca: EmbeddedCa, identity: str, trusted: EmbeddedCa) -> bytes:
        context = client_context(ca.issue(identity), trusted.bundles, trusted.trust_domain)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(b"hello")
            answer = await reader.read(5)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        except OSError:
            return b""
        return answer

    @pytest.mark.real
    @pytest.mark.parametrize("loop", LOOPS)
    def test_only_peers_that_prove_an_admitted_identity_are_heard(self, loop: str) -> None:
        async def test() -> None:
            ca, other = EmbeddedCa("cluster.local"), EmbeddedCa("cluster.local")
            port = free_port()
            server = await _endpoint(ca, port, lambda identity: identity == _GATEWAY).listen(_Echo)
            try:
                assert await self._call(port, ca, _GATEWAY, ca) == b"hello"
                assert await self._call(port, ca, "spiffe://cluster.local/ns/shop/sa/app", ca) == b""
                assert await self._call(port, other, _GATEWAY, ca) == b""  # of a CA that is not trusted
                ca.prepare_root()
                ca.activate_root()  # new connections use the new certificate, and are verified with the new bundle
                assert await self._call(port, ca, _GATEWAY, ca) == b"hello"
            finally:
                server.close()

        run_on(loop, test())

    @pytest.mark.real
    @pytest.mark.parametrize("loop", LOOPS)
    def test_connections_without_tls_are_refused(self, loop: str) -> None:
        async def test() -> None:
            port = free_port()
            server = await _endpoint(EmbeddedCa("cluster.local"), port, lambda _: True).listen(_Echo)
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"hello there, this is no handshake")
                assert b"hello" not in await reader.read()
                writer.close()
            finally:
                server.close()

        run_on(loop, test())


@asynccontextmanager
async def _authorizer_service(store: ToyStore, admitted: list[str]) -> AsyncIterator[None]:
    """Run an authorizer on ports for the gateways of a mesh, in place of the one on sockets."""
    mesh, ports = store.mesh, (free_port(), free_port())
    ca = mesh.certificates.source
    assert isinstance(ca, EmbeddedCa)
    checks, tools = (_endpoint(ca, port, lambda identity: identity in admitted) for port in ports)
    external = ExternalAuthorizers(lambda _: None)
    async with MeshAuthorizer(mesh.enforcement, external, checks, tools, mesh.plane.lock):
        mesh.enforcement.fleet.authorizer = AuthorizerAddress("127.0.0.1", *ports, _CONTROL_PLANE)
        mesh.enforcement.publish(mesh.gateways)
        await asyncio.gather(*(mesh.server.wait_settled(node) for node in mesh.gateways))
        yield


@pytest.mark.real
def test_a_gateway_asks_the_service_and_without_an_answer_nothing_passes(tmp_path: Path) -> None:
    async def test() -> None:
        async with toy_store(tmp_path / "manifests") as store:
            await store.mesh.authorizer.__aexit__(None, None, None)
            assert await store.partner(_KEY) == 503
            gateways = [gateway_identity(site.gateway, store.mesh.settings) for site in store.mesh.gateways.values()]
            admitted = list(gateways)
            async with _authorizer_service(store, admitted):
                assert await store.partner(_KEY) == 200
                assert await store.partner("WRONG") == 401
            assert await store.partner(_KEY) == 503
            async with _authorizer_service(store, []):
                assert await store.partner(_KEY) == 503  # the service refuses it: it is not a gateway

    asyncio.run(test())
