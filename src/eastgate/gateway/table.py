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
from eastgate.gateway.hostnames import Host, comparable, hostnames_of, sample_hosts
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
class _Entrance:
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
class _Door:
    """The listeners of one port, with TLS or without, by hostname."""

    port: int
    tls: bool
    entrances: Mapping[Host, _Entrance]

    def chosen(self, host: Host, sni: Host | Unknown) -> _Entrance | None:
        """Return the listener that a request comes in by, if it is one that reads HTTP."""
        chosen = next((self.entrances[name] for name in hostnames_of(host) if self._reads_http(name)), None)
        if self.tls and sni is not UNKNOWN:
            handshake = next((self.entrances[name] for name in hostnames_of(sni) if name in self.entrances), None)
            return chosen if chosen is handshake else None
        return chosen

    def _reads_http(self, hostname: Host) -> bool:
        entrance = self.entrances.get(hostname)
        return entrance is not None and is_http(entrance.listener)

    def sample_hosts(self) -> list[Host]:
        """Return one host for each class of hosts that these listeners tell apart."""
        of_routes = (name for entrance in self.entrances.values() for name in entrance.candidates)
        return sample_hosts([*self.entrances, *of_routes])


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The rules of a Gateway, by port, listener and host, in the order in which they are tried.

    It holds as long as the Gateway, the HTTPRoutes, the ReferenceGrants and the labels of namespaces stay as they are.
    """

    doors: tuple[_Door, ...]

    @classmethod
    def of(cls, world: World, gateway: Gateway) -> RoutingTable:
        """Build the table of a Gateway."""
        doors: dict[tuple[int, bool], dict[Host, _Entrance]] = {}
        for listener in distinct_listeners(gateway):
            entrances = doors.setdefault((listener.port, is_tls(listener)), {})
            entrances[comparable(listener.hostname)] = _entrance(world, gateway, listener)
        return cls(tuple(_Door(port, tls, entrances) for (port, tls), entrances in doors.items()))

    def possible(self, request: Request) -> tuple[Routed | None, ...]:
        """Return every rule that may be chosen for a request, in order; last None, where it may be that none is."""
        compared = _http(request)
        effort = Effort()
        chosen: dict[Rank, Routed] = {}  # of one rank is at most one rule
        nowhere = False
        for entrance, host in list(self._entrances(request)) or [(None, None)]:
            for candidate in reachable(entrance.for_host(host), compared, effort) if entrance is not None else [None]:
                if candidate is None:
                    nowhere = True
                else:
                    chosen[candidate.rank] = candidate.routed
        in_order = (chosen[rank] for rank in sorted(chosen))
        rules = {(routed.route.key, routed.rule): routed for routed in in_order}  # a key stays where it came first
        return (*rules.values(), *([None] if nowhere else []))

    def _entrances(self, request: Request) -> Iterator[tuple[_Entrance | None, Host]]:
        """Yield every listener that a request may come in by, with a host with which it does."""
        host, sni = _host(request, HOST), _host(request, SNI)
        for door in self._doors(request.get(PORT), sni):
            for sample in door.sample_hosts() if host is UNKNOWN else [host]:
                yield door.chosen(sample, sni), sample

    def _doors(self, port: Known | Unknown, sni: Host | Unknown) -> Iterator[_Door]:
        """Yield the ports that a request may come in by. An SNI, or that there is none, tells TLS from plain text."""
        on_port = [door for door in self.doors if port is UNKNOWN or door.port == port]
        for door in on_port:
            is_paired = any(other.port == door.port and other.tls != door.tls for other in on_port)
            if not is_paired or sni is UNKNOWN or door.tls == (sni is not None):
                yield door


def _entrance(world: World, gateway: Gateway, listener: Listener) -> _Entrance:
    by_hostname: dict[Host, list[Candidate]] = {}
    for route in attached_routes(world, gateway, listener):
        for name in {comparable(name) for name in route.hostnames} or {None}:
            by_hostname.setdefault(name, []).extend(candidates_of(world, route, name))
    ordered = {name: tuple(sorted(of, key=lambda candidate: candidate.rank)) for name, of in by_hostname.items()}
    return _Entrance(listener, ordered)


def _host(request: Request, attribute: Attribute) -> Host | Unknown:
    value = request.get(attribute)
    return value if value is UNKNOWN else comparable(None if value is None else str(value))


def _http(request: Request) -> Request:
    """Return a request with its path as it is compared."""
    path = request.values.get(PATH)
    return Request({**request.values, PATH: comparable_path(path)}) if isinstance(path, str) else request
