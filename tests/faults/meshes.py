"""A running mesh with the helpers of tests: calls by an account, changes, and recorded events."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eastgate.control.access_log import Observation
from eastgate.control.events import Decided, Enforced, MeshEvent, PartlyEnforced
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.machine.connection import CallConnection, Called, HttpRequest, Target
from eastgate.local.machine.echo import EchoOptions, EchoServer
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.settings import Settings
from tests.faults.recorder import Recorder
from tests.faults.worlds import HTTP, Manifest, reading, sa
from tests.local.machine.calling import call
from tests.patience import PATIENCE
from tests.replacing import enforce_instead

__all__ = ["SERVER", "Running", "running", "until"]

SERVER = "shop/server"
_numbers = itertools.count()
E = TypeVar("E")


async def until(true: Callable[[], bool], seconds: float = PATIENCE, what: str = "") -> None:
    """Poll until a condition is true. Fails after some seconds, with the text `what`."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, what or "it did not come to be so"
        await asyncio.sleep(0.01)


@dataclass
class Running:
    """A running mesh."""

    mesh: LocalMesh
    events: list[MeshEvent] = field(default_factory=list)
    apps: Mapping[int, EchoServer | Recorder] = field(default_factory=dict)

    def target(self, port: int = HTTP, workload: str = SERVER) -> Target:
        site = self.mesh.sites[workload]
        return Target(site.address, site.ports[port], through=self.mesh.tunnel_to(site))

    async def open(self, account: str | None, port: int = HTTP, workload: str = SERVER) -> CallConnection:
        """Open a connection as an account of the namespace, as a SPIFFE ID, or without an identity (None)."""
        identity = account if account is None or "://" in account else sa(account)
        tls = await self.mesh.certificates.context(identity) if identity is not None else None
        return await CallConnection.open(self.target(port, workload), tls=tls)

    async def call(
        self,
        account: str | None,
        request: HttpRequest | bytes | None = None,
        port: int = HTTP,
        workload: str = SERVER,
        *,
        timeout: float = 20.0,
        enough: int | None = 1,
    ) -> Called:
        """Make one call as an account. The default request is a GET of `/`."""
        identity = account if account is None or "://" in account else sa(account)
        tls = await self.mesh.certificates.context(identity) if identity is not None else None
        asked = HttpRequest() if request is None else request
        return await call(self.target(port, workload), tls=tls, request=asked, timeout=timeout, enough=enough)

    async def get(self, account: str | None, path: str, port: int = HTTP) -> int:
        """Return the status of the answer to a GET, or 0 without an answer."""
        return (await self.call(account, HttpRequest(path=path), port)).status

    async def exchange(self, account: str | None, data: bytes, port: int = HTTP, quiet: float = 0.3) -> bytes:
        """Send bytes unchanged, and return all bytes that come back until the connection is quiet."""
        async with await self.open(account, port) as connection:
            await connection.send(data)
            return (await connection.raw(quiet)).body

    async def change(self, *manifests: Manifest) -> Enforced | PartlyEnforced:
        """Replace all manifests with these, and wait until they are enforced."""
        return await enforce_instead(self.mesh, reading(*manifests)(self.mesh.settings))

    def events_of(self, kind: type[E]) -> list[E]:
        """Return the events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def seen(self) -> list[Observation]:
        """Return the decisions of the proxies."""
        return [event.observation for event in self.events_of(Decided)]

    async def logged(self, connection: CallConnection, number: int = 1, level: str = "request") -> list[Observation]:
        """Return the first `number` log lines of the proxy about an open connection, in their order."""
        source = "{}:{}".format(*connection.local_address)

        def found() -> list[Observation]:
            return [one for one in self.seen() if one.source == source and one.level == level]

        await until(lambda: len(found()) >= number, what=f"only {len(found())} lines about {source}")
        return found()

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over all series with these labels."""
        found = 0.0
        for family in self.mesh.server.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    found += sample.value
        return found

    def sent(self) -> float:
        """Return the number of responses that the control plane has sent."""
        return self.metric("eastgate_xds_responses_total")


@asynccontextmanager
async def running(
    *manifests: Manifest,
    apps: Mapping[int, EchoOptions | Recorder] | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a mesh with these manifests. `apps` replaces applications of the server, by port."""
    name = f"faults-{os.getpid()}-{next(_numbers)}"
    folder = os.environ["XDG_RUNTIME_DIR"]
    servers = {
        port: how if isinstance(how, Recorder) else EchoServer(f"{folder}/app{port}.sock", SERVER, port, how)
        for port, how in (apps or {}).items()
    }
    addresses = {f"{SERVER}:{port}": SocketAddress(server.path) for port, server in servers.items()}
    mesh = LocalMesh(reading(*manifests), settings, MeshOptions(name=name, apps=addresses, **options))
    made = Running(mesh, apps=servers)
    made.mesh.listen(made.events.append)
    try:
        for server in servers.values():
            await server.start()
        async with made.mesh:
            yield made
    finally:
        for server in servers.values():
            await server.stop()
