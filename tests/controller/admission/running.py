"""Webhooks in a thread, for tests with a real API server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eastgate.control.identity import EmbeddedCa
from eastgate.controller.admission.server import WebhookCertificate, WebhookServer
from eastgate.controller.admission.webhooks import Webhooks
from eastgate.reports.crds import Webhook

IDENTITY = "spiffe://cluster.local/ns/eastgate-system/sa/eastgate"


@dataclass
class RunningWebhooks:
    """Running webhooks, their CA, and their event loop."""

    ca: EmbeddedCa = field(default_factory=lambda: EmbeddedCa("cluster.local"))
    port: int = 0
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @property
    def certificates(self) -> str:
        return self.ca.bundles.pem("cluster.local")

    @property
    def webhook(self) -> Webhook:
        """Return the client configuration for an API server on this machine."""
        return Webhook("eastgate-system", "eastgate", self.certificates, f"https://localhost:{self.port}")


@contextmanager
def run_webhooks(
    webhooks: Webhooks, *, client_ca: str | None = None, client_names: Collection[str] = ()
) -> Iterator[RunningWebhooks]:
    running = RunningWebhooks()
    started, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with (
            WebhookCertificate(running.ca, IDENTITY, ["localhost"], client_ca=client_ca) as certificate,
            WebhookServer(webhooks, certificate.context, port=0, grace=1.0, client_names=client_names) as server,
        ):
            running.port = server.port
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: running.loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(60)
        yield running
    finally:
        running.loop.call_soon_threadsafe(stop.set)
        thread.join()
        running.loop.close()
