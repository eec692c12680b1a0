"""Where the authorizer of gateways listens: on a socket that only we can open, or on a port, over TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from eastgate.basics.records import dataclass
from eastgate.control.identity import IdentityError, TrustBundles, verify_connection

_LOG = logging.getLogger(__name__)
_HANDSHAKE = 10.0  # seconds

ProtocolFactory = Callable[[], asyncio.Protocol]


class AuthorizerEndpoint(Protocol):
    """Something to listen on."""

    async def listen(self, protocol: ProtocolFactory) -> asyncio.Server:
        """Listen on the running loop. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class UnixEndpoint:
    """A socket in the file system, for nobody but this user."""

    path: str

    async def listen(self, protocol: ProtocolFactory) -> asyncio.Server:
        """Listen on the running loop. Raises OSError."""
        server = await asyncio.get_running_loop().create_unix_server(protocol, self.path)
        Path(self.path).chmod(0o600)
        return server


@dataclass(frozen=True, slots=True)
class TlsEndpoint:
    """A port for peers with an SVID.

    `context` and `bundles` are asked for each connection: certificates change, and connections stay. `admits` decides
    by the SPIFFE ID of a peer; the connections of others end before anything is read.
    """

    host: str
    port: int
    context: Callable[[], ssl.SSLContext]
    bundles: Callable[[], TrustBundles]
    admits: Callable[[str], bool]

    async def listen(self, protocol: ProtocolFactory) -> asyncio.Server:
        """Listen on the running loop. Raises OSError."""
        outer = self.context()
        outer.sni_callback = self._choose_context
        return await asyncio.get_running_loop().create_server(
            lambda: _Admission(self, protocol),
            self.host,
            self.port,
            ssl=outer,
            ssl_handshake_timeout=_HANDSHAKE,
        )

    def _choose_context(self, connection: ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext) -> int | None:
        try:
            connection.context = self.context()
        except IdentityError as error:
            _LOG.error("a connection is refused: %s", error, extra={"port": self.port})
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        return None

    def identify(self, connection: ssl.SSLObject | None) -> str | None:
        """Return the identity of a peer that is admitted; None for others."""
        if connection is None:
            return None
        try:
            identity = verify_connection(connection, self.bundles())
        except IdentityError as error:
            _LOG.warning("a connection is refused: %s", error, extra={"port": self.port})
            return None
        if not self.admits(identity):
            fields = {"port": self.port, "identity": identity}
            _LOG.warning("a connection is refused: %s may not use the port %s", identity, self.port, extra=fields)
            return None
        return identity


class _Admission(asyncio.Protocol):
    """Looks at the peer of a new connection, and hands it over to another protocol if it is admitted."""

    def __init__(self, endpoint: TlsEndpoint, protocol: ProtocolFactory) -> None:
        self._endpoint = endpoint
        self._protocol = protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # those of other event loops need not be derived from it
        if self._endpoint.identify(stream.get_extra_info("ssl_object")) is None:
            stream.abort()
            return
        protocol = self._protocol()
        stream.set_protocol(protocol)
        protocol.connection_made(stream)
