"""Structural equality of policies and layers: whether two decide alike, wherever they are written.

Rules from different lines are different rules. So with `==`, all rules differ between two readings of one file. This
comparison ignores the lines. It is one-sided: values that are alike decide alike, but others may decide alike, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from eastgate.authority.authority import Authority
from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects import Policy
from eastgate.ir import And, Computed, Is, Not, Or, Origin, PolicyRef
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.destinations import Entrance
from eastgate.reading.manifests.document import Stretch, origin_of

_PREDICATES = (Is, Computed, Not, And, Or)


def are_alike(first: object, second: object) -> bool:
    """Return whether two values are equal, apart from the places where they are written."""
    if first is second:
        return True
    kind = type(first)
    if kind is not type(second):
        return False
    if kind in (Span, Origin):
        return True
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(are_alike, first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(are_alike(first[key], second[key]) for key in first)
    if isinstance(first, _PREDICATES):
        return first == second
    compared = _compared(kind)
    if compared is None:
        return first == second
    return all(are_alike(getattr(first, name), getattr(second, name)) for name in compared)


_FIELDS: dict[type, tuple[str, ...] | None] = {}


def _compared(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a record that its equality compares, or None if the type is not a record."""
    if kind not in _FIELDS:
        is_record = dataclasses.is_dataclass(kind)
        _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind) if field.compare) if is_record else None
    return _FIELDS[kind]


def changed_policies(
    old: Authority, new: Authority, before: Mapping[PolicyRef, Policy], after: Mapping[PolicyRef, Policy]
) -> list[PolicyRef]:
    """Return the policies that are not alike on both sides, or exist on only one."""
    changed = [ref for ref in before if ref not in after]
    for ref, policy in after.items():
        is_read = ref in before and type(before[ref]) is type(policy)  # on one side it may have errors
        if not is_read or not (_is_same_document(old, new, ref) or are_alike(before[ref], policy)):
            changed.append(ref)
    return changed


def _is_same_document(old: Authority, new: Authority, ref: PolicyRef) -> bool:
    """Return whether the document of a policy is equal on both sides. This test is fast, and mostly sufficient."""
    before, after = old.document_of(ref), new.document_of(ref)
    if before is None or after is None or (before.api_version, before.home) != (after.api_version, after.home):
        return False
    was, now = origin_of(before), origin_of(after)
    if not isinstance(was, Stretch) or not isinstance(now, Stretch) or was.is_json is not now.is_json:
        return False
    return was.written is not None and was.written == now.written


def are_alike_entrances(old: Entrance, new: Entrance) -> bool:
    """Return whether the passages of two entrances are alike."""
    return (
        old.hides_http == new.hides_http
        and len(old.passages) == len(new.passages)
        and all(
            before.when == after.when
            and len(before.points) == len(after.points)
            and all(
                _same_facts(first.facts, second.facts) and are_alike(first.layers, second.layers)
                for first, second in zip(before.points, after.points, strict=True)
            )
            for before, after in zip(old.passages, new.passages, strict=True)
        )
    )


def _same_facts(first: Facts, second: Facts) -> bool:
    return first.values == second.values and first.vague == second.vague
