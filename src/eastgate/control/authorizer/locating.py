"""Finds where a checked request goes, from what the operator configured down to what the proxy sees of it.

The host is what a client wrote. So it may choose a Gateway only where one alone takes it; and where the request also
came in by the address of a pod, the pod's policies are asked as well as the Gateway's, and both must allow. So are the
policies for hosts, where one is for the host however it is spelt: these compare letter case, and Gateways do not.
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

# Addresses that an authorizer listens on, and the sockets for them.


_UNIX: Final = "unix:"
_BACKLOG: Final = 1024
SOCKET_MODE: Final = 0o660  # whoever may not write to a unix socket cannot connect


class BadAddress(ValueError):  # noqa: N818 - says what it is
    """Nothing can listen there."""


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
        """Return the address of one of several processes: unix sockets end in its number, ports are shared."""
        return ListenAddress(path=f"{self.path}.{number}") if self.path else self

    @property
    def grpc(self) -> str:
        """Return the address as gRPC writes it."""
        return f"{_UNIX}{self.path}" if self.path else f"[{self.host}]:{self.port}" if ":" in self.host else str(self)

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}" if self.path else f"{self.host}:{self.port}"


def listen(address: ListenAddress, *, shared: bool) -> socket.socket:
    """Return a socket that listens. `shared`: other processes listen on the same port. Raises BadAddress."""
    try:
        if address.path:
            remove_stale(address.path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(address.path)
            os.chmod(address.path, SOCKET_MODE)
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            # Of connections that do not say that they are TCP, asyncio lets small answers wait for one another.
            listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        raise BadAddress(f"nothing can listen on {address}: {error.strerror or error}") from None
    return listening


def remove_stale(path: str) -> None:
    """Remove a unix socket that nobody listens on any more. Raises OSError where somebody does, or it is no socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(17, "there is something else")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            os.unlink(path)
            return
    raise FileExistsError(17, "somebody listens there")


_LOOKUP: Final = "host"  # the extension with the host to look up, instead of the request's

_MOST_HOSTS = 4096  # that are remembered


class Nowhere(Exception):  # noqa: N818 - says what is known
    """Nobody can tell where a request goes."""


class PoliciesByHost(Protocol):
    """The policies of an authorizer that finds them by host."""

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
    """Return where a request goes: ALL must allow it. Raises Nowhere.

    The configuration of the proxy may name it, for which `namespace` is that of a destination without one. Raises
    QuestionError where that is none.
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
        raise Nowhere(f"the Gateways {' and '.join(map(str, gateways))} take its host")
    pod = world.by_ip(check.destination[0]) if check.destination is not None else None
    pods = () if pod is None else (Pod(pod.namespace, pod.name),)
    destinations: tuple[Destination, ...] = (*gateways, *pods)
    if by_host is not None and check.host is not None and (not destinations or _may_serve(by_host, check.host)):
        return (Host(check.host), *destinations)
    if not destinations:
        raise Nowhere("no Gateway takes its host, and no pod has the address that it came in by")
    return destinations


def _may_serve(policies: PoliciesByHost, host: str) -> bool:
    """Return whether a policy is for a host, in this spelling or in that which others compare."""
    return any(policies.host_point(spelling) is not None for spelling in (host, comparable_host(host)))


class GatewaysByHost:
    """Finds the Gateways that have a route for a host, and remembers them until something changes."""

    def __init__(self) -> None:
        self._version: object = None
        self._by_host: dict[str, tuple[Gateway, ...]] = {}

    def find(self, host: str | None, world: World, version: object) -> tuple[Gateway, ...]:
        """Return the Gateways for a host. `version` is another one after each change."""
        if host is None:
            return ()
        if version != self._version or len(self._by_host) >= _MOST_HOSTS:
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
    """Return the port of the destination, where it is known.

    A proxy that stands for a Gateway often listens on another port than the Gateway's. Then it is the only one that the
    Gateway has; where it has several the port is unknown, and every listener counts.
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
