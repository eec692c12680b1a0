"""The objects that are followed, and what happened to them since somebody asked."""

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
"""One list and watch: a kind, or of a kind only what is named."""

Kept: TypeAlias = Callable[[Resource], bool]
"""Whether the objects of a kind are kept as they came, for whoever writes to them."""


@dataclass(frozen=True, slots=True)
class ClusterChanges:
    """What happened since the last batch: objects that are new or changed, without bookkeeping; those that are gone.

    `unlisted` are kinds that may not be read, `listed` those that may again.
    """

    put: tuple[JsonObject, ...] = ()
    removed: tuple[PolicyRef, ...] = ()
    unlisted: tuple[Document, ...] = ()
    listed: tuple[PolicyRef, ...] = ()
    touched: frozenset[PolicyRef] = frozenset()
    """All objects of which something changed, be it only their status."""
    arrived_at: float | None = field(default=None, compare=False)
    """When the first of it came, by the monotonic clock."""

    def __bool__(self) -> bool:
        return bool(self.changes_anything or self.touched)

    @property
    def changes_anything(self) -> bool:
        """Return whether there is more than the status of policies."""
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
    """The objects that streams hold: a digest of each, which shows whether it changed, and what it needs of others.

    An object may be held by several streams: by two versions of its kind, or because several objects name it.
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
        """Return the objects that a stream holds."""
        return self._members.get(stream, set())

    def streams_to_list_again(self, refs: Iterable[PolicyRef]) -> set[Stream]:
        """Take objects as changed when they come next, and return the streams that hold them."""
        known = [ref for ref in refs if ref in self._digests]
        self._digests.update(dict.fromkeys(known, b""))
        return {stream for ref in known for stream in self._holders.get(ref, ())}

    def put(self, stream: Stream, ref: PolicyRef, obj: JsonObject, batch: Batch, *, is_replaced: bool) -> bool:
        """Take an object, and return whether other objects are needed now. `is_replaced`: by another version."""
        self._members.setdefault(stream, set()).add(ref)
        self._holders.setdefault(ref, set()).add(stream)
        if is_replaced and len(self._holders[ref]) > 1:
            return False  # the version that takes the place of this one has it
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
        """Let go of an object, and return whether other objects are needed now."""
        self._members.get(stream, set()).discard(ref)
        holders = self._holders.get(ref, set())
        holders.discard(stream)
        if holders:
            return False  # another stream still holds it
        self._holders.pop(ref, None)
        self.kept.pop(ref, None)
        batch.touched.add(ref)
        if self._digests.pop(ref, None) is None:
            return False
        self.sizes.remove(ref)
        batch.put.pop(ref, None)
        batch.removed.add(ref)
        return self.needs.remove(ref)
