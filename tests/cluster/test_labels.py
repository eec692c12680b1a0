"""Selectors select what Kubernetes selects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.cluster import Operator, Requirement, Selector

IN, NOT_IN, EXISTS, ABSENT = Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST


def need(key: str, operator: Operator, *values: str) -> Requirement:
    return Requirement(key, operator, frozenset(values))


OPERATORS = [
    # requirement,                       tier=web, tier=db, tier="",  no tier
    (need("tier", IN, "web"), True, False, False, False),
    (need("tier", IN, "web", "db"), True, True, False, False),
    (need("tier", IN, ""), False, False, True, False),
    (need("tier", IN), False, False, False, False),
    (need("tier", NOT_IN, "web"), False, True, True, True),
    (need("tier", NOT_IN, "web", "db"), False, False, True, True),
    (need("tier", NOT_IN, ""), True, True, False, True),
    (need("tier", NOT_IN), True, True, True, True),
    (need("tier", EXISTS), True, True, True, False),
    (need("tier", ABSENT), False, False, False, True),
]


@pytest.mark.parametrize(("requirement", "web", "db", "empty", "without"), OPERATORS, ids=lambda v: str(v))
def test_each_operator_with_and_without_the_key(
    requirement: Requirement, web: bool, db: bool, empty: bool, without: bool
) -> None:
    selector = Selector.of(expressions=[requirement])
    objects: list[dict[str, str]] = [{"tier": "web"}, {"tier": "db"}, {"tier": ""}, {"app": "x"}]
    assert [selector.matches(labels) for labels in objects] == [web, db, empty, without]


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (Selector(), {}, True),
        (Selector(), {"a": "1"}, True),
        (Selector.of({"a": "1"}), {"a": "1", "b": "2"}, True),
        (Selector.of({"a": "1"}), {"a": "2"}, False),
        (Selector.of({"a": "1"}), {}, False),
        (Selector.of({"a": "1", "b": "2"}), {"a": "1"}, False),
        (Selector.of({"a": "1"}, [need("b", ABSENT)]), {"a": "1"}, True),
        (Selector.of({"a": "1"}, [need("b", ABSENT)]), {"a": "1", "b": ""}, False),
        (Selector.of({}, [need("a", EXISTS), need("a", NOT_IN, "1")]), {"a": "1"}, False),
        (Selector.of({}, [need("a", EXISTS), need("a", NOT_IN, "1")]), {"a": "2"}, True),
        (Selector.of({}, [need("a", EXISTS), need("a", ABSENT)]), {"a": "2"}, False),
    ],
)
def test_all_terms_must_hold(selector: Selector, labels: dict[str, str], expected: bool) -> None:
    assert selector.matches(labels) is expected


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (Selector(), "{}"),
        (
            Selector.of({"app": "reviews"}, [need("tier", IN, "b", "a"), need("legacy", ABSENT)]),
            "{app: reviews, !legacy, tier in (a, b)}",
        ),
        (
            Selector.of({"b": "2", "a": "1"}, [need("c", EXISTS), need("d", NOT_IN, "x")]),
            "{a: 1, b: 2, c, d notin (x)}",
        ),
    ],
)
def test_a_selector_reads_as_a_person_would_write_it(selector: Selector, text: str) -> None:
    assert str(selector) == text


def test_the_satisfied_terms_are_returned() -> None:
    selector = Selector.of({"app": "reviews", "env": "prod"}, [need("tier", IN, "a"), need("legacy", ABSENT)])
    labels = {"app": "reviews", "tier": "b"}
    assert selector.matched_terms(labels) == ("app: reviews", "!legacy")


def test_the_order_in_which_terms_are_written_does_not_matter() -> None:
    one = Selector.of({"a": "1", "b": "2"}, [need("c", EXISTS), need("d", IN, "x", "y")])
    other = Selector.of({"b": "2", "a": "1"}, [need("d", IN, "y", "x"), need("c", EXISTS)])
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("selector", "anchor"),
    [
        (Selector(), None),
        (Selector.of({"b": "2", "a": "1"}), ("a", "1")),
        (Selector.of({"z": "1"}, [need("a", IN, "x")]), ("z", "1")),
        (Selector.of({}, [need("a", IN, "x")]), ("a", "x")),
        (Selector.of({}, [need("a", IN, "x", "y")]), None),
        (Selector.of({}, [need("a", NOT_IN, "x"), need("b", EXISTS), need("c", ABSENT)]), None),
    ],
)
def test_the_anchor_is_a_term_that_everything_selected_has(selector: Selector, anchor: tuple[str, str] | None) -> None:
    assert selector.anchor == anchor


_KEYS, _VALUES = st.sampled_from("abc"), st.sampled_from(["", "1", "2"])
_REQUIREMENTS = st.builds(Requirement, _KEYS, st.sampled_from(Operator), st.frozensets(_VALUES, max_size=2))
_SELECTORS = st.builds(Selector.of, st.dictionaries(_KEYS, _VALUES, max_size=2), st.lists(_REQUIREMENTS, max_size=3))


@given(_SELECTORS, st.dictionaries(_KEYS, _VALUES))
def test_the_parts_of_a_selector_mean_the_same_as_the_whole(selector: Selector, labels: dict[str, str]) -> None:
    expected = selector.matches(labels)
    assert (len(selector.matched_terms(labels)) == len(selector.match_labels) + len(selector.expressions)) is expected
    split = all(labels.get(k) == v for k, v in selector.equalities) and all(r.matches(labels) for r in selector.filters)
    assert split is expected
    if expected and selector.anchor:
        assert selector.anchor in labels.items()
