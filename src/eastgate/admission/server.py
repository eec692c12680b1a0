"""The HTTPS server of the webhooks: bounded, and drained before it ends."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType

from eastgate.admission.webhooks import Webhooks
from eastgate.authorizer.http_server import HttpLimits, HttpServer

__all__ = ["LIMITS", "WebhookServer"]

# A review of a conversion holds a whole list of objects. Only API servers ask, over a few connections each.
LIMITS = HttpLimits(body=64 * 1024 * 1024, seconds=30.0, idle=300.0, connections=128)
_HANDSHAKE_SECONDS = 10.0


class WebhookServer:
    """Serves webhooks over TLS, and closes them at its end. Use it with `async with`."""

    def __init__(
        self,
        webhooks: Webhooks,
        context: ssl.SSLContext,
        *,
        host: str = "127.0.0.1",
        port: int = 9443,
        limits: HttpLimits = LIMITS,
        grace: float = 10.0,
    ) -> None:
        self._webhooks = webhooks
        self._http = HttpServer(webhooks.answer, limits)
        self._context = context
        self._host = host
        self._port = port
        self._grace = grace
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._server is not None  # noqa: S101 - it was started
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> WebhookServer:
        self._server = await asyncio.get_running_loop().create_server(
            self._http.protocol,
            self._host,
            self._port,
            ssl=self._context,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take no more connections, and answer what was asked."""
        if self._server is not None:
            self._server.close()
            await self._http.drain(self._grace)
            await self._server.wait_closed()
            self._webhooks.close()
