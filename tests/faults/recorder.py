"""An application that records every request."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

from eastgate.local.machine.control import SocketServer
from eastgate.local.machine.http1 import Malformed, Source
from tests.attacks.http1 import body_of, read_head

__all__ = ["Arrived", "Recorder"]


@dataclass(frozen=True)
class Arrived:
    """A request as the application received it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Recorder(SocketServer):
    """An application that answers every request with 200."""

    def __init__(self, name: str = "recorder") -> None:
        super().__init__(f"{os.environ['XDG_RUNTIME_DIR']}/{name}.sock")
        self.arrived: list[Arrived] = []

    @property
    def targets(self) -> list[str]:
        """Return the method and target of every request so far."""
        return [f"{one.method} {one.target}" for one in self.arrived]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = Source(reader)
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
