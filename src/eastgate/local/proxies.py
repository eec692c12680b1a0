"""Runs the processes of a mesh: an Envoy beside each workload, and a built-in application by default."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from eastgate.basics.diagnostics.printable import printable
from eastgate.control.events import MeshMetrics, Noted, OnEvent
from eastgate.envoy.config.bootstrap import bootstrap
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server.tokens import Tokens
from eastgate.local.machine import procfs
from eastgate.local.machine.echo import EchoServer
from eastgate.local.machine.envoy import EnvoyProcess
from eastgate.local.machine.rundir import Guard, RunDir
from eastgate.local.machine.supervisor import EnvoyGaveUp, Restart, Supervisor

# Waits until proxies listen, by asking the kernel: a test connection would itself be decided.


_POLL_SECONDS = 0.01


async def wait_until_listening(wanted: Collection[tuple[str, int]], timeout: float) -> None:
    """Wait until all of these addresses and ports are open. Raises TimeoutError."""
    ends = time.monotonic() + timeout
    while missing := set(wanted) - _listening():
        if time.monotonic() > ends:
            examples = ", ".join(f"{address}:{port}" for address, port in sorted(missing)[:3])
            raise TimeoutError(f"{len(missing)} ports are not open after {timeout:.0f} s, such as {examples}")
        await asyncio.sleep(_POLL_SECONDS)


def _listening() -> set[tuple[str, int]]:
    return {(str(address), port) for address, port in procfs.listening()}


_MAX_CONCURRENT_STARTS = 4  # Envoys that start at the same time


class Proxies:
    """Starts and stops the Envoys and the built-in applications of a mesh."""

    def __init__(
        self,
        rundir: RunDir,
        guard: Guard,
        tokens: Tokens,
        metrics: MeshMetrics,
        on_event: OnEvent,
        on_record: Callable[[dict[str, Any]], None],
    ) -> None:
        self._rundir = rundir
        self._guard = guard
        self._tokens = tokens
        self._metrics = metrics
        self._on_event = on_event
        self._on_record = on_record
        self._supervisors: dict[str, Supervisor] = {}
        self._echoes: dict[tuple[str, int], EchoServer] = {}

    def built_in_app(self, workload: str, port: int) -> SocketAddress:
        """Return the address of the built-in application of a port."""
        return SocketAddress(self._rundir.socket(f"app {workload} {port}"))

    async def run(self, nodes: Iterable[str], apps: Iterable[tuple[str, int]]) -> None:
        """Run an Envoy for each of these nodes, the built-in applications of these ports, and nothing else."""
        wanted, ports = set(nodes), set(apps)
        await asyncio.gather(*(self._stop(node) for node in set(self._supervisors) - wanted))
        for unused in [key for key in self._echoes if key not in ports]:
            await self._echoes.pop(unused).stop()
        for workload, port in sorted(ports - self._echoes.keys()):
            echo = EchoServer(self.built_in_app(workload, port).host, workload, port)
            await echo.start()
            self._echoes[workload, port] = echo
        slots = asyncio.Semaphore(_MAX_CONCURRENT_STARTS)

        async def start(node: str) -> None:
            async with slots:
                supervisor = Supervisor(
                    lambda: self._launch(node), on_restart=self._on_restart, on_give_up=self._on_give_up
                )
                self._supervisors[node] = supervisor
                await supervisor.start()

        await asyncio.gather(*(start(node) for node in sorted(wanted - self._supervisors.keys())))

    def process(self, node: str) -> EnvoyProcess | None:
        """Return the running Envoy of a workload."""
        supervisor = self._supervisors.get(node)
        return supervisor.process if supervisor is not None else None

    async def stop(self) -> None:
        await asyncio.gather(*(self._stop(node) for node in list(self._supervisors)))
        await asyncio.gather(*(echo.stop() for echo in self._echoes.values()))

    async def _stop(self, node: str) -> None:
        self._tokens.revoke(node)
        await self._supervisors.pop(node).stop()

    async def _launch(self, node: str) -> EnvoyProcess:
        """Start an Envoy with a new token, which revokes the old one."""
        start = bootstrap(
            node,
            self._rundir.socket("control-plane"),
            self._tokens.issue(node),
            self._rundir.socket(f"admin {node}"),
        )
        return await EnvoyProcess.start(
            start,
            node,
            on_record=self._on_record,
            on_log=lambda line: self._on_event(Noted(printable(f"envoy of {node}: {line}"))),
            guard=self._guard,
        )

    def _on_restart(self, restart: Restart) -> None:
        self._metrics.restarts.inc()
        self._on_event(
            Noted(f"the Envoy of {restart.node} ended (code {restart.exit_code}) and is started again", True)
        )

    def _on_give_up(self, failure: EnvoyGaveUp) -> None:
        self._on_event(Noted(printable(str(failure)), trouble=True))
