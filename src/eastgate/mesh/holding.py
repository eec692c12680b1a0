"""What stays in force though it is not written any more: it may be that a file is just being saved.

Who saves a file in place empties it first, and who replaces one may remove it first. Read at that moment, its policies
would seem to be removed, and what they close would be open. So what is in a file that is being written stays as it was,
and what is gone counts as removed when it has been gone for a while. What is removed and can only have let somebody in
counts at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeVar

from eastgate.authority import Authority, Fault, Manifests
from eastgate.dialects import Policy
from eastgate.mesh.local.rest import SETTLING
from eastgate.places import Span
from eastgate.policy import AllowAny, Layer, PolicyRef, rules_of
from eastgate.world import WorldObject

__all__ = ["Holding", "file_of", "only_lets_in"]

_T = TypeVar("_T")


class Holding:
    """Remembers since when what is in force is gone from the files."""

    def __init__(self) -> None:
        self._gone: dict[Hashable, float] = {}

    def hold(
        self,
        before: Manifests,
        after: Manifests,
        written: Collection[str],
        now: float,
        lets_in: Callable[[Manifests, Collection[PolicyRef]], Collection[PolicyRef]],
    ) -> float | None:
        """Put back into `after` what of `before` stays; tells how long to wait before looking again, if at all.

        `written` are the files that are being written. `lets_in` tells which of the policies that are gone can only
        have let somebody in.
        """
        after.policies = _as_before(before.policies, after.policies, written, _of_policy)
        others = [fault for fault in after.faults if not fault.closes]
        after.faults = [*others, *_as_before(before.closing, after.closing, written, _of_fault)]
        after.objects = _as_before(before.objects, after.objects, written, _of_object)
        there = {*_keys(after)}
        gone = _keys(before) - there
        refs = [key for key in gone if isinstance(key, PolicyRef)]
        gone -= {*lets_in(after, refs)} if refs else set()
        self._gone = {key: self._gone.get(key, now) for key in gone}
        held = {key for key, since in self._gone.items() if now - since < SETTLING}
        if not held:
            return None
        after.policies = [*after.policies, *(one for one in before.policies if one.ref in held)]
        after.faults = [*after.faults, *(fault for fault in before.closing if fault.policy.ref in held)]
        after.objects = _in_order(before.objects, after.objects, held)
        return SETTLING - (now - min(self._gone[key] for key in held))


def _keys(manifests: Manifests) -> set[Hashable]:
    refs = {one.ref for one in manifests.demanded}
    return {*refs, *(one.id for one in manifests.objects)}


def _of_policy(policy: Policy) -> tuple[Hashable, Span | None]:
    return policy.ref, policy.span


def _of_fault(fault: Fault) -> tuple[Hashable, Span | None]:
    return fault.policy.ref, fault.document.span


def _of_object(one: WorldObject) -> tuple[Hashable, Span | None]:
    return one.id, one.span


def _as_before(
    before: list[_T], after: list[_T], written: Collection[str], of: Callable[[_T], tuple[Hashable, Span | None]]
) -> list[_T]:
    """Return what is there now, with what was in these files before in the place of what is in them now."""
    if not written:
        return after
    rest = [one for one in after if file_of(of(one)[1]) not in written]
    there = {of(one)[0] for one in rest}
    return [*rest, *(one for one in before if file_of(of(one)[1]) in written and of(one)[0] not in there)]


def _in_order(before: list[WorldObject], after: list[WorldObject], held: Collection[Hashable]) -> list[WorldObject]:
    """Return the objects in the order that they had: then nothing differs where nothing but the held ones is gone."""
    now = {one.id: one for one in after}
    kept = [now.pop(one.id, one) for one in before if one.id in now or one.id in held]
    return [*kept, *now.values()]


def file_of(span: Span | None) -> str | None:
    """The file that something was read from, as files are watched."""
    return os.path.abspath(span.file) if span is not None else None


def only_lets_in(before: Authority, after: Authority, refs: Iterable[PolicyRef]) -> set[PolicyRef]:
    """Those of some policies, gone in `after`, without which less is allowed wherever they applied.

    That is so where all that they had was rules that allow, in a place that has others that do.
    """
    wanted = {*refs}
    found: set[PolicyRef] = set()
    for workload in before.world.workloads:
        here = {one.policy.ref for one in before.engine.attached(workload)} & wanted
        if here and workload in after.world.workloads:
            layers, left = before.engine.program(workload).layers, after.engine.program(workload).layers
            narrower = _places(layers) <= _places(left)
            sure = {ref for ref in here if narrower and _only_allows(layers, ref)}
            found |= sure
            wanted -= here - sure
    return found & wanted


def _places(layers: Iterable[Layer]) -> set[Hashable]:
    """The kinds of stages that requests pass."""
    return {
        (layer.name, number, chain.scope, type(stage), stage.name)
        for layer in layers
        for number, chain in enumerate(layer.chains)
        for stage in chain.stages
    }


def _only_allows(layers: Iterable[Layer], ref: PolicyRef) -> bool:
    """Whether it has rules, and all of them are of lists of which any one allows."""
    stages = [stage for layer in layers for chain in layer.chains for stage in chain.stages]
    chosen = any(ref in chain.chosen_by for layer in layers for chain in layer.chains)
    theirs = [stage for stage in stages if any(rule.origin.policy == ref for rule in rules_of(stage))]
    return bool(theirs) and not chosen and all(isinstance(stage, AllowAny) for stage in theirs)
