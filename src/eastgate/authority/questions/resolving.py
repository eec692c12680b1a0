"""Resolving: from a question to the callers it may come from and the places it may lead to, remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eastgate.authority.questions.callers import callers
from eastgate.authority.questions.destinations import NO_HOSTS, HostIndex, entries, outside
from eastgate.authority.questions.values import request_values
from eastgate.cluster import Gateway, World, ends
from eastgate.cluster.ends import Destination, EntryPoint, Source, Values
from eastgate.cluster.points import Point
from eastgate.cluster.question import Question
from eastgate.ir import Known, Request
from eastgate.ir.attributes import APPLICATION, HOST, SNI, UNKNOWN, Attribute, Unknown
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.cluster.routing import RoutingTable
    from eastgate.cluster.routing.journey import IsGuarded

_MOST_ENDS = 65_536  # that are remembered
_MOST_ROUTED, _LONGEST = 4096, 512  # requests at gateways whose ways are remembered, and characters of what they say


class Arrival(NamedTuple):
    """One request, and where it arrives. The way may end before it leads anywhere, in a `DeadEnd`."""

    entry: EntryPoint
    request: Request

    @property
    def where(self) -> str:
        """Return where it arrives, for people."""
        return self.entry.where

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points of enforcement that the request passes, in path order."""
        return self.entry.points


def without_http(values: Values) -> Request:
    """Return a request of which a point of enforcement sees no HTTP. No authorizer can be asked about it."""
    seen: dict[Attribute, Known] = {attribute: value for attribute, value in values.items() if not attribute.needs_http}
    return Request({**seen, APPLICATION: "bytes"} if APPLICATION in seen else seen)


def arrivals(question: Question, world: World, settings: Settings) -> list[Arrival]:
    """Return every request that a question stands for, by its words alone. Raises QuestionError where there is none."""
    resolver = Resolver(world, settings)
    shared = request_values(question)
    return [
        Arrival(entry, _request({**shared, **caller, **entry.values}, entry, question))
        for entry in resolver.entries(question, shared)
        for caller in resolver.callers(question)
    ]


def _request(values: Values, entry: EntryPoint, question: Question) -> Request:
    return without_http(values) if entry.hides_http else Request(values, question.external_auth, within=entry.within)


class Resolver:
    """Finds what the ends of questions stand for, and remembers it for as long as the world stays as it is.

    `is_guarded` says whether policies target a rule of a route, and `hosts` which policies are for a host.
    """

    __slots__ = (
        "_callers",
        "_entries",
        "_hosts",
        "_is_guarded",
        "_routed",
        "_routed_by",
        "_settings",
        "_tables",
        "_world",
    )

    def __init__(
        self,
        world: World,
        settings: Settings,
        is_guarded: IsGuarded = lambda _rule: False,
        hosts: HostIndex = NO_HOSTS,
    ) -> None:
        self._is_guarded = is_guarded
        self._hosts = hosts
        self._world = world
        self._settings = settings
        self._callers: dict[tuple[Source, str | None, bool], tuple[Values, ...]] = {}
        self._entries: dict[tuple[object, ...], tuple[EntryPoint, ...]] = {}
        self._tables: dict[Gateway, RoutingTable] = {}
        self._routed_by: dict[Destination, tuple[Attribute, ...]] = {}
        self._routed: dict[tuple[object, ...], tuple[EntryPoint, ...]] = {}

    def callers(self, question: Question) -> tuple[Values, ...]:
        """Return what is known of each caller that a question may come from."""
        key = (question.source, question.source_ip, question.plaintext)
        known = self._callers.get(key)
        if known is None:
            if len(self._callers) >= _MOST_ENDS:
                self._callers.clear()
            known = self._callers[key] = tuple(callers(question, self._world, self._settings))
        return known

    def entries(self, question: Question, shared: Values, *, with_network: bool = False) -> tuple[EntryPoint, ...]:
        """Return every place that a question may lead to; `shared` is what is known of its requests.

        `with_network`: a host that no AuthConfig is about is outside of the cluster, where the network decides.
        """
        to = question.destination
        if isinstance(to, EntryPoint):
            return (to,)
        # Of a message alone, routes are what is known of the path, and the handshake chooses among them.
        is_message = question.mcp_method is not None or question.tool is not None
        handshake = (question.sni,) if is_message and question.is_bare_message else None  # of few: it takes a call
        key = (to, question.port, question.protocol, handshake)
        found = self._entries.get(key)
        if found is None:
            routed_by = self._routed_by.get(to)
            if routed_by is not None:
                return self._routed_entries(question, shared, routed_by)
            if with_network and isinstance(to, ends.Host) and not self._hosts.host_refs:
                return (outside(question, to, self._world, self._settings),)
            found = self._resolve(question, shared)
            if isinstance(to, ends.Gateway) and to.key in self._world.gateways:
                gateway = self._world.gateways[to.key]
                self._routed_by[to] = (HOST, SNI, *sorted(self._table_of(gateway).looks_at))
            elif not isinstance(to, ends.Route | ends.AuthConfig | ends.Host):  # these depend on the request
                if len(self._entries) >= _MOST_ENDS:
                    self._entries.clear()
                self._entries[key] = found
        return found

    def _routed_entries(
        self, question: Question, shared: Values, routed_by: tuple[Attribute, ...]
    ) -> tuple[EntryPoint, ...]:
        """Return where a Gateway leads, which is remembered by all of a request that its routes look at."""
        looked_at = [shared.get(attribute, UNKNOWN) for attribute in routed_by]
        words = (question.port, question.host, question.sni, question.is_bare_message, *looked_at)
        key = (question.destination, *words)
        found = self._routed.get(key)
        if found is None:
            found = self._resolve(question, shared)
            if len(self._routed) >= _MOST_ROUTED:
                self._routed.clear()
            if all(isinstance(value, int | None | Unknown) or len(value) <= _LONGEST for value in words):
                self._routed[key] = found
        return found

    def _resolve(self, question: Question, shared: Values) -> tuple[EntryPoint, ...]:
        return tuple(entries(question, shared, self._world, self._table_of, self._is_guarded, self._hosts))

    def _table_of(self, gateway: Gateway) -> RoutingTable:
        """Return the routes of a Gateway, arranged once."""
        from eastgate.cluster.routing import RoutingTable  # most questions need no routes

        if self._world.gateways.get(gateway.key) is not gateway:  # nobody declared it: each question has its own
            return RoutingTable.of(self._world, gateway)
        table = self._tables.get(gateway)
        if table is None:
            table = self._tables[gateway] = RoutingTable.of(self._world, gateway)
        return table
