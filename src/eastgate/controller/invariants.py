"""The statuses of Invariants: each is evaluated again after changes. Changes of a status are logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from eastgate.controller.admission.semantic.model import HOLDS, PROVEN, InvariantStanding, condition_of
from eastgate.controller.conditions import find_condition, timestamp
from eastgate.controller.logs import log_recovery, log_trouble
from eastgate.controller.replica import Replica
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource
from eastgate.reports.invariants.objects import StatementStanding

_LOG = logging.getLogger(__name__)


class InvariantStatuses:
    """Writes the condition `Holds` of each Invariant when it changes; logs the change, and writes events."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._uids: dict[PolicyRef, str] = {}  # of Invariants that may have events

    async def write(self) -> None:
        """Evaluate all Invariants, and write the changed statuses."""
        standings = await asyncio.to_thread(self._replica.judges.enforced.evaluate)
        self._note(standings)
        for standing in standings:
            ref = standing.invariant.ref
            obj, resource = self._replica.objects.get(ref), self._replica.find(ref)
            if obj is not None and resource is not None:
                await self._write(standing, obj, resource)
                await self._report(standing, obj)

    def stop(self) -> None:
        """Forget the states: another replica evaluates the Invariants from now on."""
        self._replica.invariant_states.clear()

    def _note(self, standings: Sequence[InvariantStanding]) -> None:
        before = dict(self._replica.invariant_states)
        states = {standing.invariant.ref: condition_of(standing)["reason"] for standing in standings}
        self._replica.invariant_states.clear()
        self._replica.invariant_states.update(states)
        for ref in self._uids.keys() - states.keys():
            self._replica.statuses.recorder.forget(self._uids.pop(ref))
        for standing in standings:
            ref = standing.invariant.ref
            if before.get(ref, PROVEN) != states[ref]:
                _log(standing)

    async def _report(self, standing: InvariantStanding, obj: JsonObject) -> None:
        """Write an event if an Invariant breaks, or holds again."""
        self._uids[standing.invariant.ref] = obj["metadata"].get("uid", "")
        is_broken = standing.finding.standing is StatementStanding.BROKEN
        notices = [Notice(NoticeReason.INVARIANT_BROKEN, standing.message)] if is_broken else []
        holds = standing.finding.standing is StatementStanding.HOLDS
        recovered = Notice(NoticeReason.INVARIANT_HOLDS, standing.message) if holds else None
        await self._replica.statuses.recorder.report(obj, notices, recovered)

    async def _write(self, standing: InvariantStanding, obj: JsonObject, resource: Resource) -> None:
        ref = standing.invariant.ref
        wanted = dict(condition_of(standing))
        before = find_condition((obj.get("status") or {}).get("conditions"), HOLDS) or {}
        if {key: before.get(key) for key in wanted} == wanted:
            return
        same = before.get("status") == wanted["status"]
        since = before.get("lastTransitionTime") if same else timestamp(datetime.now(UTC))
        names = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": names,
            "status": {"conditions": [{**wanted, "lastTransitionTime": since}]},
        }
        what, fields = f"the status of {ref}", _fields_of(ref)
        try:
            await self._replica.connection.apply(resource, body, manager="eastgate-status", subresource="status")
            log_recovery(_LOG, what, **fields)
        except ApiError as error:
            if not error.is_missing:
                log_trouble(_LOG, what, error, **fields)


def _fields_of(ref: PolicyRef) -> dict[str, str]:
    return {"invariant": str(ref), **({"namespace": ref.namespace} if ref.namespace is not None else {})}


def _log(standing: InvariantStanding) -> None:
    ref = standing.invariant.ref
    fields = _fields_of(ref)
    match standing.finding.standing:
        case StatementStanding.BROKEN:
            _LOG.error("%s is broken: %s", ref, standing.message, extra=fields)
        case StatementStanding.NOT_PROVEN:
            _LOG.warning("%s is not proven to hold: %s", ref, standing.message, extra=fields)
        case StatementStanding.HOLDS:
            _LOG.info("%s holds again", ref, extra=fields)
