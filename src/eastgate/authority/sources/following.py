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
from functools import partial
from types import TracebackType
from typing import Final, TypeAlias

import msgspec

from eastgate.authority.sources.documents import ref_of, ref_of_document, relevant, stored
from eastgate.authority.sources.kinds import BY_NAME, WATCH, WatchedKind, in_any_version, served_kinds, watched_kinds
from eastgate.authority.sources.needs import NeededObjects, NeedIndex
from eastgate.authority.sources.sizes import PolicySizes, is_measured
from eastgate.authority.sources.unlisted import unlisted
from eastgate.basics.records import dataclass
from eastgate.basics.tasks import BackgroundTask, Nudge, log_failure
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import (
    DEFINITIONS,
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
from eastgate.reading.manifests import Document
from eastgate.settings import Settings

_SETTLING: Final = 0.5  # seconds after a definition has changed until its kind is looked for
_LOOK_AGAIN: Final = 30.0  # seconds between looks at which kinds there are, and at those that may not be read
_RELISTING: Final = 5.0  # seconds until a kind is listed again
_MISSING: Final = 1.0  # seconds until a kind is tried again that was just there
_KINDS: Final = "the kinds of the cluster"  # in reports of trouble

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
    `on_trouble` is called whenever something cannot be read, and `on_recovery` when it can be read again.
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
        on_recovery: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self._connection = connection
        self._wanted = (*watched_kinds(), *also)
        self._namespace = namespace
        self._keeps = keeps
        self._report_trouble = on_trouble
        self._report_recovery = on_recovery
        self._troubled: set[str] = set()  # what has failed since it last worked
        self._queue: asyncio.Queue[tuple[Stream, ObjectEvent | ApiError]] = asyncio.Queue()
        self._streams: dict[Stream, BackgroundTask] = {}
        self._reflectors: dict[Stream, Reflector] = {}
        self._pending: set[Stream] = set()
        self._served: frozenset[Resource] = frozenset()  # kinds that are followed as a whole, as last discovered
        self._unknown: frozenset[Resource] = frozenset()  # kinds that cannot be followed, as last discovered
        self._stale: frozenset[tuple[str, str]] = frozenset()  # groups and versions whose server did not answer
        self._known: frozenset[tuple[str, str]] = frozenset()  # those whose server answers, or did before
        self._defined: frozenset[str] = frozenset()  # kinds that have a definition, served or not
        self._listed: set[Stream] = set()
        self._missing: set[Stream] = set()  # what the server did not find when it was last asked
        self._arrived_at: float | None = None  # of the first event that waits
        self._needs = NeedIndex(settings)
        self.sizes = PolicySizes(settings)
        self._list_again: set[Stream] = set()
        self._relisting = BackgroundTask("listing policies again", self._relist, self._on_failure)
        self._relist_needed = Nudge()
        self._digests: dict[PolicyRef, bytes] = {}
        self._holders: dict[PolicyRef, set[Stream]] = {}
        self._members: dict[Stream, set[PolicyRef]] = {}
        self._unlisted: dict[Stream, Document] = {}
        self._named_kinds: dict[str, Resource] = {}
        self._kinds = BackgroundTask("looking for kinds", self._look_for_kinds, self._on_kinds_failure)
        self._definitions = BackgroundTask("the watch of definitions", self._watch_definitions, self._on_failure)
        self._rediscover = Nudge()
        self.objects: dict[PolicyRef, JsonObject] = {}
        """The objects that are kept as they came."""

    async def __aenter__(self) -> ClusterFollower:
        await self._discover()
        self._kinds.start()
        self._definitions.start()
        self._relisting.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = (self._kinds, self._definitions, self._relisting, *self._streams.values())
        await asyncio.gather(*(task.stop() for task in tasks))

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
        """Return whether every kind is followed. A watch that failed begins again, and is followed then."""
        return all(task.is_working for task in (self._kinds, self._relisting, *self._streams.values()))

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
            changes = batch.changes(arrived_at)
            del batch  # what was put may be large, and the next event come late
            if changes:
                yield changes
            del changes

    def _enqueue(self, stream: Stream, event: ObjectEvent | ApiError) -> None:
        if self._arrived_at is None:
            self._arrived_at = time.monotonic()
        self._queue.put_nowait((stream, event))

    # Kinds

    async def _discover(self) -> None:
        """Follow each kind that is served now, and none that is not."""
        discovery = await self._connection.discover()
        self._stale, self._defined = discovery.stale, discovery.defined
        self._known = discovery.current | (self._known & discovery.stale)
        found = served_kinds(discovery, self._wanted, WATCH, self._known)
        self._on_recovery(_KINDS)
        self._named_kinds = {r.kind: r for kind, r in found.resources.items() if (kind.group, kind.kind) in BY_NAME}
        stale_groups = {group for group, _ in discovery.stale}
        # What is known of a kind stays in force, in its version, while a server of its group does not answer.
        kept = {r for r, named in self._streams if named is None and r.group in stale_groups}
        followed = {_in_any_version(resource) for resource in kept}
        served = (r for kind, r in found.resources.items() if (kind.group, kind.kind) not in BY_NAME)
        self._served = frozenset(kept | {r for r in served if _in_any_version(r) not in followed})
        for resource in self._served:
            self._start((resource, None))
        followed |= {_in_any_version(resource) for resource in self._served}
        self._leave_out({each: why for each, why in found.unknown.items() if each not in followed}, followed)
        self._stop_replaced()
        self._follow_named()

    def _leave_out(self, unknown: Mapping[Resource, str], followed: set[Resource]) -> None:
        """Count kinds as not read until they are listed, or discovery says that they do not exist."""
        for resource in self._unknown - unknown.keys() - followed:
            self._enqueue((resource, None), Replaced(()))
        for resource in unknown.keys() - self._unknown:
            self._pending.add((resource, None))
            self._enqueue((resource, None), ApiError(503, "ServiceUnavailable", unknown[resource]))
        self._unknown = frozenset(unknown)

    def _stop_replaced(self) -> None:
        """Stop following kinds that are gone, and versions of them that another has taken the place of.

        To forget a policy may open what it guards. So a version goes when the next one has been listed, and a kind when
        it is neither discovered nor found: a server that has just started may say the one or the other.
        """
        for stream in [stream for stream in self._streams if stream[1] is None and stream[0] not in self._served]:
            name = stream[0].group, stream[0].kind
            next_ones = [(each, None) for each in self._served if (each.group, each.kind) == name]
            is_gone = stream in self._missing or (stream in self._unlisted and not self._members.get(stream))
            is_gone = is_gone and str(stream[0]) not in self._defined  # its objects exist, but cannot be read
            if all(each in self._listed for each in next_ones) if next_ones else is_gone:
                self._stop(stream)

    def _follow_named(self) -> None:
        wanted = {(resource, named) for kind, resource in self._named_kinds.items() for named in self._needs.of(kind)}
        for stream in [stream for stream in self._streams if stream[1] is not None and stream not in wanted]:
            self._stop(stream)
        for stream in wanted:
            self._start(stream)

    async def _look_for_kinds(self) -> None:
        """Look once, as soon as there is a reason to, or after a while."""
        await self._rediscover.wait(_LOOK_AGAIN)
        await asyncio.sleep(_SETTLING)
        try:
            await self._discover()
        except (ApiError, UnreachableError, ValueError) as error:
            self._on_trouble(_KINDS, error)

    async def _watch_definitions(self) -> None:
        """Look for kinds whenever a definition changes. Without the right to see them, only now and then."""
        reflector = Reflector(self._connection, DEFINITIONS, on_trouble=self._on_watch_trouble)
        with contextlib.suppress(ApiError):
            async for event in reflector.follow():
                self._on_recovery(str(DEFINITIONS))
                if not isinstance(event, Synced):
                    self._rediscover()
        await asyncio.sleep(_LOOK_AGAIN)

    def _on_kinds_failure(self, name: str, error: Exception) -> None:
        self._on_failure(name, error)
        self._rediscover()

    def _on_failure(self, name: str, error: Exception) -> None:
        """Report an unexpected failure. Errors of the API server are none: they come and go."""
        log_failure(name, error)
        self._report_trouble(name, error)

    # Streams

    def _start(self, stream: Stream) -> None:
        if stream not in self._streams:
            self._pending.add(stream)
            follow = partial(self._follow, stream)
            self._streams[stream] = BackgroundTask(f"the watch of {stream[0]}", follow, self._on_failure).start()

    def _stop(self, stream: Stream) -> None:
        """Stop following; what it had is gone for whoever reads the next batch."""
        self._streams.pop(stream).cancel()
        self._reflectors.pop(stream, None)
        self._listed.discard(stream)
        self._missing.discard(stream)
        self._enqueue(stream, Replaced(()))

    async def _follow(self, stream: Stream) -> None:
        """List and watch, until the server refuses that for a while."""
        resource, named = stream
        namespace = self._namespace if resource.namespaced else None
        reflector = self._reflectors[stream] = Reflector(
            self._connection,
            resource,
            named.namespace if named is not None else namespace,
            label_selector=named.labels if named is not None else None,
            field_selector=named.fields if named is not None else None,
            on_trouble=lambda _resource, error: self._on_stream_trouble(stream, error),
        )
        try:
            async for event in reflector.follow():
                self._enqueue(stream, event)
                del event
                self._streams[stream].works()
                self._on_recovery(str(resource))
        except ApiError as error:
            self._enqueue(stream, error)
            self._on_watch_trouble(resource, error)
            self._rediscover()
            await asyncio.sleep(_LOOK_AGAIN if error.is_forbidden else _MISSING)

    def read_again(self, refs: Iterable[PolicyRef]) -> None:
        """Read objects again as if they had changed. Nothing but the API server has all of them."""
        for ref in refs:
            if ref in self._digests:
                self._digests[ref] = b""
                self._list_again |= self._holders.get(ref, set())
                self._relist_needed()

    async def _relist(self) -> None:
        """List kinds again of which objects are to be read again: not too often, since everybody can cause it."""
        await self._relist_needed.wait()
        await asyncio.sleep(_RELISTING)
        streams, self._list_again = self._list_again, set()
        for stream in streams & self._streams.keys():
            self._streams.pop(stream).cancel()
            self._start(stream)

    def _on_stream_trouble(self, stream: Stream, error: Exception) -> None:
        """Report why a kind waits. A kind whose API server is away is left out until it can be listed."""
        resource, _ = stream
        self._on_watch_trouble(resource, error)
        waits = stream not in self._listed and stream not in self._unlisted
        if waits and isinstance(error, ApiError) and (resource.group, resource.version) in self._stale:
            self._enqueue(stream, error)

    def _on_watch_trouble(self, resource: Resource, error: Exception) -> None:
        self._on_trouble(str(resource), error)

    def _on_trouble(self, what: str, error: Exception) -> None:
        self._troubled.add(what)
        self._report_trouble(what, error)

    def _on_recovery(self, what: str) -> None:
        if what in self._troubled:
            self._troubled.discard(what)
            self._report_recovery(what)

    # What events mean

    def note(self, stream: Stream, event: ObjectEvent | ApiError, batch: _Batch) -> None:
        """Take one event into a batch."""
        self._pending.discard(stream)
        if stream not in self._streams and stream[0] not in self._unknown and not isinstance(event, Replaced):
            return  # it was stopped meanwhile
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
        if error.is_missing:
            self._missing.add(stream)  # it is gone when it is not discovered either: see `_stop_replaced`
            return
        resource, named = stream
        verb = "may not" if error.is_forbidden else "cannot"
        what = f"{named} {verb} be read" if named is not None else f"{verb} be listed"
        document = self._unlisted[stream] = unlisted(resource, f"{what}: {error}")
        batch.reconsidered.add(ref_of_document(document))

    def _on_listed(self, stream: Stream, batch: _Batch) -> None:
        if stream in self._streams:
            self._listed.add(stream)
            self._missing.discard(stream)
        for left_out in (stream, (_in_any_version(stream[0]), stream[1])):
            document = self._unlisted.pop(left_out, None)
            if document is not None:
                batch.reconsidered.add(ref_of_document(document))

    def left_out(self, refs: set[PolicyRef]) -> list[Document]:
        """Return the placeholder documents of these names, for kinds that cannot be read now."""
        return [document for document in self._unlisted.values() if ref_of_document(document) in refs]

    def _put(self, stream: Stream, ref: PolicyRef, obj: JsonObject, batch: _Batch) -> None:
        self._members.setdefault(stream, set()).add(ref)
        self._holders.setdefault(ref, set()).add(stream)
        if stream[1] is None and stream[0] not in self._served and len(self._holders[ref]) > 1:
            return  # the version that takes the place of this one has it
        batch.touched.add(ref)
        if self._keeps(stream[0]):
            self.objects[ref] = stored(obj)
        reduced = relevant(obj)
        digest = hashlib.blake2b(msgspec.json.encode(reduced, order="deterministic"), digest_size=16).digest()
        if self._digests.get(ref) != digest:
            self._digests[ref] = digest
            batch.put[ref] = reduced
            batch.removed.discard(ref)
            if is_measured(stream[0].api_version, stream[0].kind):
                self.sizes.put(ref, reduced)
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
            self.sizes.remove(ref)
            batch.put.pop(ref, None)
            batch.removed.add(ref)
            if self._needs.remove(ref):
                self._follow_named()


def _in_any_version(resource: Resource) -> Resource:
    return in_any_version(resource.group, resource.kind)


class _Batch:
    """What is collected until somebody takes it."""

    def __init__(self, follower: ClusterFollower) -> None:
        self._follower = follower
        self.put: dict[PolicyRef, JsonObject] = {}
        self.removed: set[PolicyRef] = set()
        self.reconsidered: set[PolicyRef] = set()  # what stands for kinds, some of which may be listed now
        self.touched: set[PolicyRef] = set()

    def take(self, stream: Stream, event: ObjectEvent | ApiError) -> None:
        self._follower.note(stream, event, self)

    def changes(self, arrived_at: float | None = None) -> ClusterChanges:
        self._follower.read_again(self._follower.sizes.settle() - self.put.keys())
        unlisted = self._follower.left_out(self.reconsidered)
        listed = self.reconsidered - {ref_of_document(document) for document in unlisted}
        return ClusterChanges(
            tuple(self.put.values()),
            tuple(sorted(self.removed, key=str)),
            tuple(unlisted),
            tuple(sorted(listed, key=str)),
            frozenset(self.touched),
            arrived_at,
        )
