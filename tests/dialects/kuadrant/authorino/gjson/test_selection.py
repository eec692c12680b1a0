"""The results of a selection."""

from __future__ import annotations

import math

import pytest

from eastgate.dialects.kuadrant.authorino.gjson import select
from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import to_float
from eastgate.dialects.kuadrant.authorino.gjson.queries import glob_matches


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("12", 12.0), ("+1", 1.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("0x1p4", 16.0), ("0x_1p0", 1.0)),
        *((text, 0.0) for text in ("1_0", " 18", "18 ", "\uff11", "0x10", "0x__1p0", "0x1_p0", "0x1p1_0", "", "x")),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: float) -> None:
    assert to_float(text) == number


IDENTITY = {"sub": "john", "groups": ["admin", 7, None, True], "age": 41, "none": None, "nested": {"a": [1]}}


@pytest.mark.parametrize(
    ("path", "exists", "value", "text", "array", "texts"),
    [
        ("sub", True, "john", "john", ["john"], ("john",)),
        ("age", True, 41, "41", [41], ("41",)),
        ("none", True, None, "", [], ()),
        ("gone", False, None, "", [], ()),
        (
            "groups",
            True,
            IDENTITY["groups"],
            '["admin",7,null,true]',
            ["admin", 7, None, True],
            ("admin", "7", "", "true"),
        ),
        ("nested", True, {"a": [1]}, '{"a":[1]}', [{"a": [1]}], ('{"a":[1]}',)),
        ("nested.@this", True, {"a": [1]}, '{"a":[1]}', [{"a": [1]}], ('{"a":[1]}',)),
        ("groups.#", True, 4, "4", [4], ("4",)),
    ],
)
def test_a_selection_says_whether_and_what(
    path: str, exists: bool, value: object, text: str, array: list[object], texts: tuple[str, ...]
) -> None:
    selected = select(IDENTITY, path)
    assert selected.exists is exists
    assert selected.value == value
    assert selected.text == text
    assert selected.array == array
    assert selected.texts == texts


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (1.5, "1.5"),
        (-0.0, "-0"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (10**30, "1" + "0" * 30),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.inf, "+Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_print_as_in_go(number: float, text: str) -> None:
    assert select({"n": number}, "n").text == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"a": 1.0, "b": 1e21, "c": 1e-7}, '{"a":1,"b":1e+21,"c":1e-7}'),
        (["<&>", "\u2028", "\x01", "é"], r'["\u003c\u0026\u003e","\u2028","\u0001","é"]'),
        (["\ud800"], '["\ufffd"]'),
        ((1, 2), "[1,2]"),
    ],
)
def test_data_prints_as_in_go(data: object, text: str) -> None:
    assert select({"data": data}, "data").text == text


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    assert select({"a": "x\ud800"}, "a").text == "x\ufffd"


def test_given_data_is_not_changed() -> None:
    document = {"a": [3, 1, 2], "b": {"c": 1}}
    select(document, "a.@reverse")
    select(document, "b.@join")
    assert document == {"a": [3, 1, 2], "b": {"c": 1}}


def test_of_a_key_that_a_multipath_makes_twice_the_first_counts() -> None:
    selected = select({"a": {"x": 1}, "b": {"x": 2}}, "{a.x,b.x}")
    assert selected.text == '{"x":1,"x":2}'
    assert selected.value == {"x": 1}


@pytest.mark.parametrize(
    ("path", "text"),
    [("*.#(a)#", '[{"a":1}]'), ("*.#(b)#", "[]"), ("*.#(b)", '{"b":2}'), ("*.#(c)", "")],
)
def test_a_wildcard_goes_on_to_the_next_key_until_something_exists(path: str, text: str) -> None:
    """All matches in the first array exist, even if there are none. The first match is looked up in each element."""
    assert select({"x": [{"a": 1}], "y": [{"a": 2}, {"b": 2}]}, path).text == text


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("*", "", True),
        ("?", "", False),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-b-b", False),
        ("*.svc", "a.svc.svc", True),
        (r"\*", "*", True),
        (r"\*", "x", False),
        (r"a*\?", "a-?", True),
        ("a\\", "a\\", False),
        ("*\\", "a\\", True),
        ("☃?", "☃é", True),
        ("**a**", "bab", True),
    ],
)
def test_globs(pattern: str, text: str, matches: bool) -> None:
    assert glob_matches(text, pattern, Budget()) is matches
