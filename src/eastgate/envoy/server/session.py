"""A gRPC stream of an authenticated proxy, with its reading and writing halves.

A session ends when the proxy disconnects, misbehaves, or is disconnected. It has at most one response in memory, so
that a proxy that does not read costs no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Protocol, TypeAlias

import grpc

from eastgate.basics.records import dataclass
from eastgate.envoy.server.streams import Acknowledgement, ProtocolError, Stream, encode

# The interface of authentication: from credentials and a claimed node id to a proxy. A node id proves nothing by
# itself. An authenticator determines the proxy with these credentials, and the node whose resources it gets.


class AuthenticationError(Exception):
    """The credentials are not those of the claimed proxy. The message is for the proxy's log."""


class UnavailableError(AuthenticationError):
    """The owner of these credentials is temporarily unknown; the proxy should try again."""


@dataclass(frozen=True, slots=True)
class ProxyCredentials:
    """The credentials of a proxy: a bearer token, or a certificate that was verified in the handshake, as PEM.

    `address` is the source address; empty for a socket in the file system.
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
    """Determines the proxy behind a connection."""

    def may_authenticate(self, credentials: ProxyCredentials) -> bool:
        """Return whether these credentials may be those of any proxy. If not, the server reads nothing from it."""
        ...

    async def authenticate(self, credentials: ProxyCredentials, node_id: str) -> AuthenticatedProxy:
        """Return the proxy with these credentials and the claimed `node_id`. Raises AuthenticationError."""
        ...

    def on_revoke(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with the name of each proxy to disconnect. The returned function ends that."""
        ...


RpcContext: TypeAlias = "grpc.aio.ServicerContext[Any, bytes]"
End: TypeAlias = tuple[grpc.StatusCode, str]


class ProxySession:
    """The two halves of one stream. `on_acknowledged`, `on_sent` and `on_idle` are called for these events."""

    def __init__(
        self,
        stream: Stream,
        context: RpcContext,
        *,
        on_acknowledged: Callable[[ProxySession, Acknowledgement], None],
        on_sent: Callable[[str, int], None],
        on_idle: Callable[[ProxySession], None],
    ) -> None:
        self.stream = stream
        self._context = context
        self._on_acknowledged = on_acknowledged
        self._on_sent = on_sent
        self._on_idle = on_idle
        self._wake = asyncio.Event()
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    @property
    def node(self) -> str:
        return self.stream.node

    def notify_changed(self, types: Iterable[str]) -> None:
        """Send the changes for this node in the store."""
        self.stream.notify_changed(types)
        self._wake.set()

    def end(self, code: grpc.StatusCode, details: str) -> None:
        """End this stream with this status."""
        if not self._end.done():
            self._end.set_result((code, details))

    async def run(self, first: Any) -> End | None:
        """Serve until the end; return its status, or None if the proxy ended it."""
        halves = [asyncio.create_task(self._read(first)), asyncio.create_task(self._write())]
        waited: list[asyncio.Future[Any]] = [*halves, self._end]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            results = await asyncio.gather(*halves, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not self._context.cancelled():
                raise result
        return self._end.result() if self._end.done() else None

    async def _read(self, first: Any) -> None:
        request = first
        try:
            while request is not grpc.aio.EOF:
                acknowledgement = self.stream.receive(request)
                if acknowledgement is not None:
                    self._on_acknowledged(self, acknowledgement)
                self._wake.set()
                request = await self._context.read()
        except ProtocolError as error:
            self.end(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (response := self.stream.next_response()) is not None:
                encoded = encode(response)
                self._on_sent(response.type_url, len(encoded))
                await self._context.write(encoded)
            self._on_idle(self)
