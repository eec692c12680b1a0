"""Gateways, listeners, routes, backends and Secrets that come and go while the mesh runs."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from eastgate.control.events import Enforced, PartlyEnforced
from eastgate.local.machine.connection import CallConnection, HttpRequest
from tests.certificates import self_signed
from tests.local.toystore import GATEWAY, POD, ToyStore, client_context, toy_store

pytestmark = pytest.mark.real
LISTENER = """\
  - name: more
    port: 8443
    protocol: HTTPS
    hostname: "*.toystore.com"
    tls: {certificateRefs: [{name: toystore-tls}]}
    allowedRoutes: {namespaces: {from: All}}
"""
ANOTHER = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: another, namespace: toystore}
spec:
  gatewayClassName: eastgate
  listeners: [{name: http, port: 8080, protocol: HTTP}]
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: fairs, namespace: toystore}
spec:
  parentRefs: [{name: edge, namespace: gateways}]
  hostnames: [fairs.toystore.com]
  rules:
  - filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-fair, value: "1"}]}}]
    backendRefs: [{name: SERVICE, port: 80}]
"""


def in_store(folder: Path, do: Callable[[ToyStore], Awaitable[None]]) -> None:
    async def run() -> None:
        async with toy_store(folder / "manifests") as store:
            await do(store)

    asyncio.run(run())


async def ask(connection: CallConnection) -> int:
    """Return the status of one more request on a connection."""
    await connection.send(HttpRequest("GET", "/toys", (("host", "www.toystore.com"),)))
    return (await connection.response()).status


async def open_connection(store: ToyStore, port: int = 443) -> CallConnection:
    return await CallConnection.open(store.target("www.toystore.com", port), tls=client_context())


def test_listeners_and_gateways_come_and_go_beside_open_connections(tmp_path: Path) -> None:
    async def do(store: ToyStore) -> None:
        async with await open_connection(store) as connection:
            assert await ask(connection) == 200
            restarts, sidecar = store.mesh.metrics.restarts, store.mesh.store.revision(POD)
            await store.edit("gateway.yaml", lambda text: text.replace("  listeners:\n", f"  listeners:\n{LISTENER}"))
            async with await open_connection(store, 8443) as another:
                assert await ask(another) == 200
            assert isinstance(await store.edit("another.yaml", lambda _: ANOTHER), Enforced)
            assert set(store.mesh.gateways) == {GATEWAY, "gateway:toystore/another"}
            assert await ask(connection) == 200
            bound = store.target("www.toystore.com", 8443)
            await store.edit("gateway.yaml", lambda text: text.replace(LISTENER, ""))
            assert 8443 not in store.mesh.gateways[GATEWAY].ports
            with pytest.raises((OSError, EOFError)):
                await ask(await CallConnection.open(bound, tls=client_context()))
            (store.folder / "another.yaml").unlink()
            await store.apply()
            assert set(store.mesh.gateways) == {GATEWAY}
            assert await ask(connection) == 200
            assert restarts._value.get() == 0
            assert store.mesh.store.revision(POD) == sidecar

    in_store(tmp_path, do)


def test_routes_and_backends_come_and_go_beside_open_connections(tmp_path: Path) -> None:
    async def do(store: ToyStore) -> None:
        async with await open_connection(store) as connection:
            assert await ask(connection) == 200
            assert (await store.send("/", host="fairs")).status == 200
            await store.edit("fairs.yaml", lambda _: ROUTE.replace("SERVICE", "fairs"))
            assert (await store.send("/", host="fairs")).status >= 500  # there is no such Service
            await store.edit("fairs.yaml", lambda text: text.replace("name: fairs, port", "name: toystore, port"))
            seen = await store.send("/", host="fairs")
            assert (seen.status, b'"x-fair": "1"' in seen.body) == (200, True)
            (store.folder / "fairs.yaml").unlink()
            await store.apply()
            seen = await store.send("/", host="fairs")
            assert (seen.status, b'"x-fair": "1"' in seen.body) == (200, False)
            assert await ask(connection) == 200
            await store.edit("gateway.yaml", lambda text: text.replace('- "*.toystore.com"', '- "*.other.com"'))
            assert await ask(connection) == 404

    in_store(tmp_path, do)


def test_a_secret_of_a_listener_comes_changes_and_goes(tmp_path: Path) -> None:
    def secret(certificate: bytes, key: bytes) -> str:
        data = {"tls.crt": b64encode(certificate).decode(), "tls.key": b64encode(key).decode()}
        metadata = {"name": "toystore-tls", "namespace": "gateways"}
        kind = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        return json.dumps({**kind, "metadata": metadata, "data": data})

    async def shown(store: ToyStore) -> bytes:
        target = store.target("www.toystore.com")
        _, writer = await asyncio.open_connection(
            target.address, target.port, ssl=client_context(), server_hostname=target.server_name
        )
        try:
            tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
            return tls.getpeercert(binary_form=True) or b""
        finally:
            writer.close()

    async def do(store: ToyStore) -> None:
        of_mesh = await shown(store)
        certificates = []
        for _ in range(2):
            certificate, key = self_signed("www.toystore.com")
            (store.folder / "tls.yaml").write_text(secret(certificate, key))
            await store.apply()
            certificates.append(await shown(store))
            assert certificates[-1] == ssl.PEM_cert_to_DER_cert(certificate.decode())
        assert of_mesh not in certificates
        changed = await store.edit("tls.yaml", lambda text: text.replace("kubernetes.io/tls", "Opaque"))
        assert isinstance(changed, PartlyEnforced)
        assert changed.closed == (f"{GATEWAY} port 443, listener https",)
        assert (await store.send("/toys", host="www")).status == 0
        (store.folder / "tls.yaml").unlink()
        assert isinstance(await store.apply(), Enforced)
        assert (await store.send("/toys", host="www")).status == 200

    in_store(tmp_path, do)
