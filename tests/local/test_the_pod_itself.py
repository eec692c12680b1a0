"""All of a local mesh is on loopback: Linkerd's localhost is the workload's own address there, and no other."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from eastgate import Authority, Question, dialects
from eastgate.authority.reading import sort_documents
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.sidecar import OUTBOUND_PORT
from eastgate.local.calls import make_calls
from eastgate.local.machine.addresses import Addresses, NetworkUnavailable
from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings
from tests.local.machine.calling import call
from tests.replacing import enforce_instead

WORKLOADS = """
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: cart, labels: {app: cart}}
spec: {serviceAccountName: cart, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web}
spec: {serviceAccountName: web, containers: [{name: c, image: c}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: cart}
spec: {selector: {app: cart}, ports: [{port: 8080}]}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {namespace: shop, name: cart}
spec: {podSelector: {matchLabels: {app: cart}}, port: 8080, proxyProtocol: PROTOCOL, accessPolicy: ACCESS}
"""
IN_THE_CLUSTER = """
---
apiVersion: policy.linkerd.io/v1beta1
kind: ServerAuthorization
metadata: {namespace: shop, name: from-the-cluster}
spec: {server: {name: cart}, client: {unauthenticated: true}}
"""
_NUMBERS = itertools.count()


def reading(text: str) -> Callable[[Settings], Authority]:
    def read(settings: Settings) -> Authority:
        found = read_text("manifests.yaml", text, positioned=dialects.reads)
        return Authority(sort_documents(found.documents, settings, found.reporter), settings)

    return read


@asynccontextmanager
async def running(
    access: str = "deny", *, protocol: str = "HTTP/1", more: str = "", by_address: bool = False
) -> AsyncIterator[LocalMesh]:
    text = WORKLOADS.replace("PROTOCOL", protocol).replace("ACCESS", access) + more
    apps = {key: SocketAddress("127.0.0.1", 1) for key in ("shop/web",)}
    options = MeshOptions(name=f"t{os.getpid()}-itself-{next(_NUMBERS)}", apps=apps, by_address=by_address)
    async with LocalMesh(reading(text), options=options) as mesh:
        yield mesh


async def get(mesh: LocalMesh, source: str | None) -> int:
    site = mesh.sites["shop/cart"]
    target = Target(site.address, site.ports[8080])
    return (await call(target, source_address=source, request=HttpRequest())).status


async def through(mesh: LocalMesh, workload: str) -> int:
    """Call through the outbound listener of a workload, as its application does."""
    target = Target(mesh.sites[workload].address, OUTBOUND_PORT)
    return (
        await call(target, request=HttpRequest("GET", "http://cart.shop:8080/", (("host", "cart.shop:8080"),)))
    ).status


def outside(mesh: LocalMesh) -> list[str | None]:
    """The addresses of processes that are no workload: any, localhost, and other loopback addresses."""
    nobodys = mesh.own_address.rpartition(".")[0] + ".200"
    return [None, "127.0.0.1", "127.0.0.2", mesh.own_address, nobodys]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def done() -> None:
        await test()

    asyncio.run(done())


@pytest.mark.parametrize("protocol", ["HTTP/1", "unknown", "opaque"])
@pytest.mark.parametrize("by_address", [False, True])
def test_only_the_own_address_is_the_pod_itself(protocol: str, by_address: bool) -> None:
    async def test() -> None:
        async with running(protocol=protocol, by_address=by_address) as mesh:
            refused = 0 if protocol == "opaque" else 403
            cart, web = mesh.sites["shop/cart"].address, mesh.sites["shop/web"].address
            assert await get(mesh, cart) == 200
            for source in [*outside(mesh), web]:
                assert await get(mesh, source) == refused, source
            assert await through(mesh, "shop/web") in (403, 503)

    run(test)


@pytest.mark.parametrize(
    ("access", "more"), [("cluster-unauthenticated", ""), ("deny", IN_THE_CLUSTER)], ids=["access", "authorization"]
)
def test_only_workloads_are_in_the_networks_of_the_cluster(access: str, more: str) -> None:
    async def test() -> None:
        async with running(access, more=more) as mesh:
            assert await get(mesh, mesh.sites["shop/web"].address) == 200
            assert await get(mesh, mesh.sites["shop/cart"].address) == 200
            assert await through(mesh, "shop/web") == 200
            assert {await get(mesh, source) for source in outside(mesh)} == {403}

    run(test)


def test_an_application_calls_from_the_address_of_its_workload() -> None:
    async def test() -> None:
        async with running("cluster-authenticated") as mesh:
            assert await through(mesh, "shop/web") == 200
            assert await get(mesh, mesh.sites["shop/web"].address) == 403, "that alone is no identity"

    run(test)


@pytest.mark.parametrize(
    ("source", "address", "allowed"),
    [
        ("pod:shop/cart", None, True),
        ("pod:shop/web", None, False),
        ("sa:shop/cart", None, False),
        ("anonymous", None, False),
        ("anonymous", "127.0.0.1", False),
        ("ip:127.0.0.1", None, False),
        ("ip:127.0.0.2", None, False),
    ],
)
def test_call_and_engine_agree(source: str, address: str | None, allowed: bool) -> None:
    async def test() -> None:
        async with running() as mesh:
            [made] = await make_calls(mesh, Question.of(source, "pod:shop/cart", source_ip=address))
            assert (made.allowed, made.agrees) == (allowed, True)
            assert mesh.authority.decide(
                Question.of("pod:shop/cart", "pod:shop/cart", port=8080, method="GET", path="/")
            ).allowed
            assert not mesh.authority.decide(
                Question.of("ip:127.0.0.1", "pod:shop/cart", port=8080, method="GET", path="/")
            ).allowed

    run(test)


def test_without_a_mesh_localhost_is_the_pod_itself() -> None:
    authority = reading(WORKLOADS.replace("PROTOCOL", "HTTP/1").replace("ACCESS", "deny"))(Settings())
    for source, allowed in (("127.0.0.1", True), ("::1", True), ("127.0.0.2", False), ("127.64.0.2", False)):
        asked = Question.of("anonymous", "pod:shop/cart", port=8080, method="GET", path="/", source_ip=source)
        assert authority.decide(asked).allowed is allowed, source


@pytest.mark.parametrize("network", ["127.0.0.0/16", "127.0.0.0/24", "127.0.0.0/29"])
def test_localhost_is_in_the_network_of_no_mesh(network: str) -> None:
    with pytest.raises(NetworkUnavailable, match="localhost"):
        Addresses(network)


def test_workloads_that_come_later_have_addresses_of_their_own() -> None:
    async def test() -> None:
        later = (
            WORKLOADS.replace("PROTOCOL", "HTTP/1").replace("ACCESS", "cluster-unauthenticated")
            + """
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: late}
spec: {containers: [{name: c, image: c}]}
"""
        )
        async with running("cluster-unauthenticated") as mesh:
            free = mesh.own_address.rpartition(".")[0] + ".4"
            assert await get(mesh, free) == 403
            await enforce_instead(mesh, reading(later)(mesh.settings))
            assert mesh.sites["shop/late"].address == free
            assert await get(mesh, free) == 200

    run(test)
