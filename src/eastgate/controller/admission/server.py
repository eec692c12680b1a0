"""The HTTPS server of the webhooks: bounded, and drained before it ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection
from types import TracebackType
from urllib.parse import urlsplit

from eastgate.control.authorizer.http_listener import HttpListener
from eastgate.control.authorizer.http_server import HttpLimits
from eastgate.controller.admission.webhooks import CONVERT, Webhooks

# A review of a conversion holds a whole list of objects, another one at most two. Only API servers ask, over a few
# connections each; others are not to keep them from it.
LIMITS = HttpLimits(body=64 * 1024 * 1024, seconds=30.0, idle=300.0, connections=256, bodies=128 * 1024 * 1024)
_HANDSHAKE_SECONDS = 10.0
_FORBIDDEN = 403


class WebhookServer(HttpListener):
    """Serves webhooks over TLS, and closes them at its end. Use it with `async with`.

    If the context asks for certificates of clients, reviews other than conversions need one that it verifies, with one
    of the `client_names` as its common name, if there are any. Others are refused before their bodies are read.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        context: ssl.SSLContext,
        *,
        host: str = "127.0.0.1",
        port: int = 9443,
        limits: HttpLimits = LIMITS,
        grace: float = 10.0,
        client_names: Collection[str] = (),
    ) -> None:
        super().__init__(webhooks.answer, limits, grace, self._screen)
        self._client_names = frozenset(client_names)
        self._webhooks = webhooks
        self._context = context
        self._host = host
        self._port = port

    def _screen(self, target: str, transport: asyncio.BaseTransport) -> int | None:
        if self._context.verify_mode is ssl.CERT_NONE or urlsplit(target).path == CONVERT:
            return None
        certificate = transport.get_extra_info("peercert") or {}
        names = {value for parts in certificate.get("subject", ()) for key, value in parts if key == "commonName"}
        is_known = not self._client_names.isdisjoint(names) if self._client_names else bool(certificate)
        return None if is_known else _FORBIDDEN

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
