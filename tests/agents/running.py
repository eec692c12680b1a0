"""A real mesh with a gateway, MCP servers, an authorizer and agents, for tests that are not coroutines."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import eastgate
from eastgate import Settings
from eastgate.authority.authority import Authority
from eastgate.control.events import MeshEvent
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.local.mesh import LocalMesh, MeshOptions
from tests.agents.manifests import Manifest, text, world
from tests.patience import PATIENCE
from tests.programs.mcp_environment import python_with_mcp_1
from tests.programs.processes import Processes, free_port
from tests.reading.jwt.mint import jwk, token
from tests.replacing import enforce_instead

T = TypeVar("T")
PROGRAMS = Path(__file__).parents[1] / "programs"
OUTSIDE = {
    "json": "maths-json",
    "stateless": "maths-stateless",
    "old": "maths",
    "batches": "batches",
}  # by host: the kind of the server
_ISSUER = "https://issuer.example"
TOKENS = TokenIdentity(_ISSUER, json.dumps({"keys": [jwk("p256")]}), "cluster.local", ("mesh",))
_MAX_LINE_BYTES = 1 << 24


def identity_of(account: str) -> str:
    return f"spiffe://cluster.local/ns/prod/sa/{account}"


def token_of(account: str) -> str:
    """Return a token that names an account."""
    claims = {"iss": _ISSUER, "aud": "mesh", "sub": identity_of(account), "exp": int(time.time()) + 86_400}
    return token(claims)


@dataclass(frozen=True, slots=True)
class Sdk:
    """A release line of the SDK, and the handshake of its client."""

    version: int
    mode: str

    def __str__(self) -> str:
        return f"{self.version}.x {self.mode}"


MODERN, LEGACY, OLD = Sdk(2, "auto"), Sdk(2, "legacy"), Sdk(1, "legacy")
SDKS = (MODERN, LEGACY, OLD)


class Denied(Exception):  # noqa: N818 - it is not an error
    """An error that the SDK raised."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class PendingResult:
    """The pending result of a command to an agent, with its reports of progress."""

    def __init__(self) -> None:
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.progress: list[float] = []

    def put(self, line: dict[str, Any]) -> None:
        self._lines.put(line)

    def next_progress(self) -> float:
        """Wait for one more report of progress."""
        line = self._lines.get(timeout=PATIENCE)
        if "progress" not in line:
            raise AssertionError(f"no progress, but {line}")
        self.progress.append(line["progress"])
        return self.progress[-1]

    def has_progress(self, seconds: float) -> bool:
        """Return whether a report of progress comes within some seconds."""
        try:
            return "progress" in self._lines.get(timeout=seconds)
        except queue.Empty:
            return False

    def result(self) -> Any:
        """Wait for the result. Raises Denied."""
        end = time.monotonic() + PATIENCE
        while "progress" in (line := self._lines.get(timeout=PATIENCE)):
            assert time.monotonic() < end, "it does not end"
            self.progress.append(line["progress"])
        if "error" in line:
            raise Denied(line["error"])
        return line["result"]


class AgentProcess:
    """A program with one release line of the SDK, which has all sessions of that line."""

    def __init__(self, python: Path, log: Path) -> None:
        self._numbers = itertools.count()
        self._answers: dict[int, PendingResult] = {}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [python, PROGRAMS / "mcp_agent.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def send(self, do: str, **arguments: object) -> PendingResult:
        """Send a command to the program, and return its pending result."""
        number = next(self._numbers)
        answer = self._answers[number] = PendingResult()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            read = json.loads(line)
            self._answers[read["id"]].put(read)
        for answer in self._answers.values():
            answer.put({"error": {"code": None, "message": "the program of the agent has ended"}})

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


@dataclass(frozen=True, slots=True)
class Agent:
    """A session of an account with a server."""

    process: AgentProcess
    session: str

    def tools(self) -> list[str]:
        listed: list[str] = self.process.send("tools", session=self.session).result()
        return sorted(listed)

    def start(self, tool: str, **arguments: object) -> PendingResult:
        """Call a tool, and do not wait for it."""
        return self.process.send("call", session=self.session, tool=tool, arguments=arguments)

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool and return its text. Raises Denied."""
        result = self.start(tool, **arguments).result()
        assert not result["failed"], result
        return str(result["text"])

    def close(self) -> None:
        """Close the session. Raises Denied, also if it has already ended."""
        self.process.send("close", session=self.session).result()


class AgentMesh(Processes):
    """All processes of the tests. The applications of the mesh use this SDK; the server with SDK 1.x is outside."""

    def start(self) -> None:
        self._log, self._asked = self.folder / "arrived", self.folder / "asked"
        self._log.touch()
        self._asked.touch()
        self.ports = {name: free_port() for name in ("maths", "notes", "grpc", "http", *OUTSIDE)}
        self.behave("allow")
        self._agents: dict[int, AgentProcess] = {}
        self._tunnels: dict[str, int] = {}
        self._leading: list[asyncio.Server] = []
        self._open: list[Agent] = []
        self.events: list[MeshEvent] = []
        self._manifests = self.folder / "manifests.yaml"
        self._world = world({name: self.ports[name] for name in OUTSIDE})
        current = [f"{kind}:{self.ports[host]}" for host, kind in OUTSIDE.items() if host != "old"]
        servers = [f"{name}:{self.ports[name]}" for name in ("maths", "notes")]
        self._python_1 = python_with_mcp_1()
        program = str(PROGRAMS / "mcp_servers.py")
        self.run([sys.executable, program, str(self._log), *servers, *current])
        self.run([self._python_1, program, str(self._log), f"maths:{self.ports['old']}"])
        self.start_authorizer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._write(())
        apps = {f"prod/{name}": SocketAddress("127.0.0.1", self.ports[name]) for name in ("maths", "notes")}
        apps |= {"prod/checker:9000": SocketAddress("127.0.0.1", self.ports["grpc"])}
        apps |= {"prod/checker:8000": SocketAddress("127.0.0.1", self.ports["http"])}
        options = MeshOptions(name=f"agents-{os.getpid()}", apps=apps, tokens=TOKENS)
        self.mesh = LocalMesh(self._read, None, options, self.events.append)
        self.wait(self.mesh.__aenter__())
        self.wait_until(lambda: all(map(_listens, self.ports.values())))

    def stop(self) -> None:
        for process in getattr(self, "_agents", {}).values():
            process.stop()
        if hasattr(self, "mesh"):
            self.wait(self._close())
        if hasattr(self, "_thread"):
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()
        super().stop()

    async def _close(self) -> None:
        for server in self._leading:
            server.close()
        await self.mesh.__aexit__(None, None, None)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the mesh."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    # Policies

    def enforce(self, *policies: Manifest, **settings: str) -> None:
        """Enforce these policies, and no others, with these settings."""
        self._write(policies)
        self.mesh.settings = Settings.from_mapping(settings).enforced()
        event = self.wait(enforce_instead(self.mesh, self._read(self.mesh.settings)))
        assert not self.mesh.enforcement.closed, event

    def _write(self, policies: Sequence[Manifest]) -> None:
        self._manifests.write_text(text([*self._world, *policies]), encoding="utf-8")

    def _read(self, settings: Settings) -> Authority:
        return eastgate.load(str(self._manifests), settings=settings)

    # The authorizer

    def start_authorizer(self) -> None:
        self._authorizer = self._started(
            [sys.executable, "-m", "tests.programs.agent_authorizer", str(self.folder)]
            + [str(self.ports[name]) for name in ("grpc", "http")]
        )

    def stop_authorizer(self) -> None:
        self._authorizer.terminate()
        self._authorizer.wait(PATIENCE)
        self._running.remove(self._authorizer)

    def _started(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        self.run(command)
        return self._running[-1]

    def behave(self, behaviour: str) -> None:
        """Set the behaviour of the authorizer."""
        new = self.folder / "behaviour.new"
        new.write_text(behaviour, encoding="utf-8")
        new.rename(self.folder / "behaviour")

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return the questions to the authorizer."""
        return _lines(self._asked)

    @property
    def asked_tools(self) -> list[tuple[str, str]]:
        """Return the calls of tools that the authorizer was asked about, each with its protocol."""
        return [(each["protocol"], each["tool"]) for each in self.asked if each["tool"] is not None]

    def forget(self) -> None:
        """Clear the recorded questions and requests."""
        for log in (self._asked, self._log):
            log.write_text("", encoding="utf-8")

    @property
    def called(self) -> list[str]:
        """Return the calls of tools that arrived at servers: `server/tool`."""
        return [f"{each['server']}/{each['tool']}" for each in self.arrived if each["method"] == "tools/call"]

    @property
    def arrived(self) -> list[dict[str, Any]]:
        """Return the requests that arrived at servers."""
        return _lines(self._log)

    # Agents

    def agent(self, account: str, host: str, sdk: Sdk = MODERN, *, token: str | None = None) -> Agent:
        """Open a session of an account with a server, by its certificate, or by a token in plaintext. Raises Denied."""
        process = self._agents.get(sdk.version)
        if process is None:
            python = self._python_1 if sdk.version == 1 else Path(sys.executable)
            process = self._agents[sdk.version] = AgentProcess(python, self.folder / f"agent-{sdk.version}.log")
        headers = {"host": f"{host}.example"} | ({"authorization": f"Bearer {token}"} if token is not None else {})
        at = f"127.0.0.1:{self.tunnel(account)}" if token is None else self.entrance
        arrived = len(self.arrived)
        session = process.send("open", url=f"http://{at}/mcp", headers=headers, mode=sdk.mode).result()
        agent = Agent(process, session)
        self._open.append(agent)
        if sdk.mode == "legacy":  # the messages that a client sends by itself after the handshake
            self.wait_until(lambda: _is_settled(self.arrived[arrived:], stream=host != "stateless"))
        return agent

    def close_agents(self) -> None:
        """Close all sessions."""
        while self._open:
            with suppress(Denied):
                self._open.pop().close()

    def post(self, account: str, host: str, message: object, **headers: str) -> tuple[int, Any, str]:
        """Post a message without an SDK. Return the status, the answer, and its type."""
        sent = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
        connection = http.client.HTTPConnection("127.0.0.1", self.tunnel(account), timeout=PATIENCE)
        with closing(connection):
            connection.request("POST", "/mcp", json.dumps(message), {"host": f"{host}.example", **sent})
            response = connection.getresponse()
            body, kind = response.read().decode(), response.getheader("content-type", "")
        return response.status, json.loads(body) if kind == "application/json" else body, kind

    @property
    def entrance(self) -> str:
        """Return the address and port of the gateway."""
        (site,) = self.mesh.gateways.values()
        return f"{site.address}:{site.ports[8080]}"

    def tunnel(self, account: str) -> int:
        """Return a loopback port that connects to the gateway with the identity of this account."""
        if account not in self._tunnels:
            self._tunnels[account] = self.wait(self._open_tunnel(identity_of(account)))
        return self._tunnels[account]

    async def _open_tunnel(self, identity: str) -> int:
        (site,) = self.mesh.gateways.values()
        tls = await self.mesh.certificates.context(identity)

        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                inner_reader, inner_writer = await asyncio.open_connection(
                    site.address, site.ports[8080], ssl=tls, local_addr=(self.mesh.own_address, 0)
                )
                ways = ((reader, inner_writer), (inner_reader, writer))
                pumps = [asyncio.create_task(_pump(*way)) for way in ways]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    inner_writer.close()
            writer.close()

        server = await asyncio.start_server(lead, "127.0.0.1", 0, limit=_MAX_LINE_BYTES)
        self._leading.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


def _is_settled(arrived: Sequence[dict[str, Any]], *, stream: bool) -> bool:
    streamed = not stream or any(each["http"] == "GET" for each in arrived)
    return streamed and any(each["method"] == "notifications/initialized" for each in arrived)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
