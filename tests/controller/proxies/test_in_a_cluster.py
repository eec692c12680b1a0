"""Proxies of a real API server: their tokens, ADS over TLS, and policies that a real Envoy enforces."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.sources.source import ClusterSource
from eastgate.control.identity import EmbeddedCa, Svid, client_context
from eastgate.controller.certificates.ca_secret import ServerTls, control_plane_identity, control_plane_names
from eastgate.controller.certificates.shared_ca import SharedCa
from eastgate.controller.proxies.control import ProxyControl
from eastgate.controller.proxies.progress import ProgressState, merge
from eastgate.controller.proxies.sites import bound_site
from eastgate.controller.proxies.token_reviews import PodAuthenticator, SvidProofs, TokenReviews
from eastgate.envoy.config.bootstrap import bootstrap
from eastgate.envoy.server import LISTENER
from eastgate.local.machine.envoy import EnvoyProcess
from eastgate.reading.kubernetes import Connection, connect
from eastgate.settings import Settings
from tests.controller.proxies.pods import Plain
from tests.envoy.server.client import Client
from tests.patience import PATIENCE
from tests.programs.api_server import ApiServer
from tests.programs.processes import free_port

pytestmark = [pytest.mark.apiserver, pytest.mark.real]

_POLICY = "AuthorizationPolicy.gateway.networking.x-k8s.io"
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class InCluster:
    """A namespace with a server and a caller, and a replica of the control plane beside the API server."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.namespace = server.namespace("proxies")
        self.port = free_port()
        self.pods = {
            name: self._run_pod(name, address) for name, address in (("pay", "127.65.0.1"), ("caller", "127.65.0.2"))
        }

    def _run_pod(self, name: str, address: str) -> Plain:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self.server.create(f"/api/v1/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": name}})
        container = {"name": "app", "image": "app", "ports": [{"containerPort": self.port}]}
        labels = {"app": name, "eastgate.dev/proxy": "sidecar"}
        spec = {"serviceAccountName": name, "containers": [container]}
        self.server.create(pods, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        self.server.run_pod(self.namespace, name, address)
        _, created = self.server.request("GET", f"{pods}/{name}")
        return dict(created)

    def node(self, name: str) -> str:
        return f"{self.namespace}/{name}"

    def token(self, name: str, audience: str = "eastgate", *, bound: bool = True, seconds: int = 600) -> str:
        pod = self.pods[name] if bound else None
        return self.server.token_of(self.node(name), audience, pod=pod, seconds=seconds)

    def identity(self, name: str) -> str:
        return f"spiffe://cluster.local/ns/{self.namespace}/sa/{name}"

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Replica]:
        settings = Settings().enforced()
        async with (
            connect(self.server.kubeconfig) as connection,
            ClusterSource(connection, settings, namespace=self.namespace) as source,
        ):
            ca = await SharedCa.open(connection, settings.trust_domain, namespace=self.namespace)
            names = control_plane_names(settings.cluster_domain)
            async with ServerTls(ca.source, control_plane_identity(settings.trust_domain), names) as tls:
                replica = Replica(self, connection, source, ca, tls)
                async with replica.control:
                    await replica.start()
                    try:
                        yield replica
                    finally:
                        await replica.stop()


class Replica:
    """A replica of the control plane, and the proxies that tests start."""

    def __init__(
        self, cluster: InCluster, connection: Connection, source: ClusterSource, ca: SharedCa, tls: ServerTls
    ) -> None:
        self.cluster = cluster
        self.source = source
        self.ca = ca
        self.tls = tls
        self.authority: Authority = source.authority
        world = lambda: self.authority.world  # noqa: E731
        reviews = TokenReviews(connection, world)
        authenticator = PodAuthenticator(world, [SvidProofs(world, source.settings), reviews])
        self.control = ProxyControl(
            self.authority,
            authenticator,
            ca.source,
            replica="one",
            session_key=ca.session_key,
            site_of=partial(bound_site, app_host="127.0.0.1"),
        )
        self._running: list[EnvoyProcess] = []
        self._following: asyncio.Task[None] | None = None
        self._app: asyncio.Server | None = None

    async def start(self) -> None:
        self._app = await asyncio.start_server(_serve, "127.0.0.1", self.cluster.port)
        credentials = [self.tls.grpc_credentials(verify_clients=verified) for verified in (False, True)]
        self.ports = await self.control.start([("127.0.0.1:0", each) for each in credentials])
        self._following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for changes in self.source.batches():
            with self.control.lock:
                touched = self.source.apply(changes)
            policies = [each for each in changes.put if each["kind"] == "AuthorizationPolicy"]
            applied = {
                f"{_POLICY}/{each['metadata']['namespace']}/{each['metadata']['name']}": (
                    each["metadata"]["generation"],
                    each["metadata"]["uid"],
                )
                for each in policies
            }
            await self.control.follow(touched, applied)

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        for process in self._running:
            await process.stop()
        if self._app is not None:
            self._app.close()

    async def start_envoy(self, name: str) -> EnvoyProcess:
        """Start the Envoy of a pod."""
        node = self.cluster.node(name)
        plain = bootstrap(node, "unused", self.cluster.token(name))
        roots = self.cluster.folder / "ca.crt"
        roots.write_text(self.ca.source.bundles.pem("cluster.local"))
        cluster = plain["static_resources"]["clusters"][0]
        address = {"socket_address": {"address": "127.0.0.1", "port_value": self.ports[0]}}
        cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0] = {"endpoint": {"address": address}}
        host = control_plane_names("cluster.local")[0]
        matched = {"san_type": "DNS", "matcher": {"exact": host}}
        cluster["transport_socket"] = {
            "name": "tls",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                "sni": host,
                "common_tls_context": {
                    "validation_context": {
                        "trusted_ca": {"filename": str(roots)},
                        "match_typed_subject_alt_names": [matched],
                    }
                },
            },
        }
        process = await EnvoyProcess.start(plain, node, on_record=lambda _: None, on_log=print)
        self._running.append(process)
        return process

    async def call(self, caller: str | None) -> int | None:
        """Call the server as an account, or without a certificate; return the status, or None for a closed one."""
        context: ssl.SSLContext | None = None
        if caller is not None:
            svid = await self.ca.source.svid(self.cluster.identity(caller))
            context = client_context(svid, self.ca.source.bundles)
        try:
            reader, writer = await asyncio.open_connection("127.65.0.1", self.cluster.port, ssl=context)
            writer.write(b"GET / HTTP/1.1\r\nhost: pay\r\nconnection: close\r\n\r\n")
            line = await reader.readline()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        except OSError:
            return None
        return int(line.split()[1]) if line else None

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0.02)

    async def until_call(self, caller: str | None, expected: int | None) -> None:
        """Wait for this answer to a call: a proxy may acknowledge a listener before it listens."""
        async with asyncio.timeout(PATIENCE):
            while await self.call(caller) != expected:
                await asyncio.sleep(0.02)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
        await writer.drain()
    writer.close()


def _policy(namespace: str, caller: str) -> Plain:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "pay", "namespace": namespace},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "pay"}}}],
            "action": "ALLOW",
            "rules": [{"authorizationSource": {"serviceAccounts": [f"{namespace}/{caller}"]}}],
        },
    }


@pytest.fixture
def cluster(api_server: ApiServer, tmp_path: Path) -> InCluster:
    api_server.install("eastgate")
    return InCluster(api_server, tmp_path)


def _run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test, 3 * PATIENCE))


class TestEnforcing:
    def test_a_policy_that_kubectl_creates_is_enforced_by_the_proxy_of_a_pod(self, cluster: InCluster) -> None:
        async def test() -> None:
            async with cluster.run() as replica:
                node, policy = cluster.node("pay"), f"{_POLICY}/{cluster.namespace}/pay"
                await replica.start_envoy("pay")
                await replica.control.server.wait_settled(node, PATIENCE)
                await replica.until_call("caller", 200)
                await asyncio.to_thread(cluster.server.apply, _policy(cluster.namespace, "caller"))
                await replica.until(lambda: merge([replica.control.report()]).progress(policy, 1, node).enforced)
                assert await replica.call("caller") == 200
                assert await replica.call("pay") in (403, None)
                assert await replica.call(None) in (403, None)
                await asyncio.to_thread(cluster.server.apply, _policy(cluster.namespace, "pay"))
                await replica.until(lambda: merge([replica.control.report()]).progress(policy, 2, node).enforced)
                assert await replica.call("caller") in (403, None)
                report = merge([replica.control.report()])
                assert report.progress(policy, 3, node).state is ProgressState.NOT_APPLIED
                assert report.progress(policy, 2, cluster.node("caller")).state is ProgressState.DISCONNECTED

        _run(test())

    def test_the_root_and_the_certificate_of_the_server_change_and_streams_stay(self, cluster: InCluster) -> None:
        async def test() -> None:
            async with cluster.run() as replica:
                node = cluster.node("pay")
                await replica.start_envoy("pay")
                await replica.control.server.wait_settled(node, PATIENCE)
                since = _connected_since(replica, node)
                source = replica.ca.source
                assert isinstance(source, EmbeddedCa)
                source.prepare_root()
                await replica.control.server.wait_settled(node, PATIENCE)
                source.activate_root()
                await replica.until(lambda: _serves_with_root(replica, source))
                await replica.control.server.wait_settled(node, PATIENCE)
                await replica.until_call("caller", 200)
                assert _connected_since(replica, node) == since
                await replica.start_envoy("caller")  # over TLS with the new certificate
                await replica.control.server.wait_settled(cluster.node("caller"), PATIENCE)

        _run(test())


def _connected_since(replica: Replica, node: str) -> object:
    status = replica.control.server.status(node)
    return status.connected_since if status is not None else None


def _serves_with_root(replica: Replica, source: EmbeddedCa) -> bool:
    """Return whether the server certificate of the control plane chains to the current root."""
    svid, _ = replica.tls._snapshot()
    return source.state.intermediate.pem in svid.chain


class TestAuthentication:
    def test_a_token_that_is_not_the_proxy_s_own_gets_nothing(self, cluster: InCluster) -> None:
        async def test() -> None:
            other = cluster.node("caller")
            async with cluster.run() as replica:
                for shown, node in (
                    (cluster.token("pay"), other),  # another pod's token
                    (cluster.token("caller", "https://kubernetes.default.svc"), other),
                    (cluster.token("caller", bound=False), other),
                    (cluster.token("caller") + "x", other),
                ):
                    await _is_refused(TlsClient(replica, node, shown))
                assert replica.control.server.status(other) is None

        _run(test())

    def test_the_stream_of_a_pod_ends_with_the_pod(self, cluster: InCluster) -> None:
        async def test() -> None:
            async with cluster.run() as replica:
                node, shown = cluster.node("caller"), cluster.token("caller")
                proxy = TlsClient(replica, node, shown)
                await proxy.say(LISTENER)
                await proxy.hear()
                pods = f"/api/v1/namespaces/{cluster.namespace}/pods/caller"
                cluster.server.request("DELETE", pods, {"gracePeriodSeconds": 0})
                assert await proxy.code() is grpc.StatusCode.UNAUTHENTICATED
                await proxy.close()
                await _is_refused(TlsClient(replica, node, shown))
                assert node not in replica.control.enforcement.nodes

        _run(test())

    def test_an_svid_at_the_address_of_its_pod_is_as_good_as_a_token(self, cluster: InCluster) -> None:
        async def test() -> None:
            async with cluster.run() as replica:
                cluster.server.run_pod(cluster.namespace, "pay", "127.0.0.1")  # the source address of all calls here
                await replica.until(lambda: replica.authority.world.by_ip("127.0.0.1") is not None)
                own, other = [await replica.ca.source.svid(cluster.identity(name)) for name in ("pay", "caller")]
                await _is_refused(TlsClient(replica, cluster.node("caller"), None, other))
                await _is_refused(TlsClient(replica, cluster.node("caller"), None, own))
                await _is_refused(TlsClient(replica, cluster.node("pay"), None, other))
                proxy = TlsClient(replica, cluster.node("pay"), None, own)
                await proxy.say(LISTENER)
                await proxy.hear()
                await proxy.close()

        _run(test())

    def test_a_client_without_a_certificate_does_not_get_to_the_port_for_svids(self, cluster: InCluster) -> None:
        async def test() -> None:
            async with cluster.run() as replica:
                proxy = TlsClient(replica, cluster.node("pay"), cluster.token("pay"), port=replica.ports[1])
                await _is_refused(proxy, grpc.StatusCode.UNAVAILABLE)

        _run(test())


class TlsClient(Client):
    """A client that acts as a proxy, over TLS."""

    def __init__(
        self, replica: Replica, node: str, token: str | None, svid: Svid | None = None, port: int | None = None
    ) -> None:
        roots = replica.ca.source.bundles.pem("cluster.local").encode()
        own = (svid.private_key.encode(), svid.chain.encode()) if svid is not None else (None, None)
        credentials = grpc.ssl_channel_credentials(roots, *own)
        override = (("grpc.ssl_target_name_override", control_plane_names("cluster.local")[0]),)
        address = f"127.0.0.1:{port or replica.ports[0 if svid is None else 1]}"
        super().__init__(address, node, token, grpc.aio.secure_channel(address, credentials, override))


async def _is_refused(proxy: TlsClient, code: grpc.StatusCode = grpc.StatusCode.UNAUTHENTICATED) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # possibly before anything is read
        await proxy.say(LISTENER)
    assert await proxy.code() in (code, grpc.StatusCode.INTERNAL)  # gRPC may report the end before its reason
    await proxy.close()
