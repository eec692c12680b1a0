"""A server on a Unix socket, and a gRPC client that plays a proxy."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from envoy.config.core.v3.base_pb2 import Node
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse

from eastgate.envoy.server import AdsServer, Limits, Store, Tokens
from tests.envoy.server.fake import answer, request
from tests.patience import PATIENCE

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, PATIENCE))


class Plane:
    """A control plane under test."""

    def __init__(self, folder: Path, limits: Limits | None) -> None:
        self.address = f"unix:{folder}/ads.sock"
        self.store = Store()
        self.tokens = Tokens()
        self.server = AdsServer(self.store, self.tokens, limits=limits)
        self.events: list[object] = []
        self.server.listen(self.events.append)

    def count(self, name: str, **labels: str) -> float:
        return self.server.metrics.registry.get_sample_value(f"eastgate_xds_{name}", labels) or 0.0


@asynccontextmanager
async def plane(limits: Limits | None = None) -> AsyncIterator[Plane]:
    with tempfile.TemporaryDirectory(prefix="eg") as folder:
        made = Plane(Path(folder), limits)
        await made.server.start(made.address)
        try:
            yield made
        finally:
            await made.server.stop(0)


class Client:
    """One stream to a control plane."""

    def __init__(self, address: str, node: str, token: str | None, channel: grpc.aio.Channel | None = None) -> None:
        self.node = node
        self._channel = channel or grpc.aio.insecure_channel(address)
        metadata = (("authorization", f"Bearer {token}"),) if token is not None else ()
        method: Any = self._channel.stream_stream(METHOD, DeltaDiscoveryRequest.SerializeToString, None)
        self.call: Any = method(metadata=metadata)

    async def say(self, type_url: str, *names: str, **fields: Any) -> None:
        await self.call.write(request(type_url, *names, node=Node(id=self.node), **fields))

    async def hear(self, timeout: float = PATIENCE) -> Any:
        found = await asyncio.wait_for(self.call.read(), timeout)
        assert found is not grpc.aio.EOF, "the stream has ended"
        return DeltaDiscoveryResponse.FromString(found)

    async def reply(self, response: Any, error: str | None = None) -> None:
        await self.call.write(answer(response, error))

    async def take(self) -> Any:
        response = await self.hear()
        await self.reply(response)
        return response

    async def hears_nothing(self, timeout: float = 0.1) -> bool:
        done, _ = await asyncio.wait([asyncio.ensure_future(self.call.read())], timeout=timeout)
        return not done  # the read continues, so this must be the last step of a client

    async def code(self) -> grpc.StatusCode:
        found: grpc.StatusCode = await asyncio.wait_for(self.call.code(), PATIENCE)
        return found

    async def close(self) -> None:
        self.call.cancel()
        await self._channel.close()


@asynccontextmanager
async def client(to: Plane, node: str = "n", token: str | None = "") -> AsyncIterator[Client]:
    """A client with this token, or with a new one of its own."""
    made = Client(to.address, node, to.tokens.issue(node) if token == "" else token)
    try:
        yield made
    finally:
        await made.close()
