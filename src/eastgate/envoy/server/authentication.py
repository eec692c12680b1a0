"""The interface by which proxies authenticate: credentials and a claimed name in, a proxy out.

A node id claims nothing by itself. An authenticator decides which proxy it is that shows some credentials, and whose
resources that proxy gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Protocol

from eastgate.basics.records import dataclass


class AuthenticationError(Exception):
    """The credentials are not those of the proxy that it claims to be. The message is for the proxy's log."""


class UnavailableError(AuthenticationError):
    """The owner of these credentials cannot be told now; the proxy should try again."""


@dataclass(frozen=True, slots=True)
class ProxyCredentials:
    """What a proxy shows: a bearer token, or a certificate that was verified in the handshake, as PEM.

    `address` is where it calls from; empty for a socket in the file system.
    """

    token: str = field(default="", repr=False)
    certificate: bytes = b""
    address: str = ""


@dataclass(frozen=True, slots=True)
class AuthenticatedProxy:
    """A proxy, by its own name, and the node of the store whose resources it gets.

    Several proxies may share a node, as the pods of a Gateway do.
    """

    name: str
    node: str


class Authenticator(Protocol):
    """Decides which proxy it is that connects."""

    def may_authenticate(self, credentials: ProxyCredentials) -> bool:
        """Return whether these credentials may be those of any proxy: where not, nothing is read from it."""
        ...

    async def authenticate(self, credentials: ProxyCredentials, node_id: str) -> AuthenticatedProxy:
        """Return which proxy shows these credentials and says to be `node_id`. Raises AuthenticationError."""
        ...

    def on_revoke(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with the name of each proxy that is to be disconnected, until the result is called."""
        ...
