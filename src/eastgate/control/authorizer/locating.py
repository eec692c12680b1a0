"""Finds the destination of a checked request: from the configuration of the operator, or from what the proxy sees.

The client chooses the host. So the host may select a Gateway only if exactly one Gateway takes it. If the request also
arrived at the address of a pod, the policies of the pod and of the Gateway must both allow it. The policies for hosts
must allow it too, if one is for the host in any letter case: these policies compare letter case, and Gateways do not.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from eastgate.basics.records import dataclass
from eastgate.cluster import HostNamed, Route, World
from eastgate.cluster.ends import DEFAULT_NAMESPACE, Destination, Gateway, Host, Pod, parse_destination
from eastgate.cluster.routing.attachment import attached_routes, distinct_listeners, is_http
from eastgate.cluster.routing.hostnames import comparable, hostnames_of
from eastgate.control.authorizer.checks import ProxyCheck
from eastgate.ir.addresses import comparable_host

# The addresses of listeners, and their sockets.


_UNIX: Final = "unix:"
_BACKLOG: Final = 1024
SOCKET_MODE: Final = 0o660  # connecting to a unix socket needs write permission


class BadAddress(ValueError):  # noqa: N818 - an address
    """The address cannot be used to listen."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """`HOST:PORT`, or `unix:PATH`."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def of(cls, text: str) -> ListenAddress:
        """Read an address. Raises BadAddress."""
        if text.startswith(_UNIX):
            path = text.removeprefix(_UNIX)
            if not path:
                raise BadAddress(f"`{text}` has no path")
            return cls(path=os.path.abspath(path))
        host, _, port = text.rpartition(":")
        if not port.isascii() or not port.isdigit() or int(port) > 65535 or any(c in host for c in "/ @"):
            raise BadAddress(f"`{text}` is neither HOST:PORT nor unix:PATH")
        return cls({"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host.strip("[]")), int(port))

    def numbered(self, number: int) -> ListenAddress:
        """Return the address of one process of several: the number is added to a unix socket; ports are shared."""
        return ListenAddress(path=f"{self.path}.{number}") if self.path else self

    @property
    def grpc(self) -> str:
        """Return the address as gRPC writes it."""
        return f"{_UNIX}{self.path}" if self.path else f"[{self.host}]:{self.port}" if ":" in self.host else str(self)

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}" if self.path else f"{self.host}:{self.port}"


def listen(address: ListenAddress, *, shared: bool) -> socket.socket:
    """Return a listening socket. `shared`: other processes listen on the same port. Raises BadAddress."""
    try:
        if address.path:
            remove_stale(address.path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(address.path)
            os.chmod(address.path, SOCKET_MODE)
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            # Without IPPROTO_TCP, asyncio leaves the delay of small packets (Nagle) on.
            listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        raise BadAddress(f"cannot listen on {address}: {error.strerror or error}") from None
    return listening


def remove_stale(path: str) -> None:
    """Remove a unix socket without a listener. Raises OSError if a process listens on it, or if it is not a socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(17, "the path is not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            os.unlink(path)
            return
    raise FileExistsError(17, "another process listens on it")


_LOOKUP: Final = "host"  # the extension with the host to look up in place of that of the request

_MAX_CACHED_HOSTS = 4096


class UnknownDestinationError(Exception):
    """The destination of a request is unknown."""


class PoliciesByHost(Protocol):
    """The policies that an authorizer finds by host."""

    @property
    def has_hosts(self) -> bool: ...
    def host_point(self, host: str) -> HostNamed | None: ...


def destinations_of(
    check: ProxyCheck,
    default: Destination | None,
    world: World,
    gateways_for: Callable[[str | None], tuple[Gateway, ...]],
    policies: PoliciesByHost | None = None,
    namespace: str = DEFAULT_NAMESPACE,
) -> tuple[Destination, ...]:
    """Return the destinations of a request: the policies of ALL must allow it. Raises UnknownDestinationError.

    If the configuration of the proxy names the destination, `namespace` is its default namespace. Raises QuestionError
    if that name is not valid.
    """
    by_host = policies if policies is not None and policies.has_hosts else None
    if check.to is not None:
        return (parse_destination(check.to, namespace),)
    if by_host is not None and _LOOKUP in check.extensions:
        return (Host(check.extensions[_LOOKUP]),)
    if default is not None:
        return (default,)
    gateways = gateways_for(check.host)
    if len(gateways) > 1:
        raise UnknownDestinationError(f"several Gateways take its host: {', '.join(map(str, gateways))}")
    pod = world.by_ip(check.destination[0]) if check.destination is not None else None
    pods = () if pod is None else (Pod(pod.namespace, pod.name),)
    destinations: tuple[Destination, ...] = (*gateways, *pods)
    if by_host is not None and check.host is not None and (not destinations or _may_serve(by_host, check.host)):
        return (Host(check.host), *destinations)
    if not destinations:
        raise UnknownDestinationError("no Gateway takes its host, and no pod has the address at which it arrived")
    return destinations


def _may_serve(policies: PoliciesByHost, host: str) -> bool:
    """Return whether a policy is for a host, in this spelling or in the spelling that routes compare."""
    return any(policies.host_point(spelling) is not None for spelling in (host, comparable_host(host)))


class GatewaysByHost:
    """Finds the Gateways with a route for a host, and caches them until a change."""

    def __init__(self) -> None:
        self._version: object = None
        self._by_host: dict[str, tuple[Gateway, ...]] = {}

    def find(self, host: str | None, world: World, version: object) -> tuple[Gateway, ...]:
        """Return the Gateways for a host. `version` differs after each change."""
        if host is None:
            return ()
        if version != self._version or len(self._by_host) >= _MAX_CACHED_HOSTS:
            self._version = version
            self._by_host.clear()
        gateways = self._by_host.get(host)
        if gateways is None:
            gateways = self._by_host[host] = tuple(_gateways_for(host, world))
        return gateways


def _gateways_for(host: str, world: World) -> Iterator[Gateway]:
    names = frozenset(hostnames_of(comparable(host)))
    for gateway in world.gateways.values():
        listeners = [listener for listener in distinct_listeners(gateway) if is_http(listener)]
        for listener in listeners:
            if comparable(listener.hostname) not in names:
                continue
            if any(_takes(route, names) for route in attached_routes(world, gateway, listener)):
                yield Gateway(gateway.namespace, gateway.name)
                break


def _takes(route: Route, names: frozenset[str | None]) -> bool:
    return any(name in names for name in {comparable(hostname) for hostname in route.hostnames} or {None})


def port_of(check: ProxyCheck, to: Destination, world: World) -> int | None:
    """Return the port of the destination, or None if it is unknown.

    A proxy in front of a Gateway often listens on another port than the Gateway. Then the port is the only one of the
    Gateway. If the Gateway has several, the port is unknown, and every listener counts.
    """
    if check.port is not None:
        return check.port
    port = check.destination[1] if check.destination is not None else None
    if isinstance(to, Pod):
        return port
    gateway = world.gateways.get(to.key) if isinstance(to, Gateway) else None
    ports = {listener.port for listener in gateway.listeners} if gateway is not None else set()
    if port in ports:
        return port
    return ports.pop() if len(ports) == 1 else None
