"""Labellings: one for each set of selectors that a labelling can meet, and all of them meet the demands."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.reports.invariants.labels import TooManyLabellings, labellings, terms_of

KEYS, VALUES = ("a", "b"), ("1", "2")
requirements = st.builds(
    lambda key, operator, values: Requirement(
        key, operator, values if operator in (Operator.IN, Operator.NOT_IN) else frozenset()
    ),
    st.sampled_from(KEYS),
    st.sampled_from(Operator),
    st.frozensets(st.sampled_from(VALUES), min_size=1),
)
selectors = st.builds(
    Selector.of, st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)), st.lists(requirements, max_size=2)
)

EVERY = [
    {key: value for key, value in zip(KEYS, chosen, strict=True) if value is not None}
    for chosen in product((*VALUES, "something else", None), repeat=len(KEYS))
]


@given(st.lists(selectors, max_size=4), selectors)
def test_every_set_of_selectors_that_can_be_met_is_met_once(told_apart: list[Selector], demanded: Selector) -> None:
    terms = [terms_of(selector) for selector in told_apart]
    found = labellings(terms, terms_of(demanded), 10_000)
    assert all(demanded.matches(labels) for labels in found)
    wanted = {tuple(s.matches(labels) for s in told_apart) for labels in EVERY if demanded.matches(labels)}
    met = [tuple(s.matches(labels) for s in told_apart) for labels in found]
    assert set(met) == wanted


def test_labels_that_no_selector_distinguishes_are_examined_once() -> None:
    one = terms_of(Selector.of({"app": "web"}))
    assert labellings([one, one], terms_of(Selector.of({"tier": "back"})), 10) == [
        {"tier": "back"},
        {"app": "web", "tier": "back"},
    ]


def test_too_many_are_not_looked_at() -> None:
    several = [terms_of(Selector.of({f"k{n}": "v"})) for n in range(5)]
    assert len(labellings(several, (), 32)) == 32
    with pytest.raises(TooManyLabellings):
        labellings(several, (), 31)


def test_values_can_be_given() -> None:
    one = terms_of(Selector.of({"name": "a"}))
    assert labellings([one], (), 10, {"name": ["b", "a"]}) == [{"name": "b"}, {"name": "a"}]
