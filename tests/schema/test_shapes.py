"""Shapes: what fits is accepted, every difference is said once, at its place, with what to write instead."""

from __future__ import annotations

import pytest

from eastgate.diagnostics import Code, Reporter
from eastgate.schema import (
    Anything,
    Check,
    Choice,
    Field,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    Whole,
    check,
    codes,
    enumerated,
    quoted,
)
from eastgate.sources import Node, read_nodes_text

Said = tuple[Code, str, str, str | None]  # code, message, underlined text, help


def node_of(text: str) -> Node:
    roots = read_nodes_text("test.yaml", text)
    assert roots.reporter.found == []
    return roots.nodes[0]


def said(shape: Shape[None], text: str) -> list[Said]:
    """Everything that is said about the value of `it:`."""
    reporter = Reporter()
    root = node_of(f"it: {text}")
    check(Record("all", {"it": Field(shape)}), root, Check(reporter, None))
    return [(d.code, d.message, d.span.underlined if d.span else "", d.help) for d in reporter]


text: Text[None] = Text("a name")
port = Whole(1, 65535, what="a port")
mode = Choice(("Fast", "Slow"))
names: ListOf[None] = ListOf(text, "a list of names")
labels: MapOf[None] = MapOf(text, "a mapping of labels")
place: Record[None] = Record(
    "a place",
    {
        "city": Field(text, required=True, help="write city: <its name>"),
        "street": Field(text),
        "ports": Field(ListOf(port, "a list of ports")),
    },
    misspelt={"road": "street", "harbours": "ports"},
    advice={"harbours": "write ports: [..]"},
    foreign={"planet": (codes.NOT_A_CHOICE, "there is only one")},
)
places: ListOf[None] = ListOf(place, "a list of places")

FITS: list[tuple[Shape[None], str]] = [
    (text, "web"),
    (text, '""'),
    (port, "1"),
    (port, "65535"),
    (mode, "Slow"),
    (Choice(("Fast",), any_case=True), "fAST"),
    (names, "[]"),
    (names, "[a, b]"),
    (labels, "{}"),
    (labels, "{a: b, '': ''}"),
    (place, "{city: Kyiv}"),
    (place, "{city: Kyiv, street: x, ports: [1]}"),
    (Anything(), "[{a: 1}, x]"),
    (Anything(), ""),
]


@pytest.mark.parametrize(("shape", "written"), FITS)
def test_what_fits_is_accepted(shape: Shape[None], written: str) -> None:
    assert said(shape, written) == []


FIELDS = "the fields here are `city`, `street`, `ports`"
WRONG: list[tuple[Shape[None], str, Said]] = [
    # null
    (text, "", (codes.NULL_VALUE, "`it` has no value", "it", "leave `it` out, or write its value")),
    (names, "~", (codes.NULL_VALUE, "`it` has no value", "~", "leave `it` out, or write its value")),
    (names, "[a, null]", (codes.NULL_VALUE, "expected a name, found nothing", "null", "remove the entry, or write its value")),
    (labels, "{a: }", (codes.NULL_VALUE, "`a` has no value", "a", 'write "" if it is to be empty')),
    (place, "{city: }", (codes.NULL_VALUE, "`city` has no value", "city", "write city: <its name>")),
    # wrong types
    (text, "7", (codes.WRONG_TYPE, "expected a name, found a number", "7", 'quote it: "7"')),
    (text, "yes", (codes.WRONG_TYPE, "expected a name, found a boolean", "yes", 'quote it: "yes"')),
    (text, "[a]", (codes.WRONG_TYPE, "expected a name, found a list", "[a]", "write a name")),
    (port, '"80"', (codes.WRONG_TYPE, "expected a port, found a string", '"80"', "write 80 without quotes")),
    (port, "http", (codes.WRONG_TYPE, "expected a port, found a string", "http", "write a port between 1 and 65535")),
    (port, "true", (codes.WRONG_TYPE, "expected a port, found a boolean", "true", "write a port between 1 and 65535")),
    (port, "80.0", (codes.WRONG_TYPE, "80.0 is not a whole number", "80.0", "write a port between 1 and 65535")),
    (port, "٨٠", (codes.WRONG_TYPE, "expected a port, found a string", "٨٠", "write a port between 1 and 65535")),
    (mode, "[Fast]", (codes.WRONG_TYPE, "expected Fast or Slow, found a list", "[Fast]", "write Fast or Slow")),
    (names, "web", (codes.WRONG_TYPE, "expected a list of names, found a string", "web", "write a list: [web]")),
    (names, "{a: b}", (codes.WRONG_TYPE, "expected a list of names, found a mapping", "{a: b}", "write a list: [{a: b}]")),
    (names, "\n  a: b", (codes.WRONG_TYPE, "expected a list of names, found a mapping", "a: b", "write a list: put `- ` before it")),
    (places, "Kyiv", (codes.WRONG_TYPE, "expected a list of places, found a string", "Kyiv", "each entry of the list has the fields `city`, `street`, `ports`")),
    (labels, "[a]", (codes.WRONG_TYPE, "expected a mapping of labels, found a list", "[a]", "write key: value")),
    (place, "Kyiv", (codes.WRONG_TYPE, "a place is a mapping, not a string", "Kyiv", FIELDS)),
    # values
    (port, "0", (codes.OUT_OF_RANGE, "0 is not between 1 and 65535", "0", "write a port between 1 and 65535")),
    (port, "65536", (codes.OUT_OF_RANGE, "65536 is not between 1 and 65535", "65536", "write a port between 1 and 65535")),
    (mode, "fast", (codes.NOT_A_CHOICE, "`fast` is not Fast or Slow", "fast", "did you mean `Fast`?")),
    (mode, "Medium", (codes.NOT_A_CHOICE, "`Medium` is not Fast or Slow", "Medium", "write Fast or Slow")),
    (mode, '""', (codes.NOT_A_CHOICE, '`""` is not Fast or Slow', '""', "write Fast or Slow")),
    # fields
    (place, "{}", (codes.MISSING_FIELD, "a place needs `city`", "it", "write city: <its name>")),
    (place, "{city: a, strete: b}", (codes.UNKNOWN_FIELD, "unknown field `strete` in a place", "strete", "did you mean `street`?")),
    (place, "{city: a, Street: b}", (codes.UNKNOWN_FIELD, "unknown field `Street` in a place", "Street", "did you mean `street`?")),
    (place, "{city: a, road: b}", (codes.UNKNOWN_FIELD, "unknown field `road` in a place", "road", "did you mean `street`?")),
    (place, "{city: a, harbours: b}", (codes.UNKNOWN_FIELD, "unknown field `harbours` in a place", "harbours", "write ports: [..]")),
    (place, "{city: a, colour: b}", (codes.UNKNOWN_FIELD, "unknown field `colour` in a place", "colour", FIELDS)),
    (place, "{city: a, planet: b}", (codes.NOT_A_CHOICE, "`planet` does not belong in a place", "planet", "there is only one")),
    (place, "{city: a, notPorts: [1]}", (codes.UNKNOWN_FIELD, "unknown field `notPorts` in a place", "notPorts", "`ports` cannot be negated: write those that are meant")),
    # a misspelt field is not missing as well
    (place, "{City: a}", (codes.UNKNOWN_FIELD, "unknown field `City` in a place", "City", "did you mean `city`?")),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "written", "expected"), WRONG)
def test_a_difference_is_said_once_with_its_place_and_its_way_out(
    shape: Shape[None], written: str, expected: Said
) -> None:
    assert said(shape, written) == [expected]


def test_all_differences_of_a_document_are_said_however_deep_they_are() -> None:
    found = said(places, "[{city: 1, ports: [0, x, 70000]}, 7, {street: , colour: blue}]")
    assert [(code, underlined) for code, _, underlined, _ in found] == [
        (codes.WRONG_TYPE, "1"),
        (codes.OUT_OF_RANGE, "0"),
        (codes.WRONG_TYPE, "x"),
        (codes.OUT_OF_RANGE, "70000"),
        (codes.WRONG_TYPE, "7"),
        (codes.NULL_VALUE, "street"),
        (codes.UNKNOWN_FIELD, "colour"),
        (codes.MISSING_FIELD, "{street: , colour: blue}"),
    ]


def test_what_is_missing_is_shown_at_the_key_of_the_mapping_or_at_the_list_entry() -> None:
    assert [underlined for _, _, underlined, _ in said(place, "\n  street: x")] == ["it"]
    assert [underlined for _, _, underlined, _ in said(places, "\n- street: x")] == ["street: x"]


@pytest.mark.parametrize(
    ("written", "ran"),
    [
        ("{city: a}", True),
        ("{city: a, colour: blue}", True),  # what else is written can still be judged
        ("{city: a, planet: b}", True),
        ("{city: 1}", False),
        ("{city: }", False),
        ("{street: a}", False),
        ("{city: a, strete: b}", False),  # the field that the rule reads may be the one that is misspelt
        ("{city: a, ports: x}", False),
        ("{city: a, ports: [x]}", True),  # the list is a list; what is wrong is inside it
        ("Kyiv", False),
    ],
)
def test_the_rules_of_a_record_see_only_records_whose_fields_have_the_right_types(written: str, ran: bool) -> None:
    seen: list[Node] = []
    ruled: Record[None] = Record(
        place.what, place.fields, (lambda node, to: seen.append(node),), place.misspelt, foreign=place.foreign
    )
    said(ruled, written)
    assert bool(seen) is ran


@pytest.mark.parametrize(("written", "ran"), [("[]", True), ("[a]", True), ("[a, 1]", False), ("a", False)])
def test_the_rule_of_a_list_sees_only_lists_whose_entries_have_the_right_types(written: str, ran: bool) -> None:
    seen: list[Node] = []
    said(ListOf(text, rule=lambda node, to: seen.append(node)), written)
    assert bool(seen) is ran


@pytest.mark.parametrize(("written", "ran"), [("{}", True), ("{a: b}", True), ("{a: 1}", False), ("{a: }", False)])
def test_the_rule_of_a_mapping_sees_only_mappings_whose_values_have_the_right_types(written: str, ran: bool) -> None:
    seen: list[Node] = []
    said(MapOf(text, rule=lambda node, to: seen.append(node)), written)
    assert bool(seen) is ran


def test_a_known_key_of_a_mapping_has_a_shape_of_its_own() -> None:
    shape: MapOf[None] = MapOf(text, known={"mode": mode})
    assert said(shape, "{mode: Fast, other: fast}") == []
    assert [message for _, message, _, _ in said(shape, "{mode: fast}")] == ["`fast` is not Fast or Slow"]


def test_a_choice_says_why_a_value_that_one_might_expect_is_not_allowed() -> None:
    shape = Choice(("Fast",), reasons={"SLOW": (codes.BAD_MODE, "slow is for later")})
    assert said(shape, "Slow") == [(codes.BAD_MODE, "`Slow` is not Fast", "Slow", "slow is for later")]


def test_check_answers_whether_the_node_itself_fits() -> None:
    to: Check[None] = Check(Reporter(), None)
    assert check(places, node_of("[{}]"), to)  # a list it is; its entry is reported
    assert len(to.reporter.found) == 1
    assert not check(places, node_of("{a: b}"), to)


def test_what_somebody_wrote_is_quoted_short_enough_for_a_sentence() -> None:
    assert quoted("web") == "`web`"
    assert quoted("") == '`""`'
    assert len(quoted("a" * 1000)) < 100


def test_words_are_enumerated_as_in_a_sentence() -> None:
    assert [enumerated(["a", "b", "c"][:count], "or") for count in (1, 2, 3)] == ["a", "a or b", "a, b or c"]
