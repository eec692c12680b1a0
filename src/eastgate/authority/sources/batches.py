"""The followed objects, and their changes since the last batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import field
from typing import TypeAlias

import msgspec

from eastgate.authority.sources.documents import ref_of_document, relevant, stored
from eastgate.authority.sources.needs import NeededObjects, NeedIndex
from eastgate.authority.sources.sizes import PolicySizes, is_measured
from eastgate.basics.records import dataclass
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import JsonObject, Resource
from eastgate.reading.manifests import Document
from eastgate.settings import Settings

Stream: TypeAlias = tuple[Resource, NeededObjects | None]
"""One list and watch: of a whole kind, or of the named objects of a kind."""

Kept: TypeAlias = Callable[[Resource], bool]
"""A predicate for kinds whose objects are kept as they came, for controllers that write to them."""


@dataclass(frozen=True, slots=True)
class ClusterChanges:
    """The changes since the last batch: new or changed objects without bookkeeping, and removed objects.

    `unlisted` are kinds that may not be read, `listed` those that may be read again.
    """

    put: tuple[JsonObject, ...] = ()
    removed: tuple[PolicyRef, ...] = ()
    unlisted: tuple[Document, ...] = ()
    listed: tuple[PolicyRef, ...] = ()
    touched: frozenset[PolicyRef] = frozenset()
    """All objects with a change, even if only of their status."""
    arrived_at: float | None = field(default=None, compare=False)
    """The time of the first change, by the monotonic clock."""

    def __bool__(self) -> bool:
        return bool(self.changes_anything or self.touched)

    @property
    def changes_anything(self) -> bool:
        """Return whether a change is more than the status of policies."""
        return bool(self.put or self.removed or self.unlisted or self.listed)


class Batch:
    """The changes since the last batch. A later event about an object replaces an earlier one."""

    def __init__(self) -> None:
        self.put: dict[PolicyRef, JsonObject] = {}
        self.removed: set[PolicyRef] = set()
        self.reconsidered: set[PolicyRef] = set()  # placeholders of kinds, some of which may be listed now
        self.touched: set[PolicyRef] = set()

    def changes(self, unlisted: Sequence[Document], arrived_at: float | None = None) -> ClusterChanges:
        """Return the batch. `unlisted` are the placeholders of kinds that cannot be read now."""
        listed = self.reconsidered - {ref_of_document(document) for document in unlisted}
        return ClusterChanges(
            tuple(self.put.values()),
            tuple(sorted(self.removed, key=str)),
            tuple(unlisted),
            tuple(sorted(listed, key=str)),
            frozenset(self.touched),
            arrived_at,
        )


class FollowedObjects:
    """The objects of all streams: a digest of each, which shows changes, and the other objects that it needs.

    Several streams may have one object: two versions of its kind, or several objects that name it.
    """

    def __init__(self, settings: Settings, keeps: Kept) -> None:
        self.sizes = PolicySizes(settings)
        self.needs = NeedIndex(settings)
        self.kept: dict[PolicyRef, JsonObject] = {}
        """The objects that are kept as they came."""
        self._keeps = keeps
        self._digests: dict[PolicyRef, bytes] = {}
        self._holders: dict[PolicyRef, set[Stream]] = {}
        self._members: dict[Stream, set[PolicyRef]] = {}

    @property
    def refs(self) -> Collection[PolicyRef]:
        """Return the names of all objects."""
        return self._holders.keys()

    def by(self, stream: Stream) -> Set[PolicyRef]:
        """Return the objects of a stream."""
        return self._members.get(stream, set())

    def streams_to_list_again(self, refs: Iterable[PolicyRef]) -> set[Stream]:
        """Mark objects as changed for their next event, and return the streams that have them."""
        known = [ref for ref in refs if ref in self._digests]
        self._digests.update(dict.fromkeys(known, b""))
        return {stream for ref in known for stream in self._holders.get(ref, ())}

    def put(self, stream: Stream, ref: PolicyRef, obj: JsonObject, batch: Batch, *, is_replaced: bool) -> bool:
        """Add an object, and return whether other objects are needed now. `is_replaced`: by another version."""
        self._members.setdefault(stream, set()).add(ref)
        self._holders.setdefault(ref, set()).add(stream)
        if is_replaced and len(self._holders[ref]) > 1:
            return False  # the version that replaces this one has it
        batch.touched.add(ref)
        if self._keeps(stream[0]):
            self.kept[ref] = stored(obj)
        reduced = relevant(obj)
        digest = hashlib.blake2b(msgspec.json.encode(reduced, order="deterministic"), digest_size=16).digest()
        if self._digests.get(ref) == digest:
            return False
        self._digests[ref] = digest
        batch.put[ref] = reduced
        batch.removed.discard(ref)
        if is_measured(stream[0].api_version, stream[0].kind):
            self.sizes.put(ref, reduced)
        return self.needs.put(reduced)

    def remove(self, stream: Stream, ref: PolicyRef, batch: Batch) -> bool:
        """Remove an object, and return whether other objects are needed now."""
        self._members.get(stream, set()).discard(ref)
        holders = self._holders.get(ref, set())
        holders.discard(stream)
        if holders:
            return False  # another stream still has it
        self._holders.pop(ref, None)
        self.kept.pop(ref, None)
        batch.touched.add(ref)
        if self._digests.pop(ref, None) is None:
            return False
        self.sizes.remove(ref)
        batch.put.pop(ref, None)
        batch.removed.add(ref)
        return self.needs.remove(ref)
