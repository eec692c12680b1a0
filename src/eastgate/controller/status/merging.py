"""The status to write, from what we have to say and what is stored.

Nothing of others is touched, and nothing is written that is there already.

A status never counts for what it says of a generation: whoever may write it can claim one that does not exist yet. That
an older assessment replaces no newer one follows from the version of the object that a status is written for.
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

# The types that we write. Those of others stay, also in entries of ours.
_OURS: Final = frozenset({"Accepted", "Available", "Programmed", "ResolvedRefs"})


@dataclass(frozen=True, slots=True)
class _ListForm:
    """A list of entries in a status: its field, the field of a reference in it, and how many entries may be in it."""

    entries: str
    ref: str
    most: int


_LISTS: Final = {
    Status.ANCESTORS: _ListForm("ancestors", "ancestorRef", 16),
    Status.PARENTS: _ListForm("parents", "parentRef", 32),
}


def left_conditions(written: Mapping[str, Any], applied: Mapping[str, Any]) -> list[int]:
    """Return where the `conditions` of a status have types of ours that were not applied, last first.

    They are of another manager, from whom applying takes nothing away.
    """
    ours = _OURS - {condition["type"] for condition in applied.get("conditions") or ()}
    conditions: Sequence[Mapping[str, Any]] = written.get("conditions") or ()
    return [at for at in reversed(range(len(conditions))) if conditions[at].get("type") in ours]


@dataclass(frozen=True, slots=True)
class MergedStatus:
    """The status to write; None where there is nothing to write. `is_full`: others have taken all room for entries."""

    status: dict[str, Any] | None
    is_full: bool = False


def merge_status(assessment: Assessment, existing: Mapping[str, Any] | None, now: str) -> MergedStatus:
    """Return the status to write. Entries and conditions of others are in it where it would replace them."""
    form = _LISTS.get(assessment.form)
    if form is None:
        return MergedStatus(_merge_whole(assessment, existing or {}, now))
    return _merge_entries(assessment, existing or {}, form, now)


def _merge_whole(assessment: Assessment, existing: Mapping[str, Any], now: str) -> dict[str, Any] | None:
    """Return conditions of ours alone: the API server merges them with those of others, by their types."""
    generation = assessment.stored.generation
    before: Sequence[Mapping[str, Any]] = existing.get("conditions") or ()
    wanted = [condition for entry in assessment.entries for condition in entry.conditions]
    merged = merge_conditions(before, wanted, generation, now, _OURS)
    if merged == before and existing.get("observedGeneration") == generation:
        return None
    return {
        "observedGeneration": generation,
        "conditions": [condition for condition in merged if condition["type"] in _OURS],
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
        for entry in _fold(assessment.entries, room)
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
        "conditions": merge_conditions(before.get("conditions"), entry.conditions, generation, now, _OURS),
    }


def _fold(entries: Sequence[StatusEntry], room: int) -> Sequence[StatusEntry]:
    """Return as many entries as there is room for, the worst; the last of them says how many are not listed.

    None that is left out is worse than one that is listed.
    """
    if len(entries) <= room:
        return entries
    *listed, last = entries[:room]
    first, *rest = last.conditions
    left_out = f"; {len(entries) - room} more targets are not listed, for lack of room, and are no worse"
    noted = StatusCondition(first.type, first.status, first.reason, first.message + left_out)
    return [*listed, replace(last, conditions=(noted, *rest))]


def _in_place(before: Iterable[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the list with our entries in the place of the first that was ours, or at the end."""
    merged: list[Mapping[str, Any]] = []
    added = False
    for entry in before:
        if not _is_ours(entry):
            merged.append(entry)
        elif not added:
            merged += wanted
            added = True
    return merged if added else [*merged, *wanted]
