"""An index of labels, which answers a selector without looking at everything."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.ir.labels import Operator, Requirement, Selector


class LabelIndex:
    """Labelled things by key, and for each (label, value) the keys that have it."""

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
        """File a thing that is not in the index yet."""
        self._labels[key] = labels
        having = self._having
        for term in labels.items():
            keys = having.get(term)
            if keys is None:
                having[term] = {key}
            else:
                keys.add(key)

    def discard(self, key: str) -> None:
        """Take a thing out, if it is in."""
        for term in self._labels.pop(key, {}).items():
            keys = self._having[term]
            keys.discard(key)
            if not keys:
                del self._having[term]

    def select(self, selector: Selector) -> frozenset[str]:
        """Return the keys of everything selected."""
        terms, rest = selector.equalities, selector.filters
        keys = self._with_all(terms) if terms else self._candidates(rest)
        if rest and keys:
            labels = self._labels
            return frozenset(key for key in keys if all(r.matches(labels[key]) for r in rest))
        return keys

    def _candidates(self, rest: tuple[Requirement, ...]) -> frozenset[str]:
        """Return what may be selected where no single value is demanded: the first `In` narrows it down."""
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
