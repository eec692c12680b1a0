"""Ports that are closed because their proxy does not have what it should enforce there.

A proxy that rejects an update stays with what it had, which may let in more. So whatever of a port was rejected, or
cannot be sent at all, a listener that closes every connection takes the place of the one that decides them. The port
opens again when everything else of it was accepted, and not before: until then the proxy has the old.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from eastgate.xds.doors import Door
from eastgate.xds.limits import obstacle
from eastgate.xds.listeners import closing_listener
from eastgate.xds.rbac import AUDIT, filter_name
from eastgate.xds.server.resources import EXTENSION, LISTENER, SECRET, Key, Resource, short
from eastgate.xds.server.status import Rejection, ResourceState, ResourceStatus

__all__ = ["TRUST", "Closing", "Closure", "Closures", "closing_of"]

TRUST: Final[Key] = (SECRET, "trust")  # whose certificates are believed, at all ports of a proxy
_DECIDING: Final = frozenset({LISTENER, EXTENSION, SECRET})  # what is rejected of these may leave something wider
Place: TypeAlias = tuple[str, int]  # a proxy and a port


@dataclass(frozen=True, slots=True)
class Closure:
    """Why a port is closed, and the policies at fault."""

    workload: str
    port: int
    policies: tuple[str, ...]
    reason: str

    @property
    def where(self) -> str:
        """The port, in words."""
        return f"{self.workload} port {self.port}"

    def __str__(self) -> str:
        named = f" ({', '.join(self.policies)})" if self.policies else ""
        return f"{self.where} is closed: {self.reason}{named}"


@dataclass(frozen=True, slots=True)
class Closing:
    """How a port is closed: `listener` stands in for the one that decides connections.

    `outer` is the listener before it. Should a proxy reject even `listener`, it is taken away, which none can reject.
    `audit` decides nothing, so that a proxy which rejects it is no reason to close.
    """

    listener: Resource
    outer: Key
    audit: Key


def closing_of(door: Door) -> Closing:
    """Return how a port is closed."""
    audit = EXTENSION, filter_name(door.port, AUDIT)
    return Closing(closing_listener(door), (LISTENER, f"inbound/{door.port}"), audit)


class Closures:
    """The closed ports of all proxies, and what their proxies have rejected."""

    def __init__(self) -> None:
        self.closed: dict[Place, Closure] = {}
        self._rejected: dict[str, dict[tuple[Key, str], Rejection]] = {}  # by version: it is never tried again
        self._shut: dict[str, dict[int, frozenset[Key] | None]] = {}  # what opens a port once it is accepted, if any

    def reject(self, node: str, key: Key, rejection: Rejection) -> None:
        """Remember what a proxy has rejected."""
        self._rejected.setdefault(node, {})[key, rejection.version] = rejection

    def forget(self, node: str) -> None:
        """Forget a proxy that is gone."""
        self._rejected.pop(node, None)
        self.keep(node, ())

    def keep(self, node: str, ports: Collection[int]) -> None:
        """Forget the ports that a proxy does not have any more."""
        shut = {port: awaited for port, awaited in self._shut.pop(node, {}).items() if port in ports}
        if shut:
            self._shut[node] = shut
        self.closed = {place: one for place, one in self.closed.items() if place[0] != node or place[1] in ports}

    def pardon(self, node: str, found: Iterable[ResourceStatus]) -> bool:
        """Forget the rejection of what the proxy has accepted since: it is another one, or an address is free again."""
        rejected = self._rejected.get(node, {})
        mended = [
            key
            for one in found
            if one.state is ResourceState.ACCEPTED
            and one.confirmed
            and (key := ((one.type_url, one.name), one.wanted or "")) in rejected
        ]
        for key in mended:
            del rejected[key]
        return bool(mended)

    def guard(
        self, node: str, port: int, resources: Sequence[Resource], trust: Iterable[Resource], closing: Closing
    ) -> list[Resource]:
        """Return what a proxy is to have of a port: these resources, or what closes it in their place."""
        deciding = [one for one in (*resources, *trust) if one.type_url in _DECIDING and one.key != closing.audit]
        fault = self._fault(node, port, deciding)
        removed = (closing.listener.key, closing.listener.version) in self._rejected.get(node, {})
        if fault is None and (removed or port not in self._shut.get(node, {})):
            self._shut.get(node, {}).pop(port, None)
            self.closed.pop((node, port), None)
            return list(resources)
        self.closed[node, port] = fault or Closure(node, port, (), "its proxy has not accepted everything yet")
        awaited = frozenset(one.key for one in deciding) - {closing.listener.key}
        self._shut.setdefault(node, {})[port] = awaited if fault is None else None
        if removed:
            return [one for one in resources if one.key not in (closing.listener.key, closing.outer)]
        sendable = [one for one in resources if one.key != closing.listener.key and obstacle(one) is None]
        return [*sendable, closing.listener]

    def _fault(self, node: str, port: int, resources: Iterable[Resource]) -> Closure | None:
        rejected = self._rejected.get(node, {})
        for one in resources:
            rejection = rejected.get((one.key, one.version))
            if rejection is not None:
                reason = f"its proxy rejected the {short(one.type_url)} {one.name}: {rejection.message}"
                return Closure(node, port, tuple(sorted(rejection.policies)), reason)
            problem = obstacle(one) if one.policies else None
            if problem is not None:
                return Closure(node, port, tuple(sorted(one.policies)), problem)
        return None

    def is_shut(self, node: str) -> bool:
        """Whether a listener that closes stands at a port of this proxy."""
        return node in self._shut

    def open(self, node: str, states: Mapping[Key, ResourceState]) -> bool:
        """Open the ports of which the proxy has accepted everything else; tells whether there are any."""
        shut = self._shut.get(node, {})
        ready = [
            port
            for port, awaited in shut.items()
            if awaited is not None and all(states.get(key) is ResourceState.ACCEPTED for key in awaited)
        ]
        for port in ready:
            del shut[port]
        if not shut:
            self._shut.pop(node, None)
        return bool(ready)
