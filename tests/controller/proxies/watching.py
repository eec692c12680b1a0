"""A cluster with simulated watches: events of kinds in, batches of changes out, without a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from eastgate.authority.authority import Authority, Touched
from eastgate.authority.sources.batches import Batch, Stream
from eastgate.authority.sources.documents import ref_of
from eastgate.authority.sources.source import ClusterSource
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, Deleted, Put, Replaced, Resource
from eastgate.settings import Settings
from tests.controller.proxies.pods import Plain


class WatchedCluster:
    """The objects of a cluster, and a source that gets them as from watches."""

    def __init__(self, objects: Iterable[Plain]) -> None:
        self.objects: dict[PolicyRef, Plain] = {ref_of(each): each for each in objects}
        self._source = ClusterSource(cast("Connection", None), Settings().enforced())
        batch = Batch()
        for stream in {_stream(each) for each in self.objects.values()}:
            self._list(batch, stream)
        self._source.authority = self._source._build(self._source.follower.changes_of(batch))

    @property
    def authority(self) -> Authority:
        return self._source.authority

    def watch(self, put: Iterable[Plain], remove: Iterable[str], lists_again: str | None = None) -> Touched:
        """Send events for added and removed objects, by name, and list a kind again."""
        batch, follower = Batch(), self._source.follower
        for each in put:
            self.objects[ref_of(each)] = each
            follower.note(self._followed(_stream(each)), Put(each), batch)
        for ref in [ref for ref in self.objects if str(ref) in {*remove}]:
            gone = self.objects.pop(ref)
            follower.note(self._followed(_stream(gone)), Deleted(gone), batch)
        for stream in {_stream(each) for each in self.objects.values() if each["kind"] == lists_again}:
            self._list(batch, stream)
        return self._source.apply(follower.changes_of(batch))

    def _list(self, batch: Batch, stream: Stream) -> None:
        of_kind = tuple(each for each in self.objects.values() if _stream(each) == stream)
        self._source.follower.note(self._followed(stream), Replaced(of_kind), batch)

    def _followed(self, stream: Stream) -> Stream:
        follower: Any = self._source.follower
        follower._streams[stream] = None
        follower._served |= {stream[0]}
        return stream


def _stream(obj: Plain) -> Stream:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    return Resource(group, version, f"{obj['kind']}s".lower(), obj["kind"]), None
