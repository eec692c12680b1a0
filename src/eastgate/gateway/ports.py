"""The routes of a Gateway by port and host, as a proxy is told of them: everything that could be asked, at once."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Gateway, Listener, World
from eastgate.gateway.candidates import Candidate
from eastgate.gateway.hostnames import Host, comparable, specificity
from eastgate.gateway.table import RoutingTable
from eastgate.ir import ALWAYS, Is, Not, OneOf, Predicate, Suffix, all_of, any_of
from eastgate.ir.attributes import HOST, SNI, Attribute
from eastgate.records import dataclass

__all__ = ["HostRoutes", "PortRoutes", "routes_by_port"]


@dataclass(frozen=True, slots=True)
class HostRoutes:
    """The candidates for hosts that a gateway does not tell apart, in order, and the listener that they come in by."""

    hostname: Host
    listener: Listener | None
    candidates: tuple[Candidate, ...]

    @property
    def when(self) -> Predicate:
        """Return the test of a host; that no more specific hostname means it is for the order to say."""
        return _means(HOST, self.hostname)


@dataclass(frozen=True, slots=True)
class PortRoutes:
    """All routes of one port, with TLS or without, by host: the most specific hostname first, any host last."""

    port: int
    tls: bool
    hosts: tuple[HostRoutes, ...]
    listeners: tuple[Listener, ...]

    def handshake(self, listener: Listener) -> Predicate:
        """Return the test of the name in a TLS handshake that chooses this listener."""
        own = comparable(listener.hostname)
        better = [name for name in self._names() if specificity(name) > specificity(own)]
        others = any_of([_means(SNI, name) for name in better])
        return all_of([_means(SNI, own), *([Not(others)] if better else [])])

    def _names(self) -> Iterator[Host]:
        return (comparable(listener.hostname) for listener in self.listeners)


def routes_by_port(world: World, gateway: Gateway) -> list[PortRoutes]:
    """Return the routes of each port of a Gateway."""
    return [
        PortRoutes(
            group.port,
            group.tls,
            tuple(
                HostRoutes(hostname, listener, tuple(candidates)) for hostname, listener, candidates in group.by_host()
            ),
            tuple(table.listener for table in group.tables.values()),
        )
        for group in RoutingTable.of(world, gateway).groups
    ]


def _means(attribute: Attribute, hostname: Host) -> Predicate:
    if hostname is None:
        return ALWAYS
    if hostname.startswith("*."):
        return Is(attribute, Suffix(hostname[1:]))
    return Is(attribute, OneOf(frozenset({hostname})))
