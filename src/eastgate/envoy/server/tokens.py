"""Authenticates proxies: one bearer token for each node. Only a hash of it is kept.

A token is random and long, so that a plain hash is enough: guessing is hopeless, and no slow hash is needed.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from eastgate.envoy.server.session import AuthenticatedProxy, AuthenticationError, ProxyCredentials

_TOKEN_BYTES: Final = 32
_NO_HASH: Final = sha256(secrets.token_bytes(_TOKEN_BYTES)).digest()  # the hash to compare with, for an unknown node


class Tokens:
    """The issued tokens. A node has one: a new one replaces the old."""

    def __init__(self) -> None:
        self._hashes: dict[str, bytes] = {}
        self._issued: set[bytes] = set()
        self._on_revoke: list[Callable[[str], None]] = []

    def issue(self, node: str) -> str:
        """Issue a token for a node. Raises ValueError for a node without a name."""
        if not node:
            raise ValueError("a node needs a name")
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._withdraw(node)
        self._hashes[node] = _hash(token)
        self._issued.add(self._hashes[node])
        return token

    def _withdraw(self, node: str) -> bool:
        taken = self._hashes.pop(node, None)
        self._issued.discard(taken or _NO_HASH)
        return taken is not None

    def revoke(self, node: str) -> None:
        """Revoke a node's token, and disconnect its proxy."""
        if self._withdraw(node):
            for callback in tuple(self._on_revoke):
                callback(node)

    def may_authenticate(self, credentials: ProxyCredentials) -> bool:
        """Return whether this is the token of any node."""
        return self.issued(credentials.token)

    async def authenticate(self, credentials: ProxyCredentials, node_id: str) -> AuthenticatedProxy:
        """Return the proxy of a node whose token this is. Raises AuthenticationError."""
        if not self.accepts(node_id, credentials.token):
            raise AuthenticationError("not the token of this node")
        return AuthenticatedProxy(node_id, node_id)

    def issued(self, token: str) -> bool:
        """Return whether this is the token of any node."""
        return _hash(token) in self._issued

    def accepts(self, node: str, token: str) -> bool:
        """Return whether this is the token of this node, in constant time, also for an unknown node."""
        issued = self._hashes.get(node)
        same = hmac.compare_digest(_hash(token), issued if issued is not None else _NO_HASH)
        return same and issued is not None

    def on_revoke(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with every node whose token is revoked. The returned function ends that."""
        self._on_revoke.append(callback)
        return lambda: self._on_revoke.remove(callback)


def _hash(token: str) -> bytes:
    return sha256(token.encode(errors="surrogatepass")).digest()
