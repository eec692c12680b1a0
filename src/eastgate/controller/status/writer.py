"""Writes the status of policies, as the leader: assesses marked policies, and applies statuses that differ.

Lists of entries are atomic, and several controllers write into them. So a status is applied for exactly the version of
the object with which it was merged. After a conflict, the object is read and merged again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from eastgate.authority.sources.documents import ref_of
from eastgate.controller.conditions import timestamp
from eastgate.controller.status.assessment import Assessment, kind_of
from eastgate.controller.status.events import EventRecorder
from eastgate.controller.status.merging import left_conditions, merge_status
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.controller.status.schedule import Schedule
from eastgate.controller.tracing import span
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import ApiError, Connection, JsonObject, Resource

STATUS_MANAGER: Final = "eastgate-status"

_MAX_TRIES: Final = 5
_REST_FACTOR: Final = 20  # a policy rests for this multiple of the time of its check
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")


class StatusWriter:
    """Keeps the status of policies up to date.

    `assess` returns the assessment of a policy, or None if Eastgate does not write its status or it does not exist.
    `find` returns the served resource of a policy. Call `observe` with every object of a watch, and `mark` with the
    policies that another change may affect. Only `run` writes; only the leader runs it.
    """

    def __init__(
        self,
        connection: Connection,
        assess: Callable[[PolicyRef], Assessment | None],
        find: Callable[[PolicyRef], Resource | None],
        *,
        recorder: EventRecorder | None = None,
        schedule: Schedule[PolicyRef] | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_trouble: Callable[[PolicyRef, Exception], None] = lambda _ref, _error: None,
        on_recovery: Callable[[PolicyRef], None] = lambda _ref: None,
    ) -> None:
        self._connection = connection
        self._assess = assess
        self._find = find
        self._recorder = recorder
        self._schedule = schedule if schedule is not None else Schedule()
        self._clock = clock
        self._on_trouble = on_trouble
        self._on_recovery = on_recovery
        self._failed: set[PolicyRef] = set()  # policies whose last status write failed
        self._objects: dict[PolicyRef, JsonObject] = {}
        self._written: dict[PolicyRef, str] = {}  # the object version of the last own write
        self._marked = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """The numbers of statuses that were written, unchanged, in conflict, or failed."""
        self.full: set[PolicyRef] = set()
        """Policies whose status has no space left for Eastgate."""
        self.states: dict[PolicyRef, str] = {}
        """The reason of the worst condition of each policy, for metrics."""

    # What changes

    def observe(self, obj: Mapping[str, Any]) -> None:
        """Store an object of a watch, and mark it unless the change is an own write."""
        ref = ref_of(obj)
        if kind_of(ref) is None:
            return
        self._keep(ref, obj)
        if self._written.get(ref) != obj["metadata"].get("resourceVersion"):
            self.mark([ref])

    def forget(self, ref: PolicyRef) -> None:
        """Forget a policy that was deleted."""
        self._schedule.forget(ref)
        self._written.pop(ref, None)
        self._failed.discard(ref)
        self.states.pop(ref, None)
        self.full.discard(ref)
        obj = self._objects.pop(ref, None)
        if obj is not None and self._recorder is not None:
            self._recorder.forget(obj["metadata"].get("uid", ""))

    def mark(self, refs: Iterable[PolicyRef]) -> None:
        """Mark policies for a new check."""
        self._schedule.mark(refs, self._clock())
        self._marked.set()

    def mark_all(self) -> None:
        """Mark all policies for a new check, as a new leader must."""
        self.mark(list(self._objects))

    # Writing

    async def run(self) -> None:
        """Write statuses until cancelled."""
        self.mark_all()
        while True:
            self._marked.clear()
            await self.settle()
            wait = self._schedule.wait(self._clock())
            try:
                async with asyncio.timeout(wait):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._marked.wait()
            except TimeoutError:
                continue

    async def settle(self) -> None:
        """Check every policy that is due."""
        while (ref := self._schedule.take(self._clock())) is not None:
            try:
                await self._check(ref)
            except ApiError as error:
                self._fail(ref, error, error.retry_after)
            except Exception as error:  # one failed policy must not stop the others
                self._fail(ref, error)
            await asyncio.sleep(0)  # others share this loop

    def _fail(self, ref: PolicyRef, error: Exception, asked: float | None = None) -> None:
        self.counts["failed"] += 1
        self._failed.add(ref)
        self._on_trouble(ref, error)
        self._schedule.fail(ref, self._clock(), asked)

    async def _check(self, ref: PolicyRef) -> None:
        started = self._clock()
        assessment, resource = self._assess(ref), self._find(ref)
        ended = self._clock()
        self._schedule.rest(ref, ended, _REST_FACTOR * (ended - started))
        if assessment is None or resource is None:
            self.states.pop(ref, None)
            return
        obj = self._objects.get(ref)
        for last in (*[False] * (_MAX_TRIES - 1), True):
            if obj is None or not _is_about(assessment, obj):
                obj = await self._read(ref, resource)
            if obj is None:
                return
            if not _is_about(assessment, obj):  # a later generation, which is not assessed yet
                self.counts["behind"] += 1
                self._schedule.fail(ref, self._clock())
                return
            try:
                await self._write(assessment, resource, obj)
            except ApiError as error:
                if error.is_missing:
                    return
                if last or not error.is_conflict:
                    raise
                self.counts["conflicts"] += 1
                obj = None
            else:
                self._schedule.succeed(ref)
                if ref in self._failed:
                    self._failed.discard(ref)
                    self._on_recovery(ref)
                await self._report(assessment, obj)
                return

    async def _read(self, ref: PolicyRef, resource: Resource) -> JsonObject | None:
        try:
            obj = await self._connection.get(resource, ref.name, ref.namespace)
        except ApiError as error:
            if error.is_missing:
                return None
            raise
        return self._keep(ref, obj)

    async def _write(self, assessment: Assessment, resource: Resource, obj: Mapping[str, Any]) -> None:
        ref = assessment.ref
        merged = merge_status(assessment, obj.get("status"), timestamp(datetime.now(UTC)))
        self.states[ref] = _state_of(assessment)
        (self.full.add if merged.is_full else self.full.discard)(ref)
        if merged.status is None:
            self.counts["unchanged"] += 1
            return
        names = {name: value for name, value in obj["metadata"].items() if name in _PRECONDITIONS}
        wanted = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": names, "status": merged.status}
        self._schedule.spend(ref, self._clock())
        with span("write status", {"policy": str(ref)}):
            answer = await self._connection.apply(resource, wanted, manager=STATUS_MANAGER, subresource="status")
            left = left_conditions(answer.get("status") or {}, merged.status)
            if left:
                version = {
                    "op": "test",
                    "path": "/metadata/resourceVersion",
                    "value": answer["metadata"]["resourceVersion"],
                }
                change = [version, *({"op": "remove", "path": f"/status/conditions/{at}"} for at in left)]
                where = (resource, ref.name, ref.namespace)
                answer = await self._connection.patch(
                    *where, change, kind="json", subresource="status", manager=STATUS_MANAGER
                )
        self._written[ref] = answer["metadata"]["resourceVersion"]
        self._keep(ref, answer)
        self.counts["written"] += 1

    async def _report(self, assessment: Assessment, obj: Mapping[str, Any]) -> None:
        if self._recorder is None:
            return
        notices = list(assessment.notices)
        if assessment.ref in self.full:
            note = (
                "other controllers have filled the list of ancestors in its status, so Eastgate cannot report its state"
            )
            notices.append(Notice(NoticeReason.ANCESTORS_FULL, note))
        in_force = assessment.entries[0].conditions[-1].message if assessment.is_in_force else None
        recovered = Notice(NoticeReason.PROGRAMMED, in_force) if in_force is not None else None
        await self._recorder.report(obj, notices, recovered)

    def _keep(self, ref: PolicyRef, obj: Mapping[str, Any]) -> JsonObject:
        metadata = {name: obj["metadata"][name] for name in _METADATA if name in obj["metadata"]}
        kept = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "status": obj.get("status")}
        self._objects[ref] = kept
        return kept


_PRECONDITIONS: Final = ("name", "namespace", "uid", "resourceVersion")


def _is_about(assessment: Assessment, obj: Mapping[str, Any]) -> bool:
    """Return whether an assessment is about the current object: the same uid and generation."""
    metadata = obj["metadata"]
    stored = assessment.stored
    return metadata.get("generation", 0) == stored.generation and stored.uid in ("", metadata.get("uid"))


def _state_of(assessment: Assessment) -> str:
    """Return the reason of the worst condition, or of the last one if all hold."""
    if not assessment.entries:
        return "None"
    conditions = assessment.entries[0].conditions
    return next((condition.reason for condition in conditions if condition.status != "True"), conditions[-1].reason)
