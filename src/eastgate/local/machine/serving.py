"""A server on a unix socket, which serves each connection in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import ABC, abstractmethod


class SocketServer(ABC):
    """Listens on a socket for this user only, until it is stopped. `limit` bounds the lines that are read."""

    def __init__(self, path: str, *, limit: int = 64 * 1024, backlog: int = 100) -> None:
        self.path = path
        self.connections = 0
        self._limit = limit
        self._backlog = backlog
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, and close it."""

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_unix_server(
            self._accept, self.path, limit=self._limit, backlog=self._backlog
        )
        os.chmod(self.path, 0o600)

    async def stop(self) -> None:
        """Stop listening, and cancel what is being served."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self.serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
