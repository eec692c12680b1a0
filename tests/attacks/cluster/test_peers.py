"""The leader trusts only replicas of the controller, and a replica with nonsense answers stops nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from eastgate.control.authorizer.http_server import HttpServer, ServedResponse
from eastgate.control.identity import EmbeddedCa
from eastgate.control.sites import TlsEndpoint
from eastgate.controller.certificates.ca_secret import ServerTls, control_plane_identity
from eastgate.controller.peers import PeerReports, PeerServer
from eastgate.controller.proxies.progress import ReplicaReport

CONTROLLER = control_plane_identity("cluster.local")
OTHER = "spiffe://cluster.local/ns/shop/sa/web"


@asynccontextmanager
async def _asking(ca: EmbeddedCa, server_identity: str, body: bytes | None) -> AsyncIterator[list[ReplicaReport]]:
    async with ServerTls(ca, server_identity) as server, ServerTls(ca, CONTROLLER) as own:
        reports = PeerReports(own, CONTROLLER, 0)
        if body is None:
            async with PeerServer("127.0.0.1", 0, server, CONTROLLER, lambda: ReplicaReport("two")) as peer:
                reports.port = peer.port
                yield await reports.ask(["127.0.0.1"])
            return
        http = HttpServer(lambda _request: ServedResponse(200, (), body))
        endpoint = TlsEndpoint("127.0.0.1", 0, server.context, lambda: server.bundles, lambda _peer: True)
        listening = await endpoint.listen(http.protocol)
        reports.port = listening.sockets[0].getsockname()[1]
        try:
            yield await reports.ask(["127.0.0.1"])
        finally:
            listening.close()
            await http.drain(0.1)


def _reports(server_identity: str, body: bytes | None = None) -> list[ReplicaReport]:
    async def run() -> list[ReplicaReport]:
        async with _asking(EmbeddedCa("cluster.local"), server_identity, body) as reports:
            return reports

    return asyncio.run(run())


def test_a_replica_is_believed() -> None:
    assert _reports(CONTROLLER) == [ReplicaReport("two")]


def test_another_workload_at_the_address_of_a_replica_is_not() -> None:
    """Check a replica whose pod is gone. Another pod has its address before the leader notices."""
    assert _reports(OTHER) == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b"null", b"\xff", b'{"format": 1}', b'{"format": 2, "replica": "two"}'],
    ids=["empty", "cut", "list", "text", "null", "no-unicode", "no-name", "other-format"],
)
def test_nonsense_is_no_report(body: bytes) -> None:
    assert _reports(CONTROLLER, body) == []


def test_deep_nonsense_is_no_report() -> None:
    assert _reports(CONTROLLER, b"[" * 5000 + b"]" * 5000) == []
