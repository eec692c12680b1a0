"""Conditions of Kubernetes objects: merges wanted conditions into existing ones.

Merging changes only what must change. A caller compares the result with the input to see whether to write.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eastgate.basics.records import dataclass

_MAX_MESSAGE_CHARS = 32768  # of metav1.Condition


class ConditionStatus(enum.StrEnum):
    """The status of a condition, as Kubernetes writes it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """A wanted condition. Its transition time is known only together with the condition that it replaces."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""

    @classmethod
    def true(cls, type_: str, reason: str, message: str = "") -> StatusCondition:
        """Return a condition with status True."""
        return cls(type_, ConditionStatus.TRUE, reason, message)

    @classmethod
    def false(cls, type_: str, reason: str, message: str = "") -> StatusCondition:
        """Return a condition with status False."""
        return cls(type_, ConditionStatus.FALSE, reason, message)

    @classmethod
    def unknown(cls, type_: str, reason: str, message: str = "") -> StatusCondition:
        """Return a condition with status Unknown."""
        return cls(type_, ConditionStatus.UNKNOWN, reason, message)


def merge_conditions(
    existing: Sequence[Mapping[str, Any]] | None,
    wanted: Iterable[StatusCondition],
    generation: int,
    now: str,
    ours: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the existing conditions with the wanted ones among them; equal to the existing ones if nothing changes.

    Conditions of other types stay as they are, except those of the types in `ours`: these are removed if they are not
    wanted. `lastTransitionTime` becomes `now` only if the status of a condition changes.
    """
    conditions = {condition.type: condition for condition in wanted}
    merged = [
        _written(conditions.pop(type_), generation, now, entry) if type_ in conditions else dict(entry)
        for entry in existing or ()
        if (type_ := entry.get("type")) in conditions or type_ not in ours
    ]
    return merged + [_written(condition, generation, now, {}) for condition in conditions.values()]


def _written(condition: StatusCondition, generation: int, now: str, before: Mapping[str, Any]) -> dict[str, Any]:
    unchanged = before.get("status") == condition.status and before.get("lastTransitionTime")
    return {
        "type": condition.type,
        "status": condition.status.value,
        "reason": condition.reason,
        "message": condition.message[:_MAX_MESSAGE_CHARS],
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if unchanged else now,
    }


def find_condition(conditions: Sequence[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions or () if condition.get("type") == type_), None)


def timestamp(moment: datetime) -> str:
    """Return a moment as Kubernetes writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
