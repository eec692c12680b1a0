"""The store of the wanted resources of each proxy. All writes go to it; streams send the difference to it.

Identical resources of many proxies are stored once. A store belongs to one event loop: change it from there. The
watchers of a node are called before a change returns, so that no caller can mistake an old state for a settled one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

from eastgate.basics.records import dataclass
from eastgate.envoy.server.resources import ORDER, ResourceKey, XdsResource

Watcher = Callable[[frozenset[str]], None]  # gets the types that changed

_NOTHING: Final[Mapping[str, XdsResource]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoreChange:
    """The resources that really changed. Putting a resource again with the same version is no change."""

    revision: int
    put: tuple[XdsResource, ...] = ()
    removed: tuple[ResourceKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.removed)

    @property
    def types(self) -> frozenset[str]:
        return frozenset({resource.type_url for resource in self.put} | {type_url for type_url, _ in self.removed})


@dataclass(slots=True)
class _Node:
    revision: int
    types: dict[str, dict[str, XdsResource]] = field(default_factory=dict)
    changed_at: dict[ResourceKey, float] = field(default_factory=dict)

    def keys(self) -> set[ResourceKey]:
        return set(self.changed_at)

    def put(self, resource: XdsResource, now: float) -> bool:
        names = self.types.setdefault(resource.type_url, {})
        before = names.get(resource.name)
        names[resource.name] = resource  # even with the same version: the policies may be others
        if before is not None and before.version == resource.version:
            return False
        self.changed_at[resource.key] = now
        return True

    def remove(self, key: ResourceKey) -> bool:
        type_url, name = key
        names = self.types.get(type_url, {})
        if names.pop(name, None) is None:
            return False
        del self.changed_at[key]
        if not names:
            del self.types[type_url]
        return True


class Store:
    """The wanted resources of the proxy of each node, by type and name.

    A node that was never put is unknown: its proxy gets nothing, and keeps its resources. A node with no resources is
    different: its proxy must drop everything.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._shared: WeakValueDictionary[tuple[object, ...], XdsResource] = WeakValueDictionary()
        self._revisions = itertools.count(1)  # one count for all nodes, which grows even if a node was forgotten

    def put(self, node: str, resources: Iterable[XdsResource]) -> StoreChange:
        """Replace all resources of a node. Raises ValueError for two with the same type and name."""
        wanted = _by_key(resources)
        state = self._nodes.get(node)
        removed = state.keys() - wanted.keys() if state is not None else ()
        return self._change(node, wanted.values(), removed)

    def update(self, node: str, put: Iterable[XdsResource] = (), remove: Iterable[ResourceKey] = ()) -> StoreChange:
        """Change some resources of a node. A resource in both arguments is put."""
        wanted = _by_key(put)
        return self._change(node, wanted.values(), set(remove) - wanted.keys())

    def forget(self, node: str) -> None:
        """Forget a node. Its proxy keeps its resources; to remove them, put nothing."""
        if self._nodes.pop(node, None) is not None:
            self._wake(node, frozenset(ORDER))

    def _change(self, node: str, put: Iterable[XdsResource], remove: Collection[ResourceKey]) -> StoreChange:
        state = self._nodes.get(node)
        new = state is None
        if state is None:
            state = self._nodes[node] = _Node(next(self._revisions))
        now = time.monotonic()
        changed = tuple(resource for resource in map(self._share, put) if state.put(resource, now))
        removed = tuple(sorted(key for key in remove if state.remove(key)))
        if (changed or removed) and not new:
            state.revision = next(self._revisions)
        change = StoreChange(state.revision, changed, removed)
        if change or new:
            self._wake(node, change.types)
        return change

    def _share(self, resource: XdsResource) -> XdsResource:
        """Return an identical stored resource, or this one."""
        same = (resource.type_url, resource.name, resource.version, resource.policies)
        return self._shared.setdefault(same, resource)

    def _wake(self, node: str, types: frozenset[str]) -> None:
        for watcher in tuple(self._watchers.get(node, ())):
            watcher(types)

    def has_node(self, node: str) -> bool:
        """Return whether a node was put, even with no resources."""
        return node in self._nodes

    def nodes(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def of_type(self, node: str, type_url: str) -> Mapping[str, XdsResource]:
        """Return the wanted resources of one type of a node, by name. A view: it follows the store."""
        state = self._nodes.get(node)
        return state.types.get(type_url, _NOTHING) if state is not None else _NOTHING

    def resources(self, node: str) -> tuple[XdsResource, ...]:
        state = self._nodes.get(node)
        return (
            tuple(resource for names in state.types.values() for resource in names.values())
            if state is not None
            else ()
        )

    def revision(self, node: str) -> int:
        """Return a number that grows with every change of a node. 0 for an unknown node."""
        state = self._nodes.get(node)
        return state.revision if state is not None else 0

    def changed_at(self, node: str, key: ResourceKey) -> float | None:
        """Return the time of the last new version of a resource, on the monotonic clock."""
        state = self._nodes.get(node)
        return state.changed_at.get(key) if state is not None else None

    def watch(self, node: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` on every change of a node. The returned function ends that."""
        self._watchers.setdefault(node, []).append(watcher)

        def stop() -> None:
            watchers = self._watchers.get(node, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._watchers.pop(node, None)

        return stop


def _by_key(resources: Iterable[XdsResource]) -> dict[ResourceKey, XdsResource]:
    by_key: dict[ResourceKey, XdsResource] = {}
    for resource in resources:
        if resource.key in by_key:
            raise ValueError(f"two resources named {resource.name!r} of type {resource.type_url!r}")
        by_key[resource.key] = resource
    return by_key
