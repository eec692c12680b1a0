"""The callers of a statement, as cells of callers.

Callers are existing workloads, accounts that policies or the statement name, and callers outside the cluster. Accounts
without a workload and without a name in any policy count only if the statement includes the future, or if no manifest
declares their namespace: it is then declared elsewhere.

A namespace that does not exist yet may have any labels. So its accounts count as callers of the statement if ANY labels
would make them so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product

from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World
from eastgate.cluster.objects import NAME_LABEL
from eastgate.ir import ALWAYS, NEVER, Is, Labelled, OneOf, Predicate, Prefix, mentions
from eastgate.ir.attributes import IDENTITY, SOURCE_LABELS, SOURCE_WORKLOAD
from eastgate.ir.labels import Selector
from eastgate.ir.spiffe import SCHEME, service_account_id, trust_domain_of
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    Name,
    OtherAccounts,
    OtherIdentities,
)
from eastgate.ir.symbolic.simplify import both, either, negation
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reports.invariants.model import ALL_ACCOUNTS, CallerGroup, CallerSelector, Statement

Labels = Mapping[str, str]
_OTHER_VALUE = "any-other"  # a value that no selector names
_MAX_LABELLINGS = 4096


class TooManyLabels(Exception):  # noqa: N818 - it is not an error, it is a third answer
    """Error: there are too many ways to label a namespace, so the statement has no answer."""


@dataclass(frozen=True, slots=True)
class SelectedCallers:
    """The selected cells of callers, some of them only if their identity meets a condition."""

    callers: CallerSet
    where: Predicate


class CallerTest:
    """The test of whether a cell of callers is selected, in one world."""

    def __init__(self, statement: Statement, world: World, trust_domain: str) -> None:
        self._callers: CallerSelector = statement.callers
        self._include_future = statement.include_future
        self._world = world
        self._domain = trust_domain
        self._in_use = frozenset(world.namespaces_in_use())
        self._labellings: dict[str, tuple[Labels, ...]] = {}

    @cached_property
    def _pods(self) -> Mapping[str, list[Workload]]:
        """Return the workloads of each identity."""
        pods: dict[str, list[Workload]] = defaultdict(list)
        for workload in self._world.workloads.values():
            identity = workload.identity_in(self._domain)
            if identity is not None:
                pods[identity].append(workload)
        return pods

    @property
    def identities(self) -> set[str]:
        """Return the identities that the statement names. Each needs a cell."""
        groups = self._groups
        accounts = {account for group in groups for account in group.accounts if account[1] != ALL_ACCOUNTS}
        named = {service_account_id(self._domain, *account) for account in accounts}
        return named.union(*(group.identities for group in groups))

    @property
    def namespaces(self) -> set[str]:
        """Return the namespaces that the statement names. Their accounts need a cell."""
        named = {namespace for group in self._groups for namespace, _ in group.accounts}
        for selector in self._selectors():
            named |= {value for key, value in selector.match_labels if key == NAME_LABEL}
            named |= {value for term in selector.expressions if term.key == NAME_LABEL for value in term.values}
        return named

    @property
    def _groups(self) -> tuple[CallerGroup, CallerGroup]:
        return self._callers.of, self._callers.without

    def _selectors(self) -> Iterator[Selector]:
        return (group.namespaces for group in self._groups if group.namespaces is not None)

    def choose(self, sets: CallerSets, *, is_selected: bool) -> list[SelectedCallers]:
        """Return the callers that are selected, or those that are not. Callers that may be either are in both.

        Callers with workloads come first, because they make better examples. Identities with a name follow, then
        callers without an identity. Raises TooManyLabels.
        """
        chosen: list[CallerCell] = []
        without_pods: list[CallerCell] = []
        unnamed: list[CallerCell] = []
        conditional: list[SelectedCallers] = []
        for cell in sets.cells:
            counts = self._include_future or not self.is_future(cell, sets)
            holds = self._holds(cell, is_selected=is_selected) if counts else NEVER
            if SOURCE_WORKLOAD in mentions(holds):
                holds = both((holds, _one_of(self._workloads(cell))))
            if holds == ALWAYS:
                is_named = isinstance(cell, IdentityCell | AccountsIn | Name | AnonymousCell)
                (chosen if self._workloads(cell) else without_pods if is_named else unnamed).append(cell)
            elif holds != NEVER:
                conditional.append(SelectedCallers(sets.set_of((cell,)), holds))
        first, *rest = (SelectedCallers(sets.set_of(cells), ALWAYS) for cells in (chosen, without_pods, unnamed))
        return [each for each in (first, *conditional, *rest) if each.callers]

    def pods_of(self, cell: CallerCell) -> list[str]:
        """Return the keys of the workloads of a cell."""
        return [workload.key for workload in self._workloads(cell)]

    def is_future(self, cell: CallerCell, sets: CallerSets) -> bool:
        """Return whether the callers of a cell are pods that do not exist yet."""
        match cell:
            case AccountsIn(domain, namespace):
                return domain == self._domain and namespace in self._in_use
            case OtherAccounts():
                return True
            case _:
                return cell in sets.unnamed and not self._workloads(cell)

    def only_pods(self, keys: frozenset[str]) -> list[CallerCell]:
        """Return the cells of accounts that only these pods have."""
        accounts = (identity for identity, pods in self._pods.items() if keys.issuperset(pod.key for pod in pods))
        return [IdentityCell(identity) for identity in accounts]

    def labels_for(self, cell: CallerCell, *, is_selected: bool) -> Labels | None:
        """Return labels with which a namespace that does not exist yet makes a cell selected, or not."""
        if not self._is_unlabelled(cell):
            return None
        wrong = NEVER if is_selected else ALWAYS
        return next(labels for labels in self._labels(cell) if self._in(cell, labels) != wrong)

    def _holds(self, cell: CallerCell, *, is_selected: bool) -> Predicate:
        return either(
            self._in(cell, labels) if is_selected else negation(self._in(cell, labels)) for labels in self._labels(cell)
        )

    def _in(self, cell: CallerCell, labels: Labels) -> Predicate:
        of, without = (self._in_group(group, cell, labels) for group in self._groups)
        return both((of, negation(without)))

    def _in_group(self, group: CallerGroup, cell: CallerCell, labels: Labels) -> Predicate:
        if group.anybody:
            return ALWAYS
        match cell:
            case AnonymousCell():
                return _truth(group.anonymous)
            case Name(name) if cell.identity is not None:
                return _truth(name in group.identities or trust_domain_of(name) in group.domains)
            case IdentityCell(identity):
                named = identity in group.identities or trust_domain_of(identity) in group.domains
                return ALWAYS if named else self._has_account(group, cell, labels)
            case AccountsIn(domain, _) | OtherAccounts(domain):
                return ALWAYS if domain in group.domains else self._has_account(group, cell, labels)
            case OtherIdentities():
                return either(Is(IDENTITY, Prefix(f"{SCHEME}{domain}/")) for domain in sorted(group.domains))
            case _:
                return NEVER

    def _has_account(self, group: CallerGroup, cell: CallerCell, labels: Labels) -> Predicate:
        account = cell.account_in(self._domain)
        if account is None:
            return NEVER
        if not group.accounts.isdisjoint({account, (account[0], ALL_ACCOUNTS)}):
            return ALWAYS
        is_selected = group.namespaces is not None and group.namespaces.matches(labels)
        if group.pods is None:
            return _truth(is_selected)
        return self._has_pods(group.pods, cell) if is_selected or group.namespaces is None else NEVER

    def _has_pods(self, selector: Selector, cell: CallerCell) -> Predicate:
        """Return the pods of an account that have the labels. A pod that does not exist yet may have any labels."""
        pods = self._workloads(cell)
        if not pods:
            return Is(SOURCE_LABELS, Labelled(selector)) if self._include_future else NEVER
        selected = [pod for pod in pods if selector.matches(pod.labels)]
        return _truth(bool(selected)) if len(selected) in (0, len(pods)) else _one_of(selected)

    def _workloads(self, cell: CallerCell) -> list[Workload]:
        return self._pods.get(cell.identity, []) if isinstance(cell, IdentityCell) else []

    # Labels of namespaces

    def _is_unlabelled(self, cell: CallerCell) -> bool:
        account = cell.account_in(self._domain)
        return account is not None and account[0] not in self._in_use and any(self._selectors())

    def _labels(self, cell: CallerCell) -> tuple[Labels, ...]:
        """Return the labels that the namespace of a cell may have."""
        account = cell.account_in(self._domain)
        if account is None:
            return ({},)
        if account[0] in self._in_use:
            return (self._world.namespace(account[0]).labels,)
        labellings = self._labellings.get(account[0])
        if labellings is None:
            labellings = self._labellings[account[0]] = tuple(self._every_labelling(account[0]))
        return labellings

    def _every_labelling(self, namespace: str) -> Iterator[Labels]:
        options: dict[str, list[str | None]] = {}
        for selector in self._selectors():
            for key, value in selector.match_labels:
                options.setdefault(key, [None, _OTHER_VALUE]).append(value)
            for term in selector.expressions:
                options.setdefault(term.key, [None, _OTHER_VALUE]).extend(sorted(term.values))
        options[NAME_LABEL] = [namespace or _OTHER_VALUE]
        size = 1
        for values in options.values():
            size *= len(values)
        if size > _MAX_LABELLINGS:
            raise TooManyLabels
        for chosen in product(*options.values()):
            yield {key: value for key, value in zip(options, chosen, strict=True) if value is not None}


def _one_of(workloads: list[Workload]) -> Predicate:
    return Is(SOURCE_WORKLOAD, OneOf(frozenset(workload.key for workload in workloads)))


def _truth(holds: bool) -> Predicate:
    return ALWAYS if holds else NEVER
