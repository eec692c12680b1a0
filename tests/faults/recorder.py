"""An application that remembers every request that reached it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

from eastgate.mesh.local.http1 import Malformed, Source
from tests.attacks.http1 import body_of, read_head

__all__ = ["Arrived", "Recorder"]


@dataclass(frozen=True)
class Arrived:
    """A request as the application saw it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Recorder:
    """Answers every request with 200 and nothing else."""

    def __init__(self, name: str = "recorder") -> None:
        self.path = f"{os.environ['XDG_RUNTIME_DIR']}/{name}.sock"
        self.arrived: list[Arrived] = []
        self.connections = 0
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def targets(self) -> list[str]:
        """Method and target of every request so far."""
        return [f"{one.method} {one.target}" for one in self.arrived]

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self.path)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(Source(reader), writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, source: Source, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, Malformed):
                while (head := await read_head(source)) is not None:
                    body = b"".join([piece async for piece in body_of(source, head)])
                    method, target, _ = head.start.split(" ", 2)
                    self.arrived.append(Arrived(method, target, head.headers, body))
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    await writer.drain()
        finally:
            writer.transport.abort()
