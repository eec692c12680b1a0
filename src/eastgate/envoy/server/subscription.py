"""The state of one type of resource on one stream: the names that a proxy asked for, has, and was sent.

There is no queue. Each response is the difference between the wanted and the actual resources of the proxy, computed
just before it is sent. Until a response is acknowledged, no other of its type is sent.

A proxy rejects a response as a whole, and seldom names the resource at fault. So the resources of a rejected response
are sent again in ever smaller groups, until each was accepted or rejected by itself. A bad resource never keeps a good
one from the proxy, and no guess separates them. Types that Envoy would not validate twice are sent one by one at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.envoy.server.resources import VALIDATED_ONCE, XdsResource
from eastgate.envoy.server.status import ABSENT, UNSURE, find_suspects

Items: TypeAlias = dict[str, XdsResource | None]  # by name; None is a removal

_ANY: Final = "*"


@dataclass(slots=True)
class PendingResponse:
    """A response that was sent and is not acknowledged yet."""

    type_url: str
    nonce: str
    items: Items  # less the names that the proxy has asked for anew
    alone: bool  # sent with one item, which a rejection is then about


class Subscription:
    """One type of resource on one stream. `wildcard_by_default`: a request without names asks for all."""

    def __init__(self, type_url: str, wildcard_by_default: bool) -> None:
        self.type_url = type_url
        self.wildcard = False
        self.names: set[str] = set()
        self.in_flight: PendingResponse | None = None
        self._wildcard_by_default = wildcard_by_default
        self._has: dict[str, str] = {}
        self._groups: deque[frozenset[str]] = deque()  # of rejected responses, to be sent separately
        self._group_is_next = True
        self._is_unanswered = False  # asked for everything, and not answered yet

    @property
    def size(self) -> int:
        """Return the number of names that this stream occupies in memory."""
        return len(self.names | self._has.keys())

    def subscribe(self, names: Iterable[str], claims: Mapping[str, str]) -> None:
        """Process the first request of a type: its names, and the versions that the proxy already has."""
        self.names = set(names)
        self.wildcard = _ANY in self.names or (self._wildcard_by_default and not self.names)
        self.names.discard(_ANY)
        self._has = {name: version for name, version in claims.items() if self.wildcard or name in self.names}
        self._is_unanswered = self.wildcard and not claims

    def resubscribe(self, subscribe: Iterable[str], unsubscribe: Iterable[str]) -> set[str]:
        """Process a later request; return the names that the proxy has unsubscribed.

        A name that is asked for again is sent again, even without a change.
        """
        dropped: set[str] = set()
        for name in unsubscribe:
            dropped |= self._unsubscribe(name)
        for name in subscribe:
            if name == _ANY:
                self._is_unanswered = not self.wildcard
                self.wildcard = True
                continue
            self.names.add(name)
            self._forget_version(name)
        return dropped - self.names

    def _unsubscribe(self, name: str) -> set[str]:
        dropped = {name}
        if name == _ANY:
            self.wildcard = False
            dropped = self._has.keys() - self.names
        self.names -= dropped
        for dropped_name in dropped:
            self._forget_version(dropped_name)
        return dropped

    def _forget_version(self, name: str) -> None:
        """Forget the version of a name, also in the response in flight."""
        self._has.pop(name, None)
        if self.in_flight is not None:
            self.in_flight.items.pop(name, None)

    def asks_for(self, name: str) -> bool:
        return self.wildcard or name in self.names

    def has(self, name: str) -> bool:
        """Return whether a proxy may know this name: it has the resource, or was just sent it."""
        sent = self.in_flight is not None and self.in_flight.items.get(name) is not None
        return sent or self._has.get(name, ABSENT) != ABSENT

    def differences(self, wanted: Mapping[str, XdsResource], rejected_version: Callable[[str], str | None]) -> Items:
        """Return the missing and the surplus resources of the proxy, without versions that it has rejected."""
        names: Iterable[str] = self.names
        if self.wildcard:
            names = wanted.keys() | self._has.keys() | self.names
        differing: Items = {}
        for name in names:
            resource = wanted.get(name)
            version = resource.version if resource is not None else ABSENT
            if self._has.get(name) != version and rejected_version(name) != version:
                differing[name] = resource
        return differing

    def build_response(self, nonce: str, differences: Items, most: int) -> PendingResponse | None:
        """Build the next response, of at most about `most` bytes; None if there is nothing to send."""
        items = self._choose(differences, most)
        if not items and not (self._is_unanswered and not differences):
            return None
        self._is_unanswered = False
        self.in_flight = PendingResponse(self.type_url, nonce, items, alone=len(items) == 1)
        return self.in_flight

    def _choose(self, differences: Items, most: int) -> Items:
        while self._groups and not self._groups[0] & differences.keys():
            self._groups.popleft()
        apart = frozenset().union(*self._groups)
        others = sorted(differences.keys() - apart)
        if not self._groups or (others and not self._group_is_next):
            self._group_is_next = True
            return self._limit_size({name: differences[name] for name in others}, most)
        group = self._groups.popleft()
        items = self._limit_size({name: differences[name] for name in sorted(group & differences.keys())}, most)
        if rest := group - items.keys():
            self._groups.appendleft(rest)
        self._group_is_next = False  # in turns, so that neither waits for all of the other
        return items

    def _limit_size(self, items: Items, most: int) -> Items:
        """Return as many items as fit, and at least one."""
        if self.type_url in VALIDATED_ONCE and len(items) > 1:
            removals: Items = {name: None for name, resource in items.items() if resource is None}
            return removals or dict([next(iter(items.items()))])
        taken: Items = {}
        size = 0
        for name, resource in items.items():
            size += resource.size if resource is not None else len(name)
            if taken and size > most:
                break
            taken[name] = resource
        return taken

    def accept(self) -> Items:
        """Record that the response in flight was accepted; return its items."""
        items = self._take_in_flight()
        for name, resource in items.items():
            if resource is not None:
                self._has[name] = resource.version
            elif name in self.names:
                self._has[name] = ABSENT
            else:
                self._has.pop(name, None)
        return items

    def reject(self, message: str) -> tuple[Items, Items]:
        """Record the rejection of the response in flight; return the items at fault, and items to send separately."""
        alone = self.in_flight is not None and self.in_flight.alone
        items = self._take_in_flight()
        for name in items:
            self._has[name] = UNSURE
        if alone:
            return items, {}
        self._groups.extendleft(reversed(_split(self.type_url, message, items)))
        return {}, items

    def _take_in_flight(self) -> Items:
        items = self.in_flight.items if self.in_flight is not None else {}
        self.in_flight = None
        return items


def _split(type_url: str, message: str, items: Items) -> tuple[frozenset[str], frozenset[str]]:
    """Split items into two groups, the less suspect first. Removals come first: other items may need their place."""
    names = frozenset(items)
    removals = frozenset(name for name, resource in items.items() if resource is None)
    if removals and removals != names:
        return removals, names - removals
    suspected = find_suspects(type_url, message, names)
    if suspected and suspected != names:
        return names - suspected, suspected
    ordered = sorted(names)
    half = frozenset(ordered[: len(ordered) // 2])
    return half, names - half
