"""Gateways as proxies: listeners, routes and their filters, TLS that ends here and passed-through TLS."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import ssl
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from eastgate import Authority, dialects
from eastgate.authority.reading import sort_documents
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings
from tests.certificates import self_signed
from tests.patience import PATIENCE

CERTIFICATE, KEY = self_signed("shop.example")
PASSED_CERTIFICATE, PASSED_KEY = self_signed("passed.example")


def _app(name: str, port: int = 8000) -> str:
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}
spec: {{serviceAccountName: {name}, containers: [{{name: c, image: i, ports: [{{containerPort: {port}}}]}}]}}
---
"""


MANIFESTS = (
    _app("one")
    + _app("two")
    + _app("passed", 8443)
    + f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: shop}}
spec:
  gatewayClassName: eastgate
  listeners:
  - {{name: any, port: 8080, protocol: HTTP}}
  - {{name: own, port: 8080, protocol: HTTP, hostname: own.example}}
  - name: https
    port: 8443
    protocol: HTTPS
    hostname: shop.example
    tls: {{certificateRefs: [{{name: shop-tls}}]}}
  - {{name: passed, port: 8443, protocol: TLS, hostname: passed.example, tls: {{mode: Passthrough}}}}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {{name: shop-tls, namespace: shop}}
data: {{tls.crt: {b64encode(CERTIFICATE).decode()}, tls.key: {b64encode(KEY).decode()}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: everything, namespace: shop}}
spec:
  parentRefs: [{{name: edge, sectionName: any}}, {{name: edge, sectionName: https}}]
  rules:
  - matches: [{{path: {{type: PathPrefix, value: /one}}}}]
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: Exact, value: /exact}}, method: POST}}]
    backendRefs: [{{name: two, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /named}}, headers: [{{name: x-who, value: two}}]}}]
    backendRefs: [{{name: two, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /named}}, queryParams: [{{name: who, value: one}}]}}]
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /weights}}}}]
    backendRefs: [{{name: one, port: 80, weight: 1}}, {{name: two, port: 80, weight: 3}}]
  - matches: [{{path: {{type: PathPrefix, value: /headers}}}}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier:
        set: [{{name: x-set, value: "100%"}}]
        add: [{{name: x-added, value: gateway}}]
        remove: [x-removed]
    - {{type: ResponseHeaderModifier, responseHeaderModifier: {{set: [{{name: x-answered, value: "yes"}}]}}}}
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /prefix}}}}]
    filters:
    - {{type: URLRewrite, urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /new}}}}}}
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /stripped}}}}]
    filters: [{{type: URLRewrite, urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /}}}}}}]
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /full}}}}]
    filters:
    - type: URLRewrite
      urlRewrite: {{hostname: other.example, path: {{type: ReplaceFullPath, replaceFullPath: /all}}}}
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /moved}}}}]
    filters:
    - type: RequestRedirect
      requestRedirect:
        scheme: https
        hostname: new.example
        path: {{type: ReplacePrefixMatch, replacePrefixMatch: /here}}
        statusCode: 301
  - matches: [{{path: {{type: PathPrefix, value: /mirrored}}}}]
    filters: [{{type: RequestMirror, requestMirror: {{backendRef: {{name: two, port: 80}}}}}}]
    backendRefs: [{{name: one, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /elsewhere}}}}]
    backendRefs: [{{name: one, namespace: others, port: 80}}]
  - matches: [{{path: {{type: PathPrefix, value: /outside}}}}]
    backendRefs: [{{group: agentic.prototype.x-k8s.io, kind: XBackend, name: outside}}]
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {{name: outside, namespace: shop}}
spec: {{mcp: {{hostname: localhost, port: OUTSIDE}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: own, namespace: shop}}
spec:
  parentRefs: [{{name: edge, sectionName: own}}]
  rules: [{{backendRefs: [{{name: two, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TLSRoute
metadata: {{name: passed, namespace: shop}}
spec:
  parentRefs: [{{name: edge, sectionName: passed}}]
  hostnames: [passed.example]
  rules: [{{backendRefs: [{{name: passed, port: 80}}]}}]
"""
)
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def seen(self) -> dict[str, Any]:
        """The request that the built-in application received."""
        seen: dict[str, Any] = json.loads(self.body)
        return seen


@dataclass(frozen=True)
class Edge:
    """A running mesh with one gateway, and its event loop."""

    mesh: LocalMesh
    loop: asyncio.AbstractEventLoop

    def ask(
        self, path: str, host: str = "any.example", method: str = "GET", headers: str = "", sni: str = ""
    ) -> Answer:
        return self.loop.run_until_complete(asyncio.wait_for(self._ask(path, host, method, headers, sni), PATIENCE))

    async def _ask(self, path: str, host: str, method: str, headers: str, sni: str) -> Answer:
        [site] = self.mesh.gateways.values()
        context = None
        if sni:
            context = ssl.create_default_context(cadata=(CERTIFICATE + PASSED_CERTIFICATE).decode())
        port = site.ports[8443 if sni else 8080]
        reader, writer = await asyncio.open_connection(
            site.address, port, ssl=context, server_hostname=sni if sni else None
        )
        head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n"
        writer.write(head.encode())
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip("\r\n").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        length = fields.get("content-length")  # a proxy that answers by itself hangs up seconds later
        body = await (reader.read() if length is None else reader.readexactly(int(length)))
        writer.close()
        return Answer(int(first.split()[1]), fields, body)


async def _answer_plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    body = json.dumps({"workload": "outside", "head": head.decode()}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    loop = asyncio.new_event_loop()
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(PASSED_CERTIFICATE)
    (folder / "key.pem").write_bytes(PASSED_KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    outside = loop.run_until_complete(asyncio.start_server(_answer_plainly, "127.0.0.1", 0))
    passed = loop.run_until_complete(asyncio.start_server(_answer_plainly, "127.0.0.1", 0, ssl=context))
    manifests = MANIFESTS.replace("OUTSIDE", str(outside.sockets[0].getsockname()[1]))

    def read(settings: Settings) -> Authority:
        reading = read_text("manifests.yaml", manifests, positioned=dialects.reads)
        return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)

    apps = {"shop/passed": SocketAddress("127.0.0.1", passed.sockets[0].getsockname()[1])}
    mesh = LocalMesh(read, None, MeshOptions(name=f"gateways-{os.getpid()}-{next(_NUMBERS)}", apps=apps))
    try:
        loop.run_until_complete(mesh.__aenter__())
        yield Edge(mesh, loop)
    finally:
        loop.run_until_complete(mesh.__aexit__(None, None, None))
        for server in (outside, passed):
            server.close()
        loop.close()


@pytest.mark.parametrize(
    ("path", "more", "workload"),
    [
        ("/one", {}, "shop/one"),
        ("/one/more?x=1", {}, "shop/one"),
        ("/exact", {"method": "POST", "headers": "content-length: 0\r\n"}, "shop/two"),
        ("/named", {"headers": "x-who: two\r\n"}, "shop/two"),
        ("/named?who=one", {}, "shop/one"),
        ("/named?who=one", {"headers": "x-who: two\r\n"}, "shop/two"),
        ("/whatever", {"host": "own.example"}, "shop/two"),
        ("/one", {"host": "OWN.example.:8080"}, "shop/two"),
        ("/one", {"host": "shop.example", "sni": "shop.example"}, "shop/one"),
    ],
)
def test_requests_reach_the_backend_of_their_route(edge: Edge, path: str, more: dict[str, str], workload: str) -> None:
    answer = edge.ask(path, **more)
    assert (answer.status, answer.seen["workload"]) == (200, workload)


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/", {}, 404),
        ("/onetwo", {}, 404),
        ("/exact", {}, 404),
        ("/named", {}, 404),
        ("/one", {"host": "other.example", "sni": "shop.example"}, 404),
        ("/mirrored", {}, 500),
        ("/elsewhere", {}, 404),
    ],
)
def test_what_leads_nowhere_or_cannot_be_done_is_refused(
    edge: Edge, path: str, more: dict[str, str], status: int
) -> None:
    assert edge.ask(path, **more).status == status


def test_weights_divide_requests(edge: Edge) -> None:
    reached = [edge.ask("/weights").seen["workload"] for _ in range(60)]
    assert set(reached) == {"shop/one", "shop/two"}
    assert reached.count("shop/two") > reached.count("shop/one")


def test_headers_are_changed_as_the_route_says(edge: Edge) -> None:
    answer = edge.ask("/headers", headers="x-set: client\r\nx-removed: client\r\nx-eastgate-source: forged\r\n")
    seen = answer.seen["headers"]
    assert seen["x-set"] == "100%"
    assert seen["x-added"] == "gateway"
    assert not [name for name in seen if name == "x-removed" or name.startswith("x-eastgate-")]
    assert answer.headers["x-answered"] == "yes"


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/prefix", "/new"),
        ("/prefix/more?x=1", "/new/more?x=1"),
        ("/pre%66ix/a", "/new/a"),
        ("/stripped/more", "/more"),
        ("/stripped", "/"),
        ("/full/of?x=1", "/all?x=1"),
    ],
)
def test_paths_are_rewritten(edge: Edge, path: str, seen: str) -> None:
    assert edge.ask(path).seen["path"] == seen


def test_hosts_are_rewritten(edge: Edge) -> None:
    assert edge.ask("/full").seen["headers"]["host"] == "other.example"


def test_redirects_answer_at_the_gateway(edge: Edge) -> None:
    answer = edge.ask("/moved/more?x=1")
    assert (answer.status, answer.headers["location"]) == (301, "https://new.example/here/more?x=1")


def test_a_host_outside_of_the_cluster_is_called_by_its_name(edge: Edge) -> None:
    answer = edge.ask("/outside")
    assert (answer.status, answer.seen["workload"]) == (200, "outside")
    assert "host: localhost" in answer.seen["head"].lower()


def test_tls_is_passed_through_by_the_name_in_its_handshake(edge: Edge) -> None:
    answer = edge.ask("/anything", host="passed.example", sni="passed.example")
    assert (answer.status, answer.seen["workload"]) == (200, "outside")


def test_a_name_that_no_listener_has_is_closed(edge: Edge) -> None:
    with pytest.raises((OSError, EOFError)):
        edge.ask("/one", sni="nobody.example")
