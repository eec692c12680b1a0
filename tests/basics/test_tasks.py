"""Background work does not end: it restarts, and reports the failure."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import eastgate
from eastgate.basics.tasks import BackgroundTask, RetryDelay, describe_failure, run_together
from tests.patience import PATIENCE


def _quick() -> RetryDelay:
    return RetryDelay(0.001, 0.002)


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.001)


async def _cancelled() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def _raises() -> None:
    raise KeyError("gone")


@pytest.mark.parametrize(("fails", "why"), [(_raises, "KeyError"), (_cancelled, "RuntimeError")])
def test_what_fails_is_reported_and_begins_again(fails: Callable[[], Awaitable[None]], why: str) -> None:
    reported: list[str] = []
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds <= 3:
            await fails()
        task.works()
        await asyncio.Event().wait()

    def report(name: str, error: Exception) -> None:
        assert not task.is_working
        reported.append(f"{name}: {type(error).__name__}")
        raise ValueError("a report that fails ends nothing")

    async def run() -> None:
        task.start()
        await _until(lambda: rounds == 4 and task.is_working)
        await task.stop()
        assert not task.is_working

    task = BackgroundTask("the work", work, report, _quick())
    asyncio.run(run())
    assert reported == [f"the work: {why}"] * 3


def test_a_round_that_returns_is_followed_by_the_next() -> None:
    rounds: list[int] = []

    async def work() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 2:
            raise OSError

    async def run() -> None:
        task = BackgroundTask("the work", work, lambda _name, _error: None, _quick()).start()
        await _until(lambda: len(rounds) > 5)
        assert task.failure is None
        await task.stop()

    asyncio.run(run())


def test_a_failure_in_a_group_of_one_is_that_failure() -> None:
    error = TypeError("unhashable")
    error.add_note("while reading m.yaml:1")
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [error])])
    assert describe_failure(group) == "TypeError: unhashable; while reading m.yaml:1"


def test_work_that_fails_while_it_is_stopped_does_not_begin_again() -> None:
    began: list[None] = []

    async def fails_at_the_end() -> None:
        began.append(None)
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("cannot hang up")

    async def run() -> None:
        task = BackgroundTask("the work", lambda: run_together(fails_at_the_end()), delay=_quick()).start()
        await _until(lambda: len(began) == 1)
        async with asyncio.timeout(PATIENCE):
            await task.stop()

    asyncio.run(run())
    assert len(began) == 1


@pytest.mark.parametrize(("fails", "why"), [(_raises, KeyError), (_cancelled, RuntimeError)])
def test_work_that_runs_together_ends_together(fails: Callable[[], Awaitable[None]], why: type[Exception]) -> None:
    ended: list[None] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(None)

    async def run() -> None:
        with pytest.raises(ExceptionGroup) as raised:
            await run_together(waits(), fails())
        assert [type(error) for error in raised.value.exceptions] == [why]
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0

    asyncio.run(run())
    assert ended == [None]


_OF_ONE_REQUEST = {
    "control/authorizer/external_clients.py": "a thread for a connection; the one that accepts goes on after errors",
    "control/authorizer/http_server.py": "an answer",
    "controller/election.py": "leading and renewing, looked at when one ends; a heartbeat, which only sleeps",
    "controller/proxies/control.py": "one change for proxies; its failure ends the replica, and another begins",
    "dialects/kuadrant/authorino/callbacks.py": "threads that the next callback starts",
    "envoy/grpc/open_calls.py": "an answer",
    "envoy/server/session.py": "the halves of a stream",
    "control/identity/rotation.py": "two waits, of which one ends the other",
    "control/authorizing.py": "a thread that runs an event loop",
    "local/machine/control.py": "a request, and a connection",
    "local/machine/envoy.py": "the output of a process, up to its end",
    "local/machine/supervisor.py": "a process that is started again",
    "local/machine/wire.py": "a connection",
    "basics/tasks.py": "background tasks themselves",
}
"""The modules that start tasks or threads by themselves, and the reason why each may end."""


def test_whatever_else_goes_on_in_the_background_is_a_background_task() -> None:
    root = Path(eastgate.__file__).parent
    starting = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("create_task", "ensure_future", "Thread", "TaskGroup")
    }
    assert starting == set(_OF_ONE_REQUEST)
