"""The control plane's server: authenticates proxies, serves their resources, and records their answers."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import grpc
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest

from eastgate.envoy.server.access_logs import LOG_METHOD, LOG_SERVICE, AccessLogs, OnRecord, node_of_log
from eastgate.envoy.server.events import (
    Acked,
    Connected,
    Disconnected,
    Events,
    Metrics,
    OnServerEvent,
    ResourceRejected,
    Settled,
)
from eastgate.envoy.server.limits import Limits
from eastgate.envoy.server.session import (
    AuthenticatedProxy,
    AuthenticationError,
    Authenticator,
    ProxyCredentials,
    ProxySession,
    RpcContext,
    UnavailableError,
)
from eastgate.envoy.server.status import Ledger, ProxyStatus, combine
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.streams import Acknowledgement, Stream

# Waits until proxies have acknowledged everything. The last acknowledgement wakes the waiting tasks; nothing polls.


class Settling:
    """The waiting tasks. `is_settled` is called for a node, or with None for all of them."""

    def __init__(self, is_settled: Callable[[str | None], bool]) -> None:
        self._is_settled = is_settled
        self._waiting: dict[asyncio.Future[None], str | None] = {}

    async def wait(self, node: str | None, timeout: float | None) -> None:
        """Return as soon as it is settled. Raises TimeoutError."""
        if self._is_settled(node):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = node
        try:
            async with asyncio.timeout(timeout):
                await future
        finally:
            self._waiting.pop(future, None)

    def wake_settled(self) -> None:
        """Wake the tasks whose condition holds, after an acknowledgement or a disconnect."""
        if not self._waiting:
            return
        settled = {node: self._is_settled(node) for node in set(self._waiting.values())}
        for future, node in self._waiting.items():
            if settled[node] and not future.done():
                future.set_result(None)


_SERVICE: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
_METHOD: Final = "DeltaAggregatedResources"
_BEARER: Final = "bearer "
_IDLE_CONNECTION_SECONDS: Final = 60.0  # for a connection without a stream


class AdsServer:
    """Serves a store to the proxies that authenticate. Belongs to one event loop, as the store does.

    Each proxy has a name of its own; the authenticator names the node whose resources the proxy gets.
    """

    def __init__(
        self,
        store: Store,
        authenticator: Authenticator,
        metrics: Metrics | None = None,
        limits: Limits | None = None,
        on_record: OnRecord | None = None,
    ) -> None:
        self.store = store
        self._authenticator = authenticator
        self.metrics = metrics or Metrics()
        self._limits = limits or Limits()
        self._events = Events()
        self._settling = Settling(self.is_settled)
        self._sessions: dict[str, ProxySession] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._logs = AccessLogs(on_record, self.metrics) if on_record is not None else None
        self._open_logs = 0
        self._open = 0  # streams, authenticated or not
        self._server: grpc.aio.Server | None = None
        self._unwatch_revoked: Callable[[], None] | None = None

    async def start(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listen on `unix:PATH` or `HOST:PORT`; return the port.

        Raises ValueError if tokens would cross a network in clear text.
        """
        return (await self.start_all([(address, credentials)]))[0]

    async def start_all(self, addresses: Iterable[tuple[str, grpc.ServerCredentials | None]]) -> list[int]:
        """Listen on several addresses, each with credentials of its own; return their ports. See `start`."""
        server = grpc.aio.server(options=self._options())
        server.add_generic_rpc_handlers(self._handlers())
        ports = []
        for address, credentials in addresses:
            if credentials is not None:
                ports.append(server.add_secure_port(address, credentials))
            elif _is_local(address):
                ports.append(server.add_insecure_port(address))
            else:
                message = f"{address} may be reached from elsewhere, so it needs credentials: tokens are secrets"
                raise ValueError(message)
        await server.start()
        self._server = server
        self._unwatch_revoked = self._authenticator.on_revoke(self._on_revoked)
        return ports

    async def stop(self, grace: float = 1.0) -> None:
        """End all streams and stop listening. Proxies keep their resources."""
        for session in tuple(self._sessions.values()):
            session.end(grpc.StatusCode.UNAVAILABLE, "the control plane stops")
        if self._unwatch_revoked is not None:
            self._unwatch_revoked()
            self._unwatch_revoked = None
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(grace)

    async def wait_settled(self, node: str | None = None, timeout: float | None = 10.0) -> None:
        """Wait until everything in the store was accepted or rejected. Raises TimeoutError.

        With a node, this includes waiting for its proxy; without one, it is about the proxies that are connected now.
        It does not wait for resources that no proxy has asked for, such as the extensions of a rejected listener.
        """
        await self._settling.wait(node, timeout)

    def status(self, node: str) -> ProxyStatus | None:
        """Return the status of one proxy, or None if it was never connected."""
        ledger = self._ledgers.get(node)
        return ledger.snapshot(self.store, self.is_settled(node)) if ledger is not None else None

    def node_of(self, proxy: str) -> str:
        """Return the node whose resources a proxy gets, by the proxy's name."""
        ledger = self._ledgers.get(proxy)
        return ledger.resources_of if ledger is not None else proxy

    def status_of_node(self, node: str) -> ProxyStatus | None:
        """Return the status of all connected proxies of a node, or None."""
        proxies = [name for name, session in self._sessions.items() if session.stream.resources_of == node]
        return combine(node, [status for name in proxies if (status := self.status(name)) is not None])

    def summary(self, node: str) -> ProxyStatus | None:
        """Return the status of one proxy with only its rejected resources; this is cheap."""
        ledger = self._ledgers.get(node)
        return ledger.summary(self.store, self.is_settled(node)) if ledger is not None else None

    def lacking(self, node: str) -> frozenset[str]:
        """Return the policies that a proxy should newly enforce, and has not acknowledged."""
        ledger = self._ledgers.get(node)
        return ledger.lacking(self.store) if ledger is not None else frozenset()

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return the status of each proxy, in the order of their names."""
        return tuple(status for node in sorted(self._ledgers) if (status := self.status(node)) is not None)

    def listen(self, listener: OnServerEvent) -> Callable[[], None]:
        """Call `listener` with every event. The returned function ends that."""
        return self._events.listen(listener)

    def is_settled(self, node: str | None) -> bool:
        """Return whether a proxy is connected and has answered for everything; None: whether all proxies have."""
        if node is None:
            return all(
                session.stream.settled
                for session in self._sessions.values()
                if self.store.has_node(session.stream.resources_of)
            )
        session = self._sessions.get(node)
        return session is not None and session.stream.settled

    def _options(self) -> list[tuple[str, int]]:
        limits = self._limits
        return [
            ("grpc.so_reuseport", 0),  # with two servers on one port, each would get half of the proxies
            ("grpc.max_receive_message_length", limits.message),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_connection_idle_ms", int(_IDLE_CONNECTION_SECONDS * 1000)),
            ("grpc.keepalive_time_ms", int(limits.keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", int(limits.keepalive_timeout * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            # gRPC sends no keepalive ping while another ping is unanswered; the other must not wait longer
            ("grpc.http2.ping_timeout_ms", int(limits.keepalive_timeout * 1000)),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", 5000),
        ]

    def _handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        handler: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
            self._serve,
            request_deserializer=DeltaDiscoveryRequest.FromString,
            response_serializer=None,
        )
        services = [grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler})]
        if self._logs is not None:
            receiver: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
                partial(self._receive_logs, self._logs), request_deserializer=None, response_serializer=None
            )
            services.append(grpc.method_handlers_generic_handler(LOG_SERVICE, {LOG_METHOD: receiver}))
        return tuple(services)

    async def _serve(self, _requests: object, context: RpcContext) -> None:
        if self._open >= self._limits.streams:
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams")
        self._open += 1
        try:
            proxy, first = await self._authenticate(context, lambda request: str(request.node.id))
            end = await self._run(proxy, first, context)
        finally:
            self._open -= 1
        if end is not None:
            await context.abort(*end)

    async def _receive_logs(self, logs: AccessLogs, _requests: object, context: RpcContext) -> None:
        if self._open_logs >= self._limits.log_streams:
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams")
        self._open_logs += 1
        try:
            proxy, body = await self._authenticate(context, node_of_log)
            if logs.count(proxy) >= self._limits.log_streams_of_proxy:  # one proxy must not block the others
                await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams of this proxy")
            stream = logs.open(proxy)
            try:
                while body is not grpc.aio.EOF and not stream.is_revoked:
                    logs.read(stream, body)
                    body = await context.read()
            finally:
                logs.close(stream)
        finally:
            self._open_logs -= 1
        if stream.is_revoked:
            await self._refuse(context, grpc.StatusCode.UNAUTHENTICATED, "the token was revoked")

    async def _authenticate(self, context: RpcContext, node_of: Callable[[Any], str]) -> tuple[AuthenticatedProxy, Any]:
        """Return an authenticated proxy, and its first request. Refuse all others."""
        credentials = _credentials(context)
        if not self._authenticator.may_authenticate(credentials):  # refused before anything is read
            await self._refuse(context, grpc.StatusCode.UNAUTHENTICATED, "a bearer token is needed")
        try:
            first = await asyncio.wait_for(context.read(), self._limits.first_message)
        except TimeoutError:
            await self._refuse(context, grpc.StatusCode.DEADLINE_EXCEEDED, "no first message")
        if first is grpc.aio.EOF:
            await self._refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "no first message")
        try:
            return await self._authenticator.authenticate(credentials, node_of(first)), first
        except UnavailableError as error:
            await self._refuse(context, grpc.StatusCode.UNAVAILABLE, str(error))
        except AuthenticationError as error:
            await self._refuse(context, grpc.StatusCode.UNAUTHENTICATED, str(error))
        raise AssertionError("a refusal ends the call")

    async def _refuse(self, context: RpcContext, code: grpc.StatusCode, details: str) -> Any:
        self.metrics.refused(code.name.lower())
        await context.abort(code, details)

    async def _run(
        self, proxy: AuthenticatedProxy, first: Any, context: RpcContext
    ) -> tuple[grpc.StatusCode, str] | None:
        session = self._connect(proxy, context)
        unwatch = self.store.watch(proxy.node, session.notify_changed)
        try:
            return await session.run(first)
        finally:
            unwatch()
            self._disconnect(session)

    def _connect(self, proxy: AuthenticatedProxy, context: RpcContext) -> ProxySession:
        node = proxy.name
        older = self._sessions.get(node)
        if older is not None:
            older.end(grpc.StatusCode.ABORTED, "a newer stream of this node has taken over")
            self._disconnect(older)
        ledger = self._ledgers.get(node)
        if ledger is None or ledger.resources_of != proxy.node:
            ledger = self._ledgers[node] = Ledger(node, proxy.node)
        ledger.connected_since = datetime.now(UTC)
        stream = Stream(node, self.store, ledger, self._limits, proxy.node)
        session = ProxySession(
            stream,
            context,
            on_acknowledged=self._on_acknowledged,
            on_sent=self.metrics.sent,
            on_idle=self._on_idle,
        )
        self._sessions[node] = session
        self.metrics.connected.set(len(self._sessions))
        self._events.emit(Connected(node))
        return session

    def _disconnect(self, session: ProxySession) -> None:
        """Remove a session, once. A superseded session must not change the state of its node any more."""
        if self._sessions.get(session.node) is not session:
            return
        del self._sessions[session.node]
        session.stream.close()
        if (ledger := self._ledgers.get(session.node)) is not None:
            ledger.on_disconnected()
        self.metrics.connected.set(len(self._sessions))
        self._events.emit(Disconnected(session.node))
        self._settling.wake_settled()

    def _on_revoked(self, node: str) -> None:
        if self._logs is not None:
            self._logs.revoke(node)
        if (session := self._sessions.get(node)) is not None:
            session.end(grpc.StatusCode.UNAUTHENTICATED, "the token was revoked")
            self._disconnect(session)
        self._ledgers.pop(node, None)

    def _on_idle(self, session: ProxySession) -> None:
        if session.stream.settled:
            self._events.emit(Settled(session.node))
        self._settling.wake_settled()

    def _on_acknowledged(self, session: ProxySession, acknowledgement: Acknowledgement) -> None:
        node, type_url = session.node, acknowledgement.type_url
        if acknowledgement.nack:
            self.metrics.nacked(type_url)
        else:
            self.metrics.acked(type_url)
            versions = tuple(
                (name, resource.version if resource is not None else None)
                for name, resource in acknowledgement.accepted
            )
            self._observe_latency(session, acknowledgement)
            self._events.emit(Acked(node, type_url, versions))
        for name, rejection in acknowledgement.rejected:
            self.metrics.rejected(type_url, rejection)
            self._events.emit(ResourceRejected(node, type_url, name, rejection))

    def _observe_latency(self, session: ProxySession, acknowledgement: Acknowledgement) -> None:
        """Observe the duration of changes since this proxy was connected."""
        node = session.stream.resources_of
        wanted = self.store.of_type(node, acknowledgement.type_url)
        for name, resource in acknowledgement.accepted:
            changed_at = self.store.changed_at(node, (acknowledgement.type_url, name))
            current = wanted.get(name)
            if resource is None or current is None or changed_at is None or changed_at < session.stream.opened_at:
                continue
            if current.version == resource.version:
                self.metrics.took(acknowledgement.type_url, time.monotonic() - changed_at)


def _credentials(context: RpcContext) -> ProxyCredentials:
    """Return the credentials of a client. gRPC provides only verified certificates."""
    certificates = context.auth_context().get("x509_pem_cert") or ()
    certificate = next(iter(certificates), b"")
    return ProxyCredentials(_bearer_token(context), certificate, _address(context.peer()))


def _address(peer: str) -> str:
    """Return the IP address in gRPC's text for a peer, `ipv4:ADDRESS:PORT` or `ipv6:%5BADDRESS%5D:PORT`."""
    family, _, address = peer.partition(":")
    if family not in ("ipv4", "ipv6"):
        return ""
    return unquote(address).rpartition(":")[0].strip("[]")


def _bearer_token(context: RpcContext) -> str:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str) and value[: len(_BEARER)].lower() == _BEARER:
            return value[len(_BEARER) :]
    return ""


def _is_local(address: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
