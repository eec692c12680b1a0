"""The authority of a cluster: built after everything has been listed, and changed by every batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from eastgate.authority.authority import Authority, Touched
from eastgate.authority.changes import Changes
from eastgate.authority.reading import ManifestError, Manifests, sort_documents
from eastgate.authority.sources.batches import ClusterChanges, Kept
from eastgate.authority.sources.documents import document_of, ref_of
from eastgate.authority.sources.following import ClusterFollower
from eastgate.authority.sources.needs import WatchedKind
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.cluster.unread import Handling
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, JsonObject
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.rendered import forget_renderings
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.reading.jwt import KeySource


OnApplied: TypeAlias = Callable[[Changes], object]
"""A callback that gets the changes that were made to an authority."""


class ClusterSource:
    """Reads a cluster for as long as it is open: `authority` is its state as of the last applied batch.

    A policy with errors closes its targets. Any other object with errors is left out: answers that it could change tell
    so, and `faults` has its errors.
    """

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        *,
        namespace: str | None = None,
        keys: KeySource | None = None,
        unread: Handling = Handling.BY_KIND,
        live: bool = True,
        also: Iterable[WatchedKind] = (),
        keeps: Kept = lambda _resource: False,
        on_trouble: Callable[[str, Exception], None] = lambda _what, _error: None,
        on_recovery: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self.settings = settings
        self._keys = keys
        self._unread = unread
        self._live = live
        self.follower = ClusterFollower(
            connection,
            settings,
            namespace=namespace,
            also=also,
            keeps=keeps,
            on_trouble=on_trouble,
            on_recovery=on_recovery,
        )
        self.faults: dict[PolicyRef, list[Diagnostic]] = {}
        """The errors in objects that were left out."""

    async def __aenter__(self) -> ClusterSource:
        await self.follower.__aenter__()
        try:
            changes = await self.follower.first()
            self.authority = self._build(changes)
        except BaseException:
            await self.follower.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.follower.__aexit__(kind, error, trace)

    def batches(self) -> AsyncIterator[ClusterChanges]:
        """Yield the changes. None of them counts until it is applied."""
        return self.follower.batches()

    def apply(self, changes: ClusterChanges, on_applied: OnApplied | None = None) -> Touched:
        """Change the authority by a batch; return the points that the batch touched.

        `on_applied` gets the objects that were read, for another authority that follows this one. Reading them again
        would be slow.
        """
        removed = [*changes.removed, *changes.listed]
        for ref in removed:
            self.faults.pop(ref, None)
        try:
            return self._apply(on_applied, changes.put, changes.unlisted, removed)
        except ManifestError:
            return self._apply_each(on_applied, changes, removed)

    def _apply(
        self,
        on_applied: OnApplied | None,
        put: Sequence[JsonObject],
        unlisted: Sequence[Document] = (),
        removed: Sequence[PolicyRef] = (),
    ) -> Touched:
        news = self._read(put, unlisted, whole=False)
        changes = Changes(news, frozenset({*removed, *news.left_out}))  # it may have been valid before
        touched = self.authority.apply(changes)
        if on_applied is not None:
            on_applied(changes)
        return touched

    def _apply_each(
        self, on_applied: OnApplied | None, changes: ClusterChanges, removed: Sequence[PolicyRef]
    ) -> Touched:
        """Apply a batch object by object, and leave out those that cannot be applied."""
        touched = [self._apply(on_applied, (), changes.unlisted, removed)]
        for obj in changes.put:
            try:
                touched.append(self._apply(on_applied, [obj]))
            except ManifestError as error:
                self.faults[ref_of(obj)] = error.diagnostics
        return reduce(or_, touched)

    def _build(self, changes: ClusterChanges) -> Authority:
        manifests = self._read(changes.put, changes.unlisted, whole=True)
        return Authority(manifests, keys=self._keys, strict=False, unread=self._unread, live=self._live)

    def _document(self, obj: JsonObject) -> Document:
        return document_of(obj, self.settings.namespace, self.follower.held.sizes.problem_of(ref_of(obj)))

    def _read(self, objects: Sequence[JsonObject], unlisted: Sequence[Document], *, whole: bool) -> Manifests:
        documents = [*map(self._document, objects), *unlisted]
        manifests = sort_documents(documents, self.settings, Reporter(), whole=whole)
        forget_renderings()  # the text is as large as the object, and only positions need it
        for obj in objects:
            self.faults.pop(ref_of(obj), None)
        self.faults |= manifests.left_out
        return manifests
