"""Helpers for attacks on an ambient mesh: a world, an application, and handwritten requests for tunnels."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eastgate.local.machine.connection import HttpRequest
from eastgate.local.machine.http1 import Malformed, Source
from eastgate.local.machine.wire import Wire
from eastgate.settings import MeshMode, Settings
from tests.attacks.frames import DATA, END_HEADERS, HEADERS, Answers, Field, frame, literal, opening
from tests.attacks.http1 import body_of, read_head
from tests.faults.meshes import SERVER, Running
from tests.faults.recorder import Recorder
from tests.faults.worlds import HTTP, Manifest, sa, world

__all__ = [
    "AMBIENT",
    "AUTHORITY",
    "CONNECT",
    "GET_API",
    "NODE",
    "OPEN_POD",
    "WAYPOINT",
    "WORLD",
    "Application",
    "Outcome",
    "application",
    "authority",
    "service",
    "statement",
    "status",
    "tunnel_ends",
    "write",
]

AMBIENT = Settings(mesh_mode=MeshMode.AMBIENT)
NODE, WAYPOINT = "node:local", "waypoint:shop"
OPEN_POD = "shop/server1"  # no policy applies to it, and it has no waypoint
AUTHORITY = b":authority"
CONNECT: Field = (b":method", b"CONNECT")
GET_API = b"GET /api/x HTTP/1.1\r\nhost: h\r\n\r\n"
_BIG = 8 * 1024 * 1024
_QUIET = 0.5  # seconds without a byte, after which an answer is taken to be whole


def service(name: str, port: int = HTTP) -> Manifest:
    """A Service for the pods of that name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"app": name}, "ports": [{"port": port}]},
    }


WORLD = [*world(servers=2), service("server")]


def application(
    name: str, *accounts: str, path: str | None = "/api/*", action: str = "ALLOW", to: str = "server"
) -> Manifest:
    """A policy about requests to a Service; without a path, for everything that these accounts send."""
    rule: Manifest = {}
    if accounts:
        rule["authorizationSource"] = {"serviceAccounts": list(accounts)}
    if path is not None:
        rule["applicationAttributes"] = {"paths": [path]}
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "enforcementLevel": "APPLICATION",
            "targetRefs": [{"kind": "Service", "name": to}],
            "action": action,
            "rules": [rule],
        },
    }


class Application(Recorder):
    """Answers `/api/big` with more than any window holds, echoes behind an upgrade, and otherwise answers 200."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = Source(reader)
        try:
            with contextlib.suppress(OSError, Malformed):
                while (head := await read_head(source)) is not None:
                    if "/big" in head.start:
                        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % _BIG + b"x" * _BIG)
                    elif any(name.lower() == "upgrade" for name, _ in head.headers):
                        await _echo(source, writer)
                        return
                    else:
                        async for _ in body_of(source, head):
                            pass
                        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    await writer.drain()
        finally:
            writer.transport.abort()


async def _echo(source: Source, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
    while data := await source.take():
        writer.write(data)
        await writer.drain()


def authority(mesh: Running, workload: str = SERVER) -> bytes:
    """The authority by which a tunnel leads to a workload."""
    site = mesh.mesh.sites[workload]
    return f"{site.address}:{site.ports[HTTP]}".encode()


def tunnel_ends(mesh: Running) -> Mapping[str, tuple[str, int]]:
    """Return the addresses where tunnels end: the waypoint, and the node proxy for the pods with and without it."""
    sites, at = mesh.mesh.sites, mesh.mesh.waypoints[WAYPOINT].waypoint.address
    behind, without = sites[SERVER], sites[OPEN_POD]
    return {
        "waypoint": (at.host, at.port),
        "behind": (behind.address, behind.tunnel),
        "without": (without.address, without.tunnel),
    }


def statement(caller: str) -> list[Field]:
    """The headers that state a caller."""
    return [
        (b"x-eastgate-caller", caller.encode()),
        (b"x-eastgate-address", b"127.0.0.1"),
        (b"x-eastgate-source", b"127.0.0.1:1"),
    ]


def _tunnel(headers: list[Field], inside: bytes) -> bytes:
    """The frames of a tunnel that stays open: Envoy ends the connection inside of one that the caller ends."""
    block = b"".join(literal(*each) for each in headers)
    return frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, 0, 1, inside)


@dataclass(frozen=True)
class Outcome:
    """The status of a tunnel, and what came out of it. Status 0: none came."""

    status: int
    body: bytes

    @property
    def arrived(self) -> bool:
        """Whether an application answered."""
        return b"200 OK" in self.body


async def write(
    mesh: Running,
    to: tuple[str, int],
    data: bytes | list[Field],
    who: str | ssl.SSLContext = "bob",
    *,
    inside: bytes = GET_API,
    protocols: tuple[str, ...] = ("h2",),
) -> Outcome:
    """Send these bytes, or a request with these headers and something inside of its tunnel, as an account."""
    tls = who if isinstance(who, ssl.SSLContext) else await mesh.mesh.certificates.context(sa(who))
    if protocols:
        tls.set_alpn_protocols(list(protocols))
    sent = data if isinstance(data, bytes) else opening() + _tunnel(data, inside)
    answers, received = Answers(), bytearray()
    try:
        wire = await Wire.open(to, None, tls, to[0])
    except OSError:
        return Outcome(0, b"")
    try:
        await wire.write(sent)
        while 1 not in answers.ended and not answers.gone and not answers.bodies.get(1):
            piece = await asyncio.wait_for(wire.read(65536), _QUIET)
            received += piece
            answers.hear(piece)
            if not piece:
                break
    except (OSError, TimeoutError):
        pass
    finally:
        await wire.close(reset=True)
    return Outcome(answers.status(1), bytes(answers.bodies.get(1, received if not answers.headers else b"")))


async def status(mesh: Running, account: str | None, path: str = "/api/x", workload: str = SERVER, **more: Any) -> int:
    """The status of the answer to a request; 0 where there is none."""
    return (await mesh.call(account, HttpRequest(path=path), workload=workload, **more)).status
