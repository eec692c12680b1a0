"""Keeps an Envoy running: restarts it after a crash, with backoff, and gives up after too many crashes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from eastgate.basics.records import dataclass
from eastgate.local.machine.envoy import EnvoyProcess
from eastgate.local.machine.rundir import LocalMeshError

_NOT_STARTED = 127


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays of restarts. After `attempts` crashes within `quick` seconds each, the supervisor gives up."""

    first: float = 0.05
    factor: float = 2.0
    longest: float = 2.0
    quick: float = 5.0
    attempts: int = 5

    def delay(self, crashes: int) -> float:
        """Return the seconds to wait after this many quick crashes in a row."""
        return min(self.longest, self.first * self.factor ** max(0, crashes - 1))


@dataclass(frozen=True, slots=True)
class Restart:
    """An Envoy that ended by itself and restarts after `delay` seconds."""

    node: str
    exit_code: int
    delay: float
    last_lines: tuple[str, ...]


class EnvoyGaveUp(LocalMeshError):  # noqa: N818 - the name is an event
    """An Envoy keeps crashing. `last_lines` is the end of its stderr."""

    def __init__(self, node: str, exit_code: int, crashes: int, last_lines: tuple[str, ...]) -> None:
        output = "".join(f"\n  {line}" for line in last_lines) or " nothing"
        how = f"signal {-exit_code}" if exit_code < 0 else f"code {exit_code}"
        super().__init__(f"the Envoy of {node} crashed {crashes} times, last with {how}; its output:{output}")
        self.node = node
        self.exit_code = exit_code
        self.last_lines = last_lines


class Supervisor:
    """Runs `launch` again whenever its Envoy ends by itself.

    Each restart calls `launch` again, so that a new Envoy gets the current bootstrap.
    """

    def __init__(
        self,
        launch: Callable[[], Awaitable[EnvoyProcess]],
        *,
        on_restart: Callable[[Restart], None] = lambda _: None,
        on_give_up: Callable[[EnvoyGaveUp], None] = lambda _: None,
        backoff: Backoff | None = None,
    ) -> None:
        self._launch = launch
        self._on_restart = on_restart
        self._on_give_up = on_give_up
        self._backoff = backoff or Backoff()
        self._task: asyncio.Task[EnvoyGaveUp | None] | None = None
        self.process: EnvoyProcess | None = None
        self.restarts = 0

    async def start(self) -> None:
        """Start the first Envoy. Raises if the Envoy cannot be started at all."""
        self.process = await self._launch()
        self._task = asyncio.create_task(self._supervise(self.process), name=f"supervisor of {self.process.node}")

    async def wait(self) -> None:
        """Return after `stop`; raise EnvoyGaveUp if it keeps crashing."""
        if self._task is None:
            return
        # `stop` cancels this task, and not the task that waits here
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (failure := self._task.result()) is not None:
            raise failure

    async def stop(self) -> None:
        """Stop the Envoy, without a restart."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self.process is not None:
            await self.process.stop()

    async def _supervise(self, process: EnvoyProcess) -> EnvoyGaveUp | None:
        node, crashes = process.node, 0
        ended: _Ended | EnvoyProcess = process
        while True:
            started = time.monotonic()
            if isinstance(ended, EnvoyProcess):
                ended = _Ended(await ended.wait(), tuple(ended.last_lines))
            crashes = crashes + 1 if time.monotonic() - started < self._backoff.quick else 1
            if crashes >= self._backoff.attempts:
                failure = EnvoyGaveUp(node, ended.exit_code, crashes, ended.last_lines)
                self._on_give_up(failure)
                return failure
            delay = self._backoff.delay(crashes)
            self._on_restart(Restart(node, ended.exit_code, delay, ended.last_lines))
            await asyncio.sleep(delay)
            ended = await self._relaunch()

    async def _relaunch(self) -> _Ended | EnvoyProcess:
        # A process that starts while `stop` cancels this task would have no owner: so wait for it.
        starting = asyncio.ensure_future(self._launch())
        try:
            self.process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self.process = await starting
            raise
        except Exception as error:  # such as too many open files: it may pass
            return _Ended(_NOT_STARTED, (str(error) or type(error).__name__,))
        self.restarts += 1
        return self.process


@dataclass(frozen=True, slots=True)
class _Ended:
    exit_code: int
    last_lines: tuple[str, ...]
