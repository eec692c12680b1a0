"""The statuses of Invariants: whether each holds, found out again after changes."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from eastgate.admission.semantic.standing import InvariantStanding, condition_of
from eastgate.controller.conditions import timestamp
from eastgate.controller.replica import Replica
from eastgate.kubernetes import ApiError, JsonObject

__all__ = ["InvariantStatuses"]

_LOG = logging.getLogger(__name__)


class InvariantStatuses:
    """Writes the condition `Holds` of each Invariant where it is another than before."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    async def write(self) -> None:
        """Find out what holds, and write what has changed."""
        for standing in await asyncio.to_thread(self._replica.judge.evaluate):
            await self._write(standing)

    async def _write(self, standing: InvariantStanding) -> None:
        ref = standing.invariant.ref
        obj, resource = self._replica.objects.get(ref), self._replica.find(ref)
        if obj is None or resource is None:
            return
        wanted = dict(condition_of(standing))
        before: JsonObject = next(iter((obj.get("status") or {}).get("conditions") or ()), {})
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
        try:
            await self._replica.connection.apply(resource, body, manager="eastgate-status", subresource="status")
        except ApiError as error:
            if not error.is_missing:
                _LOG.warning("the status of %s could not be written: %s", ref, error, extra={"kind": ref.kind})
