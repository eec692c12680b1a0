"""The HTTPS server of the webhooks: bounded, and drained before it ends."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType

from eastgate.admission.webhooks import Webhooks
from eastgate.authorizer.http_listener import HttpListener
from eastgate.authorizer.http_server import HttpLimits

__all__ = ["LIMITS", "WebhookServer"]

# A review of a conversion holds a whole list of objects. Only API servers ask, over a few connections each.
LIMITS = HttpLimits(body=64 * 1024 * 1024, seconds=30.0, idle=300.0, connections=128)
_HANDSHAKE_SECONDS = 10.0


class WebhookServer(HttpListener):
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
        super().__init__(webhooks.answer, limits, grace)
        self._webhooks = webhooks
        self._context = context
        self._host = host
        self._port = port

    async def listen(self) -> asyncio.Server:
        """Open the port, with TLS."""
        return await asyncio.get_running_loop().create_server(
            self.http.protocol,
            self._host,
            self._port,
            ssl=self._context,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        if self._server is not None:
            await self._server.wait_closed()
            self._webhooks.close()
