"""The control plane of one replica: an authority that changes in, what proxies enforce out, and a report of it.

Whoever changes the authority holds `lock`, and calls `follow` afterwards, both in the thread of the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final

import grpc
from prometheus_client import CollectorRegistry

from eastgate.authority.authority import Authority
from eastgate.control.certificates import Certificates
from eastgate.control.closures import Closure
from eastgate.control.enforcement import Enforcement
from eastgate.control.events import MeshEvent
from eastgate.control.identity import SvidSource
from eastgate.control.metrics import MeshMetrics
from eastgate.control.sites import ProxySite
from eastgate.control.svids import ProxySvids
from eastgate.controller.proxies.authentication import PodAuthenticator
from eastgate.controller.proxies.membership import GATEWAY_PREFIX, split_proxy
from eastgate.controller.proxies.progress import ReplicaReport
from eastgate.controller.proxies.sites import Sites, proxies_of, sidecar_site
from eastgate.controller.proxies.tracking import ProgressTracker, combine
from eastgate.envoy.config.gateway_routes import AuthorizerAddress
from eastgate.envoy.server import (
    Acked,
    AdsServer,
    AuthenticatedProxy,
    Connected,
    Disconnected,
    Limits,
    Metrics,
    OnRecord,
    ProxyCredentials,
    ProxyStatus,
    ResourceKey,
    ResourceRejected,
    ResourceRejection,
    ServerEvent,
    Store,
)

_LOG = logging.getLogger(__name__)
_NO_CERTIFICATE: Final = "a workload without a certificate"
_AT_ONCE: Final = 4  # proxies whose resources are computed without a pause


class ProxyControl:
    """Serves the proxies of a cluster from one replica. Use it with `async with`, and call `start` then.

    `replica` is its name in reports. `session_key` is what all replicas share (see `SharedCa`). `site_of` makes the
    site of a pod's sidecar. With `on_record`, proxies send what they log of decisions, and it is called with each.
    """

    def __init__(
        self,
        authority: Authority,
        authenticator: PodAuthenticator,
        source: SvidSource,
        *,
        replica: str,
        session_key: str | None = None,
        authorizer: AuthorizerAddress | None = None,
        site_of: Callable[..., ProxySite | None] = sidecar_site,
        limits: Limits | None = None,
        metrics: Metrics | None = None,
        on_record: OnRecord | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.store = Store()
        preparing = _Preparing(authenticator, self._prepare)
        self.server = AdsServer(self.store, preparing, metrics or Metrics(), limits, on_record)
        self.enforcement = Enforcement(
            authority,
            self.store,
            authorizer=authorizer,
            session_key=session_key,
            on_demand=True,
            sends_logs=on_record is not None,
            on_closure=_log_closure,
        )
        self.sites = Sites(authority.world, site_of)
        self.tracker = ProgressTracker(replica, self.server, self.enforcement)
        self._authenticator = authenticator
        self._source = source
        self.mesh_metrics = MeshMetrics(CollectorRegistry())
        self._certificates = Certificates(
            source, authority.settings, self.mesh_metrics, _ignore_event, lambda svid: self._svids.renew(svid)
        )
        self._svids = ProxySvids(self.enforcement, self._certificates)
        self.has_begun = False
        """Whether what proxies enforce was computed once."""
        self._following = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._failed = asyncio.Event()
        self._failure: BaseException | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> ProxyControl:
        await self._stack.enter_async_context(self._certificates)
        self._stack.callback(self._source.watch(self._svids.follow_source))
        self._stop_logging = self.server.listen(_log_proxy)
        self._stack.callback(self.server.listen(self._on_event))
        self._stack.callback(self.server.listen(self.tracker.on_event))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_logging()  # proxies are not lost if the replica stops
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.server.stop()
        await self._stack.aclose()

    async def start(self, addresses: Iterable[tuple[str, grpc.ServerCredentials | None]]) -> list[int]:
        """Enforce the authority as it is, and listen; return the ports."""
        sites, _ = self.sites.take()
        with self.lock:
            self.enforcement.begin(self.enforcement.authority, sites.sites, sites.gateways)
        self.has_begun = True
        await self._publish_secrets(sites.gateways)
        return await self.server.start_all(addresses)

    # What changes

    async def follow(
        self, policies: Mapping[str, tuple[int, str]] | None = None, removed: Iterable[str] = ()
    ) -> frozenset[str]:
        """Enforce what has become of the authority; return the nodes that were looked at again.

        `policies` are those that have changed, by the names that resources have for them (`policy_name`), with
        generation and uid; `removed` are those that are gone.
        """
        async with self._following:
            sites, world = self.sites.take()
            with self.lock:
                touched = self.enforcement.follow(sites, world)
            gone = self._authenticator.revoke_missing() if world else frozenset[str]()
            self.tracker.apply(policies or {}, removed)
            self.tracker.forget(gone)
            self.enforcement.release(gone)
            if sites:
                served = [node for node in (*sites.sites, *sites.gateways) if self.enforcement.serves(node)]
                await self._publish_secrets(served, sites.removed)
        if self._renewing is None or self._renewing.done():
            self._renewing = self._spawn(self._renew())
        return touched

    async def _renew(self) -> None:
        """Have all proxies know the identities that there are, a few at a time: others have their turn in between."""
        goes_on = True
        while goes_on:
            async with self._following:
                with self.lock:
                    goes_on = self.enforcement.renew(_AT_ONCE)
            await asyncio.sleep(0)

    async def _prepare(self, proxy: AuthenticatedProxy) -> None:
        """Have everything that a proxy is to have in the store before its stream begins: nothing is taken from it."""
        self.sites.connect(proxy.name)
        if self.sites.has_changed:
            await self.follow()
        await self.serve(proxy.node)

    async def serve(self, node: str) -> None:
        """Publish what the proxy of a pod is to have, from now on: all of it at once, with its certificate."""
        if not self.enforcement.serves(node):
            async with self._following:
                await self._publish_secrets([node])
                with self.lock:
                    self.enforcement.serve(node)

    async def raise_failure(self) -> None:
        """Wait until a task that sends changes to proxies fails. Raises its error."""
        await self._failed.wait()
        raise RuntimeError("proxies may lack the last change") from self._failure

    def report(self) -> ReplicaReport:
        """Return what this replica has applied, and what the proxies have made of it."""
        world = self.enforcement.authority.world
        return self.tracker.report({node: proxies_of(world, node) for node in self.enforcement.nodes})

    # What proxies do

    def _on_event(self, event: ServerEvent) -> None:
        match event:
            case Connected(proxy):
                self.sites.connect(proxy)
                if self.sites.has_changed:
                    self._spawn(self._follow_connected())
            case Acked(proxy):
                self._open_ports(split_proxy(proxy))
            case ResourceRejected(proxy, type_url, name, rejection):
                fields = {**_fields_of(proxy), "resource": name, "policies": sorted(rejection.policies)}
                _LOG.warning("the proxy %s rejected %s: %s", proxy, name, rejection.message, extra=fields)
                self._reject(split_proxy(proxy), (type_url, name), rejection)

    async def _follow_connected(self) -> None:
        await self.follow()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("proxies may lack the last change", exc_info=error)
            self._failure = self._failure or error
            self._failed.set()

    def _reject(self, node: str, key: ResourceKey, rejection: ResourceRejection) -> None:
        with self.lock:
            self.enforcement.reject(node, key, rejection)

    def _open_ports(self, node: str) -> None:
        with self.lock:
            self.enforcement.accept(node, lambda: self._status(node))

    def _status(self, node: str) -> ProxyStatus | None:
        """Return the status of all proxies of a node that are connected here."""
        names = proxies_of(self.enforcement.authority.world, node)
        statuses = (self.server.status(name) for name in names)
        return combine(node, [each for each in statuses if each is not None and each.connected_since is not None])

    # Certificates

    async def _publish_secrets(self, nodes: Iterable[str], removed: Iterable[str] = ()) -> None:
        """Publish the SVIDs and bundles of nodes that are new or have another identity; release what nobody has."""
        for node, error in (await self._svids.publish(nodes, removed)).items():
            if error is not None:
                fields = {**_place_of(node), "trouble": _NO_CERTIFICATE}
                _LOG.error("%s has no certificate: %s", node, error, extra=fields)
            else:
                _LOG.info("%s has a certificate again", node, extra={**_place_of(node), "over": _NO_CERTIFICATE})


class _Preparing:
    """An authenticator that has something done for each proxy that it admits, before its stream begins."""

    def __init__(
        self, authenticator: PodAuthenticator, prepare: Callable[[AuthenticatedProxy], Awaitable[None]]
    ) -> None:
        self._authenticator = authenticator
        self._prepare = prepare

    def may_authenticate(self, credentials: ProxyCredentials) -> bool:
        return self._authenticator.may_authenticate(credentials)

    async def authenticate(self, credentials: ProxyCredentials, node_id: str) -> AuthenticatedProxy:
        proxy = await self._authenticator.authenticate(credentials, node_id)
        await self._prepare(proxy)
        return proxy

    def on_revoke(self, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._authenticator.on_revoke(callback)


def _ignore_event(_event: MeshEvent) -> None:
    """Do nothing: a certificate that cannot be renewed is counted, and logged where it is renewed."""


def _place_of(node: str) -> dict[str, object]:
    return {"workload": node, "namespace": node.removeprefix(GATEWAY_PREFIX).partition("/")[0]}


def _fields_of(proxy: str) -> dict[str, object]:
    return {"proxy": proxy, **_place_of(split_proxy(proxy))}


def _log_proxy(event: ServerEvent) -> None:
    if isinstance(event, Connected):
        _LOG.info("the proxy %s is connected", event.node, extra=_fields_of(event.node))
    elif isinstance(event, Disconnected):
        _LOG.info("the proxy %s is lost", event.node, extra=_fields_of(event.node))


def _log_closure(closure: Closure, is_closed: bool) -> None:
    fields = {**_place_of(closure.workload), "port": closure.port, "policies": closure.policies}
    if is_closed:
        _LOG.warning("%s is closed: %s", closure.where, closure.reason, extra=fields)
    else:
        _LOG.info("%s is open again", closure.where, extra=fields)
