"""The effective table by pods, for destinations where only network policies decide. They select pods, not accounts."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from eastgate.basics.records import dataclass
from eastgate.cluster import PodsOfAccount, World
from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    Is,
    Not,
    OneOf,
    Or,
    Predicate,
    Present,
    Request,
    RuleKind,
    Site,
    conjuncts,
    labels_text,
)
from eastgate.ir.attributes import SOURCE_LABELS, SOURCE_WORKLOAD
from eastgate.ir.symbolic.callers import CallerKind
from eastgate.ir.symbolic.simplify import both, either
from eastgate.ir.symbolic.trees import truth
from eastgate.reach.callers import CallerEntry
from eastgate.reach.endings import Branch
from eastgate.reach.table import EffectiveDestination, EffectiveTable, Row
from eastgate.reports.conditions import condition_text
from eastgate.reports.effective.words import ANYONE


@dataclass(frozen=True, slots=True)
class PodRow:
    """Callers in the words of network policies, with equal verdicts. `condition` is empty if there is none.

    The last row has no destinations: it covers all other connections.
    """

    callers: tuple[str, ...]
    destinations: tuple[EffectiveDestination, ...]
    allowed: bool
    condition: str
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class _Pods:
    """Callers: existing pods, other pods of a namespace, pods of any other namespace, or addresses outside
    the cluster.
    """

    kind: CallerKind
    name: str
    labels: Predicate = ALWAYS


_OUTSIDE = _Pods(CallerKind.NONE, "")
_KINDS = frozenset({CallerKind.SERVICE_ACCOUNT, CallerKind.NAMESPACE, CallerKind.OTHER_ACCOUNT, CallerKind.NONE})
"""The callers that network policies distinguish: pods of accounts, and addresses."""
_Verdict = tuple[bool, str, str]  # allowed, the condition, the rule


def pod_rows(table: EffectiveTable, world: World) -> list[PodRow] | None:
    """Return the rows that allow, the rows that a policy denies, and one row for all other connections.

    Return None if identities decide too, or if conditions depend on their order. The table must then be by accounts.
    """
    if not _is_by_pod(table):
        return None
    names = _Names(table, world)
    merged: dict[_Verdict, dict[_Pods, set[int]]] = {}
    branches_of: dict[_Verdict, dict[Branch, None]] = {}
    for row, branch in _decided(table, names):
        to = {number for number, each in enumerate(table.destinations) if each in row.destinations}
        for callers, when in names.split(row.callers, branch.when):
            condition = "" if when == ALWAYS else condition_text(when)
            key = branch.end.allowed, condition, str(branch.end.origin)
            branches_of.setdefault(key, {})[branch] = None
            for pods in callers:
                merged.setdefault(key, {}).setdefault(pods, set()).update(to)
    rows: list[PodRow] = []
    for key, destinations in merged.items():
        alike: dict[tuple[int, ...], list[_Pods]] = {}
        for pods, on in destinations.items():
            alike.setdefault(tuple(sorted(on)), []).append(pods)
        for numbers, who in alike.items():
            at = tuple(table.destinations[number] for number in numbers)
            rows.append(PodRow(names.words(who), at, key[0], key[1], tuple(branches_of[key])))
    return [*rows, *_all_else(table, names, is_all=not rows)]


def _decided(table: EffectiveTable, names: _Names) -> Iterator[tuple[Row, Branch]]:
    """Yield the branches that allow, and those by which a policy denies."""
    for row in table.rows:
        for branch in row.cell.branches if names.has_any(row.callers) else ():
            if not _is_default(branch) and not _is_near(branch):
                yield row, branch


def _all_else(table: EffectiveTable, names: _Names, *, is_all: bool) -> Iterator[PodRow]:
    """Yield the row for connections that no rule allows, with a reason that names network policies."""
    rest = [
        branch
        for row in table.rows
        if names.has_any(row.callers)
        for branch in dict.fromkeys(row.cell.branches)
        if _is_default(branch)
    ]
    if rest:
        reasons = [branch for branch in rest if branch.end.origin is not None] or rest
        yield PodRow((ANYONE if is_all else "anything else",), (), False, "", tuple(reasons))


def _is_by_pod(table: EffectiveTable) -> bool:
    layers = [layer for each in table.destinations for point in each.points for layer in point.layers]
    asking = [layer for layer in layers if any(layer.atoms(observed=False))]
    if not asking or any(layer.at.site is not Site.NETWORK for layer in asking) or len(table.messages) > 1:
        return False
    cells = [row.cell for row in table.rows if any(entry.kind in _KINDS for entry in row.callers)]
    return not any(cell.too_many or cell.refusing or _is_ordered(cell.branches) for cell in cells)


def _is_ordered(branches: Sequence[Branch]) -> bool:
    """Return whether a branch denies requests that a later branch allows."""
    allowed = [branch.end.allowed for branch in branches]
    return allowed != sorted(allowed, reverse=True)


def _is_default(branch: Branch) -> bool:
    return not branch.end.allowed and (branch.end.origin is None or branch.end.origin.policy is None)


def _is_near(branch: Branch) -> bool:
    """Return whether a branch covers only a pod that calls itself, or its node. No policy can deny these."""
    origin = branch.end.origin
    return branch.end.allowed and origin is not None and origin.kind in (RuleKind.ITSELF, RuleKind.PROBE)


class _Names:
    """Names callers by the pods of a cluster. A caller that is not a pod has an address, whatever its identity."""

    def __init__(self, table: EffectiveTable, world: World) -> None:
        self._world = world
        self._pods = {
            entry: sorted(world.select(PodsOfAccount(*entry.name.split("/", 1))))
            for entry in table.callers
            if entry.kind is CallerKind.SERVICE_ACCOUNT
        }
        self._every = frozenset(pods for entry in table.callers for pods in self._named(entry))

    def has_any(self, entries: Sequence[CallerEntry]) -> bool:
        """Return whether some of the callers are pods or addresses."""
        return any(self._named(entry) for entry in entries)

    def _named(self, entry: CallerEntry) -> list[_Pods]:
        match entry.kind:
            case CallerKind.SERVICE_ACCOUNT:
                named = [_Pods(entry.kind, pod) for pod in self._pods[entry]]
                return named or [_Pods(CallerKind.NAME, f"sa:{entry.name}")]
            case CallerKind.NAMESPACE | CallerKind.OTHER_ACCOUNT:
                return [_Pods(entry.kind, entry.name)]
            case CallerKind.NONE:
                return [_OUTSIDE]
            case _:
                return []

    def split(self, entries: Sequence[CallerEntry], when: Predicate) -> Iterator[tuple[list[_Pods], Predicate]]:
        """Yield callers with the rest of a condition, which does not name pods any more."""
        for part in when.parts if isinstance(when, Or) else (when,):
            asked = list(conjuncts(part))
            pods = [each for each in asked if isinstance(each, Is) and each.attribute == SOURCE_WORKLOAD]
            labels = [each for each in asked if _is_about_labels(each)]
            rest = [each for each in asked if each not in pods and each not in labels]
            keys = frozenset[object]().union(*(each.matcher.values for each in pods if isinstance(each.matcher, OneOf)))
            chosen: list[_Pods] = []
            for named in (named for entry in entries for named in self._named(entry)):
                if named.kind in (CallerKind.NAMESPACE, CallerKind.OTHER_ACCOUNT):
                    chosen.append(_Pods(named.kind, named.name, both(labels)))
                elif not pods or named.name in keys:
                    chosen.append(named)
            yield chosen, both(rest)

    def words(self, callers: Sequence[_Pods]) -> tuple[str, ...]:
        """Return callers as texts. One text covers all pods of a namespace, or all pods."""
        chosen = set(callers)
        if chosen == self._every:
            return (ANYONE,)
        if chosen == self._every - {_OUTSIDE}:
            return ("any pod",)
        groups = {
            each.name: _any_labels(pods for pods in chosen if (pods.kind, pods.name) == (each.kind, each.name))
            for each in chosen
            if each.kind is CallerKind.NAMESPACE
        }
        whole = {name for name, labels in groups.items() if labels == ALWAYS and self._all_of(name) <= chosen}
        pods = sorted(each.name for each in chosen if each.kind is CallerKind.SERVICE_ACCOUNT)
        texts = [f"any pod in {namespace}" for namespace in sorted(whole)]
        texts += [pod for pod in pods if not self._is_in(pod, groups, whole)]
        for namespace in sorted(groups.keys() - whole):
            all_others = "other pods" if len(self._all_of(namespace)) > 1 else "any pod"
            labels = groups[namespace]
            texts.append(f"{all_others if labels == ALWAYS else condition_text(labels)} in {namespace}")
        elsewhere = [each for each in chosen if each.kind is CallerKind.OTHER_ACCOUNT]
        if elsewhere:
            labels = _any_labels(elsewhere)
            texts.append(f"{'any pod' if labels == ALWAYS else condition_text(labels)} in other namespaces")
        texts += sorted(each.name for each in chosen if each.kind is CallerKind.NAME)
        return (*texts, "addresses outside the cluster") if _OUTSIDE in chosen else tuple(texts)

    def _is_in(self, pod: str, groups: Mapping[str, Predicate], whole: Container[str]) -> bool:
        """Return whether the text for a namespace covers a pod."""
        workload = self._world.workloads[pod]
        if workload.namespace in whole:
            return True
        labels = groups.get(workload.namespace, NEVER)
        if labels in (ALWAYS, NEVER):
            return False
        return truth(labels, Request({SOURCE_LABELS: labels_text(workload.labels)})) is True

    def _all_of(self, namespace: str) -> set[_Pods]:
        return {each for each in self._every if each.name == namespace or each.name.startswith(f"{namespace}/")}


def _any_labels(pods: Iterable[_Pods]) -> Predicate:
    return either(sorted((each.labels for each in pods), key=str))


def _is_about_labels(part: Predicate) -> bool:
    """Return whether a part depends only on the labels of the caller."""
    match part:
        case Is(attribute, matcher):  # `Present` depends on all labels, which are too many to list
            return attribute == SOURCE_LABELS and not isinstance(matcher, Present)
        case Not(inner):
            return _is_about_labels(inner)
        case And(parts) | Or(parts):
            return bool(parts) and all(map(_is_about_labels, parts))
        case _:
            return False
