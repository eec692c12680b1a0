"""One target in place of several: the pods that any of them selects, or more where one selector cannot say that."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.basics.records import dataclass
from eastgate.cluster import Operator, Requirement, Selector
from eastgate.convert.gep_reading import PodsTarget, TargetedService
from eastgate.convert.selectors import write_selector
from eastgate.reading.manifests import Plain

_MOST_VALUES = 64  # of a requirement, as the definitions have it

EVERY_POD: dict[str, Plain] = {"group": "", "kind": "Pod", "selector": {}}


@dataclass(frozen=True, slots=True)
class TargetCover:
    """A target that covers others; an `exact` one covers nothing else."""

    target: dict[str, Plain]
    exact: bool


def cover(targets: Sequence[PodsTarget | TargetedService]) -> TargetCover:
    """Return one target for all of these. Which pods a Service has is not known here: every pod covers them."""
    services = {target.name for target in targets if isinstance(target, TargetedService)}
    selectors = list(dict.fromkeys(_requirements(target) for target in targets if isinstance(target, PodsTarget)))
    if not services:
        return _cover_pods(selectors)
    if len(services) == 1 and not selectors:
        return TargetCover({"group": "", "kind": "Service", "name": next(iter(services))}, exact=True)
    return TargetCover(dict(EVERY_POD), exact=frozenset() in selectors)


def _requirements(target: PodsTarget) -> frozenset[Requirement]:
    labels = (Requirement(key, Operator.IN, frozenset({value})) for key, value in target.selector.match_labels)
    return target.selector.expressions | frozenset(labels)


def _cover_pods(selectors: Sequence[frozenset[Requirement]]) -> TargetCover:
    """ALL requirements of a selector hold, so that those which all selectors share hold for every pod of ANY."""
    shared = frozenset.intersection(*selectors)
    if shared in selectors:
        return TargetCover(_target(shared), exact=True)
    rests = [selector - shared for selector in selectors]
    merged = [requirement for key in _keys_of_all(rests) if (requirement := _either(rests, key)) is not None]
    exact = len(merged) == 1 and all(len(rest) == 1 for rest in rests)
    return TargetCover(_target(shared.union(merged)), exact)


def _keys_of_all(rests: Sequence[frozenset[Requirement]]) -> list[str]:
    keys = [{each.key for each in rest if each.operator is Operator.IN} for rest in rests]
    return sorted(set.intersection(*keys))


def _either(rests: Sequence[frozenset[Requirement]], key: str) -> Requirement | None:
    """Return that a label has ANY of the values that one of these wants; None where they are too many."""
    wanted = [each.values for rest in rests for each in rest if each.key == key and each.operator is Operator.IN]
    values = frozenset[str]().union(*wanted)
    return Requirement(key, Operator.IN, values) if len(values) <= _MOST_VALUES else None


def _target(requirements: frozenset[Requirement]) -> dict[str, Plain]:
    return {"group": "", "kind": "Pod", "selector": write_selector(Selector(frozenset(), requirements))}
