"""The HTTPS server of the webhooks. It limits all input, and answers open requests before it ends."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Collection, Sequence
from types import TracebackType
from urllib.parse import urlsplit

from eastgate.control.authorizer.http_checks import HttpListener
from eastgate.control.authorizer.http_server import HttpLimits
from eastgate.control.identity import Rotation, Svid, SvidSource, load_svid
from eastgate.controller.admission.webhooks import CONVERT, Webhooks

# The certificate of the webhooks: issued by the CA of the mesh, and replaced before it expires.
#
# New connections use a new certificate; open connections stay as they are.


_LOG = logging.getLogger(__name__)


def names_of_service(namespace: str, name: str, cluster_domain: str = "cluster.local") -> tuple[str, ...]:
    """Return the DNS names at which an API server calls a Service."""
    return f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.{cluster_domain}"


class WebhookCertificate:
    """The certificate of a server, with an identity and DNS names. Use it with `async with`.

    `client_ca` is a file with the CA certificates of API servers. Raises OSError if it has none.
    """

    def __init__(
        self,
        source: SvidSource,
        identity: str,
        dns_names: Sequence[str],
        *,
        client_ca: str | None = None,
    ) -> None:
        self._identity = identity
        self._dns_names = tuple(dns_names)
        self._rotation = Rotation(source, on_renewed=self._use)
        self.context = _server_context()
        """The TLS context with the newest certificate. By default, an API server has no client certificate, and
        never has one for conversion. So a client without a certificate can still send its request.
        """
        if client_ca is not None:
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self.context.load_verify_locations(client_ca)

    async def __aenter__(self) -> WebhookCertificate:
        self._use(await self._rotation.hold(self._identity, self._dns_names))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._rotation.close()

    def _use(self, svid: Svid) -> None:
        load_svid(_server_context(), svid)  # an unusable certificate must not get into the active context
        load_svid(self.context, svid)
        _LOG.info("the webhooks use a certificate that is valid until %s", svid.not_after.isoformat())


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


# A conversion review holds a whole list of objects; other reviews hold at most two. Only API servers call, over a few
# connections each. The limits keep other clients from blocking them.
LIMITS = HttpLimits(body=64 * 1024 * 1024, seconds=30.0, idle=300.0, connections=256, bodies=128 * 1024 * 1024)
_HANDSHAKE_SECONDS = 10.0
_FORBIDDEN = 403


class WebhookServer(HttpListener):
    """The server of the webhooks over TLS, which closes them at its end. Use it with `async with`.

    If the context requests client certificates, every review except conversions needs a certificate that it verifies.
    If there are `client_names`, the common name must be one of them. Other requests are refused before their bodies are
    read.
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
