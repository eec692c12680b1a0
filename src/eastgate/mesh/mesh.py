"""The local mesh: every workload of some manifests behind a real Envoy on a loopback address of its own.

async with LocalMesh(read, settings, options) as mesh:
    await mesh.apply(another)                  # enforced when this returns
    calls = await make_calls(mesh, question)   # real calls, with real mTLS
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from eastgate.authority import Authority
from eastgate.identity import BundlesChanged, EmbeddedAuthority, Lifetimes, Svid, SvidSource, WorkloadApi
from eastgate.mesh.certificates import Certificates
from eastgate.mesh.closures import Closure
from eastgate.mesh.enforcement import Enforcement
from eastgate.mesh.events import Changes, Decided, Enforced, Event, Noted, NotEnforced, OnEvent, PartlyEnforced, Ready
from eastgate.mesh.history import History
from eastgate.mesh.listening import until_listening
from eastgate.mesh.local.addresses import Addresses
from eastgate.mesh.local.guard import Guard
from eastgate.mesh.local.rundir import DEFAULT_NAME, RunDir
from eastgate.mesh.metrics import MeshMetrics
from eastgate.mesh.modes import Mode, changed_modes, mode_of
from eastgate.mesh.open_requests import OpenRequests
from eastgate.mesh.proxies import Proxies
from eastgate.mesh.records import UNREACHABLE, observe
from eastgate.mesh.sites import Site, identity_of, ports_of
from eastgate.policy import Is, OneOf, at_port, atoms, rules_of
from eastgate.policy.attributes import IDENTITY, MESH_NAME
from eastgate.policy.spiffe import trust_domain_of
from eastgate.printable import printable
from eastgate.settings import Settings
from eastgate.unconsidered import Callers, Handling, Unconsidered, UnreadObjects, counted
from eastgate.world import World
from eastgate.xds.clusters import Address
from eastgate.xds.server.events import Acked, Rejected
from eastgate.xds.server.events import Event as ServerEvent
from eastgate.xds.server.metrics import Metrics as ServerMetrics
from eastgate.xds.server.resources import short
from eastgate.xds.server.server import AdsServer
from eastgate.xds.server.status import Rejection, ResourceState
from eastgate.xds.server.store import Store
from eastgate.xds.server.tokens import Tokens
from eastgate.xds.tokens import TokenIdentity

__all__ = ["LocalMesh", "MeshOptions", "unread_at_workloads"]

_START = 60.0  # seconds; many Envoys on a small machine take their time
_SETTLE = 30.0
_NO_CHANGES = Changes()
_REMEMBERED = 100  # connections that no application took


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """How a mesh is run. `apps` are applications of the user, by `namespace/name` or `namespace/name:port`."""

    name: str = DEFAULT_NAME
    network: str | None = None
    apps: Mapping[str, Address] = field(default_factory=dict)
    by_address: bool = False
    tokens: TokenIdentity | None = None
    federate: tuple[str, ...] = ()
    lifetimes: Lifetimes | None = None
    source: SvidSource | None = None


class LocalMesh:
    """A running mesh. `read` gives the authority on the manifests, for the settings that hold in the mesh."""

    def __init__(
        self,
        read: Callable[[Settings], Authority],
        settings: Settings | None = None,
        options: MeshOptions | None = None,
        on_event: OnEvent = lambda _: None,
    ) -> None:
        self._read = read
        self.options = options or MeshOptions()
        self._on_event = on_event
        self._listeners: list[OnEvent] = []
        self._stack = contextlib.AsyncExitStack()
        self._changing = asyncio.Lock()
        self._told: Mapping[tuple[str, int], Closure] = {}
        self._modes: dict[str, dict[int, Mode]] = {}
        self.history = History()
        self._unreachable: deque[object] = deque(maxlen=_REMEMBERED)
        self._left_out: tuple[str, ...] = ()
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
        source = self.options.source or EmbeddedAuthority(self.settings.trust_domain, lifetimes=self.options.lifetimes)
        if isinstance(source, WorkloadApi):
            await self._stack.enter_async_context(source)
        self.certificates = await self._stack.enter_async_context(
            Certificates(source, self.settings, self.metrics, self.tell, self._renewed)
        )
        self._stack.callback(source.watch(self._source_changed))
        self.enforcement = Enforcement(
            authority, self.store, by_address=self.options.by_address, tokens=self.options.tokens
        )
        self._open_requests = OpenRequests(self.enforcement, self.tell)
        self._stack.callback(self.listen(self._open_requests.heard))
        self.proxies = Proxies(self.rundir, guard, self.tokens, self.metrics, self.tell, self._record)
        await self.server.start(f"unix:{self.rundir.socket('control-plane')}")
        self._stack.push_async_callback(self.server.stop, 0.2)
        self._stack.push_async_callback(self.proxies.stop)
        self._stack.callback(self.server.listen(self._heard))
        await self._run(authority, _START)
        self._modes = {node: self._modes_at(node) for node in self.sites}
        self._tell_closures()
        self.tell_unconsidered(authority.unread_objects)
        self.tell(Ready(len(self.sites), len(authority.policies), (time.monotonic() - began) * 1000))

    @property
    def authority(self) -> Authority:
        """What is in force."""
        return self.enforcement.authority

    @property
    def sites(self) -> Mapping[str, Site]:
        """Where the proxies stand."""
        return self.enforcement.sites

    @property
    def own_address(self) -> str:
        """From where callers come that are no workload of the mesh: it is in none of the cluster's networks."""
        return self._addresses.own

    # Changing

    async def apply(
        self, authority: Authority, began: float | None = None, changes: Changes = _NO_CHANGES
    ) -> Enforced | PartlyEnforced:
        """Enforce this instead; returns when every proxy does. `changes` says what differs, for whoever watches."""
        began = time.monotonic() if began is None else began
        async with self._changing:
            before = {node: self.store.revision(node) for node in self.sites}
            await self._run(authority, _SETTLE)
            touched = tuple(sorted(n for n in self.sites if self.store.revision(n) != before.get(n)))
        return self._enforced(began, touched, changes)

    async def change(
        self,
        change: Callable[[Enforcement], frozenset[str]],
        began: float | None = None,
        changes: Changes = _NO_CHANGES,
    ) -> Enforced | PartlyEnforced:
        """Enforce a change of some policies; returns when every proxy does. `changes` names them."""
        began = time.monotonic() if began is None else began
        async with self._changing:
            before = {node: self.store.revision(node) for node in self.sites}
            touched = change(self.enforcement)
            self.certificates.federate(_foreign_domains(self.authority, touched))
            told = tuple(sorted(node for node in self.sites if self.store.revision(node) != before[node]))
            await self._settled(told, _SETTLE)
        return self._enforced(began, told, changes)

    def _enforced(self, began: float, touched: tuple[str, ...], changes: Changes) -> Enforced | PartlyEnforced:
        """Tell what came of a change. It is enforced if every proxy that it concerns has accepted all of it."""
        self._tell_closures()
        self.tell_unconsidered(self.authority.unread_objects)
        took = (time.monotonic() - began) * 1000
        closures = [one for one in self.enforcement.closed.values() if one.workload in touched]
        closed = tuple(one.where for one in closures)
        missing = tuple(name for node in touched for name in self._missing(node))
        modes = self._changed_modes(touched, {one.workload for one in closures})
        found: Enforced | PartlyEnforced = Enforced(took, touched, changes, modes)
        if closed or missing:
            found = PartlyEnforced(took, touched, changes, closed, missing, modes)
        else:
            self.metrics.enforced.observe(took / 1000)
        self.tell(found)
        return found

    def _changed_modes(self, touched: Collection[str], closed: Collection[str]) -> dict[str, tuple[Mode | None, Mode]]:
        """Return the modes that are others than before. Of a workload that is not as it should be nothing is said."""
        before, self._modes = self._modes, {node: modes for node, modes in self._modes.items() if node in self.sites}
        self._modes |= {node: self._modes_at(node) for node in touched}
        found: dict[str, tuple[Mode | None, Mode]] = {}
        for node in touched:
            if node not in closed:
                found |= changed_modes(node, before.get(node), self._modes[node])
        return found

    def _modes_at(self, node: str) -> dict[int, Mode]:
        layers = self.authority.engine.program(node).layers
        return {port: mode_of(at_port(layer, port) for layer in layers) for port in self.sites[node].ports}

    def _missing(self, node: str) -> Iterator[str]:
        """Yield what a proxy has rejected, or may have accepted without looking at it."""
        status = self.server.status(node)
        for one in status.resources if status is not None else ():
            if one.state is ResourceState.REJECTED or not one.confirmed:
                yield f"{node} {short(one.type_url)} {one.name}"

    async def _run(self, authority: Authority, timeout: float) -> None:
        world = authority.world
        found = {key: identity_of(one, self.settings) for key, one in world.workloads.items()}
        identities = {key: identity for key, identity in found.items() if identity is not None}
        addresses = self._addresses.assign(identities)
        authority.place(addresses)
        sites = {}
        for key in identities:
            ports = self._addresses.bind_ports(ports_of(world, world.workloads[key]))
            apps = {port: await self._app(key, port) for port in ports}
            bound = {port: one.port for port, one in ports.items()}
            named = any(one.partition(":")[0] == key for one in self.options.apps)
            sites[key] = Site(key, addresses[key], bound, apps, calls_out=named)
        self.certificates.federate([*self.options.federate, *_foreign_domains(authority, world.workloads)])
        held = {identity_of(self.authority.world.workloads[key], self.settings) for key in self.sites}
        self.enforcement.begin(authority, sites)
        for gone in held - set(identities.values()) - {None}:
            await self.certificates.release(str(gone))
        for key, identity in identities.items():
            self.enforcement.put_svid(key, await self.certificates.hold(identity))
            self.enforcement.put_trust(key, self.certificates.bundles)
        await self.proxies.run(sites)
        await self._settled(sites, timeout)
        closed = self.enforcement.closed
        wanted = {
            (site.address, bound)
            for node, site in sites.items()
            for port, bound in site.ports.items()
            if (node, port) not in closed
        }
        await until_listening(wanted, timeout)

    async def _settled(self, nodes: Collection[str], timeout: float) -> None:
        """Wait until these proxies have answered for everything, ports that open again included."""
        await asyncio.gather(*(self.server.settled(node, timeout) for node in nodes))
        doubted = [node for node in nodes if self._close_doubted(node)]
        await asyncio.gather(*(self.server.settled(node, timeout) for node in doubted))
        opened = [node for node in nodes if self._open_ports(node)]
        await asyncio.gather(*(self.server.settled(node, timeout) for node in opened))

    def _close_doubted(self, node: str) -> bool:
        """Close what a proxy may have accepted without looking at it: what it had before may still be in force."""
        status = self.server.status(node)
        wanted = {one.key: one for one in self.store.resources(node)}
        found = [
            wanted[one.type_url, one.name]
            for one in (status.resources if status is not None else ())
            if one.state is ResourceState.ACCEPTED and not one.confirmed and (one.type_url, one.name) in wanted
        ]
        for one in found:
            said = "it may have been accepted without a look at it"
            self.enforcement.reject(node, one.key, Rejection(one.version, said, one.policies, datetime.now(UTC)))
        return bool(found)

    def _open_ports(self, node: str) -> bool:
        return self.enforcement.accept(node, lambda: self.server.status(node))

    async def _app(self, workload: str, port: int) -> Address:
        named = self.options.apps.get(f"{workload}:{port}") or self.options.apps.get(workload)
        return named if named is not None else await self.proxies.app(workload, port)

    # Watching

    def tell(self, event: Event) -> None:
        """Something has happened."""
        self._on_event(event)
        for listener in tuple(self._listeners):
            listener(event)

    def listen(self, listener: OnEvent) -> Callable[[], None]:
        """Be told of everything that happens, until the function that this returns is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _record(self, record: dict[str, Any]) -> None:
        self._open_requests.record(record)
        seen = observe(record) if not self._is_told(record) else None
        if seen is not None:
            self.metrics.count(seen)
            self.tell(Decided(seen, self.history.add(seen)))

    def _is_told(self, record: Mapping[str, Any]) -> bool:
        """Whether this is the end of a connection that no application took, which was told of before."""
        connection = tuple(record.get(key) for key in ("workload", "port", "source"))
        if record.get("eastgate") == UNREACHABLE:
            self._unreachable.append(connection)
        elif record.get("eastgate") == "connection" and connection in self._unreachable:
            self._unreachable.remove(connection)
            return True
        return False

    def _heard(self, event: ServerEvent) -> None:
        if isinstance(event, Acked):
            self._open_ports(event.node)
        elif isinstance(event, Rejected):
            what = f"the proxy of {event.node} rejected the {short(event.type_url)} {event.name}"
            self.tell(Noted(printable(f"{what}: {event.rejection.message}"), trouble=True))
            self.enforcement.reject(event.node, (event.type_url, event.name), event.rejection)
            self._tell_closures()

    def _tell_closures(self) -> None:
        """Tell of ports that are closed since, or for another reason."""
        closed = dict(self.enforcement.closed)
        self.metrics.not_enforced(closed.values())
        for place, closure in closed.items():
            if self._told.get(place) != closure:
                self.tell(NotEnforced(closure.workload, closure.port, closure.policies, str(closure)))
        self._told = closed

    def tell_unconsidered(self, unread: UnreadObjects) -> None:
        """Tell what is not read and so not enforced, where that has changed."""
        self.authority.unread_objects = unread
        met = unread_at_workloads(self.authority.world, unread).met
        lines = tuple(counted(one.unread for one in met)) if self.authority.unread is not Handling.IGNORE else ()
        for line in lines:
            if line not in self._left_out:
                self.tell(Noted(printable(line), trouble=True))
        self._left_out = lines

    # Certificates

    def _renewed(self, svid: Svid) -> None:
        for key in self.sites:
            if identity_of(self.authority.world.workloads[key], self.settings) == svid.identity:
                self.enforcement.put_svid(key, svid)
        self.tell(Noted(f"the certificate of {svid.identity} was renewed"))

    def _source_changed(self, change: object) -> None:
        if isinstance(change, BundlesChanged):
            for key in self.sites:
                self.enforcement.put_trust(key, self.certificates.bundles)


def unread_at_workloads(world: World, unread: UnreadObjects) -> Unconsidered:
    """What is not read and could change what is enforced at workloads."""
    return unread.about(world.workloads, Callers(anybody=True), world)


def _foreign_domains(authority: Authority, workloads: Iterable[str]) -> set[str]:
    """The trust domains of others that the policies of these workloads name."""
    found: set[str] = set()
    for workload in workloads:
        for layer in authority.engine.program(workload).layers:
            rules = (rule for chain in layer.chains for stage in chain.stages for rule in rules_of(stage))
            for atom in (atom for rule in rules for atom in atoms(rule.when) if isinstance(atom, Is)):
                if atom.attribute in (IDENTITY, MESH_NAME) and isinstance(atom.matcher, OneOf):
                    named = (str(value) for value in atom.matcher.values)
                    found |= {trust_domain_of(one) for one in named if one.startswith("spiffe://")}
    return found - {authority.settings.trust_domain}
