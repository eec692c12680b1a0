"""Selectors in the forms of other systems, and whether two selectors may select the same pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from eastgate.cluster import Operator, Requirement, Selector
from eastgate.reading.manifests import Plain

_MAX_LABEL_SETS = 64  # combinations of values, each of which becomes a policy


def write_selector(selector: Selector) -> dict[str, Plain]:
    """Return a selector as Kubernetes writes it, in a stable order."""
    plain: dict[str, Plain] = {}
    if selector.match_labels:
        plain["matchLabels"] = dict(sorted(selector.match_labels))
    expressions: list[Plain] = []
    for expression in sorted(selector.expressions, key=lambda r: (r.key, r.operator, sorted(r.values))):
        entry: dict[str, Plain] = {"key": expression.key, "operator": str(expression.operator)}
        if expression.values:
            entry["values"] = list[Plain](sorted(expression.values))
        expressions.append(entry)
    if expressions:
        plain["matchExpressions"] = expressions
    return plain


def label_sets(selector: Selector) -> list[dict[str, str]] | None:
    """Return sets of labels: the selector selects a pod if the pod has ALL labels of ANY set.

    None if no such sets exist.
    """
    if any(expression.operator is not Operator.IN for expression in selector.expressions):
        return None
    values = _values(selector)
    count = 1
    for options in values.values():
        count *= len(options)
    if count > _MAX_LABEL_SETS:
        return None
    keys = sorted(values)
    return [dict(zip(keys, chosen, strict=True)) for chosen in product(*(sorted(values[key]) for key in keys))]


def _values(selector: Selector) -> dict[str, frozenset[str]]:
    """Return the allowed values of each key that must have one of some values."""
    values = {key: frozenset({value}) for key, value in sorted(selector.match_labels)}
    for expression in selector.expressions:
        if expression.operator is Operator.IN:
            values[expression.key] = values.get(expression.key, expression.values) & expression.values
    return values


def may_meet(selector: Selector, other: Selector) -> bool:
    """Return whether both may select the same pod. They cannot if they require different values of one label."""
    ours, theirs = _values(selector), _values(other)
    if not all(ours.values()) or not all(theirs.values()):
        return False  # one of them selects nothing
    return all(not values.isdisjoint(theirs[key]) for key, values in ours.items() if key in theirs)


def select_without(selector: Selector, others: Iterable[Selector]) -> list[Selector]:
    """Return selectors for the pods that this selector selects and no other does.

    The others must have labels with values only.
    """
    chosen = [selector]
    for other in others:
        if not may_meet(selector, other):
            continue
        chosen = list(dict.fromkeys(without for each in chosen for without in _without(each, other)))
    return chosen


def _without(selector: Selector, other: Selector) -> Iterator[Selector]:
    """Yield selectors for the pods that the first selects and the second does not: they lack ANY of its labels."""
    for key, value in sorted(other.match_labels - selector.match_labels):
        lacking = Requirement(key, Operator.NOT_IN, frozenset({value}))
        yield Selector(selector.match_labels, selector.expressions | {lacking})
