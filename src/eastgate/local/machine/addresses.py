"""Assigns a loopback address to each workload, and ports that can be opened there.

All of 127.0.0.0/8 is this machine. A mesh takes an unused network in it; the first address belongs to the mesh itself,
the others to workloads. A workload keeps its address as long as the mesh runs, even if the workload is missing for a
while: an address in a log always means the same workload.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from eastgate.basics.records import dataclass
from eastgate.local.machine import procfs
from eastgate.local.machine.rundir import LocalMeshError

_LOOPBACK = IPv4Network("127.0.0.0/8")
_LOCALHOST = IPv4Address("127.0.0.1")
_USUAL_NETWORKS = tuple(IPv4Network(f"127.{number}.0.0/16") for number in range(64, 128))
_RESERVATION_PORT = 15127  # below the ports that the system assigns to clients
_PORT_STEP = 10_000


class NetworkUnavailable(LocalMeshError):  # noqa: N818 - a state of the machine
    """The network, or a port in it, cannot be used."""


class AddressesExhausted(LocalMeshError):  # noqa: N818 - the name is an event
    """The network has fewer addresses than there are workloads."""


@dataclass(frozen=True, slots=True)
class BoundPort:
    """The wanted port, the opened port, and the reason if they differ."""

    wanted: int
    port: int
    reason: str = ""

    def __str__(self) -> str:
        return f"port {self.wanted} is {self.reason}: using {self.port}" if self.reason else f"port {self.port}"


class Addresses:
    """The addresses of one mesh. A bound socket reserves its network; `close` releases it."""

    def __init__(self, network: str | None = None) -> None:
        self.network, self._reservation = _reserve(network)
        self._free = _hosts(self.network)
        self.own = str(next(self._free))
        self._of: dict[str, str] = {}
        self._gone: dict[str, None] = {}
        self._ports: dict[int, BoundPort] = {}

    def assign(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the address of each of these workloads. Others no longer exist."""
        present = sorted(set(keys))
        for key in self._of:
            if key not in present:
                self._gone.setdefault(key)
        for key in present:
            self._gone.pop(key, None)
        for key in present:
            if key not in self._of:
                self._of[key] = self._next(len(present))
        return {key: self._of[key] for key in present}

    def bind_ports(self, ports: Iterable[int]) -> dict[int, BoundPort]:
        """Return the port to open for each wanted one, the same each time. A port that is not free is moved last."""
        wanted = sorted(set(ports))
        reasons = {port: self._obstacle(port) for port in wanted if port not in self._ports}
        for port, reason in sorted(reasons.items(), key=lambda item: (bool(item[1]), item[0])):
            self._ports[port] = BoundPort(port, port) if not reason else self._find_substitute(port, reason)
        return {port: self._ports[port] for port in wanted}

    def close(self) -> None:
        """Release the network for other meshes."""
        self._reservation.close()

    def __enter__(self) -> Addresses:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, needed: int) -> str:
        address = next(self._free, None)
        if address is not None:
            return str(address)
        if not self._gone:
            raise AddressesExhausted(f"{self.network} has too few addresses for {needed} workloads", help="use a /16")
        longest_gone = next(iter(self._gone))
        del self._gone[longest_gone]
        return self._of.pop(longest_gone)

    def _obstacle(self, port: int) -> str:
        """Return the reason why the port cannot be opened, or an empty text. The mesh's own address represents all."""
        if any(bound.port == port for bound in self._ports.values()):
            return "the substitute of another port"
        with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Envoy does
            try:
                trial.bind((self.own, port))
                trial.listen(1)
            except PermissionError:
                return "for the system only"
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return "in use on all addresses"
                raise NetworkUnavailable(f"port {port} on {self.own} cannot be opened: {error.strerror}") from None
        return ""

    def _find_substitute(self, port: int, reason: str) -> BoundPort:
        up, down = range(port + _PORT_STEP, 65536, _PORT_STEP), range(port - _PORT_STEP, 1024, -_PORT_STEP)
        for candidate in (*up, *down):
            if not self._obstacle(candidate):
                return BoundPort(port, candidate, reason)
        raise NetworkUnavailable(f"port {port} is {reason}, and so are its possible substitutes")


def _reserve(network: str | None) -> tuple[IPv4Network, socket.socket]:
    if network is not None:
        chosen = _parse(network)
        reservation = _bind_reservation(chosen)
        if reservation is None:
            raise NetworkUnavailable(f"another mesh uses the network {chosen}", help="choose another one")
        return chosen, reservation
    listeners = _listeners()
    for candidate in _USUAL_NETWORKS:
        if not any(address in candidate for address in listeners):
            reservation = _bind_reservation(candidate)
            if reservation is not None:
                return candidate, reservation
    raise NetworkUnavailable("no network in 127.0.0.0/8 is free", help="choose one yourself")


def _parse(text: str) -> IPv4Network:
    try:
        network = IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        raise NetworkUnavailable(f"`{text}` is no network: {error}", help="write it as 127.77.0.0/16") from None
    if _LOCALHOST in network:
        raise NetworkUnavailable(
            f"{network} includes localhost, from which other programs call", help="use 127.77.0.0/16"
        )
    if not network.subnet_of(_LOOPBACK) or not 8 < network.prefixlen <= 29:
        raise NetworkUnavailable(f"{network} is not a part of {_LOOPBACK} with at least 8 addresses")
    return network


def _bind_reservation(network: IPv4Network) -> socket.socket | None:
    """Bind a socket that reserves the network. It never listens, and ends with its process."""
    reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        reservation.bind((str(next(_hosts(network))), _RESERVATION_PORT))
    except OSError as error:
        reservation.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise NetworkUnavailable(f"{network} is no loopback network of this machine") from None
        return None
    return reservation


def _hosts(network: IPv4Network) -> Iterator[IPv4Address]:
    """Return the usable addresses, without those that look like a network's own or a broadcast."""
    return (address for address in network.hosts() if address.packed[3] not in (0, 255))


def _listeners() -> set[IPv4Address]:
    """Return the addresses in 127.0.0.0/8 with a listening socket."""
    try:
        return {address for address, _ in procfs.listening() if address in _LOOPBACK}
    except OSError:
        return set()
