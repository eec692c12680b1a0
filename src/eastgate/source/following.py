"""A cluster as it changes: every kind that is read is listed and watched, and what happens comes in batches.

Kinds come and go with their definitions. One that may not be listed is tried again now and then, and answers say until
then that it was not considered.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import field
from types import TracebackType
from typing import Final, TypeAlias

import msgspec

from eastgate.ir import PolicyRef
from eastgate.kubernetes import (
    ApiError,
    Connection,
    Deleted,
    JsonObject,
    ObjectEvent,
    Put,
    Reflector,
    Replaced,
    Resource,
    Synced,
    UnreachableError,
)
from eastgate.manifests import Document
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.source.documents import ref_of, ref_of_document, relevant
from eastgate.source.kinds import BY_NAME, WatchedKind, served_kinds, watched_kinds
from eastgate.source.needs import NeededObjects, NeedIndex
from eastgate.source.unlisted import unlisted

__all__ = ["ClusterChanges", "ClusterFollower", "Kept"]

_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_SETTLING: Final = 0.5  # seconds after a definition has changed until its kind is looked for
_LOOK_AGAIN: Final = 30.0  # seconds between looks at which kinds there are, and at those that may not be read
_MISSING: Final = 1.0  # seconds until a kind is tried again that was just there

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


class ClusterFollower:
    """Follows a cluster, or one namespace of it. It is an asynchronous context manager.

    `also` are kinds that are followed though no policy depends on them; of those that `keeps` names, objects are kept.
    """

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        *,
        namespace: str | None = None,
        also: Iterable[WatchedKind] = (),
        keeps: Kept = lambda _resource: False,
        on_trouble: Callable[[str, Exception], None] = lambda _what, _error: None,
    ) -> None:
        self._connection = connection
        self._wanted = (*watched_kinds(), *also)
        self._namespace = namespace
        self._keeps = keeps
        self._on_trouble = on_trouble
        self._queue: asyncio.Queue[tuple[Stream, ObjectEvent | ApiError]] = asyncio.Queue()
        self._streams: dict[Stream, asyncio.Task[None]] = {}
        self._reflectors: dict[Stream, Reflector] = {}
        self._pending: set[Stream] = set()
        self._served: frozenset[Resource] = frozenset()  # kinds that are followed as a whole, as last discovered
        self._listed: set[Stream] = set()
        self._missing: set[Stream] = set()  # what the server did not find when it was last asked
        self._arrived_at: float | None = None  # of the first event that waits
        self._needs = NeedIndex(settings)
        self._digests: dict[PolicyRef, bytes] = {}
        self._holders: dict[PolicyRef, set[Stream]] = {}
        self._members: dict[Stream, set[PolicyRef]] = {}
        self._unlisted: dict[Stream, Document] = {}
        self._named_kinds: dict[str, Resource] = {}
        self._kinds: asyncio.Task[None] | None = None
        self._rediscover = asyncio.Event()
        self.objects: dict[PolicyRef, JsonObject] = {}
        """The objects that are kept as they came."""

    async def __aenter__(self) -> ClusterFollower:
        await self._discover()
        self._kinds = asyncio.create_task(self._follow_kinds(), name="kinds of the cluster")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [*self._streams.values(), *([self._kinds] if self._kinds is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def resources(self) -> Mapping[tuple[str, str], Resource]:
        """Return the kinds that are followed, by group and name."""
        return {(resource.group, resource.kind): resource for resource, named in self._streams if named is None}

    @property
    def unlisted(self) -> list[Resource]:
        """Return the kinds that may not be read as a whole."""
        return [resource for resource, needed in self._unlisted if needed is None]

    @property
    def lag(self) -> float:
        """Return for how many seconds the server has not been heard of about the kind that is furthest behind."""
        now = time.monotonic()
        heard = (reflector.seen_at for reflector in self._reflectors.values())
        return max((now - at for at in heard if at is not None), default=0.0)

    @property
    def lags(self) -> Mapping[Resource, float]:
        """Return for how many seconds the server has not been heard of about each kind that was listed."""
        now = time.monotonic()
        lags: dict[Resource, float] = {}
        for (resource, _), reflector in self._reflectors.items():
            if reflector.seen_at is not None:
                lags[resource] = max(lags.get(resource, 0.0), now - reflector.seen_at)
        return lags

    @property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """Return how many objects there are, by group and kind; of kinds that are followed and have none, 0."""
        counts = Counter({(resource.group, resource.kind): 0 for resource, _ in self._streams})
        counts.update((ref.group, ref.kind) for ref in self._holders)
        return counts

    @property
    def is_running(self) -> bool:
        """Return whether everything is followed that should be. Nothing of it ends by itself."""
        tasks = (self._kinds, *self._streams.values())
        return all(task is not None and not task.done() for task in tasks)

    # Batches

    async def first(self) -> ClusterChanges:
        """Return everything, once each kind has been listed or cannot be."""
        batch = _Batch(self)
        while self._pending:
            batch.take(*await self._queue.get())
        self._arrived_at = None if self._queue.empty() else time.monotonic()
        return batch.changes()

    async def batches(self) -> AsyncIterator[ClusterChanges]:
        """Yield what happened since, as much of it at once as there is."""
        while True:
            batch = _Batch(self)
            batch.take(*await self._queue.get())
            arrived_at, self._arrived_at = self._arrived_at, None
            while not self._queue.empty():
                batch.take(*self._queue.get_nowait())
            if changes := batch.changes(arrived_at):
                yield changes

    def _enqueue(self, stream: Stream, event: ObjectEvent | ApiError) -> None:
        if self._arrived_at is None:
            self._arrived_at = time.monotonic()
        self._queue.put_nowait((stream, event))

    # Kinds

    async def _discover(self) -> None:
        """Follow each kind that is served now, and none that is not."""
        discovery = await self._connection.discover()
        served = served_kinds(discovery, self._wanted)
        whole = {resource for kind, resource in served.items() if (kind.group, kind.kind) not in BY_NAME}
        self._named_kinds = {r.kind: r for kind, r in served.items() if (kind.group, kind.kind) in BY_NAME}
        whole |= {r for r, named in self._streams if named is None and (r.group, r.version) in discovery.stale}
        self._served = frozenset(whole)
        for resource in whole:
            self._start((resource, None))
        self._stop_replaced()
        self._follow_named()

    def _stop_replaced(self) -> None:
        """Stop following kinds that are gone, and versions of them that another has taken the place of.

        To forget a policy may open what it guards. So a version goes when the next one has been listed, and a kind when
        it is neither discovered nor found: a server that has just started may say the one or the other.
        """
        for stream in [stream for stream in self._streams if stream[1] is None and stream[0] not in self._served]:
            name = stream[0].group, stream[0].kind
            next_ones = [(each, None) for each in self._served if (each.group, each.kind) == name]
            is_gone = stream in self._missing or (stream in self._unlisted and not self._members.get(stream))
            if all(each in self._listed for each in next_ones) if next_ones else is_gone:
                self._stop(stream)

    def _follow_named(self) -> None:
        wanted = {(resource, named) for kind, resource in self._named_kinds.items() for named in self._needs.of(kind)}
        for stream in [stream for stream in self._streams if stream[1] is not None and stream not in wanted]:
            self._stop(stream)
        for stream in wanted:
            self._start(stream)

    async def _follow_kinds(self) -> None:
        watching = asyncio.create_task(self._watch_definitions())
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN):  # wait_for of Python 3.11 may swallow a cancellation
                        await self._rediscover.wait()
                await asyncio.sleep(_SETTLING)
                self._rediscover.clear()
                try:
                    await self._discover()
                except (ApiError, UnreachableError, ValueError) as error:
                    self._on_trouble("the kinds of the cluster", error)
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch_definitions(self) -> None:
        """Look for kinds whenever a definition changes. Without the right to see them, only now and then."""
        while True:
            reflector = Reflector(self._connection, _DEFINITIONS, on_trouble=self._on_watch_trouble)
            with contextlib.suppress(ApiError):
                async for event in reflector.follow():
                    if not isinstance(event, Synced):
                        self._rediscover.set()
            await asyncio.sleep(_LOOK_AGAIN)

    # Streams

    def _start(self, stream: Stream) -> None:
        if stream not in self._streams:
            self._pending.add(stream)
            self._streams[stream] = asyncio.create_task(self._follow(stream), name=f"watch of {stream[0]}")

    def _stop(self, stream: Stream) -> None:
        """Stop following; what it had is gone for whoever reads the next batch."""
        self._streams.pop(stream).cancel()
        self._reflectors.pop(stream, None)
        self._listed.discard(stream)
        self._missing.discard(stream)
        self._enqueue(stream, Replaced(()))

    async def _follow(self, stream: Stream) -> None:
        resource, named = stream
        namespace = self._namespace if resource.namespaced else None
        while True:
            reflector = self._reflectors[stream] = Reflector(
                self._connection,
                resource,
                named.namespace if named is not None else namespace,
                label_selector=named.labels if named is not None else None,
                field_selector=named.fields if named is not None else None,
                on_trouble=self._on_watch_trouble,
            )
            try:
                async for event in reflector.follow():
                    self._enqueue(stream, event)
            except ApiError as error:
                self._enqueue(stream, error)
                self._on_watch_trouble(resource, error)
                self._rediscover.set()
                await asyncio.sleep(_LOOK_AGAIN if error.is_forbidden else _MISSING)

    def _on_watch_trouble(self, resource: Resource, error: Exception) -> None:
        self._on_trouble(str(resource), error)

    # What events mean

    def note(self, stream: Stream, event: ObjectEvent | ApiError, batch: _Batch) -> None:
        """Take one event into a batch."""
        if stream not in self._streams and not isinstance(event, Replaced):
            return  # it was stopped meanwhile
        self._pending.discard(stream)
        match event:
            case ApiError():
                self._on_refused(stream, event, batch)
            case Replaced(objects):
                self._on_listed(stream, batch)
                present = {ref_of(obj): obj for obj in objects}
                for ref in self._members.get(stream, set()) - present.keys():
                    self._remove(stream, ref, batch)
                for ref, obj in present.items():
                    self._put(stream, ref, obj, batch)
                if stream in self._streams:
                    self._stop_replaced()
            case Put(obj):
                self._put(stream, ref_of(obj), obj, batch)
            case Deleted(obj):
                self._remove(stream, ref_of(obj), batch)
            case Synced():
                pass

    def _on_refused(self, stream: Stream, error: ApiError, batch: _Batch) -> None:
        if error.is_forbidden:
            resource, named = stream
            what = f"{named} may not be read" if named is not None else "may not be listed"
            document = self._unlisted[stream] = unlisted(resource, f"{what}: {error.message}")
            batch.unlisted.append(document)
            return
        self._missing.add(stream)  # it is gone when it is not discovered either: see `_stop_replaced`

    def _on_listed(self, stream: Stream, batch: _Batch) -> None:
        if stream in self._streams:
            self._listed.add(stream)
            self._missing.discard(stream)
        document = self._unlisted.pop(stream, None)
        if document is not None:
            batch.listed.append(ref_of_document(document))

    def _put(self, stream: Stream, ref: PolicyRef, obj: JsonObject, batch: _Batch) -> None:
        self._members.setdefault(stream, set()).add(ref)
        self._holders.setdefault(ref, set()).add(stream)
        if stream[1] is None and stream[0] not in self._served and len(self._holders[ref]) > 1:
            return  # the version that takes the place of this one has it
        batch.touched.add(ref)
        if self._keeps(stream[0]):
            self.objects[ref] = obj
        reduced = relevant(obj)
        digest = hashlib.blake2b(msgspec.json.encode(reduced, order="deterministic"), digest_size=16).digest()
        if self._digests.get(ref) != digest:
            self._digests[ref] = digest
            batch.put[ref] = reduced
            batch.removed.discard(ref)
            if self._needs.put(reduced):
                self._follow_named()

    def _remove(self, stream: Stream, ref: PolicyRef, batch: _Batch) -> None:
        self._members.get(stream, set()).discard(ref)
        holders = self._holders.get(ref, set())
        holders.discard(stream)
        if holders:
            return  # named by somebody else too
        self._holders.pop(ref, None)
        self.objects.pop(ref, None)
        batch.touched.add(ref)
        if self._digests.pop(ref, None) is not None:
            batch.put.pop(ref, None)
            batch.removed.add(ref)
            if self._needs.remove(ref):
                self._follow_named()


class _Batch:
    """What is collected until somebody takes it."""

    def __init__(self, follower: ClusterFollower) -> None:
        self._follower = follower
        self.put: dict[PolicyRef, JsonObject] = {}
        self.removed: set[PolicyRef] = set()
        self.unlisted: list[Document] = []
        self.listed: list[PolicyRef] = []
        self.touched: set[PolicyRef] = set()

    def take(self, stream: Stream, event: ObjectEvent | ApiError) -> None:
        self._follower.note(stream, event, self)

    def changes(self, arrived_at: float | None = None) -> ClusterChanges:
        removed: Iterable[PolicyRef] = sorted(self.removed, key=str)
        return ClusterChanges(
            tuple(self.put.values()),
            tuple(removed),
            tuple(self.unlisted),
            tuple(self.listed),
            frozenset(self.touched),
            arrived_at,
        )
