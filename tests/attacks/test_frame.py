"""The framework of the attacks finds violations."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from eastgate.local.machine.connection import CallConnection, HttpRequest, Target
from tests.attacks import framing, headers, hosts, http2, paths, sizes, xds
from tests.attacks.application import Application
from tests.attacks.placements import HOST, Attacked, Verdict, marked
from tests.attacks.policies import ONLY_API
from tests.attacks.trying import Try, attack, compare
from tests.differential.asking import Caller, Http
from tests.differential.world import Manifest

T = TypeVar("T")


class _AllowAllGateway:
    """A gateway without policies that passes on all bytes unchanged. Every attack on it succeeds."""

    def __init__(self, application: Application, loop: asyncio.AbstractEventLoop) -> None:
        self.application = application
        self._loop = loop

    def enforce(self, policies: Sequence[Manifest]) -> None:
        pass

    def of(self, caller: Caller) -> Attacked:
        raise NotImplementedError(caller)

    def denial(self, http: Http) -> str | None:
        return None if paths.read_as(http.target).startswith("/api/") else "only /api/ is allowed"

    def verdicts(self, requests: Sequence[Http]) -> list[Verdict]:
        return self.run(self._verdicts([marked(http) for http in requests]))

    async def _verdicts(self, requests: Sequence[tuple[str, Http]]) -> list[Verdict]:
        found = []
        for mark, http in requests:
            async with await self.open() as connection:
                connection.prepare(HttpRequest(http.method))
                await connection.send(http.to_bytes())
                status = (await connection.response()).status
            found.append(Verdict(status, next(one for one in self.application.arrived if one.mark == mark), False))
        return found

    async def open(self, alpn: Sequence[str] = (), *, victim: bool = False) -> CallConnection:  # noqa: ARG002
        return await CallConnection.open(Target("127.0.0.1", self.port))

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(task)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        await self.application.start()
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        yield
        server.close()
        await self.application.stop()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, on = await asyncio.open_unix_connection(self.application.path)

        async def pump(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    to.write(data)
                    await to.drain()
            except OSError:
                pass
            finally:
                to.close()

        await asyncio.gather(pump(reader, on), pump(back, writer))


@pytest.fixture
def gateway() -> Iterator[Attacked]:
    folder, loop = Path(tempfile.mkdtemp(prefix="eg-")), asyncio.new_event_loop()
    made = _AllowAllGateway(Application(str(folder / f"{os.getpid()}.sock")), loop)
    running = made.passing()
    loop.run_until_complete(running.__aenter__())
    try:
        yield made
    finally:
        loop.run_until_complete(running.__aexit__(None, None, None))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        shutil.rmtree(folder)


def test_what_arrives_and_is_forbidden_is_found_with_the_try_that_did_it(gateway: Attacked) -> None:
    gateway.enforce(ONLY_API)
    good = [Try(f"good {number}", (b"GET /api/x HTTP/1.1\r\nhost: a\r\n\r\n",)) for number in range(5)]
    assert attack(gateway, good, paths.outside("/api/")) == []
    bad = Try("bad", (b"GET /api/x HTTP/1.1\r\nhost: a\r\n\r\nGET /secret HTTP/1.1\r\nhost: a\r\n\r\n",))
    found = attack(gateway, [*good, bad], paths.outside("/api/"))
    assert "the application reads /secret" in found[0]
    assert "name='bad'" in found[-1]


def test_what_engine_and_proxy_disagree_on_is_found(gateway: Attacked) -> None:
    gateway.enforce(ONLY_API)
    tries = [Http(target=path, host=HOST) for path in ("/api/x", "/secret", "/api/../secret", "/api/%2e%2e/secret")]
    assert len(list(compare(gateway, tries, paths.outside("/api/")))) == 3
    assert len(list(compare(gateway, tries, lambda _: None))) == 3


def test_an_answer_to_another_client_is_found(gateway: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.attacks.application.Arrived.mark", property(lambda _: "another"))
    good = Try("good", (b"GET /api/x HTTP/1.1\r\nhost: a\r\n\r\n",))
    assert any("another client was disturbed" in one for one in attack(gateway, [good], lambda _: None))


def test_there_are_enough_tries_of_every_kind() -> None:
    counts = {
        "paths": len({path for _, path in paths.spellings()}),
        "hosts": len({host for host, _ in hosts.spellings()}) + len(list(hosts.repeated())),
        "headers": len(set(headers.spellings())) + len(list(headers.written())),
        "framing": len(list(framing.tries())),
        "http2": len(list(http2.tries())),
        "xds": len(list(xds.impostors("a", "b", "c"))) + len(list(xds.messages())) + len(xds.METHODS),
    }
    assert {kind: number for kind, number in counts.items() if number < 150} == {}
    assert len(sizes.SETS) >= 7


def test_names_tell_tries_apart_and_seeds_repeat_them() -> None:
    for made in (framing.tries, http2.tries):
        names = [one.name for one in made()]
        assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}
    assert list(framing.smuggled(1, 5)) == list(framing.smuggled(1, 5)) != list(framing.smuggled(2, 5))
    assert list(http2.mixed(1, 5)) == list(http2.mixed(1, 5)) != list(http2.mixed(2, 5))
    assert list(paths.sneaked(1, 5)) == list(paths.sneaked(1, 5)) != list(paths.sneaked(2, 5))
