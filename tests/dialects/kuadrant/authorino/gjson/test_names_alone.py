"""Paths of names alone are looked up without a walk, with the same result."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from eastgate.dialects.kuadrant.authorino.gjson import select
from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget
from eastgate.dialects.kuadrant.authorino.gjson.selection import select_within

NAMES = st.sampled_from(["a", "b", "0", "1", "-", "a-b", "A_1", "é", "#", "*", "a?", "@this", "!x", "\\", "..", ""])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(".".join)


@given(st.dictionaries(NAMES, VALUES, max_size=4) | VALUES, PATHS)
@example({"a": '{"b":1}'}, "a.b")
@example({"a": ["x"]}, "a.0")
@example({"a": {"b": "\ud800"}}, "a.b")
@example({"a": {}}, "a.b.c")
@example({"a": None}, "a")
@example("{}", "a")
def test_the_selection_is_that_of_the_walk(document: object, path: str) -> None:
    assert select(document, path) == select_within(Budget(), document, path)


def test_a_path_of_many_names_is_bounded_as_before() -> None:
    path = ".".join(["a"] * 40)
    nested: object = "x"
    for _ in range(40):
        nested = {"a": nested}
    assert select(nested, path).text == "x"
