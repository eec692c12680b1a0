"""Simulated proxies: each has the token of its pod, asks for all resources, and acknowledges each response."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from envoy.config.core.v3.base_pb2 import Node
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse

from bench.cluster.requests import Channels
from eastgate.controller.certificates.ca_secret import control_plane_names
from eastgate.envoy.server import CLUSTER, ENDPOINTS, EXTENSION, LISTENER, SECRET

__all__ = ["SimulatedProxies", "SimulatedProxy"]

_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
_TYPES = (CLUSTER, ENDPOINTS, LISTENER, EXTENSION, SECRET)
_SECRETS_PER_PROXY = 2  # an SVID, and a trust bundle
_MAX_CONCURRENT_CONNECTS = 50
_TIMEOUT_SECONDS = 300.0


class SimulatedProxy:
    """One stream to the control plane, which can wait for a resource that names an account."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.received = 0
        self.responses = 0
        self._awaited = b""
        self._event = asyncio.Event()
        self._secrets: set[str] = set()
        self._seen: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self, address: str, credentials: grpc.ChannelCredentials, token: str) -> None:
        """Connect, and acknowledge every response from now on."""
        self._task = asyncio.create_task(self._run(address, credentials, token))

    async def stop(self) -> None:
        """Close the stream."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def expect(self, account: str) -> None:
        """Wait from now on for a resource that names an account."""
        self._awaited = account.encode()
        self._event.clear()

    async def acknowledged(self) -> None:
        """Wait until the expected resource is acknowledged. Raises the error that ended the stream."""
        assert self._task is not None, "it was not started"
        waiting = asyncio.create_task(self._event.wait())
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await asyncio.wait([waiting, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            self._task.result()
            raise AssertionError(f"the stream of {self.node} has ended")

    async def _run(self, address: str, credentials: grpc.ChannelCredentials, token: str) -> None:
        options = [
            ("grpc.ssl_target_name_override", control_plane_names("cluster.local")[0]),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
        ]
        async with grpc.aio.secure_channel(address, credentials, options) as channel:
            method: Any = channel.stream_stream(_METHOD, DeltaDiscoveryRequest.SerializeToString, None)
            call = method(metadata=(("authorization", f"Bearer {token}"),))
            for type_url in _TYPES:
                await call.write(
                    DeltaDiscoveryRequest(node=Node(id=self.node), type_url=type_url, resource_names_subscribe=["*"])
                )
            async for content in call:
                response = DeltaDiscoveryResponse.FromString(content)
                await call.write(DeltaDiscoveryRequest(type_url=response.type_url, response_nonce=response.nonce))
                self._take(response, content)

    def _take(self, response: Any, content: bytes) -> None:
        self.received += len(content)
        self.responses += 1
        self._seen.add(response.type_url)
        if response.type_url == SECRET:
            self._secrets.update(resource.name for resource in response.resources)
        if self._awaited and self._awaited in content:
            self._awaited = b""
        if not self._awaited and len(self._secrets) >= _SECRETS_PER_PROXY and {CLUSTER, LISTENER} <= self._seen:
            self._event.set()


class SimulatedProxies:
    """Proxies of several pods, which wait together."""

    def __init__(self, proxies: Sequence[SimulatedProxy]) -> None:
        self.proxies = proxies

    @classmethod
    @asynccontextmanager
    async def connected(
        cls, channels: Channels, pods: Sequence[tuple[str, str, str]], port: int, account: str
    ) -> AsyncIterator[tuple[SimulatedProxies, float]]:
        """Connect the proxies of pods, given as (namespace, name, account). Yield them, and the seconds it took.

        A proxy counts as connected when it has acknowledged its secrets and a resource that names `account`.
        """
        tokens = await _tokens(channels, pods)
        [secret] = await channels.send_all([("GET", "/api/v1/namespaces/eastgate-system/secrets/eastgate-ca", None)])
        roots = base64.b64decode(json.loads(secret)["data"]["ca.crt"])
        credentials = grpc.ssl_channel_credentials(roots)
        proxies = [SimulatedProxy(f"{namespace}/{name}") for namespace, name, _ in pods]
        permits = asyncio.Semaphore(_MAX_CONCURRENT_CONNECTS)

        async def connect(proxy: SimulatedProxy, token: str) -> None:
            async with permits:
                proxy.expect(account)
                proxy.start(f"127.0.0.1:{port}", credentials, token)
                await proxy.acknowledged()

        started = time.perf_counter()
        try:
            await asyncio.gather(*(connect(proxy, token) for proxy, token in zip(proxies, tokens, strict=True)))
            yield cls(proxies), time.perf_counter() - started
        finally:
            await asyncio.gather(*(proxy.stop() for proxy in proxies))

    @property
    def received(self) -> int:
        """Return the number of bytes that all proxies have received."""
        return sum(proxy.received for proxy in self.proxies)

    def expect(self, account: str) -> None:
        """Make all proxies wait for a resource that names an account."""
        for proxy in self.proxies:
            proxy.expect(account)

    async def acknowledged(self) -> float:
        """Return the time at which the last proxy has acknowledged it."""
        await asyncio.gather(*(proxy.acknowledged() for proxy in self.proxies))
        return time.perf_counter()


async def _tokens(channels: Channels, pods: Sequence[tuple[str, str, str]]) -> list[str]:
    stored = await channels.send_all(("GET", f"/api/v1/namespaces/{home}/pods/{name}", None) for home, name, _ in pods)
    uids = [json.loads(content)["metadata"]["uid"] for content in stored]
    answers = await channels.send_all(
        (
            "POST",
            f"/api/v1/namespaces/{home}/serviceaccounts/{account}/token",
            {
                "spec": {
                    "audiences": ["eastgate"],
                    "expirationSeconds": 7200,
                    "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid},
                }
            },
        )
        for (home, name, account), uid in zip(pods, uids, strict=True)
    )
    return [json.loads(content)["status"]["token"] for content in answers]
