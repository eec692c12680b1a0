"""Computes the status to write from an assessment and the stored status.

Entries of other controllers are not changed, and nothing is written twice.

The generation in a stored status is not trusted, since any writer of the status can claim a future one. The status is
written for one version of the object, so an older assessment cannot replace a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.controller.conditions import StatusCondition, merge_conditions
from eastgate.controller.status.ancestors import AncestorRef
from eastgate.controller.status.assessment import Assessment, StatusEntry
from eastgate.dialects.serving import Status

CONTROLLER_NAME: Final = "eastgate.dev/policy-controller"

# The condition types that Eastgate writes. Other types stay, also in entries of Eastgate.
_OWN_TYPES: Final = frozenset({"Accepted", "Available", "Programmed", "ResolvedRefs"})


@dataclass(frozen=True, slots=True)
class _ListForm:
    """A list of entries in a status: its field, the field of references, and the maximum number of entries."""

    entries: str
    ref: str
    most: int


_LISTS: Final = {
    Status.ANCESTORS: _ListForm("ancestors", "ancestorRef", 16),
    Status.PARENTS: _ListForm("parents", "parentRef", 32),
}


def left_conditions(written: Mapping[str, Any], applied: Mapping[str, Any]) -> list[int]:
    """Return the indices of conditions of Eastgate that were not applied, the last first.

    They belong to another manager, and applying does not remove them.
    """
    ours = _OWN_TYPES - {condition["type"] for condition in applied.get("conditions") or ()}
    conditions: Sequence[Mapping[str, Any]] = written.get("conditions") or ()
    return [at for at in reversed(range(len(conditions))) if conditions[at].get("type") in ours]


@dataclass(frozen=True, slots=True)
class MergedStatus:
    """The status to write, or None without a change. `is_full`: other controllers have used all entries."""

    status: dict[str, Any] | None
    is_full: bool = False


def merge_status(assessment: Assessment, existing: Mapping[str, Any] | None, now: str) -> MergedStatus:
    """Return the status to write, with the entries of other controllers if the write replaces these."""
    form = _LISTS.get(assessment.form)
    if form is None:
        return MergedStatus(_merge_whole(assessment, existing or {}, now))
    return _merge_entries(assessment, existing or {}, form, now)


def _merge_whole(assessment: Assessment, existing: Mapping[str, Any], now: str) -> dict[str, Any] | None:
    """Return Eastgate's conditions only: the API server merges them with the others, by their types."""
    generation = assessment.stored.generation
    before: Sequence[Mapping[str, Any]] = existing.get("conditions") or ()
    wanted = [condition for entry in assessment.entries for condition in entry.conditions]
    merged = merge_conditions(before, wanted, generation, now, _OWN_TYPES)
    if merged == before and existing.get("observedGeneration") == generation:
        return None
    return {
        "observedGeneration": generation,
        "conditions": [condition for condition in merged if condition["type"] in _OWN_TYPES],
    }


def _merge_entries(assessment: Assessment, existing: Mapping[str, Any], form: _ListForm, now: str) -> MergedStatus:
    generation, home = assessment.stored.generation, assessment.ref.namespace
    before: Sequence[Mapping[str, Any]] = existing.get(form.entries) or ()
    ours = [entry for entry in before if _is_ours(entry)]
    others = [entry for entry in before if not _is_ours(entry)]
    room = form.most - len(others)
    if room <= 0:
        return MergedStatus(None, is_full=bool(assessment.entries))
    by_ref: dict[AncestorRef, Mapping[str, Any]] = {}
    for entry in ours:
        by_ref.setdefault(AncestorRef.read(entry.get(form.ref) or {}, home), entry)
    wanted = [
        _written(entry, by_ref.get(entry.ancestor, {}), form, generation, now)
        for entry in _worst_entries(assessment.entries, room)
        if entry.ancestor is not None
    ]
    if wanted == ours:
        return MergedStatus(None)
    return MergedStatus({form.entries: _in_place(before, wanted)})


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return entry.get("controllerName") == CONTROLLER_NAME


def _written(
    entry: StatusEntry, before: Mapping[str, Any], form: _ListForm, generation: int, now: str
) -> dict[str, Any]:
    assert entry.ancestor is not None  # noqa: S101 - the caller has looked
    return {
        form.ref: before.get(form.ref) or entry.ancestor.to_json(),
        "controllerName": CONTROLLER_NAME,
        "conditions": merge_conditions(before.get("conditions"), entry.conditions, generation, now, _OWN_TYPES),
    }


def _worst_entries(entries: Sequence[StatusEntry], room: int) -> Sequence[StatusEntry]:
    """Return the worst entries, up to the maximum; the last one names the number of omitted entries.

    No omitted entry is worse than a listed one.
    """
    if len(entries) <= room:
        return entries
    *listed, last = entries[:room]
    first, *rest = last.conditions
    left_out = f"; {len(entries) - room} more targets are not listed for lack of space; they are not worse"
    noted = StatusCondition(first.type, first.status, first.reason, first.message + left_out)
    return [*listed, replace(last, conditions=(noted, *rest))]


def _in_place(before: Iterable[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the list with Eastgate's entries at the place of the first old one, or at the end."""
    merged: list[Mapping[str, Any]] = []
    added = False
    for entry in before:
        if not _is_ours(entry):
            merged.append(entry)
        elif not added:
            merged += wanted
            added = True
    return merged if added else [*merged, *wanted]
