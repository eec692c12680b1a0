"""The routes of one Gateway, arranged for the question which of them a request takes.

A request comes in by a port, where its host chooses one listener, the one with the most specific hostname, and only
the routes attached to that listener count (Gateway API calls it listener isolation). Among them the order is that of
`candidates`. Over TLS the SNI must choose the same listener as the host: else the request is misdirected, and goes
nowhere.

A port or SNI that is not known is taken for one that the gateway answers to; everything else that is not known may be
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.cluster import Gateway, Listener, World
from eastgate.gateway.attachment import attached_routes, distinct_listeners, is_http, is_tls
from eastgate.gateway.candidates import Candidate, Rank, candidates_of
from eastgate.gateway.hostnames import Host, comparable, hostnames_of, sample_hosts, specificity
from eastgate.gateway.model import Routed
from eastgate.ir import ALWAYS, Known, Request
from eastgate.ir.attributes import HOST, PATH, PORT, SNI, UNKNOWN, Attribute, Unknown
from eastgate.ir.paths import comparable_path
from eastgate.records import dataclass
from eastgate.symbolic.reaching import Effort, reachable
from eastgate.symbolic.trees import Entry

__all__ = ["RoutingTable", "possible_routes"]


def possible_routes(world: World, gateway: Gateway, request: Request) -> tuple[Routed | None, ...]:
    """Return every rule that a gateway could choose for a request, in the order of precedence.

    None, at the end, says that it may be that no rule matches (404). Who asks often keeps a `RoutingTable`.
    """
    return RoutingTable.of(world, gateway).possible(request)


@dataclass(frozen=True, slots=True)
class _ListenerTable:
    """A listener, with the candidates of its routes by hostname, each list in order."""

    listener: Listener
    candidates: Mapping[Host, tuple[Candidate, ...]]

    def for_host(self, host: Host) -> list[Entry[Candidate | None]]:
        """Return the candidates for a host, in order, and last that it is none of them.

        Hostnames come in the order of precedence.
        """
        candidates = (candidate for name in hostnames_of(host) for candidate in self.candidates.get(name, ()))
        entries: list[Entry[Candidate | None]] = [Entry(candidate.when, candidate) for candidate in candidates]
        return [*entries, Entry(ALWAYS, None)]


@dataclass(frozen=True, slots=True)
class _ListenerGroup:
    """The listeners of one port, with TLS or without, by hostname."""

    port: int
    tls: bool
    tables: Mapping[Host, _ListenerTable]

    def chosen(self, host: Host, sni: Host | Unknown) -> _ListenerTable | None:
        """Return the listener that a request comes in by, if it is one that reads HTTP."""
        chosen = next((self.tables[name] for name in hostnames_of(host) if self._reads_http(name)), None)
        if self.tls and sni is not UNKNOWN:
            handshake = next((self.tables[name] for name in hostnames_of(sni) if name in self.tables), None)
            return chosen if chosen is handshake else None
        return chosen

    def _reads_http(self, hostname: Host) -> bool:
        table = self.tables.get(hostname)
        return table is not None and is_http(table.listener)

    def by_host(self) -> Iterator[tuple[Host, Listener | None, list[Candidate]]]:
        """Yield every hostname that is told from others, the most specific first, with its listener and candidates."""
        names = {None, *self.tables, *(name for table in self.tables.values() for name in table.candidates)}
        for name in sorted(names, key=specificity, reverse=True):
            [sample] = sample_hosts([name])[-1:]
            table = self.chosen(sample, UNKNOWN)
            candidates = [entry.end for entry in table.for_host(sample)] if table is not None else []
            yield name, table.listener if table is not None else None, [each for each in candidates if each is not None]

    def sample_hosts(self) -> list[Host]:
        """Return one host for each class of hosts that these listeners tell apart."""
        of_routes = (name for table in self.tables.values() for name in table.candidates)
        return sample_hosts([*self.tables, *of_routes])


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The rules of a Gateway, by port, listener and host, in the order in which they are tried.

    It holds as long as the Gateway, the HTTPRoutes, the ReferenceGrants and the labels of namespaces stay as they are.
    """

    groups: tuple[_ListenerGroup, ...]

    @classmethod
    def of(cls, world: World, gateway: Gateway) -> RoutingTable:
        """Build the table of a Gateway."""
        groups: dict[tuple[int, bool], dict[Host, _ListenerTable]] = {}
        for listener in distinct_listeners(gateway):
            tables = groups.setdefault((listener.port, is_tls(listener)), {})
            tables[comparable(listener.hostname)] = _listener_table(world, gateway, listener)
        return cls(tuple(_ListenerGroup(port, tls, tables) for (port, tls), tables in groups.items()))

    def possible(self, request: Request) -> tuple[Routed | None, ...]:
        """Return every rule that may be chosen for a request, in order; last None, where it may be that none is."""
        compared = _http(request)
        effort = Effort()
        chosen: dict[Rank, Routed] = {}  # of one rank is at most one rule
        nowhere = False
        for table, host in list(self._tables(request)) or [(None, None)]:
            for candidate in reachable(table.for_host(host), compared, effort) if table is not None else [None]:
                if candidate is None:
                    nowhere = True
                else:
                    chosen[candidate.rank] = candidate.routed
        in_order = (chosen[rank] for rank in sorted(chosen))
        rules = {(routed.route.key, routed.rule): routed for routed in in_order}  # a key stays where it came first
        return (*rules.values(), *([None] if nowhere else []))

    def _tables(self, request: Request) -> Iterator[tuple[_ListenerTable | None, Host]]:
        """Yield every listener that a request may come in by, with a host with which it does."""
        host, sni = _host(request, HOST), _host(request, SNI)
        for group in self._groups(request.get(PORT), sni):
            for sample in group.sample_hosts() if host is UNKNOWN else [host]:
                yield group.chosen(sample, sni), sample

    def _groups(self, port: Known | Unknown, sni: Host | Unknown) -> Iterator[_ListenerGroup]:
        """Yield the ports that a request may come in by. An SNI, or that there is none, tells TLS from plain text."""
        on_port = [group for group in self.groups if port is UNKNOWN or group.port == port]
        for group in on_port:
            is_paired = any(other.port == group.port and other.tls != group.tls for other in on_port)
            if not is_paired or sni is UNKNOWN or group.tls == (sni is not None):
                yield group


def _listener_table(world: World, gateway: Gateway, listener: Listener) -> _ListenerTable:
    by_hostname: dict[Host, list[Candidate]] = {}
    for route in attached_routes(world, gateway, listener):
        for name in {comparable(name) for name in route.hostnames} or {None}:
            by_hostname.setdefault(name, []).extend(candidates_of(world, route, name))
    ordered = {name: tuple(sorted(of, key=lambda candidate: candidate.rank)) for name, of in by_hostname.items()}
    return _ListenerTable(listener, ordered)


def _host(request: Request, attribute: Attribute) -> Host | Unknown:
    value = request.get(attribute)
    return value if value is UNKNOWN else comparable(None if value is None else str(value))


def _http(request: Request) -> Request:
    """Return a request with its path as it is compared."""
    path = request.values.get(PATH)
    return Request({**request.values, PATH: comparable_path(path)}) if isinstance(path, str) else request
