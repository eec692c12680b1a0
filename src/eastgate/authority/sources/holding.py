"""Keeps objects in force that vanished from the manifests for a moment: a file may just be being saved.

An editor may empty a file before it writes it, or remove it before it replaces it. A reading at that moment would miss
its policies, and open their targets. So the content of a file that is being written stays as it was, and a missing
object counts as removed only after a while. A removed policy that can only have allowed requests counts at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeVar

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import Fault, Manifests
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import WorldObject
from eastgate.dialects import Policy
from eastgate.ir import Layer, PolicyRef
from eastgate.ir.symbolic.stages import order_chain
from eastgate.reading.manifests.watching.changes import SETTLING

_T = TypeVar("_T")


class HeldObjects:
    """Remembers since when each object in force is missing from the files."""

    def __init__(self) -> None:
        self._gone: dict[Hashable, float] = {}

    def hold(
        self,
        before: Manifests,
        after: Manifests,
        unfinished: Collection[str],
        now: float,
        only_allowing: Callable[[Manifests, Collection[PolicyRef]], Collection[PolicyRef]],
    ) -> float | None:
        """Put objects of `before` that stay in force back into `after`. Return the seconds until the next read, or
        None.

        `unfinished` are the files that are being written. `only_allowing` returns those of the removed policies that
        can only have allowed requests.
        """
        after.policies = _restore(before.policies, after.policies, unfinished, _key_of_policy)
        others = [fault for fault in after.faults if not fault.closes]
        after.faults = [*others, *_restore(before.closing, after.closing, unfinished, _key_of_fault)]
        after.objects = _restore(before.objects, after.objects, unfinished, _key_of_object)
        present = {*_keys(after)}
        gone = _keys(before) - present
        refs = [key for key in gone if isinstance(key, PolicyRef)]
        gone -= {*only_allowing(after, refs)} if refs else set()
        self._gone = {key: self._gone.get(key, now) for key in gone}
        held = {key for key, since in self._gone.items() if now - since < SETTLING}
        if not held:
            return None
        after.policies = [*after.policies, *(policy for policy in before.policies if policy.ref in held)]
        after.faults = [*after.faults, *(fault for fault in before.closing if fault.policy.ref in held)]
        after.objects = _restore_objects(before.objects, after.objects, held)
        return SETTLING - (now - min(self._gone[key] for key in held))


def _keys(manifests: Manifests) -> set[Hashable]:
    refs = {policy.ref for policy in manifests.enforced_policies}
    return {*refs, *(obj.id for obj in manifests.objects)}


def _key_of_policy(policy: Policy) -> tuple[Hashable, Span | None]:
    return policy.ref, policy.span


def _key_of_fault(fault: Fault) -> tuple[Hashable, Span | None]:
    return fault.policy.ref, fault.document.span


def _key_of_object(obj: WorldObject) -> tuple[Hashable, Span | None]:
    return obj.id, obj.span


def _restore(
    before: list[_T], after: list[_T], unfinished: Collection[str], of: Callable[[_T], tuple[Hashable, Span | None]]
) -> list[_T]:
    """Replace the content of unfinished files by their earlier content."""
    if not unfinished:
        return after
    rest = [entry for entry in after if file_of(of(entry)[1]) not in unfinished]
    present = {of(entry)[0] for entry in rest}
    return [*rest, *(entry for entry in before if file_of(of(entry)[1]) in unfinished and of(entry)[0] not in present)]


def _restore_objects(
    before: list[WorldObject], after: list[WorldObject], held: Collection[Hashable]
) -> list[WorldObject]:
    """Put held objects back in their former order, so that an unchanged reading is equal to the one before."""
    now = {obj.id: obj for obj in after}
    kept = [now.pop(obj.id, obj) for obj in before if obj.id in now or obj.id in held]
    return [*kept, *now.values()]


def file_of(span: Span | None) -> str | None:
    """Return the absolute path of the file that an object was read from."""
    return os.path.abspath(span.file) if span is not None else None


def find_only_allowing(before: Authority, after: Authority, refs: Iterable[PolicyRef]) -> set[PolicyRef]:
    """Return the policies removed in `after` whose removal can only narrow access.

    All rules of such a policy allow, in stages that have allow rules of other policies too.
    """
    wanted = {*refs}
    narrowing: set[PolicyRef] = set()
    for workload in before.world.workloads:
        attached = {attachment.policy.ref for attachment in programs_of(before).attached(workload)} & wanted
        if attached and workload in after.world.workloads:
            layers, left = programs_of(before).program(workload).layers, programs_of(after).program(workload).layers
            narrower = _stage_keys(layers) <= _stage_keys(left)
            sure = {ref for ref in attached if narrower and _only_allows(layers, ref)}
            narrowing |= sure
            wanted -= attached - sure
    return narrowing & wanted


def _stage_keys(layers: Iterable[Layer]) -> set[Hashable]:
    """Return a key for each stage that requests pass."""
    return {
        (layer.at, number, chain.scope, type(stage), stage.name)
        for layer in layers
        for number, chain in enumerate(layer.chains)
        for stage in chain.stages
    }


def _only_allows(layers: Iterable[Layer], ref: PolicyRef) -> bool:
    """Return whether a policy has rules, and all of them are in allow lists."""
    chains = [chain for layer in layers for chain in layer.chains]
    if any(ref in chain.chosen_by or any(rule.origin.policy == ref for rule, _ in chain.audited) for chain in chains):
        return False
    stages = [stage for chain in chains for stage in order_chain(chain)]
    theirs = [stage for stage in stages if any(arm.rule.origin.policy == ref for arm in stage.arms)]
    return bool(theirs) and all(stage.denies_by_default and not any(stage.denying) for stage in theirs)
