"""The sites of proxies: the address of each workload, its ports, and the application behind each port."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, cast

from eastgate.basics.records import dataclass
from eastgate.cluster import Change, Service, Workload, World, service_account_id
from eastgate.control.identity import IdentityError, TrustBundles, verify_connection
from eastgate.envoy.config.clusters import SocketAddress, TunnelEnd, Upstream, every_authority
from eastgate.settings import Settings

# The endpoints of the authorizer of gateways: a socket that only this user can open, or a TLS port.


_LOG = logging.getLogger(__name__)
_HANDSHAKE_SECONDS = 10.0
_WAYPOINT_ACCOUNT = "eastgate-waypoint"

ProtocolFactory = Callable[[], asyncio.Protocol]


class AuthorizerEndpoint(Protocol):
    """An endpoint of the authorizer."""

    async def listen(self, protocol: ProtocolFactory) -> asyncio.Server:
        """Listen on the running loop. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class UnixEndpoint:
    """A unix socket that only this user can open."""

    path: str

    async def listen(self, protocol: ProtocolFactory) -> asyncio.Server:
        """Listen on the running loop. Raises OSError."""
        server = await asyncio.get_running_loop().create_unix_server(protocol, self.path)
        Path(self.path).chmod(0o600)
        return server


@dataclass(frozen=True, slots=True)
class TlsEndpoint:
    """A TLS port for peers with an SVID.

    `context` and `bundles` are called for each connection, since certificates change during the life of the listener.
    `admits` decides by the SPIFFE ID of a peer. A connection of another peer ends before anything is read.
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
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
        )

    def _choose_context(self, connection: ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext) -> int | None:
        try:
            connection.context = self.context()
        except IdentityError as error:
            _LOG.error("a connection is refused: %s", error, extra={"port": self.port})
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        return None

    def identify(self, connection: ssl.SSLObject | None) -> str | None:
        """Return the identity of an admitted peer, or None."""
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
    """A protocol that checks the peer of a new connection, and hands an admitted one to another protocol."""

    def __init__(self, endpoint: TlsEndpoint, protocol: ProtocolFactory) -> None:
        self._endpoint = endpoint
        self._protocol = protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # transports of other event loops need not be subclasses
        if self._endpoint.identify(stream.get_extra_info("ssl_object")) is None:
            stream.abort()
            return
        protocol = self._protocol()
        stream.set_protocol(protocol)
        protocol.connection_made(stream)


@dataclass(frozen=True, slots=True)
class ProxySite:
    """The proxy of a workload. `ports` maps each port of the workload to the port that is bound for it.

    `calls_out`: the proxy has an outbound listener. A process that can reach this listener acts as the workload, so it
    exists only if the workload has an application of the user. `in_pod`: the proxy runs in the network of the workload,
    where no other workload reaches loopback, and always calls from the address of the workload.

    `captured`: the pod redirects all its connections to the proxy, and `ports` are only the known ports. `addresses`
    are all addresses of the pod; `address` is the first. The pod does not redirect the `uncaptured` ports.

    `node`, in an ambient mesh: the proxy of its node, which takes tunnels for it at the port `tunnel`; `waypoint`: the
    only proxy that these may come from, if it has one.
    """

    workload: str
    address: str
    ports: Mapping[int, int]
    apps: Mapping[int, SocketAddress]
    calls_out: bool = False
    in_pod: bool = False
    captured: bool = False
    addresses: tuple[str, ...] = ()
    uncaptured: frozenset[int] = frozenset()
    node: str = ""
    tunnel: int = 0
    waypoint: WaypointEntrance | None = None

    @property
    def proxy(self) -> str:
        """Return the name of the proxy that stands before the workload: its sidecar, or that of its node."""
        return self.node or self.workload


@dataclass(frozen=True, slots=True)
class WaypointEntrance:
    """A waypoint: the name of its proxy, the address where tunnels arrive, and its SPIFFE ID."""

    name: str
    address: SocketAddress
    identity: str


@dataclass(frozen=True, slots=True)
class WaypointSite:
    """The proxy that is a waypoint, and the workloads that it serves."""

    waypoint: WaypointEntrance
    workloads: tuple[str, ...]


def tunnel_end_of(site: ProxySite, port: int, identity: str) -> TunnelEnd:
    """Return where a tunnel to a port begins, for callers: at the waypoint, or else at the proxy of the node."""
    (called,) = every_authority([site.address], site.ports[port])
    if site.waypoint is not None:
        return TunnelEnd(called, site.waypoint.address, site.waypoint.identity)
    return TunnelEnd(called, SocketAddress(site.address, site.tunnel), identity)


def waypoint_identity(trust_domain: str, namespace: str) -> str:
    """Return the SPIFFE ID of the waypoint of a namespace."""
    return service_account_id(trust_domain, namespace, _WAYPOINT_ACCOUNT)


def identity_of(workload: Workload, settings: Settings) -> str | None:
    """Return the SPIFFE ID of a workload, or None for an external workload without one."""
    return workload.identity_in(settings.trust_domain)


class KnownIdentities:
    """The identities of all workloads and of all declared ServiceAccounts."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._settings = settings
        self._of_workloads = {key: identity_of(workload, settings) for key, workload in world.workloads.items()}
        self._counts = Counter(self._of_workloads.values())
        self.all = self._collect()

    def update(self, change: Change) -> bool:
        """Update the identities after a change of the world; return whether the set of identities changed."""
        before = frozenset(self._counts)
        for key in change.workloads:
            self._count(self._of_workloads.pop(key, None), -1)
            workload = self._world.workloads.get(key)
            if workload is not None:
                identity = self._of_workloads[key] = identity_of(workload, self._settings)
                self._count(identity, 1)
        if before == self._counts.keys() and not any(changed.kind == "ServiceAccount" for changed in change.objects):
            return False
        known, self.all = self.all, self._collect()
        return known != self.all

    def _count(self, identity: str | None, number: int) -> None:
        if identity is not None:
            self._counts[identity] += number
            if not self._counts[identity]:
                del self._counts[identity]

    def _collect(self) -> frozenset[str]:
        accounts = {
            service_account_id(self._settings.trust_domain, *key.split("/")) for key in self._world.service_accounts
        }
        return frozenset(accounts | {identity for identity in self._counts if identity is not None})


def ports_of(world: World, workload: Workload) -> frozenset[int]:
    """Return the TCP ports that a workload declares, and the target ports of its Services."""
    ports = {port.number for port in workload.ports if port.protocol == "TCP"}
    for key in world.services_of(workload.key):
        ports |= set(world.target_ports(world.services[key], None, workload))
    return frozenset(ports)


def upstreams_of_service(
    service: Service, world: World, sites: Mapping[str, ProxySite], settings: Settings, namespace: str
) -> Iterator[Upstream]:
    """Yield every port of a Service with the host names that callers of a namespace use."""
    first = True
    for port in (service_port.port for service_port in service.ports if service_port.protocol == "TCP"):
        endpoints, identities = endpoints_of(service, port, world, sites, settings)
        hosts = tuple(_hosts(service, port, namespace, settings, bare=first))
        first = False
        if endpoints and identities:
            yield Upstream(f"service/{service.key}/{port}", hosts, endpoints, identities)


def endpoints_of(
    service: Service, port: int, world: World, sites: Mapping[str, ProxySite], settings: Settings
) -> tuple[tuple[SocketAddress | TunnelEnd, ...], frozenset[str]]:
    """Return the ready proxies behind a port of a Service (or all if none is ready), and the identities of all."""
    ready: list[SocketAddress | TunnelEnd] = []
    unready: list[SocketAddress | TunnelEnd] = []
    identities: set[str] = set()
    for key in sorted(world.pods_of(f"{service.namespace}/{service.name}")):
        if key not in sites:
            continue
        pod, site = world.workloads[key], sites[key]
        identity = identity_of(pod, settings)
        numbers = [number for number in world.target_ports(service, port, pod) if number in site.ports]
        (ready if pod.ready else unready).extend(
            tunnel_end_of(site, number, str(identity)) if site.node else SocketAddress(site.address, site.ports[number])
            for number in numbers
        )
        identities |= {identity} if identity is not None else set()
    return tuple(ready or unready), frozenset(identities)


def _hosts(service: Service, port: int, namespace: str, settings: Settings, *, bare: bool) -> Iterator[str]:
    """Yield the host names of a Service. With `bare`, also names without a port, which mean its first port."""
    name = f"{service.name}.{service.namespace}"
    names = [name, f"{name}.svc", f"{name}.svc.{settings.cluster_domain}"]
    if service.namespace == namespace:
        names.append(service.name)
    for host in names:
        yield f"{host}:{port}"
        if bare:
            yield host
