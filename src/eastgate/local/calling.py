"""Makes one real call to a proxy, and finds what the proxy logged about it."""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import replace
from types import TracebackType

from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation
from eastgate.control.events import Decided, MeshEvent
from eastgate.local.machine.connection import CallConnection, Called, HttpRequest, Target, problem
from eastgate.local.machine.http1 import Malformed
from eastgate.local.mesh import LocalMesh

_LOG_TIMEOUT = 15.0  # seconds that a proxy may take to write its line; on a busy machine it takes its time


@dataclass(frozen=True, slots=True)
class Client:
    """The identity, or none, and the source address from which a call is made."""

    identity: str | None
    address: str


async def make_call(
    mesh: LocalMesh,
    client: Client,
    target: Target,
    request: HttpRequest | bytes,
    timeout: float,
    tls: ssl.SSLContext | None = None,
) -> tuple[Called, Observation | None]:
    """Send a request on a connection of its own, with `tls` or that of the client's identity, if it has one."""
    began = time.monotonic()
    if tls is None and client.identity is not None:
        tls = await mesh.certificates.context(client.identity)
    with _Observations(mesh) as observations:
        source = None
        try:
            connection = await CallConnection.open(target, tls=tls, source_address=client.address, timeout=timeout)
            source = "{}:{}".format(*connection.local_address)
            try:
                await connection.send(request)
                if isinstance(request, HttpRequest):
                    called = await connection.response(timeout)
                else:
                    called = await connection.raw(timeout, len(request) or 1)
            finally:  # a proxy tells of a connection when it has ended, also on the side of the application
                await connection.close(reset=True)
        except (OSError, EOFError, Malformed) as error:
            called = Called(0, error=problem(error))
        called = replace(called, elapsed_ms=(time.monotonic() - began) * 1000)
        observation = await observations.wait_for(source)
        if observation is None and not called.bytes_received and called.error is None:
            called = replace(called, status=0, error=problem(TimeoutError()))  # it is unknown whether it was allowed
        return called, observation


class _Observations:
    """The decisions that proxies log while a call is made."""

    def __init__(self, mesh: LocalMesh) -> None:
        self._mesh = mesh
        self._by_source: dict[str, Observation] = {}
        self._arrived = asyncio.Event()

    def __enter__(self) -> _Observations:
        self._stop = self._mesh.listen(self._on_event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _on_event(self, event: MeshEvent) -> None:
        if isinstance(event, Decided) and event.observation.source is not None:
            self._by_source.setdefault(event.observation.source, event.observation)
            self._arrived.set()

    async def wait_for(self, source: str | None) -> Observation | None:
        """Return what was logged about the connection from this address; None where that is nothing."""
        if source is None:
            return None
        try:
            async with asyncio.timeout(_LOG_TIMEOUT):
                while source not in self._by_source:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self._by_source[source]
