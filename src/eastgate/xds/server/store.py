"""What each proxy is to have. The one place that is written to; streams only look at the difference to it.

Identical resources of many proxies are stored once. A store belongs to one event loop: change it from there. Whoever
watches a node is told of a change before the change returns, so nobody can take an old state for settled.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

from eastgate.xds.server.resources import ORDER, Key, Resource

__all__ = ["Change", "Store", "Watcher"]

Watcher = Callable[[frozenset[str]], None]  # is told the types that changed

_NOTHING: Final[Mapping[str, Resource]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Change:
    """What really changed. A resource that is put again with the same version is no change."""

    revision: int
    put: tuple[Resource, ...] = ()
    removed: tuple[Key, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.removed)

    @property
    def types(self) -> frozenset[str]:
        """The types that changed."""
        return frozenset({one.type_url for one in self.put} | {type_url for type_url, _ in self.removed})


@dataclass(slots=True)
class _Node:
    revision: int
    types: dict[str, dict[str, Resource]] = field(default_factory=dict)
    changed_at: dict[Key, float] = field(default_factory=dict)

    def keys(self) -> set[Key]:
        return set(self.changed_at)

    def put(self, resource: Resource, now: float) -> bool:
        names = self.types.setdefault(resource.type_url, {})
        before = names.get(resource.name)
        names[resource.name] = resource  # also where the version is the same: the policies may be others
        if before is not None and before.version == resource.version:
            return False
        self.changed_at[resource.key] = now
        return True

    def remove(self, key: Key) -> bool:
        type_url, name = key
        names = self.types.get(type_url, {})
        if names.pop(name, None) is None:
            return False
        del self.changed_at[key]
        if not names:
            del self.types[type_url]
        return True


class Store:
    """Per node, by type and name, the resources that its proxy is to have.

    A node that was never put is not known: its proxy is told nothing, and keeps what it has. That is not the same as
    a node with no resources, whose proxy is told to drop everything.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._shared: WeakValueDictionary[tuple[object, ...], Resource] = WeakValueDictionary()
        self._revisions = itertools.count(1)  # one count for all nodes, so a node's grows even when it was forgotten

    def put(self, node: str, resources: Iterable[Resource]) -> Change:
        """Replace all that a node has. Raises ValueError where two resources have the same type and name."""
        wanted = _by_key(resources)
        known = self._nodes.get(node)
        gone = known.keys() - wanted.keys() if known is not None else ()
        return self._change(node, wanted.values(), gone)

    def update(self, node: str, put: Iterable[Resource] = (), remove: Iterable[Key] = ()) -> Change:
        """Change some of what a node has. What is put and removed in one call is put."""
        wanted = _by_key(put)
        return self._change(node, wanted.values(), set(remove) - wanted.keys())

    def forget(self, node: str) -> None:
        """Have no say about a node any more. Its proxy keeps what it has; to take that away, put nothing."""
        if self._nodes.pop(node, None) is not None:
            self._wake(node, frozenset(ORDER))

    def _change(self, node: str, put: Iterable[Resource], remove: Collection[Key]) -> Change:
        known = self._nodes.get(node)
        new = known is None
        if known is None:
            known = self._nodes[node] = _Node(next(self._revisions))
        now = time.monotonic()
        changed = tuple(one for one in map(self._share, put) if known.put(one, now))
        removed = tuple(sorted(key for key in remove if known.remove(key)))
        if (changed or removed) and not new:
            known.revision = next(self._revisions)
        change = Change(known.revision, changed, removed)
        if change or new:
            self._wake(node, change.types)
        return change

    def _share(self, resource: Resource) -> Resource:
        """The one that is stored already, if there is an identical one."""
        same = (resource.type_url, resource.name, resource.version, resource.policies)
        return self._shared.setdefault(same, resource)

    def _wake(self, node: str, types: frozenset[str]) -> None:
        for watcher in tuple(self._watchers.get(node, ())):
            watcher(types)

    def knows(self, node: str) -> bool:
        """Whether there is anything to tell this node's proxy, be it that it is to have nothing."""
        return node in self._nodes

    def nodes(self) -> tuple[str, ...]:
        """The nodes that are known."""
        return tuple(self._nodes)

    def of_type(self, node: str, type_url: str) -> Mapping[str, Resource]:
        """What a node is to have of one type, by name. A view: it follows the store."""
        known = self._nodes.get(node)
        return known.types.get(type_url, _NOTHING) if known is not None else _NOTHING

    def resources(self, node: str) -> tuple[Resource, ...]:
        """All that a node is to have."""
        known = self._nodes.get(node)
        return tuple(one for names in known.types.values() for one in names.values()) if known is not None else ()

    def revision(self, node: str) -> int:
        """Grows with every change of a node. 0 where the node is not known."""
        known = self._nodes.get(node)
        return known.revision if known is not None else 0

    def changed_at(self, node: str, key: Key) -> float | None:
        """When a resource got its version, on the monotonic clock."""
        known = self._nodes.get(node)
        return known.changed_at.get(key) if known is not None else None

    def watch(self, node: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` of every change of a node, until the function that this returns is called."""
        self._watchers.setdefault(node, []).append(watcher)

        def stop() -> None:
            watchers = self._watchers.get(node, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._watchers.pop(node, None)

        return stop


def _by_key(resources: Iterable[Resource]) -> dict[Key, Resource]:
    found: dict[Key, Resource] = {}
    for resource in resources:
        if resource.key in found:
            raise ValueError(f"two resources named {resource.name!r} of type {resource.type_url!r}")
        found[resource.key] = resource
    return found
