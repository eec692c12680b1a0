"""The local mesh: every workload of some manifests behind a real Envoy on a loopback address of its own.

async with LocalMesh(read, settings, options) as mesh:
    await mesh.apply(changes)                  # enforced when this returns
    calls = await make_calls(mesh, question)   # real calls, with real mTLS
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from types import TracebackType
from typing import Any

from eastgate.authority.authority import Authority, Touched, programs_of
from eastgate.authority.changes import ChangedNames, Changes
from eastgate.authority.reading import Manifests
from eastgate.authority.sources.files import unread_at_proxies
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cluster.unread import Handling, describe_unread
from eastgate.control.authorizer.external import ServiceAddress
from eastgate.control.capturing import PortMode, changed_modes, mode_of
from eastgate.control.closures import Closure
from eastgate.control.enforcement import Enforcement
from eastgate.control.events import (
    Decided,
    Enforced,
    MeshEvent,
    MeshMetrics,
    Noted,
    NotEnforced,
    OnEvent,
    PartlyEnforced,
    Ready,
)
from eastgate.control.fleet import AuthorizerSockets, SiteChange, everything
from eastgate.control.gateways import GatewaySite
from eastgate.control.identity import EmbeddedCa, Lifetimes, SvidSource, WorkloadApi
from eastgate.control.plane import ProxyPlane
from eastgate.control.sites import ProxySite, UnixEndpoint, WaypointSite
from eastgate.dialects import HOSTS
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.server.events import Metrics as ServerMetrics
from eastgate.envoy.server.events import ResourceRejected, ServerEvent
from eastgate.envoy.server.resources import short_type
from eastgate.envoy.server.server import AdsServer
from eastgate.envoy.server.status import ResourceState
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.tokens import Tokens
from eastgate.ir import ExternalAuthorizer, at_port
from eastgate.local.guarding import foreign_domains, points_at
from eastgate.local.history import History
from eastgate.local.machine.addresses import Addresses
from eastgate.local.machine.rundir import DEFAULT_NAME, Guard, RunDir
from eastgate.local.open_requests import OpenRequestMonitor
from eastgate.local.placing import LocalPlacement, listening
from eastgate.local.proxies import Proxies, wait_until_listening
from eastgate.settings import MeshMode, Settings

_START_TIMEOUT_SECONDS = 60.0  # many Envoys on a small machine start slowly
_SETTLE_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """The options of a mesh. `apps` are applications of the user, by `namespace/name` or `namespace/name:port`."""

    name: str = DEFAULT_NAME
    network: str | None = None
    apps: Mapping[str, SocketAddress] = field(default_factory=dict)
    by_address: bool = False
    tokens: TokenIdentity | None = None
    federate: tuple[str, ...] = ()
    lifetimes: Lifetimes | None = None
    source: SvidSource | None = None


class LocalMesh:
    """A running mesh. `read` loads the manifests with the settings of the mesh.

    `check` returns the authority of the command `check` for some settings, without the changes for this machine.
    """

    def __init__(
        self,
        read: Callable[[Settings], Authority],
        settings: Settings | None = None,
        options: MeshOptions | None = None,
        on_event: OnEvent = lambda _: None,
        check: Callable[[Settings], Authority] | None = None,
    ) -> None:
        self._read = read
        self.check = check
        self.chosen_settings = settings or Settings()
        self.options = options or MeshOptions()
        self._on_event = on_event
        self._listeners: list[OnEvent] = []
        self._stack = contextlib.AsyncExitStack()
        self._changing = asyncio.Lock()
        self._reported_closures: Mapping[tuple[str, int], Closure] = {}
        self._modes: dict[str, dict[int, PortMode]] = {}
        self._identified: set[str] = set()  # who has been given a certificate
        self.history = History()
        self._reported_unread: tuple[str, ...] = ()
        self.is_behind = True
        """Whether some proxy may not enforce the authority: at first, and after a failure to enforce it."""
        self.settings = (settings or Settings()).enforced()
        self.metrics = MeshMetrics((server_metrics := ServerMetrics()).registry)
        self.store, self.tokens = Store(), Tokens()
        self.server = AdsServer(self.store, self.tokens, server_metrics)

    # Starting and stopping

    async def __aenter__(self) -> LocalMesh:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        began = time.monotonic()
        self._addresses = self._stack.enter_context(Addresses(self.options.network))
        authority = self._read(self.settings)
        self.rundir = self._stack.enter_context(RunDir.acquire(self.options.name))
        guard = self._stack.enter_context(Guard(self.rundir))
        source = self.options.source or EmbeddedCa(self.settings.trust_domain, lifetimes=self.options.lifetimes)
        if isinstance(source, WorkloadApi):
            await self._stack.enter_async_context(source)
        checks, tools = AuthorizerSockets(self.rundir.socket("authorizer"), self.rundir.socket("tools"))
        self.enforcement = Enforcement(
            authority,
            self.store,
            by_address=self.options.by_address,
            tokens=self.options.tokens,
            authorizer=AuthorizerSockets(checks, tools),
        )
        plane = ProxyPlane(self.enforcement, self.server, source, self.emit)
        self.plane = await self._stack.enter_async_context(plane)
        self.certificates = plane.certificates
        self.authorizer = await plane.answer_checks(
            self._address_of_authorizer, UnixEndpoint(checks), UnixEndpoint(tools)
        )
        self._open_requests = OpenRequestMonitor(self.enforcement, self.emit)
        self._stack.callback(self.listen(self._open_requests.on_event))
        self.proxies = Proxies(self.rundir, guard, self.tokens, self.metrics, self.emit, self._on_record)
        await self.server.start(f"unix:{self.rundir.socket('control-plane')}")
        self._stack.push_async_callback(self.server.stop, 0.2)
        self._stack.push_async_callback(self.proxies.stop)
        self._stack.callback(self.server.listen(self._on_server_event))
        self._placement = LocalPlacement(self._addresses, self.options.apps, self.proxies.built_in_app)
        await self._apply(Changes(Manifests(authority.settings)), _START_TIMEOUT_SECONDS)
        self._modes = {node: self._compute_modes(node) for node in self.sites}
        self._report_closures()
        self._report_unconsidered()
        took = (time.monotonic() - began) * 1000
        self.emit(Ready(len(self.sites), len(authority.policies), took, len(self.gateways)))

    @property
    def authority(self) -> Authority:
        """Return the authority in force."""
        return self.enforcement.authority

    @property
    def sites(self) -> Mapping[str, ProxySite]:
        """Return the proxies, by workload."""
        return self.enforcement.sites

    @property
    def gateways(self) -> Mapping[str, GatewaySite]:
        """Return the gateways, by the name of their proxy."""
        return self.enforcement.gateways

    @property
    def waypoints(self) -> Mapping[str, WaypointSite]:
        """Return the waypoints, by the name of their proxy."""
        return self.enforcement.waypoints

    def tunnel_to(self, site: ProxySite) -> tuple[str, int] | None:
        """Return where a tunnel to a workload begins: at its waypoint, or else at the proxy of its node."""
        if not site.node:
            return None
        if site.waypoint is not None:
            return site.waypoint.address.host, site.waypoint.address.port
        return site.address, site.tunnel

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of all proxies."""
        return self.enforcement.nodes

    @property
    def own_address(self) -> str:
        """Return the source address of callers outside of the mesh. It is in none of the cluster's networks."""
        return self._addresses.own

    # Changing

    async def apply(self, changes: Changes, began: float | None = None) -> Enforced | PartlyEnforced:
        """Make changes to the authority, and enforce them; return when every proxy does.

        If that fails, the mesh `is_behind`: the authority has the changes, and the next ones enforce them too.
        """
        began = time.monotonic() if began is None else began
        async with self._changing:
            updated = await self._apply(changes, _SETTLE_TIMEOUT_SECONDS)
        return self._report_enforced(began, updated, changes.names)

    def _report_enforced(
        self, began: float, touched: tuple[str, ...], changes: ChangedNames
    ) -> Enforced | PartlyEnforced:
        """Emit the result of a change. It is enforced if every touched proxy has accepted all of it."""
        self._report_closures()
        self._report_unconsidered()
        took = (time.monotonic() - began) * 1000
        units = {unit for proxy in touched for unit in self.enforcement.units_of(proxy)}
        closures = [closure for (unit, _), closure in self.enforcement.closed.items() if unit in units]
        closed = tuple(closure.where for closure in closures)
        missing = tuple(name for node in touched for name in self._list_unaccepted(node))
        guarded = tuple(each for proxy in touched for each in self.enforcement.guarded_by(proxy))
        modes = self._update_modes(tuple(dict.fromkeys(guarded)), {closure.workload for closure in closures})
        event: Enforced | PartlyEnforced = Enforced(took, touched, changes, modes)
        if closed or missing:
            event = PartlyEnforced(took, touched, changes, closed, missing, modes)
        else:
            self.metrics.enforced.observe(took / 1000)
        self.emit(event)
        return event

    def _update_modes(
        self, touched: Collection[str], closed: Collection[str]
    ) -> dict[str, tuple[PortMode | None, PortMode]]:
        """Return the changed modes, without those of workloads with closed ports."""
        before, self._modes = self._modes, {node: modes for node, modes in self._modes.items() if node in self.sites}
        self._modes |= {node: self._compute_modes(node) for node in touched}
        changed: dict[str, tuple[PortMode | None, PortMode]] = {}
        for node in touched:
            if node not in closed:
                changed |= changed_modes(node, before.get(node), self._modes[node])
        return changed

    def _compute_modes(self, node: str) -> dict[int, PortMode]:
        if node not in self.sites:
            return {}
        layers = [layer for point in points_at(node) for layer in programs_of(self.authority).program(point).layers]
        return {port: mode_of(at_port(layer, port) for layer in layers) for port in self.sites[node].ports}

    def _list_unaccepted(self, node: str) -> Iterator[str]:
        """Yield the resources that a proxy has rejected."""
        status = self.server.status(node)
        for resource in status.resources if status is not None else ():
            if resource.state is ResourceState.REJECTED:
                yield f"{node} {short_type(resource.type_url)} {resource.name}"

    async def _apply(self, changes: Changes, timeout: float) -> tuple[str, ...]:
        """Make changes, and enforce the authority; return the proxies with new resources.

        Nothing else runs between the two steps: a proxy is never used for a workload that is gone.
        """
        before = {node: self.store.revision(node) for node in self.nodes}
        with self.plane.lock:
            touched = self.authority.apply(changes)
            was_behind, self.is_behind = self.is_behind, True
            if was_behind:
                touched |= everything(self.authority.world)
            different = SiteChange()
            if touched.change or self.settings.mesh_mode is MeshMode.AMBIENT:  # a policy may need a waypoint
                placed_sites, placed = self._placement.place(self.authority, prove=self.options.by_address)
                different = self.enforcement.changes_to(
                    placed_sites.sites, placed_sites.gateways, placed_sites.waypoints
                )
                touched |= Touched(placed.workloads, placed)
            self.plane.follow(different, touched)
            self.enforcement.renew()
        self._federate(point for point in touched.points if isinstance(point, str))
        updated = await self._run(before, self.nodes if was_behind else different.nodes, timeout)
        self.is_behind = False
        return updated

    def _federate(self, workloads: Iterable[str]) -> None:
        """Trust stand-ins for the CAs of the trust domains in policies of these workloads and of Gateways."""
        self.certificates.federate([*self.options.federate, *foreign_domains(self.authority, workloads)])

    async def _run(self, before: Mapping[str, int], new: Collection[str], timeout: float) -> tuple[str, ...]:
        """Run the current proxies, with their certificates; return those with new resources.

        `before` are the earlier revisions of the proxies' resources. It waits for the `new` proxies and their ports,
        even if they have no new resources: they may not have answered before.
        """
        gone = {*self._identified} - {*self.sites, *self.gateways, *self.waypoints}
        self._identified = {*self.sites, *self.gateways, *self.waypoints}
        asked = await self.plane.publish_secrets(sorted(self._identified), gone, anew=new)
        for error in filter(None, asked.values()):
            raise error
        nodes = self.nodes
        ports = ((key, port) for key, site in self.sites.items() for port in site.ports)
        await self.proxies.run(nodes, (each for each in ports if self._placement.own_app(*each) is None))
        updated = tuple(sorted(node for node in nodes if self.store.revision(node) != before.get(node)))
        await asyncio.gather(*(self.server.wait_settled(node, timeout) for node in {*updated, *new}))
        closed = self.enforcement.closed
        wanted = {
            address
            for node, workload, port, address in listening(self.sites, self.gateways, self.waypoints)
            if node in new and ((workload, port) not in closed or closed[workload, port].parts)
        }
        await wait_until_listening(wanted, timeout)
        return updated

    def _address_of_authorizer(self, authorizer: ExternalAuthorizer) -> ServiceAddress | None:
        """Return the address of an external authorizer: the application of a pod behind its Service."""
        world = self.authority.world
        service = world.services.get(f"{authorizer.namespace}/{authorizer.service}")
        if service is None:
            return None
        for key in sorted(world.pods_of(f"{service.namespace}/{service.name}") & self.sites.keys()):
            for number in world.target_ports(service, authorizer.port, world.workloads[key]):
                app = self.sites[key].apps.get(number)
                if app is not None and app.port:  # a built-in application answers every request, and decides nothing
                    return ServiceAddress(app.host, app.port)
        return None

    # Watching

    def emit(self, event: MeshEvent) -> None:
        """Pass an event to all listeners."""
        self._on_event(event)
        for listener in tuple(self._listeners):
            listener(event)

    def listen(self, listener: OnEvent) -> Callable[[], None]:
        """Call `listener` with every event. The returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _on_record(self, record: dict[str, Any]) -> None:
        self._open_requests.on_record(record)
        observation = self.history.read(record)
        if observation is not None:
            self.metrics.count(observation)
            self.emit(Decided(observation, self.history.add(observation)))

    def _on_server_event(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceRejected):
            what = f"the proxy of {event.node} rejected the {short_type(event.type_url)} {event.name}"
            self.emit(Noted(printable(f"{what}: {event.rejection.message}"), trouble=True))
            self._report_closures()

    def _report_closures(self) -> None:
        """Emit NotEnforced for ports that were closed, or whose reason changed, since the last report."""
        closed = dict(self.enforcement.closed)
        self.metrics.not_enforced(closed.values())
        for port_key, closure in closed.items():
            if self._reported_closures.get(port_key) != closure:
                self.emit(NotEnforced(closure.workload, closure.port, closure.policies, str(closure)))
        self._reported_closures = closed

    def _report_unconsidered(self) -> None:
        """Emit a note for each kind of unread and so unenforced objects, if it has changed."""
        matches = unread_at_proxies(self.authority.world, self.authority.unread_objects).matches
        lines = (
            tuple(describe_unread(each.unread for each in matches))
            if self.authority.unread is not Handling.IGNORE
            else ()
        )
        if hosts := sorted(map(str, programs_of(self.authority).host_refs)):
            what = f"an {HOSTS.kind} is" if len(hosts) == 1 else f"{len(hosts)} {HOSTS.kind}s are"
            lines += (
                f"{what} for the proxies that ask {HOSTS.authorizer}, and not enforced by these: {', '.join(hosts)}",
            )
        for line in lines:
            if line not in self._reported_unread:
                self.emit(Noted(printable(line), trouble=True))
        self._reported_unread = lines
