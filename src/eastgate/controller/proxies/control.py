"""The control plane of one replica: it follows a changing authority, configures proxies, and reports their progress.

To change the authority, hold `lock` and call `follow` afterwards, both in the thread of the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Final

import grpc

from eastgate.authority.authority import Authority, Touched
from eastgate.cluster import Change
from eastgate.control.closures import Closure
from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import everything
from eastgate.control.identity import SvidSource
from eastgate.control.plane import ProxyPlane
from eastgate.control.sites import ProxySite
from eastgate.controller.proxies.progress import ReplicaReport
from eastgate.controller.proxies.sites import Sites, proxies_of, sidecar_site
from eastgate.controller.proxies.token_reviews import PodAuthenticator
from eastgate.controller.proxies.tracking import GATEWAY_PREFIX, ProgressTracker, split_proxy
from eastgate.envoy.config.gateway_routes import AuthorizerAddress
from eastgate.envoy.server import (
    AdsServer,
    AuthenticatedProxy,
    Connected,
    Disconnected,
    Metrics,
    OnRecord,
    ProxyCredentials,
    ResourceRejected,
    ServerEvent,
    Store,
)

_LOG = logging.getLogger(__name__)
_NO_CERTIFICATE: Final = "a workload without a certificate"
_RENEWAL_BATCH: Final = 4  # proxies that are renewed without a pause
_NOTHING: Final = Touched(frozenset(), Change())


class ProxyControl:
    """Serves the proxies of a cluster from one replica. Use it with `async with`, and call `start` then.

    `replica` is its name in reports. `session_key` is the key that all replicas share (see `SharedCa`). `site_of`
    returns the site of a pod's sidecar. With `on_record`, proxies send their logs of decisions, and it is called with
    each record.
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
        metrics: Metrics | None = None,
        on_record: OnRecord | None = None,
    ) -> None:
        self.store = Store()
        preparing = _PreparingAuthenticator(authenticator, self._prepare)
        self.server = AdsServer(self.store, preparing, metrics or Metrics(), on_record=on_record)
        self.enforcement = Enforcement(
            authority,
            self.store,
            authorizer=authorizer,
            session_key=session_key,
            on_demand=True,
            sends_logs=on_record is not None,
            on_closure=_log_closure,
        )
        self.plane = ProxyPlane(self.enforcement, self.server, source)
        self.lock = self.plane.lock
        self.sites = Sites(authority.world, site_of)
        self.tracker = ProgressTracker(replica, self.server, self.enforcement)
        self._authenticator = authenticator
        self.has_begun = False
        """Whether the resources of proxies were computed once."""
        self._touched = everything(authority.world)  # changes that are not enforced yet
        self._following = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._failed = asyncio.Event()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> ProxyControl:
        await self.plane.__aenter__()
        self._stop_logging = self.server.listen(_log_proxy)
        self.server.listen(self._on_event)
        self.server.listen(self.tracker.on_event)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_logging()  # when the replica stops, proxies do not count as lost
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.server.stop()
        await self.plane.__aexit__(kind, error, trace)

    async def start(
        self,
        addresses: Iterable[tuple[str, grpc.ServerCredentials | None]],
        policies: Mapping[str, tuple[int, str]] | None = None,
    ) -> list[int]:
        """Enforce the current authority with these policies (see `follow`), and listen; return the ports."""
        await self.follow(policies=policies)
        self.has_begun = True
        return await self.server.start_all(addresses)

    # What changes

    async def follow(
        self,
        touched: Touched = _NOTHING,
        policies: Mapping[str, tuple[int, str]] | None = None,
        removed: Iterable[str] = (),
    ) -> frozenset[str]:
        """Enforce the changed authority; return the nodes whose resources were computed again.

        `policies` are the changed policies by their name in resources (`policy_name`), with generation and uid.
        `removed` are the removed ones.
        """
        self._touched |= touched
        async with self._following:
            touched, self._touched = self._touched, _NOTHING
            sites = self.sites.take(touched.change)
            nodes = self.plane.follow(sites, touched)
            gone = self._authenticator.revoke_missing() if touched.change else frozenset[str]()
            self.tracker.apply(policies or {}, removed)
            self.tracker.forget(gone)
            self.enforcement.release(gone)
            if sites:
                served = [node for node in (*sites.sites, *sites.gateways) if self.enforcement.serves(node)]
                await self._publish_secrets(served, sites.removed)
        if self._renewing is None or self._renewing.done():
            self._renewing = self._spawn(self._renew())
        return nodes

    async def _renew(self) -> None:
        """Renew the known identities of all proxies, a few at a time, so that other work runs in between."""
        has_more = True
        while has_more:
            async with self._following:
                with self.lock:
                    has_more = self.enforcement.renew(_RENEWAL_BATCH)
            await asyncio.sleep(0)

    async def _prepare(self, proxy: AuthenticatedProxy) -> None:
        """Put all resources of a proxy into the store before its stream begins, so that it loses none."""
        self.sites.connect(proxy.name)
        if self.sites.has_new or self._touched.change:
            await self.follow()
        await self.serve(proxy.node)

    async def serve(self, node: str) -> None:
        """Publish the resources of a pod's proxy from now on, at once and with its certificate."""
        if not self.enforcement.serves(node):
            async with self._following:
                await self._publish_secrets([node])
                with self.lock:
                    self.enforcement.serve(node)

    async def raise_failure(self) -> None:
        """Wait until a task that sends changes to proxies fails, and raise its error."""
        await self._failed.wait()
        raise RuntimeError("proxies may lack the last change") from self._failure

    def report(self) -> ReplicaReport:
        """Return the report of this replica: its applied policies, and the progress of the proxies."""
        world = self.enforcement.authority.world
        return self.tracker.report({node: proxies_of(world, node) for node in self.enforcement.nodes})

    # Proxies

    def _on_event(self, event: ServerEvent) -> None:
        if isinstance(event, Connected):
            self.sites.connect(event.node)
            if self.sites.has_new:
                self._spawn(self._follow_connected())

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

    async def _publish_secrets(self, nodes: Iterable[str], removed: Iterable[str] = ()) -> None:
        """Publish the SVIDs and bundles of nodes that are new or have another identity; release unused ones."""
        for node, error in (await self.plane.publish_secrets(nodes, removed)).items():
            if error is not None:
                fields = {**_place_of(node), "trouble": _NO_CERTIFICATE}
                _LOG.error("%s has no certificate: %s", node, error, extra=fields)
            else:
                _LOG.info("%s has a certificate again", node, extra={**_place_of(node), "over": _NO_CERTIFICATE})


class _PreparingAuthenticator:
    """An authenticator that awaits `prepare` for each admitted proxy, before its stream begins."""

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


def _place_of(node: str) -> dict[str, object]:
    return {"workload": node, "namespace": node.removeprefix(GATEWAY_PREFIX).partition("/")[0]}


def _fields_of(proxy: str) -> dict[str, object]:
    return {"proxy": proxy, **_place_of(split_proxy(proxy))}


def _log_proxy(event: ServerEvent) -> None:
    if isinstance(event, Connected):
        _LOG.info("the proxy %s is connected", event.node, extra=_fields_of(event.node))
    elif isinstance(event, Disconnected):
        _LOG.info("the proxy %s is lost", event.node, extra=_fields_of(event.node))
    elif isinstance(event, ResourceRejected):
        proxy, name, rejection = event.node, event.name, event.rejection
        fields = {**_fields_of(proxy), "resource": name, "policies": sorted(rejection.policies)}
        _LOG.warning("the proxy %s rejected %s: %s", proxy, name, rejection.message, extra=fields)


def _log_closure(closure: Closure, is_closed: bool) -> None:
    fields = {**_place_of(closure.workload), "port": closure.port, "policies": closure.policies}
    if is_closed:
        _LOG.warning("%s is closed: %s", closure.where, closure.reason, extra=fields)
    else:
        _LOG.info("%s is open again", closure.where, extra=fields)
