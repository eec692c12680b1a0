"""The workloads, found by key, by label and by address."""

from __future__ import annotations

from collections.abc import Mapping, Set

from eastgate.cluster.pods import Workload
from eastgate.ir.addresses import parse_address
from eastgate.ir.labels import Operator, Requirement, Selector

# An index of labels, which answers a selector without comparing every object.


class LabelIndex:
    """Labelled objects by key, and for each (label, value) the keys with it."""

    __slots__ = ("_having", "_labels")

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self._having: dict[tuple[str, str], set[str]] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, key: str) -> bool:
        return key in self._labels

    def keys(self) -> frozenset[str]:
        """Return all keys."""
        return frozenset(self._labels)

    def add(self, key: str, labels: Mapping[str, str]) -> None:
        """Add an object that is not in the index yet."""
        self._labels[key] = labels
        having = self._having
        for term in labels.items():
            keys = having.get(term)
            if keys is None:
                having[term] = {key}
            else:
                keys.add(key)

    def discard(self, key: str) -> None:
        """Remove an object, if it is in the index."""
        for term in self._labels.pop(key, {}).items():
            keys = self._having[term]
            keys.discard(key)
            if not keys:
                del self._having[term]

    def select(self, selector: Selector) -> frozenset[str]:
        """Return the keys of all selected objects."""
        terms, rest = selector.equalities, selector.filters
        keys = self._with_all(terms) if terms else self._candidates(rest)
        if rest and keys:
            labels = self._labels
            return frozenset(key for key in keys if all(r.matches(labels[key]) for r in rest))
        return keys

    def _candidates(self, rest: tuple[Requirement, ...]) -> frozenset[str]:
        """Return possible keys for a selector without a demanded value: the first `In` narrows them down."""
        for requirement in rest:
            if requirement.operator is Operator.IN:
                having = (self._having.get((requirement.key, value), ()) for value in requirement.values)
                return frozenset().union(*having)
        return frozenset(self._labels)

    def _with_all(self, terms: tuple[tuple[str, str], ...]) -> frozenset[str]:
        having = []
        for term in terms:
            keys = self._having.get(term)
            if keys is None:
                return frozenset()
            having.append(keys)
        having.sort(key=len)  # so that the work is bounded by the rarest label
        return frozenset(having[0].intersection(*having[1:]))


def canonical_address(text: str) -> str:
    """Return the canonical spelling of an IP address. Any other text stays as it is."""
    if ":" not in text:
        return text  # IPv4 has only one spelling
    try:
        return str(parse_address(text))
    except ValueError:
        return text


class _Shelf:
    """The workloads of one namespace. Pods are apart from others, since selectors of pods select nothing else."""

    __slots__ = ("externals", "pods")

    def __init__(self) -> None:
        self.pods = LabelIndex()
        self.externals = LabelIndex()

    def part(self, workload: Workload) -> LabelIndex:
        return self.pods if workload.is_pod else self.externals


class WorkloadIndex:
    """All workloads, indexed by every key of a lookup."""

    __slots__ = ("_by_address", "_by_namespace", "workloads")

    def __init__(self) -> None:
        self.workloads: dict[str, Workload] = {}
        self._by_namespace: dict[str, _Shelf] = {}
        self._by_address: dict[str, tuple[str, ...]] = {}

    def add(self, workload: Workload) -> None:
        """Add a workload that is not in the index yet."""
        key, namespace = workload.key, workload.namespace
        self.workloads[key] = workload
        shelf = self._by_namespace.get(namespace)
        if shelf is None:
            shelf = self._by_namespace[namespace] = _Shelf()
        shelf.part(workload).add(key, workload.labels)
        for address in _addresses(workload):
            self._by_address[address] = (*self._by_address.get(address, ()), key)

    def discard(self, workload: Workload) -> None:
        """Remove a workload."""
        key, namespace = workload.key, workload.namespace
        del self.workloads[key]
        shelf = self._by_namespace[namespace]
        shelf.part(workload).discard(key)
        if not len(shelf.pods) and not len(shelf.externals):
            del self._by_namespace[namespace]
        for address in _addresses(workload):
            left = tuple(other for other in self._by_address[address] if other != key)
            if left:
                self._by_address[address] = left
            else:
                del self._by_address[address]

    def replace(self, before: Workload, after: Workload) -> None:
        """Replace the workload with the same key."""
        if before.labels == after.labels and before.ips == after.ips and before.kind == after.kind:
            self.workloads[after.key] = after
        else:
            self.discard(before)
            self.add(after)

    @property
    def namespaces(self) -> Set[str]:
        """Return the namespaces that have workloads."""
        return self._by_namespace.keys()

    def in_namespace(self, namespace: str) -> frozenset[str]:
        """Return the keys of a namespace's workloads."""
        shelf = self._by_namespace.get(namespace)
        return shelf.pods.keys() | shelf.externals.keys() if shelf is not None else frozenset()

    def select(self, namespace: str, selector: Selector) -> frozenset[str]:
        """Return the keys of a namespace's pods that a selector selects."""
        shelf = self._by_namespace.get(namespace)
        return shelf.pods.select(selector) if shelf is not None else frozenset()

    def select_externals(self, namespace: str, selector: Selector) -> frozenset[str]:
        """Return the keys of a namespace's workloads outside of the cluster that a selector selects."""
        shelf = self._by_namespace.get(namespace)
        return shelf.externals.select(selector) if shelf is not None else frozenset()

    def at(self, address: str) -> Workload | None:
        """Return the one workload with an address.

        The result is None if several workloads claim it: such an address must not identify a caller.
        """
        keys = self._by_address.get(canonical_address(address), ())
        return self.workloads[keys[0]] if len(keys) == 1 else None


def _addresses(workload: Workload) -> set[str]:
    return {canonical_address(ip) for ip in workload.ips}
