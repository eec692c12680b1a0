"""What a proxy asked for, has, and was sent of one type of resource.

Nothing is queued. What is to be sent is the difference between what the proxy is to have and what it has, taken at the
moment when it may be sent; until a response is answered there is no other of its type.

A proxy rejects a response as a whole, and seldom says what for. So the resources of a rejected response are sent again
in ever smaller groups, until each was accepted or rejected by itself: a bad one never keeps a good one from the proxy,
and nobody's guess decides which is which. The types that Envoy would not look at twice are sent one by one at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from eastgate.xds.server.resources import HEARD_ONCE, Resource
from eastgate.xds.server.status import ABSENT, UNSURE, suspects

__all__ = ["Items", "Response", "Subscription"]

Items: TypeAlias = dict[str, Resource | None]  # by name; None is a removal

_ANY: Final = "*"


@dataclass(slots=True)
class Response:
    """One response that was sent and is not answered yet."""

    type_url: str
    nonce: str
    items: Items  # less what the proxy has asked for anew since
    alone: bool  # whether it was sent with one item, which then is what a rejection is about
    recalled: Items = field(default_factory=dict)  # what it has asked for anew: it will still look at these


class Subscription:
    """One type of resource on one stream. `by_default` tells whether who names nothing asks for everything."""

    def __init__(self, type_url: str, by_default: bool) -> None:
        self.type_url = type_url
        self.everything = False
        self.names: set[str] = set()
        self.in_flight: Response | None = None
        self._by_default = by_default
        self._has: dict[str, str] = {}
        self._groups: deque[frozenset[str]] = deque()  # of rejected responses, to be sent apart
        self._group_is_next = True
        self._unanswered = False  # asked for everything, and heard nothing yet

    @property
    def size(self) -> int:
        """How many names this stream makes us remember."""
        return len(self.names | self._has.keys())

    def begin(self, names: Iterable[str], claims: Mapping[str, str]) -> None:
        """The first request of a type: what is asked for, and what the proxy has from an earlier stream."""
        self.names = set(names)
        self.everything = _ANY in self.names or (self._by_default and not self.names)
        self.names.discard(_ANY)
        self._has = {name: version for name, version in claims.items() if self.everything or name in self.names}
        self._unanswered = self.everything and not claims

    def change(self, subscribe: Iterable[str], unsubscribe: Iterable[str]) -> set[str]:
        """A later request; tells which names are not asked for any more.

        Who asks for a name again is answered again, even if nothing has changed.
        """
        dropped: set[str] = set()
        for name in unsubscribe:
            dropped |= self._unsubscribe(name)
        for name in subscribe:
            if name == _ANY:
                self._unanswered = not self.everything
                self.everything = True
                continue
            self.names.add(name)
            self._recall(name)
        return dropped - self.names

    def _unsubscribe(self, name: str) -> set[str]:
        dropped = {name}
        if name == _ANY:
            self.everything = False
            dropped = self._has.keys() - self.names
        self.names -= dropped
        for one in dropped:
            self._recall(one)
        return dropped

    def _recall(self, name: str) -> None:
        """Know nothing of a name, not even from the answer that is still to come."""
        self._has.pop(name, None)
        if self.in_flight is not None and name in self.in_flight.items:
            self.in_flight.recalled[name] = self.in_flight.items.pop(name)

    def asks_for(self, name: str) -> bool:
        """Whether the proxy asked for this name, or for everything."""
        return self.everything or name in self.names

    def has(self, name: str) -> bool:
        """Whether a proxy may know this name: it has it, or was just sent it."""
        sent = self.in_flight is not None and self.in_flight.items.get(name) is not None
        return sent or self._has.get(name, ABSENT) != ABSENT

    def differences(self, wanted: Mapping[str, Resource], rejected: Callable[[str], str | None]) -> Items:
        """What the proxy lacks, or has and should not have. What it has rejected is not offered again."""
        names: Iterable[str] = self.names
        if self.everything:
            names = wanted.keys() | self._has.keys() | self.names
        found: Items = {}
        for name in names:
            resource = wanted.get(name)
            version = resource.version if resource is not None else ABSENT
            if self._has.get(name) != version and rejected(name) != version:
                found[name] = resource
        return found

    def send(self, nonce: str, differences: Items, most: int) -> Response | None:
        """The next response, of at most about `most` bytes, or None where there is nothing to say."""
        items = self._choose(differences, most)
        if not items and not (self._unanswered and not differences):
            return None
        self._unanswered = False
        self.in_flight = Response(self.type_url, nonce, items, alone=len(items) == 1)
        return self.in_flight

    def _choose(self, differences: Items, most: int) -> Items:
        while self._groups and not self._groups[0] & differences.keys():
            self._groups.popleft()
        apart = frozenset().union(*self._groups)
        others = sorted(differences.keys() - apart)
        if not self._groups or (others and not self._group_is_next):
            self._group_is_next = True
            return self._fitting({name: differences[name] for name in others}, most)
        group = self._groups.popleft()
        items = self._fitting({name: differences[name] for name in sorted(group & differences.keys())}, most)
        if rest := group - items.keys():
            self._groups.appendleft(rest)
        self._group_is_next = False  # in turns, so that neither waits for all of the other
        return items

    def _fitting(self, items: Items, most: int) -> Items:
        """As many as fit, and at least one."""
        if self.type_url in HEARD_ONCE and len(items) > 1:
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

    def accepted(self) -> Items:
        """The response in flight was accepted; tells what was in it."""
        items = self._landed()
        for name, resource in items.items():
            if resource is not None:
                self._has[name] = resource.version
            elif name in self.names:
                self._has[name] = ABSENT
            else:
                self._has.pop(name, None)
        return items

    def rejected(self, message: str) -> tuple[Items, Items]:
        """The response in flight was rejected; tells what is certainly at fault, and what has to be sent apart."""
        alone = self.in_flight is not None and self.in_flight.alone
        items = self._landed()
        for name in items:
            self._has[name] = UNSURE
        if alone:
            return items, {}
        self._groups.extendleft(reversed(_split(self.type_url, message, items)))
        return {}, items

    def _landed(self) -> Items:
        items = self.in_flight.items if self.in_flight is not None else {}
        self.in_flight = None
        return items


def _split(type_url: str, message: str, items: Items) -> tuple[frozenset[str], frozenset[str]]:
    """Two groups, the more innocent first. Removals go first of all: what is to come may need their place."""
    names = frozenset(items)
    removals = frozenset(name for name, resource in items.items() if resource is None)
    if removals and removals != names:
        return removals, names - removals
    suspected = suspects(type_url, message, names)
    if suspected and suspected != names:
        return names - suspected, suspected
    ordered = sorted(names)
    half = frozenset(ordered[: len(ordered) // 2])
    return half, names - half
