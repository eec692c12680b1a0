"""Sessions with servers that share a route by weight: each session stays with its first server."""

from __future__ import annotations

import asyncio
import json
import os

from eastgate import Authority, dialects
from eastgate.authority.reading import sort_documents
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings
from tests.patience import PATIENCE

SERVERS = ("left", "right")


def _server(name: str) -> str:
    return f"""
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {{name: {name}, namespace: prod}}
spec: {{mcp: {{serviceName: {name}, port: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: prod}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8000}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: prod, labels: {{app: {name}}}}}
spec: {{serviceAccountName: {name}, containers: [{{name: c, image: i, ports: [{{containerPort: 8000}}]}}]}}
---
"""


MANIFESTS = (
    "".join(map(_server, SERVERS))
    + """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: prod}
spec: {gatewayClassName: eastgate, listeners: [{name: http, port: 8080, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mcp, namespace: prod}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs:
    - {group: agentic.prototype.x-k8s.io, kind: XBackend, name: left}
    - {group: agentic.prototype.x-k8s.io, kind: XBackend, name: right}
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {name: agent, namespace: prod}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  rules:
  - name: agent
    source: {type: ServiceAccount, serviceAccount: {name: agent}}
    authorization: {type: InlineTools, tools: [add]}
"""
)


async def _serve(name: str) -> asyncio.Server:
    """Serve a server that gives each request without a session a new one, and returns its own name."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if ": " in line)
            await reader.readexactly(int(fields.get("content-length", "0")))
            session = fields.get("mcp-session-id", f"{name}-session")
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"server": name, "session": session}}).encode()
            writer.write(
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\n"
                f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


def test_a_session_stays_with_its_server() -> None:
    asyncio.run(asyncio.wait_for(_stay(), PATIENCE))


async def _stay() -> None:
    servers = {name: await _serve(name) for name in SERVERS}
    apps = {
        f"prod/{name}": SocketAddress("127.0.0.1", each.sockets[0].getsockname()[1]) for name, each in servers.items()
    }

    def read(settings: Settings) -> Authority:
        reading = read_text("manifests.yaml", MANIFESTS, positioned=dialects.reads)
        return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)

    async with LocalMesh(read, None, MeshOptions(name=f"sessions-{os.getpid()}", apps=apps)) as mesh:
        [site] = mesh.gateways.values()
        tls = await mesh.certificates.context("spiffe://cluster.local/ns/prod/sa/agent")
        reader, writer = await asyncio.open_connection(site.address, site.ports[8080], ssl=tls, server_hostname="x")

        async def ask(session: str | None) -> tuple[str, str]:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}
            body = json.dumps(message).encode()
            own = f"mcp-session-id: {session}\r\n" if session is not None else ""
            writer.write(
                f"POST /mcp HTTP/1.1\r\nhost: mcp.example\r\ncontent-type: application/json\r\n{own}"
                f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            answer = json.loads(await reader.readexactly(int(fields["content-length"])))
            assert head.startswith("HTTP/1.1 200"), head
            assert answer["result"]["session"] == f"{answer['result']['server']}-session"
            return answer["result"]["server"], fields["mcp-session-id"]

        sessions = dict([await ask(None) for _ in range(40)])
        assert set(sessions) == set(SERVERS)
        for server, session in sessions.items():
            assert {(await ask(session))[0] for _ in range(20)} == {server}
        writer.close()
    for each in servers.values():
        each.close()
