"""The certificate that the control plane serves with: renewed while connections stay.

Every new connection gets the newest certificate and is verified with the newest trust bundle; those that are open are
not touched.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Final

import grpc

from eastgate.control.identity import Rotation, Svid, SvidSource, TrustBundles, client_context, server_context
from eastgate.controller.certificates.ca_secret import SYSTEM_NAMESPACE
from eastgate.ir.service_accounts import service_account_id

CONTROL_PLANE: Final = "eastgate"  # the Service, and the account


def control_plane_identity(trust_domain: str, namespace: str = SYSTEM_NAMESPACE) -> str:
    """Return the SPIFFE ID of the control plane."""
    return service_account_id(trust_domain, namespace, CONTROL_PLANE)


def control_plane_names(cluster_domain: str, namespace: str = SYSTEM_NAMESPACE) -> tuple[str, ...]:
    """Return the host names by which proxies reach the control plane."""
    name = f"{CONTROL_PLANE}.{namespace}"
    return f"{name}.svc", f"{name}.svc.{cluster_domain}", name


class ServerTls:
    """The server's own SVID and the bundle to verify clients with. Use it with `async with`."""

    def __init__(self, source: SvidSource, identity: str, dns_names: Sequence[str] = ()) -> None:
        self._source = source
        self._identity = identity
        self._dns_names = tuple(dns_names)
        self._rotation = Rotation(source)
        self._context: tuple[Svid, TrustBundles, ssl.SSLContext] | None = None

    async def __aenter__(self) -> ServerTls:
        await self._rotation.hold(self._identity, self._dns_names)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._rotation.close()

    @property
    def bundles(self) -> TrustBundles:
        """Return the bundles to verify clients with."""
        return self._source.bundles

    @property
    def end(self) -> datetime:
        """Return when the server's certificate expires. Raises IdentityError."""
        return self._rotation.current(self._identity).not_after

    def context(self) -> ssl.SSLContext:
        """Return a context for a new connection of a client with an SVID. Raises IdentityError."""
        svid, bundles = self._rotation.current(self._identity), self.bundles
        if self._context is None or self._context[:2] != (svid, bundles):
            self._context = svid, bundles, server_context(svid, bundles, [bundles.own])
        return self._context[2]

    def client_context(self) -> ssl.SSLContext:
        """Return a context for a connection to another server of the own trust domain. Raises IdentityError."""
        return client_context(self._rotation.current(self._identity), self.bundles)

    def grpc_credentials(self, *, verify_clients: bool) -> grpc.ServerCredentials:
        """Return credentials for a gRPC server: clients need a certificate of the own trust domain, or none counts."""
        last = self._snapshot()

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            """Return what has changed. gRPC calls this for each handshake, on threads of its own."""
            nonlocal last
            current = self._snapshot()
            if current == last:
                return None
            last = current
            return _configuration(*current, verify_clients=verify_clients)

        initial = _configuration(*last, verify_clients=verify_clients)
        # It may return None, whatever the types say: nothing has changed.
        return grpc.dynamic_ssl_server_credentials(initial, fetch, verify_clients)  # type: ignore[arg-type]

    def _snapshot(self) -> tuple[Svid, str]:
        bundles = self.bundles
        return self._rotation.current(self._identity), bundles.pem(bundles.own)


def _configuration(svid: Svid, roots: str, *, verify_clients: bool) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(svid.private_key.encode(), svid.chain.encode())],
        root_certificates=roots.encode() if verify_clients else None,
    )
