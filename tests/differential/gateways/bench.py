"""A long-lived gateway, the servers behind it and two authorizers. Only routes and policies change."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eastgate import Authority, Settings
from eastgate.control.access_log import Observation
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.machine.connection import CallConnection, HttpRequest, Target
from eastgate.local.machine.http1 import Malformed
from eastgate.local.mesh import LocalMesh
from tests.attacks.application import MARK, Application, Arrived
from tests.attacks.frames import ACK, SETTINGS, Answers, frame, opening, request
from tests.differential.asking import HTTP_2
from tests.differential.bench import Bench, authority_of
from tests.differential.gateways.asking import GatewayAsk
from tests.differential.gateways.corpus import FOREIGN_SESSION, OWN_SESSION
from tests.differential.gateways.streams import client_hello
from tests.differential.gateways.world import AUTHORIZERS, GATEWAY, SERVERS, WORLD
from tests.differential.gateways.world import SETTINGS as USUAL
from tests.patience import PATIENCE
from tests.programs.processes import Processes, free_port
from tests.reading.mcp.sessions import wrap_session

__all__ = ["SHOWN", "GatewayAnswer", "GatewayBench"]

_TIMEOUT = PATIENCE
_LOG_SECONDS = 2.0  # the time limit for a line of a proxy's log
_MAX_CONCURRENT_CONNECTIONS = 16
_SCOPE = f"{GATEWAY} n/b1"  # the gateway and the backend of the sessions
SHOWN = ("add", "del", "other")  # the tools that every server has


class Server(Application):
    """A server that adds its name to answers, and answers `tools/list` with some tools."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path)
        self.name = name
        self.passed: list[bytes] = []  # bytes that are not HTTP

    def note(self, data: bytes) -> None:
        self.passed.append(data)

    def status(self, arrived: Arrived) -> int:
        """Return 202 for messages that need no answer, as MCP servers do."""
        is_message = arrived.body.startswith((b"[", b"{"))
        return 202 if is_message and not _responses(arrived.body) else 200

    def answer(self, arrived: Arrived) -> tuple[tuple[tuple[str, str], ...], bytes]:
        is_batch = arrived.body.startswith(b"[")
        if not is_batch and b'"tools/list"' not in arrived.body:
            return (("x-server", self.name),), b""
        responses = _responses(arrived.body)
        content = json.dumps(responses if is_batch else responses[0]).encode() if responses else b""
        headers = (("x-server", self.name), ("content-type", "application/json"))
        return headers, content


def _responses(body: bytes) -> list[dict[str, object]]:
    """Return a response to each request in a body."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in SHOWN]
    try:
        messages = json.loads(body)
    except ValueError:
        return []
    responses: list[dict[str, object]] = []
    for message in messages if isinstance(messages, list) else [messages]:
        if "method" in message and "id" in message:
            result = {"tools": tools} if message["method"] == "tools/list" else {}
            responses.append({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return responses


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """The result of a request: the status (0: closed), the line of the proxy's log, and the request at the server."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    logged: Observation | None = None
    server: str | None = None
    arrived: Arrived | None = None

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


_CLOSED = GatewayAnswer(0)
_NOWHERE: tuple[str | None, Arrived | None] = (None, None)


class GatewayBench(Bench):
    """A running gateway, started by `with`. Call `enforce` with routes and policies, then `attempt` requests."""

    def __init__(self, name: str) -> None:
        super().__init__(name, WORLD)
        folder = Path(self._folder.name)
        self.servers = {name: Server(f"{folder}/{name}.sock", name) for name in SERVERS}
        self._processes = Processes(folder)
        self._ports = {number: free_port() for number in AUTHORIZERS}
        self._marks = 0
        self._anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._anonymous.check_hostname = False
        self._anonymous.verify_mode = ssl.CERT_NONE

    def __exit__(self, *_: object) -> None:
        try:
            for server in self.servers.values():
                self.run(server.stop())
            super().__exit__()
        finally:
            self._processes.stop()

    def attempt(self, asks: Sequence[GatewayAsk]) -> list[GatewayAnswer]:
        """Send these requests, and return their results."""
        return self.run(self._attempt_all(asks))

    def prepared(self, ask: GatewayAsk) -> GatewayAsk:
        """Return the request with a real session id of the caller, or of another caller, if it has a placeholder."""
        given = ask.header("mcp-session-id")
        if given not in (OWN_SESSION, FOREIGN_SESSION):
            return ask
        peer = ask.caller.identity or "none"
        key = self.mesh.enforcement.fleet.session_key.encode()
        token = wrap_session(key, peer if given == OWN_SESSION else f"{peer}x", _SCOPE, "s-1")
        headers = tuple((name, token or "" if name == "mcp-session-id" else value) for name, value in ask.http.headers)
        return replace(ask, http=replace(ask.http, headers=headers))

    def pass_through(self, names: Sequence[tuple[int, str | None]]) -> list[str | None]:
        """Start a TLS handshake for each port and name. Return the server that each one reached, if any."""
        return self.run(self._pass_all(names))

    # In the thread of the mesh

    async def _pass_all(self, names: Sequence[tuple[int, str | None]]) -> list[str | None]:
        for server in self.servers.values():
            server.passed.clear()
        return await asyncio.gather(*(self._pass(port, client_hello(name)) for port, name in names))

    async def _pass(self, port: int, hello: bytes) -> str | None:
        site = self.mesh.gateways[GATEWAY]
        target = Target(site.address, site.ports[port])
        async with await CallConnection.open(target, source_address="127.0.0.2", timeout=_TIMEOUT) as connection:
            await connection.send(hello)
            await connection.raw(_TIMEOUT, enough=len(hello))  # a server echoes bytes
        return next((name for name, server in self.servers.items() if hello in b"".join(server.passed)), None)

    async def _start(self) -> None:
        def read(_: Settings) -> Authority:
            return authority_of(self.world, USUAL)

        await self.application.start()
        apps: dict[str, SocketAddress] = {}
        for name, server in self.servers.items():
            await server.start()
            pod, port = SERVERS[name]
            apps[f"{pod}:{port}"] = SocketAddress(server.path)
        command = [sys.executable, "-m", "tests.programs.drawn_answers", *map(str, self._ports.values())]
        self._processes.run(command)
        for number, (pod, port) in AUTHORIZERS.items():
            apps[f"{pod}:{port}"] = SocketAddress("127.0.0.1", self._ports[number])
        self.mesh = LocalMesh(read, USUAL, replace(self._options, apps=apps), on_event=self._heard)
        await self.mesh.__aenter__()
        for port in self._ports.values():
            await _wait_for(port)

    async def _attempt_all(self, asks: Sequence[GatewayAsk]) -> list[GatewayAnswer]:
        self._seen.clear()
        self._used.clear()
        for server in self.servers.values():
            server.arrived.clear()
        marked = [self._marked(ask) for ask in asks]
        groups: dict[object, list[int]] = defaultdict(list)
        for place, ask in enumerate(marked):
            shared: object = None if ask.shares_connections else place
            groups[ask.caller, ask.port, ask.sni, shared].append(place)
        slots = asyncio.Semaphore(_MAX_CONCURRENT_CONNECTIONS)
        answers: dict[int, GatewayAnswer] = {}

        async def group(places: list[int]) -> None:
            async with slots:
                while places:
                    some = await self._exchange([marked[place] for place in places])
                    answers.update(zip(places, some, strict=False))
                    places = places[len(some) :]

        await asyncio.gather(*(group(places) for places in groups.values()))
        arrived: dict[str, tuple[str | None, Arrived | None]] = {
            each.mark: (name, each) for name, server in self.servers.items() for each in server.arrived if each.mark
        }
        complete: list[GatewayAnswer] = []
        for place, ask in enumerate(marked):
            reached, seen = arrived.get(ask.header(MARK) or "", _NOWHERE)
            complete.append(replace(answers[place], server=reached, arrived=seen))
        return complete

    def _marked(self, ask: GatewayAsk) -> GatewayAsk:
        self._marks += 1
        return replace(ask, http=replace(ask.http, headers=((MARK, f"t{self._marks}"), *ask.http.headers)))

    async def _exchange(self, asks: Sequence[GatewayAsk]) -> list[GatewayAnswer]:
        """Return the results of the first requests, at least one."""
        first = asks[0]
        try:
            connection = await self._opened(first)
        except OSError:
            return [_CLOSED]  # the handshake failed
        source = "{}:{}".format(*connection.local_address)
        async with connection:
            if first.http.version == HTTP_2:
                answers = [await _converse(connection, first)]
            else:
                answers = await _requests(connection, asks if first.shares_connections else asks[:1])
        return await self._with_lines(source, answers)

    async def _opened(self, ask: GatewayAsk) -> CallConnection:
        """Open a connection from a new port, which distinguishes its log lines."""
        site = self.mesh.gateways[GATEWAY]
        target = Target(site.address, site.ports[ask.port], ask.sni)
        tls = await self.context(ask.caller)
        if tls is None and ask.is_tls:
            tls = self._anonymous
        while True:
            connection = await CallConnection.open(target, tls=tls, source_address=ask.caller.address, timeout=_TIMEOUT)
            if connection.local_address not in self._used:
                self._used.add(connection.local_address)
                return connection
            await connection.close()

    async def _with_lines(self, source: str, answers: list[GatewayAnswer]) -> list[GatewayAnswer]:
        """Add the log line of each request, in order. A request that closed a connection may have none."""
        wanted = sum(answer.status != 0 for answer in answers)
        until = time.monotonic() + _LOG_SECONDS
        while True:
            seen = [each for each in self._seen.get(source, []) if each.level == "request"]
            if (len(seen) >= wanted and (wanted or seen)) or time.monotonic() > until:
                break
            await asyncio.sleep(0.01)
        lines: list[Observation | None] = [*seen, *(None for _ in answers)]
        return [replace(answer, logged=line) for answer, line in zip(answers, lines, strict=False)]


async def _requests(connection: CallConnection, asks: Sequence[GatewayAsk]) -> list[GatewayAnswer]:
    answers: list[GatewayAnswer] = []
    try:
        for ask in asks:
            connection.prepare(HttpRequest(ask.http.method))  # the answer to HEAD has no body
            await connection.send(ask.to_bytes())
            answer = await connection.response(_TIMEOUT)
            answers.append(GatewayAnswer(answer.status, answer.headers, answer.body))
            if answer.header("connection") == "close":
                break
    except (OSError, EOFError, Malformed):
        pass
    return answers or [_CLOSED]


async def _converse(connection: CallConnection, ask: GatewayAsk) -> GatewayAnswer:
    answers = Answers()
    await connection.send(opening() + request(*ask.with_length.fields(), data=ask.body))
    ends = asyncio.get_running_loop().time() + _TIMEOUT
    while not answers.gone and 1 not in answers.ended:
        left = ends - asyncio.get_running_loop().time()
        data = (await connection.raw(left, enough=1)).body if left > 0 else b""
        if not data:
            break
        answers.hear(data)
        if answers.wants_ack:
            answers.wants_ack = False
            await connection.send(frame(SETTINGS, ACK, 0))
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answers.headers.get(1, {}).items()]
    return GatewayAnswer(answers.status(1), tuple(headers), bytes(answers.bodies.get(1, b"")))


async def _wait_for(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
