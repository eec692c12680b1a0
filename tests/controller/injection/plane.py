"""A control plane for proxies of pods, in a thread: the authority, the xDS server over TLS, and token reviews."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import grpc

from eastgate.cluster import World
from eastgate.cluster.proxies import excluded_inbound_ports
from eastgate.control.capturing import pod_site
from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import everything
from eastgate.control.identity import EmbeddedCa
from eastgate.control.sites import ProxySite, identity_of
from eastgate.controller.injection.names import PROXY, SIDECAR
from eastgate.envoy.server import AdsServer, Store, Tokens
from eastgate.settings import Settings
from tests.controller.injection.network import NODE, Namespace
from tests.faults.worlds import DOMAIN, Manifest, reading
from tests.patience import PATIENCE
from tests.programs import ApiServer

PORT = 15010
_NAME = "eastgate.eastgate-system.svc"


def pod_sites(world: World) -> Iterator[tuple[str, ProxySite]]:
    for key, pod in world.workloads.items():
        site = pod_site(world, pod, excluded_inbound_ports(pod.annotations))
        if pod.labels.get(PROXY) == SIDECAR and site is not None:
            yield key, site


class ReviewedTokens(Tokens):
    """Tokens that the API server accepts as tokens of a pod."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__()
        self._server = server

    def _pod_of(self, token: str) -> str | None:
        spec = {"token": token, "audiences": ["eastgate"]}
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        trusted = ssl.create_default_context(cafile=str(self._server.certificate))
        connection = http.client.HTTPSConnection(urlsplit(self._server.url).netloc, context=trusted, timeout=60)
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": "application/json"}
        with closing(connection):
            connection.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", json.dumps(review), headers)
            status = json.loads(connection.getresponse().read())["status"]
        if not status.get("authenticated") or "eastgate" not in status.get("audiences", ()):
            return None
        namespace = status["user"]["username"].split(":")[2]
        [pod] = status["user"]["extra"]["authentication.kubernetes.io/pod-name"]
        return f"{namespace}/{pod}"

    def issued(self, token: str) -> bool:
        return self._pod_of(token) is not None

    def accepts(self, node: str, token: str) -> bool:
        return self._pod_of(token) == node


class Plane:
    """A control plane that listens at the node of a network."""

    def __init__(self, api: ApiServer, node: Namespace) -> None:
        self.ca = EmbeddedCa(DOMAIN)
        self._tokens = ReviewedTokens(api)
        self._node = node
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.server: AdsServer | None = None
        self.enforcement: Enforcement | None = None

    @property
    def root(self) -> str:
        return self.ca.bundles.pem(DOMAIN)

    def _await(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def start(self) -> None:
        self._await(self._start())

    async def _start(self) -> None:
        svid = self.ca.issue(f"spiffe://{DOMAIN}/ns/eastgate-system/sa/eastgate", [_NAME])
        credentials = grpc.ssl_server_credentials([(svid.private_key.encode(), svid.chain.encode())])
        self.server = AdsServer(Store(), self._tokens)
        with self._node.entered():
            await self.server.start(f"{NODE}:{PORT}", credentials)

    def enforce(self, manifests: Sequence[Manifest]) -> None:
        """Enforce the policies of a cluster, and wait until the connected proxies have them."""
        self._await(self._enforce(manifests))

    async def _enforce(self, manifests: Sequence[Manifest]) -> None:
        assert self.server is not None
        settings = Settings()
        authority = reading(*manifests)(settings)
        sites = dict(pod_sites(authority.world))
        if self.enforcement is None:
            self.enforcement = Enforcement(authority, self.server.store)
        self.enforcement.decide_by(authority)
        self.enforcement.follow(self.enforcement.changes_to(sites, {}), everything(authority.world))
        for node in sites:
            identity = identity_of(authority.world.workloads[node], settings)
            assert identity is not None
            self.enforcement.put_svid(node, self.ca.issue(identity))
            self.enforcement.put_trust(node, self.ca.bundles)
        await self.server.wait_settled(timeout=PATIENCE)

    def wait(self, *nodes: str) -> None:
        """Wait until the proxies of these pods have all resources."""

        async def wait() -> None:
            assert self.server is not None
            for node in nodes:
                await self.server.wait_settled(node, PATIENCE)

        self._await(wait())

    def rejected(self) -> list[str]:
        """Return the resources that proxies have rejected."""
        assert self.server is not None
        return [
            f"{proxy.node} {resource.name}: {resource.rejection.message}"
            for proxy in self.server.proxies()
            for resource in proxy.resources
            if resource.rejection is not None
        ]

    def stop(self) -> None:
        if self.server is not None:
            self._await(self.server.stop(0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
