"""Gateways with MCP servers behind them, policies at both levels, and agents that try to bypass the policies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eastgate import Authority, Settings
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.machine.connection import CallConnection, Called, HttpRequest, Target
from eastgate.local.machine.control import SocketServer
from eastgate.local.machine.http1 import Malformed, Source
from eastgate.local.mesh import LocalMesh
from tests.attacks.http1 import Head, body_of, read_head
from tests.attacks.trying import Try, send_and_receive
from tests.differential.asking import Caller
from tests.differential.bench import Bench, authority_of
from tests.differential.world import SETTINGS, Manifest, pod
from tests.patience import PATIENCE

__all__ = [
    *("AGENTS_WORLD", "LIST", "TOOLS", "AgentBench", "McpArrived", "McpServer", "access_policy"),
    *("gateway", "route", "tool_message"),
]

TOOLS = ("add", "sub", "rm", "wipe")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_API = "gateway.networking.k8s.io/v1"
_TIMEOUT = PATIENCE
_MAX_CONCURRENT_TRIES = 128
_FIRST_BYTE_SECONDS, _QUIET_SECONDS = 1.0, 0.1  # the waits of a try for the first byte, and for further bytes
Script = Callable[["McpArrived"], bytes | None]


@dataclass(frozen=True, slots=True)
class McpArrived:
    """A request that reached an MCP server."""

    server: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class McpServer(SocketServer):
    """A server that records requests and answers without any checks. `script` may answer instead."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path)
        self.name = name
        self.arrived: list[McpArrived] = []
        self.script: Script = lambda _: None
        self.sessions = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = Source(reader)
        try:
            while (head := await read_head(source)) is not None:
                upgrades = head.has_token("connection", "upgrade") and bool(head.all("upgrade"))
                body = b"" if upgrades else b"".join([piece async for piece in body_of(source, head)])
                method, target, _ = head.start.split(" ", 2)
                arrived = McpArrived(self.name, method, target, head.headers, body)
                self.arrived.append(arrived)
                writer.write(self.script(arrived) or self._answer(arrived, head))
                await writer.drain()
        except (OSError, Malformed, ValueError):
            pass
        finally:
            writer.transport.abort()

    def _answer(self, arrived: McpArrived, head: Head) -> bytes:
        if head.all("upgrade"):
            return b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        try:
            message = json.loads(arrived.body)
        except (ValueError, RecursionError):
            message = {}
        messages = [each for each in (message if isinstance(message, list) else [message]) if isinstance(each, dict)]
        results = [{"jsonrpc": "2.0", "id": each.get("id"), "result": _result(each)} for each in messages]
        session: tuple[tuple[str, str], ...] = ()
        if any(each.get("method") == "initialize" for each in messages):
            self.sessions += 1
            session = (("mcp-session-id", f"{self.name}-{self.sessions}"),)
        return answer(json.dumps(results if isinstance(message, list) else results[:1]).encode(), *session)


def _result(message: Mapping[str, Any]) -> dict[str, Any]:
    if message.get("method") == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {}} for name in TOOLS]}
    return {"content": []}


def answer(body: bytes, *headers: tuple[str, str], status: int = 200, kind: str = "application/json") -> bytes:
    """Return an HTTP/1.1 answer."""
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + body


# Manifests


def gateway(name: str, *listeners: Manifest) -> Manifest:
    """Return a Gateway."""
    spec = {"gatewayClassName": "eastgate", "listeners": list(listeners)}
    return {"apiVersion": _API, "kind": "Gateway", "metadata": {"name": name, "namespace": "a"}, "spec": spec}


def route(name: str, *backends: Manifest, host: str, to: Sequence[str] = ("gw", "gw2"), **rule: Any) -> Manifest:
    """Return a route with one rule."""
    spec = {
        "parentRefs": [{"name": parent} for parent in to],
        "hostnames": [host],
        "rules": [{"backendRefs": list(backends), **rule}],
    }
    return {"apiVersion": _API, "kind": "HTTPRoute", "metadata": {"name": name, "namespace": "a"}, "spec": spec}


def to_backend(name: str, weight: int = 1) -> Manifest:
    """Return a reference to an MCP server."""
    return {"group": "agentic.networking.x-k8s.io", "kind": "XBackend", "name": name, "weight": weight}


def _server(name: str) -> list[Manifest]:
    return [
        pod(name, "a", name, {"app": name}),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "a"},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "agentic.networking.x-k8s.io/v0alpha0",
            "kind": "XBackend",
            "metadata": {"name": name, "namespace": "a"},
            "spec": {"mcp": {"serviceName": name, "port": 80, "path": "/mcp"}},
        },
    ]


def access_policy(
    name: str, target: str, *rules: tuple[str, Mapping[str, Any] | None], action: str = "Allow"
) -> Manifest:
    """Return a policy at a Gateway or backend. A rule is an account with its MCP rights; None means all rights."""
    kind, _, named = target.partition(":")
    group = "gateway.networking.k8s.io" if kind == "Gateway" else "agentic.networking.x-k8s.io"

    def written(index: int, who: str, mcp: Mapping[str, Any] | None) -> Manifest:
        source = {"type": "ServiceAccount", "serviceAccount": {"name": who}}
        rule: Manifest = {"name": f"r{index}", "source": source}
        if mcp is not None:
            rule["authorization"] = {"type": "Inline", "mcp": dict(mcp)}
        return rule

    spec: Manifest = {
        "targetRefs": [{"group": group, "kind": kind, "name": named}],
        "action": action,
        "rules": [written(index, *rule) for index, rule in enumerate(rules)],
    }
    if action == "ExternalAuth":
        spec["externalAuth"] = {"protocol": "HTTP", "http": {}, "backendRef": {"name": "consent", "port": 80}}
    return {
        "apiVersion": "agentic.networking.x-k8s.io/v1alpha1",
        "kind": "XAccessPolicy",
        "metadata": {"name": name, "namespace": "a"},
        "spec": spec,
    }


def only(*tools: str) -> Mapping[str, Any]:
    """Return rights for only these tools, and for the other messages that a client needs."""
    return {
        "methods": [{"name": "tools/call", "params": list(tools)}, {"name": "tools/list"}],
        "mcpBaseProtocolMethodsOption": "MATCH_BASE_PROTOCOL_METHODS",
    }


def tool(*tools: str) -> Mapping[str, Any]:
    """Return rights for calls of these tools."""
    return {"methods": [{"name": "tools/call", "params": list(tools)}]}


def _denied(name: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [("broad", tool(name)), ("asked", tool(name))]


# `narrow` may call add and no other tool. `broad` may do everything except call rm (denied at the Gateway) and wipe
# (denied at the backends). `asked` has the same rights, but the gateways also ask an authorizer, which always allows.
# `free` may do everything.
_OPEN = (("narrow", only("add")), ("broad", None), ("asked", None), ("free", None))
POLICIES: list[Manifest] = [
    *(
        each
        for name in ("gw", "gw2")
        for each in (
            access_policy(f"at-{name}", f"Gateway:{name}", *_OPEN),
            access_policy(f"asked-at-{name}", f"Gateway:{name}", ("asked", None), action="ExternalAuth"),
            access_policy(f"not-at-{name}", f"Gateway:{name}", *_denied("rm"), action="Deny"),
        )
    ),
    *(
        each
        for name in ("maths", "files")
        for each in (
            access_policy(f"at-{name}", f"XBackend:{name}", *_OPEN),
            access_policy(f"not-at-{name}", f"XBackend:{name}", *_denied("wipe"), action="Deny"),
        )
    ),
]
AGENTS_WORLD: list[Manifest] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
    # Declared accounts, whose connections close one by one. Connections of undeclared accounts close together.
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "free", "namespace": "a"}},
    gateway("gw", {"name": "http", "port": 8080, "protocol": "HTTP"}),
    gateway("gw2", {"name": "http", "port": 8080, "protocol": "HTTP"}),
    *_server("maths"),
    *_server("files"),
    *_server("consent"),
    route("maths", to_backend("maths"), host="maths.example"),
    route("files", to_backend("files"), host="files.example"),
]


class AgentBench(Bench):
    """Running gateways, with a server for each backend."""

    def __init__(
        self,
        name: str,
        world: Sequence[Manifest] = AGENTS_WORLD,
        policies: Sequence[Manifest] = POLICIES,
        **options: Any,
    ) -> None:
        super().__init__(name, [*world, *policies], **options)
        self.servers: dict[str, McpServer] = {}
        self.consents = 0

    async def _start(self) -> None:
        def read(_: Settings) -> Authority:
            return authority_of(self.world, SETTINGS)

        await self.application.start()
        pods = [each["metadata"] for each in self.world if each["kind"] == "Pod"]
        self.servers = {each["name"]: McpServer(f"{self._folder.name}/{each['name']}", each["name"]) for each in pods}
        for server in self.servers.values():
            await server.start()
        apps = {f"a/{name}": SocketAddress(server.path) for name, server in self.servers.items()}
        self._consenting = await asyncio.start_server(self._consent, "127.0.0.1", 0)
        apps["a/consent"] = SocketAddress(*self._consenting.sockets[0].getsockname())
        self.mesh = LocalMesh(read, SETTINGS, replace(self._options, apps=apps), on_event=self._heard)
        await self.mesh.__aenter__()

    def __exit__(self, *error: object) -> None:
        self._consenting.close()
        for server in self.servers.values():
            self.run(server.stop())
        super().__exit__(*error)

    async def _consent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Allow every request that the authorizer is asked about."""
        source = Source(reader)
        try:
            while (head := await read_head(source)) is not None:
                async for _ in body_of(source, head):
                    pass
                self.consents += 1
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
        except (OSError, Malformed):
            pass
        finally:
            writer.transport.abort()

    @property
    def arrived(self) -> list[McpArrived]:
        """Return all requests that reached a server since the last `clear`."""
        return [each for server in self.servers.values() for each in server.arrived]

    def clear(self) -> None:
        """Delete the recorded requests, and restore the usual answers."""
        for server in self.servers.values():
            server.arrived.clear()
            server.script = lambda _: None

    async def connect(
        self, who: str | None, at: str = "gw", port: int = 8080, alpn: Sequence[str] = ()
    ) -> CallConnection:
        """Connect to a gateway as an account, or without an identity."""
        site = self.mesh.gateways[f"gateway:a/{at}"]
        identity = None if who is None else f"spiffe://td/ns/a/sa/{who}"
        tls = await self.context(Caller(identity, ""), alpn)
        return await CallConnection.open(Target(site.address, site.ports[port]), tls=tls, timeout=_TIMEOUT)

    def call(self, who: str | None, body: object = None, *headers: tuple[str, str], **more: Any) -> Called:
        """Send an HTTP/1.1 request with the identity `who`. See `request`."""
        return self.run(self._call(who, body, headers, **more))

    async def _call(
        self,
        who: str | None,
        body: object,
        headers: Sequence[tuple[str, str]],
        at: str = "gw",
        port: int = 8080,
        **more: Any,
    ) -> Called:
        async with await self.connect(who, at, port) as connection:
            await connection.send(request(body, *headers, **more))
            try:
                return await connection.response(_TIMEOUT)
            except (OSError, EOFError, Malformed) as error:
                return Called(0, error=repr(error))

    def make(self, who: str | None, tries: Iterable[Try], at: str = "gw") -> dict[str, bytes]:
        """Send tries with the identity `who`, each on its own connection. Return the bytes that came back for each."""
        return self.run(self._make(who, list(tries), at))

    async def _make(self, who: str | None, tries: Sequence[Try], at: str) -> dict[str, bytes]:
        slots = asyncio.Semaphore(_MAX_CONCURRENT_TRIES)

        async def make(each: Try) -> bytes:
            async with slots:
                return await self._try(who, each, at)

        received = await asyncio.gather(*map(make, tries))
        return {each.name: data for each, data in zip(tries, received, strict=True)}

    async def _try(self, who: str | None, each: Try, at: str) -> bytes:
        return await send_and_receive(
            self.connect(who, at, alpn=each.alpn), each.pieces, _FIRST_BYTE_SECONDS, _QUIET_SECONDS
        )


def request(
    body: object = None,
    *headers: tuple[str, str],
    host: str = "maths.example",
    method: str = "POST",
    path: str = "/mcp",
    bare: bool = False,
) -> HttpRequest:
    """Return a request with a message, as bytes or JSON. `bare`: with only the given headers."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    usual = () if bare else (("content-type", "application/json"), ("accept", "application/json, text/event-stream"))
    return HttpRequest(method, path, (("host", host), *usual, *headers), content)


def tool_message(name: str, **more: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}, **more}
