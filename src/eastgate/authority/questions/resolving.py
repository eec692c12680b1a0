"""Resolving: from a question to its possible callers and entries, with a cache."""

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

_MAX_ENDS = 65_536  # cached ends
_MAX_ROUTED, _MAX_KEY_CHARS = 4096, 512  # cached ways of requests at gateways, and characters in the key of each


class Arrival(NamedTuple):
    """One request, and the entry where it arrives. The way may end before, in a `DeadEnd`."""

    entry: EntryPoint
    request: Request

    @property
    def where(self) -> str:
        """Return the name of the entry, for people."""
        return self.entry.where

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points of enforcement that the request passes, in path order."""
        return self.entry.points


def without_http(values: Values) -> Request:
    """Return a request without HTTP, as a point of enforcement sees it. No authorizer can be asked about it."""
    seen: dict[Attribute, Known] = {attribute: value for attribute, value in values.items() if not attribute.needs_http}
    return Request({**seen, APPLICATION: "bytes"} if APPLICATION in seen else seen)


def arrivals(question: Question, world: World, settings: Settings) -> list[Arrival]:
    """Return every request that a question means, from the question alone. Raises QuestionError if there is none."""
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
    """Finds the ends that questions mean, and caches them until the world changes.

    `is_guarded` tells whether policies target a rule of a route, and `hosts` finds the policies for a host.
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
        """Return the known attributes of each possible caller of a question."""
        key = (question.source, question.source_ip, question.plaintext)
        known = self._callers.get(key)
        if known is None:
            if len(self._callers) >= _MAX_ENDS:
                self._callers.clear()
            known = self._callers[key] = tuple(callers(question, self._world, self._settings))
        return known

    def entries(self, question: Question, shared: Values, *, with_network: bool = False) -> tuple[EntryPoint, ...]:
        """Return every entry that a question may lead to; `shared` are the known attributes of its requests.

        `with_network`: a host without an AuthConfig is outside of the cluster, where the network decides.
        """
        to = question.destination
        if isinstance(to, EntryPoint):
            return (to,)
        # A bare message takes a route by its path, if that is known, and the handshake chooses among the routes.
        is_message = question.mcp_method is not None or question.tool is not None
        handshake = (question.sni,) if is_message and question.is_bare_message else None  # few questions
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
                if len(self._entries) >= _MAX_ENDS:
                    self._entries.clear()
                self._entries[key] = found
        return found

    def _routed_entries(
        self, question: Question, shared: Values, routed_by: tuple[Attribute, ...]
    ) -> tuple[EntryPoint, ...]:
        """Return the entries behind a Gateway, cached by all attributes of the request that its routes look at."""
        looked_at = [shared.get(attribute, UNKNOWN) for attribute in routed_by]
        words = (question.port, question.host, question.sni, question.is_bare_message, *looked_at)
        key = (question.destination, *words)
        found = self._routed.get(key)
        if found is None:
            found = self._resolve(question, shared)
            if len(self._routed) >= _MAX_ROUTED:
                self._routed.clear()
            if all(isinstance(value, int | None | Unknown) or len(value) <= _MAX_KEY_CHARS for value in words):
                self._routed[key] = found
        return found

    def _resolve(self, question: Question, shared: Values) -> tuple[EntryPoint, ...]:
        return tuple(entries(question, shared, self._world, self._table_of, self._is_guarded, self._hosts))

    def _table_of(self, gateway: Gateway) -> RoutingTable:
        """Return the routing table of a Gateway, built once."""
        from eastgate.cluster.routing import RoutingTable  # most questions need no routes

        if self._world.gateways.get(gateway.key) is not gateway:  # not declared: each question has its own gateway
            return RoutingTable.of(self._world, gateway)
        table = self._tables.get(gateway)
        if table is None:
            table = self._tables[gateway] = RoutingTable.of(self._world, gateway)
        return table
