"""Commands use a running mesh, which answers only commands of its own user."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from eastgate.local.machine.control import ControlClient, ControlFailed, ControlServer, Message
from eastgate.local.machine.rundir import LocalMeshError
from tests.missing import lacks
from tests.patience import PATIENCE


class Handlers:
    def __init__(self) -> None:
        self.left = 0

    async def add(self, arguments: Message) -> Message:
        return {"sum": sum(arguments["numbers"])}

    async def refuse(self, _: Message) -> Message:
        raise LocalMeshError("there is no workload `x`", help="there is `y`")

    async def missing_file(self, _: Message) -> Message:
        raise FileNotFoundError("policy.yaml")

    async def huge(self, _: Message) -> Message:
        return {"text": "x" * 40_000_000}

    async def count(self, arguments: Message) -> AsyncIterator[Message]:
        for number in range(arguments["to"]):
            yield {"number": number}

    async def later(self, arguments: Message) -> AsyncIterator[Message]:
        return self.count(arguments)

    async def broken(self, _: Message) -> AsyncIterator[Message]:
        yield {"number": 0}
        raise LocalMeshError("no more")

    async def events(self, _: Message) -> AsyncIterator[Message]:
        try:
            yield {"event": "started"}
            await asyncio.sleep(60)
        finally:
            self.left += 1

    def table(self) -> dict[str, Any]:
        names = ("add", "refuse", "missing_file", "huge", "count", "later", "broken", "events")
        return {name: getattr(self, name) for name in names}


@asynccontextmanager
async def controlled(folder: Path) -> AsyncIterator[tuple[ControlClient, Handlers]]:
    handlers = Handlers()
    server = ControlServer(str(folder / "control.sock"), handlers.table())
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    await server.start()
    try:
        yield ControlClient(server.path), handlers
    finally:
        await server.stop()
        assert not os.path.exists(server.path)


def test_questions_are_answered(runtime: Path) -> None:
    async def scene() -> None:
        async with controlled(runtime) as (client, _):
            assert await client.ask("add", numbers=[1, 2]) == {"sum": 3}
            many = await asyncio.gather(*(client.ask("add", numbers=[number]) for number in range(50)))
            assert [answer["sum"] for answer in many] == list(range(50))
            for name in ("count", "later"):
                assert [item async for item in client.stream(name, to=3)] == [{"number": number} for number in range(3)]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("refuse", "there is no workload `x`: there is `y`"),
        ("missing_file", "FileNotFoundError: policy.yaml"),
        ("add", "KeyError: 'numbers'"),
        ("huge", "the answer has more than"),
        ("nothing", "this mesh does not know `nothing`: it knows `add`, `broken`"),
        ("broken", "the mesh gives many answers"),
    ],
)
def test_an_error_is_reported_and_the_server_continues(name: str, message: str, runtime: Path) -> None:
    async def scene() -> None:
        async with controlled(runtime) as (client, _):
            with pytest.raises(ControlFailed, match=message):
                await client.ask(name)
            assert await client.ask("add", numbers=[]) == {"sum": 0}

    asyncio.run(scene())


def test_an_error_ends_a_stream(runtime: Path) -> None:
    async def scene() -> None:
        async with controlled(runtime) as (client, _):
            stream = client.stream("broken")
            assert await anext(stream) == {"number": 0}
            with pytest.raises(ControlFailed, match="no more"):
                await anext(stream)

    asyncio.run(scene())


def test_a_listener_that_leaves_ends_its_stream(runtime: Path) -> None:
    async def scene() -> None:
        async with controlled(runtime) as (client, handlers):
            stream = client.stream("events")
            assert await anext(stream) == {"event": "started"}
            await stream.aclose()
            for _ in range(100):
                await asyncio.sleep(0.01)
                if handlers.left:
                    break
            assert handlers.left == 1

    asyncio.run(scene())


def test_stopping_the_mesh_ends_all_streams(runtime: Path) -> None:
    async def scene() -> None:
        async with controlled(runtime) as (client, handlers):
            stream = client.stream("events")
            await anext(stream)
        assert handlers.left == 1
        assert [item async for item in stream] == []
        with pytest.raises(ControlFailed, match="the mesh does not answer"):
            await client.ask("add", numbers=[])

    asyncio.run(scene())


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        b'{"ask": 1}\n',
        b'{"ask": "add", "arguments": []}\n',
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b"x" * 1_100_000 + b"\n",
    ],
    ids=["text", "list", "empty", "number", "arguments", "bytes", "deep", "long"],
)
def test_bad_input_is_answered_with_an_error(sent: bytes, runtime: Path) -> None:
    async def scene() -> None:
        async with controlled(runtime) as (client, _):
            reader, writer = await asyncio.open_unix_connection(str(runtime / "control.sock"))
            writer.write(sent)
            answer = json.loads(await asyncio.wait_for(reader.readline(), PATIENCE))
            assert "a request" in answer["error"]
            writer.close()
            assert await client.ask("add", numbers=[1]) == {"sum": 1}

    asyncio.run(scene())


@pytest.mark.skipif(os.geteuid() != 0, reason=lacks("other users", "run as root"))
def test_another_user_is_refused_even_when_the_socket_is_open_to_all() -> None:
    folder = Path(tempfile.mkdtemp(prefix="eg-"))
    program = "import os,socket,sys; os.setuid(65534); s=socket.socket(1); s.connect(sys.argv[1]); print(s.recv(999))"

    async def scene() -> str:
        async with controlled(folder):
            folder.chmod(0o755)
            (folder / "control.sock").chmod(0o777)
            command = [sys.executable, "-I", "-S", "-c", program, str(folder / "control.sock")]
            run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE)
            return str(run.stdout + run.stderr)

    try:
        assert "belongs to another user" in asyncio.run(scene())
    finally:
        shutil.rmtree(folder)
