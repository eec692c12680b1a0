"""The certificate of the webhooks: issued by the CA of the mesh, and replaced before it expires.

A new one is proven in the connections that begin from then on; those that are open go on.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from types import TracebackType

from eastgate.control.identity import Clock, Rotation, Svid, SvidSource, load_svid

_LOG = logging.getLogger(__name__)


def names_of_service(namespace: str, name: str, cluster_domain: str = "cluster.local") -> tuple[str, ...]:
    """Return the DNS names under which an API server asks a Service."""
    return f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.{cluster_domain}"


class WebhookCertificate:
    """Holds the certificate of a server, with an identity and DNS names. Use it with `async with`.

    `client_ca` is a file with the certificates that sign those of API servers. Raises OSError where it has none.
    """

    def __init__(
        self,
        source: SvidSource,
        identity: str,
        dns_names: Sequence[str],
        *,
        client_ca: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._identity = identity
        self._dns_names = tuple(dns_names)
        self._rotation = Rotation(source, on_renewed=self._use, clock=clock)
        self.context = _server_context()
        """Proves the newest certificate. An API server that asks has none to show by default, and none for conversion
        whatever its configuration, so that a client without one gets as far as its request.
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
        load_svid(_server_context(), svid)  # what cannot be used must not get into the one that is in use
        load_svid(self.context, svid)
        _LOG.info("the webhooks prove a certificate that is valid until %s", svid.not_after.isoformat())


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context
