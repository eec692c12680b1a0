"""A place to listen for HTTP: opened and drained with `async with`, whatever is answered there."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from eastgate.control.authorizer.http_server import Handler, HttpLimits, HttpServer, Screen


class HttpListener(ABC):
    """Listens where `listen` says, and answers as the handler does. At its end it answers what was asked, for `grace`
    seconds.
    """

    def __init__(
        self, handler: Handler, limits: HttpLimits | None = None, grace: float = 1.0, screen: Screen | None = None
    ) -> None:
        self.http = HttpServer(handler, limits, screen)
        self._grace = grace
        self._server: asyncio.Server | None = None

    @abstractmethod
    async def listen(self) -> asyncio.Server:
        """Open the port, for connections of `http.protocol`. Raises OSError."""

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._server is not None  # noqa: S101 - it was started
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self._server = await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self.http.drain(self._grace)
