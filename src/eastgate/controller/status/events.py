"""Kubernetes events (events.k8s.io/v1) for notices.

An event is written when a problem begins, not while it lasts. A repeated problem, also after a restart or at another
replica, is counted in the existing event: the name of the event depends on its subject.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from eastgate.controller.status.merging import CONTROLLER_NAME
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.controller.status.schedule import TokenBucket
from eastgate.reading.kubernetes import ApiError, Connection, Resource, UnreachableError

EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")

_MAX_NOTE_CHARS: Final = 1024
_MAX_NAME_CHARS: Final = 200
_BURST: Final = 10  # events about one object at once
_CLUSTER_NAMESPACE: Final = "default"  # the namespace of events about cluster-scoped objects
_ACTIONS: Final = {
    NoticeReason.INVALID: "Validate",
    NoticeReason.NOT_CONVERTED: "Convert",
    NoticeReason.ANCESTORS_FULL: "WriteStatus",
    NoticeReason.INVARIANT_BROKEN: "Prove",
    NoticeReason.INVARIANT_HOLDS: "Prove",
}
_Key = tuple[NoticeReason, str]


class EventRecorder:
    """The writer of events: for one object at most ten at once and one more every few minutes; for all, a few a second.

    Further events are dropped. `counts` has the numbers of written, repeated, dropped and failed events.
    """

    def __init__(
        self,
        connection: Connection,
        instance: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._instance = instance
        self._clock = clock
        self._active: dict[str, frozenset[_Key]] = {}  # by the uid of the object
        self._buckets: dict[str, TokenBucket] = {}
        self._bucket = TokenBucket(100, 5.0)
        self.counts: Counter[str] = Counter()

    async def report(self, regarding: Mapping[str, Any], notices: Iterable[Notice], recovered: Notice | None) -> None:
        """Write events for the notices about an object that are new since the last report.

        `recovered`: the object has no problem now. It becomes an event if the object had one before.
        """
        uid = regarding["metadata"].get("uid", "")
        current = {(notice.reason, notice.subject): notice for notice in notices}
        before = self._active.get(uid, frozenset())
        for key, notice in current.items():
            if key not in before:
                await self._write(regarding, notice)
        if before and not current and recovered is not None:
            await self._write(regarding, recovered)
        if current or (before and recovered is None):
            self._active[uid] = frozenset(current) or before  # the problem is not solved yet
        else:
            self._active.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._active.pop(uid, None)
        self._buckets.pop(uid, None)

    async def _write(self, regarding: Mapping[str, Any], notice: Notice) -> None:
        uid = regarding["metadata"].get("uid", "")
        own = self._buckets.setdefault(uid, TokenBucket(_BURST, 1 / 300))
        if not own.take(self._clock()) or not self._bucket.take(self._clock()):
            self.counts["dropped"] += 1
            return
        event = self._event(regarding, notice)
        try:
            await self._connection.create(EVENTS, event)
            self.counts["written"] += 1
        except ApiError as error:
            await self._count(event, error)
        except UnreachableError:
            self.counts["failed"] += 1

    async def _count(self, event: Mapping[str, Any], refusal: ApiError) -> None:
        """Increase the count of an existing event."""
        if refusal.reason != "AlreadyExists":  # its namespace may be ending
            self.counts["failed"] += 1
            return
        metadata = event["metadata"]
        try:
            stored = await self._connection.get(EVENTS, metadata["name"], metadata["namespace"])
            count = (stored.get("series") or {}).get("count", 1)
            series = {"count": count + 1, "lastObservedTime": event["eventTime"]}
            await self._connection.replace(EVENTS, {**stored, "series": series})
            self.counts["repeated"] += 1
        except (ApiError, UnreachableError):
            self.counts["failed"] += 1

    def _event(self, regarding: Mapping[str, Any], notice: Notice) -> dict[str, Any]:
        metadata = regarding["metadata"]
        names = {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata}
        identity = "\0".join((metadata.get("uid", ""), notice.reason, notice.subject))
        digest = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
        note = notice.note
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{metadata['name'][:_MAX_NAME_CHARS]}.{digest}",
                "namespace": metadata.get("namespace", _CLUSTER_NAMESPACE),
            },
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER_NAME,
            "reportingInstance": self._instance,
            "action": _ACTIONS.get(notice.reason, "Program"),
            "reason": notice.reason.value,
            "regarding": {"apiVersion": regarding["apiVersion"], "kind": regarding["kind"], **names},
            "note": note if len(note) <= _MAX_NOTE_CHARS else f"{note[: _MAX_NOTE_CHARS - 3]}...",
            "type": "Warning" if notice.reason.is_warning else "Normal",
        }
