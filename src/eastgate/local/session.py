"""Runs a mesh for a user: starts and shows it, reloads it when its files change, answers commands, and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import field

from eastgate.authority.authority import Authority
from eastgate.authority.sources.files import FileSource
from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.records import dataclass
from eastgate.control.authorizer.http_server import HttpLimits, HttpServer, ServedRequest, ServedResponse
from eastgate.control.events import MeshEvent, Noted, OnEvent
from eastgate.control.identity import IdentityError
from eastgate.control.sites import ports_of
from eastgate.local.event_text import EventText
from eastgate.local.handlers import Handlers
from eastgate.local.machine.control import ControlServer
from eastgate.local.machine.rundir import LocalMeshError
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.local.reloading import Reloading
from eastgate.local.screens import Screen
from eastgate.settings import Settings

# Metrics over HTTP, for a Prometheus that scrapes the mesh.


_TYPE = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)
_TEXT = (("content-type", "text/plain"),)
_LIMITS = HttpLimits(body=0, seconds=5.0, connections=64)


class MetricsRefused(LocalMeshError):  # noqa: N818 - the name is an event
    """The address for metrics cannot be used."""


@contextlib.asynccontextmanager
async def serve_metrics(host: str, port: int, text: Callable[[], bytes]) -> AsyncIterator[int]:
    """Serve GET /metrics until the block ends; yield the port."""

    def answer(request: ServedRequest) -> ServedResponse:
        if request.target.partition("?")[0] != "/metrics":
            return ServedResponse(404, _TEXT, b"the metrics are at /metrics\n")
        if request.method != "GET":
            return ServedResponse(405, _TEXT, b"write GET\n")
        return ServedResponse(200, _TYPE, text())

    http = HttpServer(answer, _LIMITS)
    try:
        server = await asyncio.get_running_loop().create_server(http.protocol, host, port)
    except OSError as error:
        raise MetricsRefused(
            f"metrics cannot be served on {host}:{port}: {error.strerror or error}", help="give --metrics another port"
        ) from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await http.drain(0)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NotStarted(LocalMeshError):  # noqa: N818 - the name is an event
    pass


@dataclass(slots=True)
class Session:
    """One run of a mesh. `metrics` is the address for them, if any."""

    files: FileSource
    settings: Settings
    options: MeshOptions
    metrics: tuple[str, int] | None = None
    _task: asyncio.Task[object] | None = field(default=None, init=False)
    _early_events: list[MeshEvent] = field(default_factory=list, init=False)
    _show: OnEvent | None = field(default=None, init=False)

    def stop(self) -> None:
        """Stop everything, once: a second signal must not interrupt the cleanup."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def run(self, screen: Screen, started: Callable[[LocalMesh], None] = lambda _: None) -> bool:
        """Run until stopped; return whether it ever started. Raises ManifestError and LocalMeshError."""
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.stop)
        up = False
        try:
            async with contextlib.AsyncExitStack() as stack:
                mesh = await self._start(stack)
                up = True
                started(mesh)
                await self._follow(mesh, screen, stack)
        except asyncio.CancelledError:
            if self._task is not None:  # another task cancelled
                raise
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
        return up

    async def _start(self, stack: contextlib.AsyncExitStack) -> LocalMesh:
        mesh = LocalMesh(
            *(self._read, self.settings, self.options),
            on_event=self._on_event,
            check=self.files.checked,
        )
        try:
            return await stack.enter_async_context(mesh)
        except (TimeoutError, OSError, IdentityError) as error:
            notes = [event.message for event in self._early_events if isinstance(event, Noted) and event.trouble]
            raise NotStarted("\n".join([str(error) or "the proxies are not ready in time", *notes])) from error

    def _read(self, settings: Settings) -> Authority:
        """Load the manifests, which must declare all workloads with applications of the user."""
        authority = self.files.read(settings)
        world = authority.world
        for app in self.options.apps:
            key, _, port = app.partition(":")
            workload = world.workloads.get(key)
            if workload is None:
                near = did_you_mean(key, world.workloads)
                way_out = (
                    f"did you mean {near}?" if near else f"there are {', '.join(sorted(world.workloads)) or 'none'}"
                )
                raise NotStarted(f"no manifest declares the workload {key} of --app", help=way_out)
            ports = ports_of(world, workload)
            if port and int(port) not in ports:
                declared = ", ".join(map(str, sorted(ports))) or "none"
                raise NotStarted(f"{key} has no port {port}", help=f"it has {declared}")
        return authority

    async def _follow(self, mesh: LocalMesh, screen: Screen, stack: contextlib.AsyncExitStack) -> None:
        event_text = EventText(lambda: mesh.authority)
        handlers = Handlers(mesh, event_text, self.stop)
        control = ControlServer(mesh.rundir.socket("control"), handlers.all())
        await control.start()
        stack.push_async_callback(control.stop)
        if self.metrics is not None:
            await stack.enter_async_context(serve_metrics(*self.metrics, mesh.metrics.text))
        stack.enter_context(screen.open(mesh, event_text))
        stack.callback(self._mute)
        self._show = screen.show
        for event in self._early_events:
            screen.show(event)
        self._early_events.clear()
        await Reloading(mesh, self.files).run()

    def _on_event(self, event: MeshEvent) -> None:
        if self._show is not None:
            self._show(event)
        else:
            self._early_events.append(event)

    def _mute(self) -> None:
        """Mute output during shutdown; Envoy logs noise then."""
        self._show = lambda _: None
