"""The routes of one Gateway, arranged to find the route that a request takes.

A request comes in by a port. There its host chooses the listener with the most specific hostname. Only the routes
attached to that listener count (Gateway API calls it listener isolation). Their order is that of `candidates`. Over
TLS, the SNI must choose the same listener as the host: otherwise the request is misdirected, and goes nowhere. If the
SNI chooses a listener that reads no HTTP, it also chooses the route.

An unknown port or SNI means one that the gateway answers to. Every other unknown attribute may have any value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from eastgate.basics.records import dataclass
from eastgate.cluster import Gateway, Listener, World
from eastgate.cluster.points import RuleNamed
from eastgate.cluster.routing.attachment import attached_routes, distinct_listeners, is_http, is_tls
from eastgate.cluster.routing.candidates import Candidate, Rank, candidates_of
from eastgate.cluster.routing.hostnames import (
    Host,
    comparable,
    hostnames_of,
    intersect,
    named_by,
    sample_host,
    specificity,
)
from eastgate.cluster.routing.model import Routed
from eastgate.cluster.targets import GatewayNamed
from eastgate.ir import (
    ALWAYS,
    NEVER,
    Computed,
    Is,
    Known,
    Matcher,
    Not,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Request,
    all_of,
    any_of,
    atoms,
    conjuncts,
)
from eastgate.ir.addresses import comparable_sni
from eastgate.ir.attributes import HOST, PATH, PORT, SNI, UNKNOWN, Attribute, Unknown
from eastgate.ir.paths import comparable_path, respelled_path
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.reaching import Effort, reachable
from eastgate.ir.symbolic.simplify import both
from eastgate.ir.symbolic.trees import Entry


@dataclass(frozen=True, slots=True)
class VirtualHost:
    """A class of hosts that nothing on a port distinguishes: those of `hostname`, without those of more specific
    hostnames.

    Requests to them, or connections in case of passed-through TLS, come in by `listener`. They take the first of
    `candidates` that they meet.
    """

    hostname: Host
    listener: Listener
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class _ListenerTable:
    """A listener, with the candidates of its routes by hostname, each list in order."""

    listener: Listener
    candidates: Mapping[Host, tuple[Candidate, ...]]

    def for_host(self, host: Host) -> tuple[Candidate, ...]:
        """Return the candidates for a host, in order. Hostnames come in the order of precedence."""
        return tuple(candidate for name in hostnames_of(host) for candidate in self.candidates.get(name, ()))


@dataclass(frozen=True, slots=True)
class ListenerGroup:
    """The listeners of one port, with TLS or without, by hostname."""

    port: int
    tls: bool
    tables: Mapping[Host, _ListenerTable]

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return the listeners. A TLS handshake chooses the one with the most specific hostname for its SNI."""
        return tuple(table.listener for table in self.tables.values())

    def virtual_hosts(self) -> tuple[VirtualHost, ...]:
        """Return the classes of hosts at listeners that read HTTP, the most specific first."""
        return tuple(self._virtual_hosts(lambda host: self._chosen(host, UNKNOWN)))

    def streams(self) -> tuple[VirtualHost, ...]:
        """Return the classes of SNIs at listeners that read no HTTP, the most specific first."""
        return tuple(self._virtual_hosts(self._stream))

    def _virtual_hosts(self, choose: Callable[[Host], _ListenerTable | None]) -> Iterator[VirtualHost]:
        for hostname in sorted(self._hostnames(), key=lambda name: (*specificity(name), name or ""), reverse=True):
            sample = sample_host(hostname)
            table = choose(sample)
            if table is not None:
                yield VirtualHost(hostname, table.listener, table.for_host(sample))

    def entrances(self, host: Host | Unknown, sni: Host | Unknown) -> Iterator[tuple[_ListenerTable | None, Host]]:
        """Yield every listener that a request may come in by, with the name by which it finds its route.

        An unknown SNI is that of the host, or any SNI that leads to the same route.
        """
        if sni is not UNKNOWN and (stream := self._stream(sni)) is not None:
            yield stream, sni
            return
        for sample in map(sample_host, self._hostnames()) if host is UNKNOWN else [host]:
            stream = self._stream(sample) if sni is UNKNOWN else None
            if stream is not None and stream.for_host(sample):
                yield stream, sample
                if self._chosen(sample, sni) is None:
                    continue
            yield self._chosen(sample, sni), sample

    def _chosen(self, host: Host, sni: Host | Unknown) -> _ListenerTable | None:
        """Return the listener that a request comes in by, if it reads HTTP."""
        chosen = next((self.tables[name] for name in hostnames_of(host) if self._reads_http(name)), None)
        if self.tls and sni is not UNKNOWN:
            return chosen if chosen is self._by_handshake(sni) else None
        return chosen

    def _stream(self, sni: Host) -> _ListenerTable | None:
        """Return the listener that an SNI chooses, if it reads no HTTP."""
        chosen = self._by_handshake(sni) if self.tls else None
        return None if chosen is None or is_http(chosen.listener) else chosen

    def _by_handshake(self, sni: Host) -> _ListenerTable | None:
        return next((self.tables[name] for name in hostnames_of(sni) if name in self.tables), None)

    def _reads_http(self, hostname: Host) -> bool:
        table = self.tables.get(hostname)
        return table is not None and is_http(table.listener)

    def _hostnames(self) -> list[Host]:
        """Return the hostnames of listeners and routes, and None for all other hosts."""
        of_routes = (name for table in self.tables.values() for name in table.candidates)
        return list(dict.fromkeys([None, *self.tables, *of_routes]))


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The rules of a Gateway, by port, listener and host, in the order in which they are tried.

    It is valid until the Gateway, its routes, the ReferenceGrants or the labels of namespaces change.
    """

    groups: tuple[ListenerGroup, ...]

    @classmethod
    def of(cls, world: World, gateway: Gateway) -> RoutingTable:
        """Build the table of a Gateway."""
        groups: dict[tuple[int, bool], dict[Host, _ListenerTable]] = {}
        for listener in distinct_listeners(gateway):
            tables = groups.setdefault((listener.port, is_tls(listener)), {})
            tables[comparable(listener.hostname)] = _listener_table(world, gateway, listener)
        return cls(tuple(ListenerGroup(port, tls, tables) for (port, tls), tables in groups.items()))

    @property
    def rules(self) -> tuple[Routed, ...]:
        """Return every rule, once for each listener that leads to it."""
        return tuple({candidate.routed.point: candidate.routed for candidate in self._candidates()}.values())

    @property
    def looks_at(self) -> frozenset[Attribute]:
        """Return the attributes in the matches of routes. Port, host and SNI count as well."""
        conditions = (candidate.when for candidate in self._candidates())
        return frozenset(attribute for when in conditions for atom in atoms(when) for attribute in _of_atom(atom))

    def _candidates(self) -> Iterator[Candidate]:
        """Yield every candidate of every listener."""
        tables = (table for group in self.groups for table in group.tables.values())
        return (each for table in tables for of_host in table.candidates.values() for each in of_host)

    def possible_by_listener(self, request: Request) -> tuple[Routed | None, ...]:
        """Return every rule that may be chosen for a request, in order, once for each listener that leads to it.

        The last is None if possibly no rule is chosen.
        """
        return self._possible(_http(request))

    def possible_whatever_the_path(self, request: Request) -> tuple[Routed, ...]:
        """Return every rule that may be chosen for a request with any path, in order."""
        values = {attribute: value for attribute, value in request.values.items() if attribute != PATH}
        return tuple(routed for routed in self._possible(Request(values)) if routed is not None)

    def condition_of(self, rules: Iterable[Routed], request: Request) -> Predicate:
        """Return the condition on all completions of a request that take one of these rules."""
        facts, points = Facts(request.values), {routed.point for routed in rules}
        groups = self._groups(request.get(PORT), _sni(request))
        listeners = ((table, group) for group in groups for table in group.tables.values())
        return any_of(when for table, group in listeners for when in _conditions(table, group, points, facts))

    def _possible(self, request: Request) -> tuple[Routed | None, ...]:
        effort = Effort()
        chosen: dict[tuple[Rank, str | None], Routed] = {}  # at most one rule of a rank for each listener
        nowhere = False
        for table, host in list(self._tables(request)) or [(None, None)]:
            for candidate in reachable(_entries(table, host), request, effort):
                if candidate is None:
                    nowhere = True
                else:
                    chosen[candidate.rank, candidate.routed.listener] = candidate.routed
        in_order = (chosen[place] for place in sorted(chosen, key=lambda place: (place[0], place[1] or "")))
        # A key stays at its first position
        rules = {(routed.route.key, routed.rule, routed.listener): routed for routed in in_order}
        return (*rules.values(), *([None] if nowhere else []))

    def _tables(self, request: Request) -> Iterator[tuple[_ListenerTable | None, Host]]:
        """Yield every listener that a request may come in by, each with a host."""
        host, sni = _host(request), _sni(request)
        for group in self._groups(request.get(PORT), sni):
            yield from group.entrances(host, sni)

    def _groups(self, port: Known | Unknown, sni: Host | Unknown) -> Iterator[ListenerGroup]:
        """Yield the ports that a request may come in by. Its SNI, if known, distinguishes TLS from plain text."""
        on_port = [group for group in self.groups if port is UNKNOWN or group.port == port]
        for group in on_port:
            is_paired = any(other.port == group.port and other.tls != group.tls for other in on_port)
            if not is_paired or sni is UNKNOWN or group.tls == (sni is not None):
                yield group


def _conditions(
    table: _ListenerTable, group: ListenerGroup, points: Set[RuleNamed], facts: Facts
) -> Iterator[Predicate]:
    """Yield, for each match of these rules at a listener, the condition on the requests that it is chosen for."""
    listener = table.listener
    by = HOST if is_http(listener) else SNI
    own = comparable(listener.hostname)
    alike = (other for other in group.listeners if is_http(other) == is_http(listener) and other is not listener)
    elsewhere = [name for other in alike if specificity(name := comparable(other.hostname)) > specificity(own)]
    meant = [named_by(own, by), *(Not(named_by(name, by)) for name in elsewhere if intersect(name, own))]
    before: list[Candidate] = []
    for candidate in sorted((each for of in table.candidates.values() for each in of), key=lambda each: each.rank):
        if candidate.routed.point in points:
            first = (all_of((named_by(other.hostname, by), other.when)) for other in before if _meet(other, candidate))
            parts = (*meant, named_by(candidate.hostname, by), candidate.when, *map(Not, first))
            yield both(residual(part, facts) for part in parts)
        before.append(candidate)


def _meet(candidate: Candidate, other: Candidate) -> bool:
    """Return whether a request may meet both candidates."""
    stem, other_stem = _stem(candidate.when), _stem(other.when)
    may_meet = stem.startswith(other_stem) or other_stem.startswith(stem)
    return may_meet and intersect(candidate.hostname, other.hostname) and both((candidate.when, other.when)) != NEVER


def _stem(when: Predicate) -> str:
    """Return the common prefix of all paths that meet a predicate."""
    for part in conjuncts(when):
        either = part.parts if isinstance(part, Or) else (part,)
        matchers = [atom.matcher for atom in either if isinstance(atom, Is) and atom.attribute == PATH]
        if matchers and len(matchers) == len(either):
            texts = sorted(text for matcher in matchers for text in _beginnings(matcher))
            return texts[0] if texts and texts[-1].startswith(texts[0]) else ""
    return ""


def _beginnings(matcher: Matcher) -> Iterable[str]:
    match matcher:
        case OneOf(values):
            return [str(value) for value in values]
        case Prefix(text):
            return [text]
        case _:
            return [""]


def _of_atom(atom: Is | Computed) -> tuple[Attribute, ...]:
    return (atom.attribute,) if isinstance(atom, Is) else tuple(atom.attributes)


def _entries(table: _ListenerTable | None, host: Host) -> list[Entry[Candidate | None]]:
    """Return the candidates for a host, and a last entry for none of them."""
    candidates = table.for_host(host) if table is not None else ()
    entries: list[Entry[Candidate | None]] = [Entry(candidate.when, candidate) for candidate in candidates]
    return [*entries, Entry(ALWAYS, None)]


def _listener_table(world: World, gateway: Gateway, listener: Listener) -> _ListenerTable:
    by_hostname: dict[Host, list[Candidate]] = {}
    named = GatewayNamed(gateway.namespace, gateway.name)
    for route in attached_routes(world, gateway, listener):
        for name in {comparable(name) for name in route.hostnames} or {None}:
            by_hostname.setdefault(name, []).extend(candidates_of(world, named, listener.name, route, name))
    ordered = {name: tuple(sorted(of, key=lambda candidate: candidate.rank)) for name, of in by_hostname.items()}
    return _ListenerTable(listener, ordered)


def _host(request: Request) -> Host | Unknown:
    value = request.get(HOST)
    return value if value is UNKNOWN else comparable(None if value is None else str(value))


def _sni(request: Request) -> Host | Unknown:
    value = request.get(SNI)
    return value if value is UNKNOWN else comparable_sni(str(value or "")) or None


def _http(request: Request) -> Request:
    """Return a request with its path in the compared form."""
    path = request.values.get(PATH)
    return (
        Request({**request.values, PATH: comparable_path(respelled_path(path))}) if isinstance(path, str) else request
    )
