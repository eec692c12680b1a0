"""A cluster as it changes: Eastgate lists and watches every kind that it reads, and yields changes in batches.

Kinds come and go with their definitions. A kind that may not be listed is tried again periodically. Until then, answers
name it as unread.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Final

from eastgate.authority.sources.batches import Batch, ClusterChanges, FollowedObjects, Kept, Stream
from eastgate.authority.sources.documents import ref_of, ref_of_document
from eastgate.authority.sources.needs import (
    BY_NAME,
    WATCH,
    WatchedKind,
    in_any_version,
    served_kinds,
    unlisted,
    watched_kinds,
)
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

_DISCOVERY_DELAY_SECONDS: Final = 0.5  # between a change of a definition and discovery
_REDISCOVERY_SECONDS: Final = 30.0  # between two discoveries, and between two attempts to read a forbidden kind
_RELIST_DELAY_SECONDS: Final = 5.0  # before a kind is listed again
_MISSING_RETRY_SECONDS: Final = 1.0  # before a kind that has just disappeared is tried again
_DISCOVERY: Final = "the kinds of the cluster"  # the name of discovery in reports of trouble


class ClusterFollower:
    """Follows a cluster, or one namespace of it. It is an asynchronous context manager.

    `also` are kinds to follow though no policy depends on them. `keeps` selects kinds whose objects are kept as they
    came. `on_trouble` is called for each failed read, and `on_recovery` when reading works again.
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
        self._report_trouble = on_trouble
        self._report_recovery = on_recovery
        self._troubled: set[str] = set()  # streams and steps that failed since they last worked
        self._queue: asyncio.Queue[tuple[Stream, ObjectEvent | ApiError]] = asyncio.Queue()
        self._streams: dict[Stream, BackgroundTask] = {}
        self._reflectors: dict[Stream, Reflector] = {}
        self._pending: set[Stream] = set()
        self._served: frozenset[Resource] = frozenset()  # kinds that are followed as a whole, as of the last discovery
        self._unknown: frozenset[Resource] = frozenset()  # kinds that cannot be followed, as of the last discovery
        self._stale: frozenset[tuple[str, str]] = frozenset()  # groups and versions whose server did not answer
        self._known: frozenset[tuple[str, str]] = frozenset()  # groups and versions whose server answers, or did before
        self._defined: frozenset[str] = frozenset()  # kinds that have a definition, served or not
        self._listed: set[Stream] = set()
        self._missing: set[Stream] = set()  # streams that the server did not find at the last attempt
        self._arrived_at: float | None = None  # time of the first waiting event
        self.held = FollowedObjects(settings, keeps)
        self._list_again: set[Stream] = set()
        self._relisting = BackgroundTask("listing policies again", self._relist, self._on_failure)
        self._relist_needed = Nudge()
        self._unlisted: dict[Stream, Document] = {}
        self._named_kinds: dict[str, Resource] = {}
        self._kinds = BackgroundTask("looking for kinds", self._look_for_kinds, self._on_kinds_failure)
        self._definitions = BackgroundTask("the watch of definitions", self._watch_definitions, self._on_failure)
        self._rediscover = Nudge()

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
        """Return the seconds since the last news from the server about the kind that is furthest behind."""
        return max(self.lags.values(), default=0.0)

    @property
    def lags(self) -> Mapping[Resource, float]:
        """Return, for each kind that was listed, the seconds since the last news from the server."""
        now = time.monotonic()
        lags: dict[Resource, float] = {}
        for (resource, _), reflector in self._reflectors.items():
            if reflector.seen_at is not None:
                lags[resource] = max(lags.get(resource, 0.0), now - reflector.seen_at)
        return lags

    @property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """Return the number of objects by group and kind; 0 for a followed kind without objects."""
        counts = Counter({(resource.group, resource.kind): 0 for resource, _ in self._streams})
        counts.update((ref.group, ref.kind) for ref in self.held.refs)
        return counts

    @property
    def is_running(self) -> bool:
        """Return whether every kind is followed. A watch that failed starts again, and then counts."""
        return all(task.is_working for task in (self._kinds, self._relisting, *self._streams.values()))

    # Batches

    async def first(self) -> ClusterChanges:
        """Return everything, after each kind has been listed or has failed."""
        batch = Batch()
        while self._pending:
            self.note(*await self._queue.get(), batch)
        self._arrived_at = None if self._queue.empty() else time.monotonic()
        return self.changes_of(batch)

    async def batches(self) -> AsyncIterator[ClusterChanges]:
        """Yield the changes since the last batch, each time as many as there are."""
        while True:
            batch = Batch()
            self.note(*await self._queue.get(), batch)
            arrived_at, self._arrived_at = self._arrived_at, None
            while not self._queue.empty():
                self.note(*self._queue.get_nowait(), batch)
            changes = self.changes_of(batch, arrived_at)
            del batch  # a put object may be large, and the next event late
            if changes:
                yield changes
            del changes

    def _enqueue(self, stream: Stream, event: ObjectEvent | ApiError) -> None:
        if self._arrived_at is None:
            self._arrived_at = time.monotonic()
        self._queue.put_nowait((stream, event))

    # Kinds

    async def _discover(self) -> None:
        """Follow each kind that the server has now, and stop following others."""
        discovery = await self._connection.discover()
        self._stale, self._defined = discovery.stale, discovery.defined
        self._known = discovery.current | (self._known & discovery.stale)
        found = served_kinds(discovery, self._wanted, WATCH, self._known)
        self._on_recovery(_DISCOVERY)
        self._named_kinds = {r.kind: r for kind, r in found.resources.items() if (kind.group, kind.kind) in BY_NAME}
        stale_groups = {group for group, _ in discovery.stale}
        # A kind stays in force, in its version, while a server of its group does not answer.
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
        """Count kinds as unread until they are listed, or discovery shows that they do not exist."""
        for resource in self._unknown - unknown.keys() - followed:
            self._enqueue((resource, None), Replaced(()))
        for resource in unknown.keys() - self._unknown:
            self._pending.add((resource, None))
            self._enqueue((resource, None), ApiError(503, "ServiceUnavailable", unknown[resource]))
        self._unknown = frozenset(unknown)

    def _stop_replaced(self) -> None:
        """Stop following kinds that are gone, and versions that another version has replaced.

        Forgetting a policy may open its targets. So a version goes after the next one has been listed. A kind goes
        if neither discovery nor listing finds it: a server that has just started may answer one of them wrongly.
        """
        for stream in [stream for stream in self._streams if stream[1] is None and stream[0] not in self._served]:
            name = stream[0].group, stream[0].kind
            next_ones = [(each, None) for each in self._served if (each.group, each.kind) == name]
            is_gone = stream in self._missing or (stream in self._unlisted and not self.held.by(stream))
            is_gone = is_gone and str(stream[0]) not in self._defined  # its objects exist, but cannot be read
            if all(each in self._listed for each in next_ones) if next_ones else is_gone:
                self._stop(stream)

    def _follow_named(self) -> None:
        wanted = {
            (resource, named) for kind, resource in self._named_kinds.items() for named in self.held.needs.of(kind)
        }
        for stream in [stream for stream in self._streams if stream[1] is not None and stream not in wanted]:
            self._stop(stream)
        for stream in wanted:
            self._start(stream)

    async def _look_for_kinds(self) -> None:
        """Discover kinds once, after a signal or a pause."""
        await self._rediscover.wait(_REDISCOVERY_SECONDS)
        await asyncio.sleep(_DISCOVERY_DELAY_SECONDS)
        try:
            await self._discover()
        except (ApiError, UnreachableError, ValueError) as error:
            self._on_trouble(_DISCOVERY, error)

    async def _watch_definitions(self) -> None:
        """Discover kinds after each change of a definition. Without the right to watch them, do so periodically."""
        reflector = Reflector(self._connection, DEFINITIONS, on_trouble=self._on_watch_trouble)
        with contextlib.suppress(ApiError):
            async for event in reflector.follow():
                self._on_recovery(str(DEFINITIONS))
                if not isinstance(event, Synced):
                    self._rediscover()
        await asyncio.sleep(_REDISCOVERY_SECONDS)

    def _on_kinds_failure(self, name: str, error: Exception) -> None:
        self._on_failure(name, error)
        self._rediscover()

    def _on_failure(self, name: str, error: Exception) -> None:
        """Report an unexpected failure. Errors of the API server are expected, and not reported here."""
        log_failure(name, error)
        self._report_trouble(name, error)

    # Streams

    def _start(self, stream: Stream) -> None:
        if stream not in self._streams:
            self._pending.add(stream)
            follow = partial(self._follow, stream)
            self._streams[stream] = BackgroundTask(f"the watch of {stream[0]}", follow, self._on_failure).start()

    def _stop(self, stream: Stream) -> None:
        """Stop following; the objects of the stream are removed in the next batch."""
        self._streams.pop(stream).cancel()
        self._reflectors.pop(stream, None)
        self._listed.discard(stream)
        self._missing.discard(stream)
        self._enqueue(stream, Replaced(()))

    async def _follow(self, stream: Stream) -> None:
        """List and watch, until the server refuses. Return after a pause."""
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
            await asyncio.sleep(_REDISCOVERY_SECONDS if error.is_forbidden else _MISSING_RETRY_SECONDS)

    def read_again(self, refs: Iterable[PolicyRef]) -> None:
        """Read objects again as if they had changed. Only the API server has their full content."""
        if streams := self.held.streams_to_list_again(refs):
            self._list_again |= streams
            self._relist_needed()

    async def _relist(self) -> None:
        """List the kinds of objects to be read again. The pause limits the load, since every user can cause it."""
        await self._relist_needed.wait()
        await asyncio.sleep(_RELIST_DELAY_SECONDS)
        streams, self._list_again = self._list_again, set()
        for stream in streams & self._streams.keys():
            self._streams.pop(stream).cancel()
            self._start(stream)

    def _on_stream_trouble(self, stream: Stream, error: Exception) -> None:
        """Report why a kind waits. If its API server is away, the kind is left out until it can be listed."""
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

    def changes_of(self, batch: Batch, arrived_at: float | None = None) -> ClusterChanges:
        """Return the changes in a batch."""
        self.read_again(self.held.sizes.settle() - batch.put.keys())
        unlisted = [each for each in self._unlisted.values() if ref_of_document(each) in batch.reconsidered]
        return batch.changes(unlisted, arrived_at)

    # Events

    def note(self, stream: Stream, event: ObjectEvent | ApiError, batch: Batch) -> None:
        """Add one event to a batch."""
        self._pending.discard(stream)
        if stream not in self._streams and stream[0] not in self._unknown and not isinstance(event, Replaced):
            return  # the stream has been stopped
        match event:
            case ApiError():
                self._on_refused(stream, event, batch)
            case Replaced(objects):
                self._on_listed(stream, batch)
                present = {ref_of(obj): obj for obj in objects}
                for ref in self.held.by(stream) - present.keys():
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

    def _on_refused(self, stream: Stream, error: ApiError, batch: Batch) -> None:
        if error.is_missing:
            self._missing.add(stream)  # gone, if discovery does not have it either: see `_stop_replaced`
            return
        resource, named = stream
        verb = "may not" if error.is_forbidden else "cannot"
        what = f"{named} {verb} be read" if named is not None else f"{verb} be listed"
        document = self._unlisted[stream] = unlisted(resource, f"{what}: {error}")
        batch.reconsidered.add(ref_of_document(document))

    def _on_listed(self, stream: Stream, batch: Batch) -> None:
        if stream in self._streams:
            self._listed.add(stream)
            self._missing.discard(stream)
        for left_out in (stream, (_in_any_version(stream[0]), stream[1])):
            document = self._unlisted.pop(left_out, None)
            if document is not None:
                batch.reconsidered.add(ref_of_document(document))

    def _put(self, stream: Stream, ref: PolicyRef, obj: JsonObject, batch: Batch) -> None:
        is_replaced = stream[1] is None and stream[0] not in self._served
        if self.held.put(stream, ref, obj, batch, is_replaced=is_replaced):
            self._follow_named()

    def _remove(self, stream: Stream, ref: PolicyRef, batch: Batch) -> None:
        if self.held.remove(stream, ref, batch):
            self._follow_named()


def _in_any_version(resource: Resource) -> Resource:
    return in_any_version(resource.group, resource.kind)
