"""Shapes: valid values are accepted, and every error is reported once, at its place, with the text to write instead."""

from __future__ import annotations

import pytest

from eastgate.basics.diagnostics import Code, Reporter
from eastgate.reading.manifests import Node, read_nodes_text
from eastgate.reading.manifests.shapes import (
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

Said = tuple[Code, str, str, str | None]  # code, message, underlined text, help


def node_of(text: str) -> Node:
    roots = read_nodes_text("test.yaml", text)
    assert roots.reporter.diagnostics == []
    return roots.nodes[0]


def said(shape: Shape[None], text: str) -> list[Said]:
    """Return all findings about the value of `it:`."""
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
def test_valid_values_are_accepted(shape: Shape[None], written: str) -> None:
    assert said(shape, written) == []


FIELDS = "the fields here are `city`, `street`, `ports`"
ENTRIES = "write a list; the fields of each entry are `city`, `street`, `ports`"
IN_RANGE = "write a port between 1 and 65535"
WRONG: dict[Code, list[tuple[Shape[None], str, str, str, str]]] = {
    # shape, written, underlined, message, help
    codes.NULL_VALUE: [
        (text, "", "it", "`it` has no value", "leave `it` out, or write its value"),
        (names, "~", "~", "`it` has no value", "leave `it` out, or write its value"),
        (names, "[a, null]", "null", "expected a name, found nothing", "remove the entry, or write its value"),
        (labels, "{a: }", "a", "`a` has no value", 'write "" if it is to be empty'),
        (place, "{city: }", "city", "`city` has no value", "write city: <its name>"),
    ],
    codes.WRONG_TYPE: [
        (text, "7", "7", "expected a name, found a number", 'quote it: "7"'),
        (text, "yes", "yes", "expected a name, found a boolean", 'quote it: "yes"'),
        (text, "[a]", "[a]", "expected a name, found a list", "write a name"),
        (port, '"80"', '"80"', "expected a port, found a string", "write 80 without quotes"),
        (port, "http", "http", "expected a port, found a string", IN_RANGE),
        (port, "٨٠", "٨٠", "expected a port, found a string", IN_RANGE),
        (port, "true", "true", "expected a port, found a boolean", IN_RANGE),
        (port, "80.0", "80.0", "80.0 is not a whole number", IN_RANGE),
        (mode, "[Fast]", "[Fast]", "expected Fast or Slow, found a list", "write Fast or Slow"),
        (names, "web", "web", "expected a list of names, found a string", "write a list: [web]"),
        (names, "{a: b}", "{a: b}", "expected a list of names, found a mapping", "write a list: [{a: b}]"),
        (names, "\n  a: b", "a: b", "expected a list of names, found a mapping", "write a list: put `- ` before it"),
        (
            places,
            "Kyiv",
            "Kyiv",
            "expected a list of places, found a string",
            ENTRIES,
        ),
        (labels, "[a]", "[a]", "expected a mapping of labels, found a list", "write key: value"),
        (place, "Kyiv", "Kyiv", "a place is a mapping, not a string", FIELDS),
    ],
    codes.OUT_OF_RANGE: [
        (port, "0", "0", "0 is not between 1 and 65535", IN_RANGE),
        (port, "65536", "65536", "65536 is not between 1 and 65535", IN_RANGE),
    ],
    codes.NOT_A_CHOICE: [
        (mode, "fast", "fast", "`fast` is not Fast or Slow", "did you mean `Fast`?"),
        (mode, "Medium", "Medium", "`Medium` is not Fast or Slow", "write Fast or Slow"),
        (mode, '""', '""', '`""` is not Fast or Slow', "write Fast or Slow"),
        (place, "{city: a, planet: b}", "planet", "`planet` does not belong in a place", "there is only one"),
    ],
    codes.MISSING_FIELD: [
        (place, "{}", "it", "a place needs `city`", "write city: <its name>"),
    ],
}


@pytest.mark.parametrize(
    ("code", "shape", "written", "underlined", "message", "way_out"),
    [(code, *row) for code, rows in WRONG.items() for row in rows],
)
def test_an_error_is_reported_once_with_its_place_and_a_help(
    code: Code, shape: Shape[None], written: str, underlined: str, message: str, way_out: str
) -> None:
    assert said(shape, written) == [(code, message, underlined, way_out)]


@pytest.mark.parametrize(
    ("written", "key", "way_out"),
    [
        ("{city: a, strete: b}", "strete", "did you mean `street`?"),
        ("{city: a, Street: b}", "Street", "did you mean `street`?"),
        ("{city: a, road: b}", "road", "did you mean `street`?"),
        ("{city: a, harbours: b}", "harbours", "write ports: [..]"),
        ("{city: a, colour: b}", "colour", FIELDS),
        ("{city: a, notPorts: [1]}", "notPorts", "`ports` cannot be negated: list the values to match"),
        ("{City: a}", "City", "did you mean `city`?"),  # and it is not reported as missing
    ],
)
def test_an_unknown_field_gets_a_suggestion(written: str, key: str, way_out: str) -> None:
    assert said(place, written) == [(codes.UNKNOWN_FIELD, f"unknown field `{key}` in a place", key, way_out)]


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


def test_a_missing_field_is_shown_at_the_key_of_the_mapping_or_at_the_list_entry() -> None:
    assert [underlined for _, _, underlined, _ in said(place, "\n  street: x")] == ["it"]
    assert [underlined for _, _, underlined, _ in said(places, "\n- street: x")] == ["street: x"]


@pytest.mark.parametrize(
    ("written", "ran"),
    [
        ("{city: a}", True),
        ("{city: a, colour: blue}", True),  # the other fields can still be checked
        ("{city: a, planet: b}", True),
        ("{city: 1}", False),
        ("{city: }", False),
        ("{street: a}", False),
        ("{city: a, strete: b}", False),  # the field that the rule reads may be the misspelt one
        ("{city: a, ports: x}", False),
        ("{city: a, ports: [x]}", False),  # a rule reads entries as it reads fields
        ("Kyiv", False),
    ],
)
def test_rules_of_a_record_run_only_if_its_fields_have_the_right_types(written: str, ran: bool) -> None:
    seen: list[Node] = []
    ruled: Record[None] = Record(
        place.what, place.fields, (lambda node, _: seen.append(node),), place.misspelt, foreign=place.foreign
    )
    said(ruled, written)
    assert bool(seen) is ran


@pytest.mark.parametrize(("written", "ran"), [("[]", True), ("[a]", True), ("[a, 1]", False), ("a", False)])
def test_the_rule_of_a_list_runs_only_if_its_entries_have_the_right_types(written: str, ran: bool) -> None:
    seen: list[Node] = []
    said(ListOf(text, rule=lambda node, _: seen.append(node)), written)
    assert bool(seen) is ran


@pytest.mark.parametrize(("written", "ran"), [("{}", True), ("{a: b}", True), ("{a: 1}", False), ("{a: }", False)])
def test_the_rule_of_a_mapping_runs_only_if_its_values_have_the_right_types(written: str, ran: bool) -> None:
    seen: list[Node] = []
    said(MapOf(text, rule=lambda node, _: seen.append(node)), written)
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
    assert check(places, node_of("[{}]"), to)  # it is a list; its entry is reported
    assert len(to.reporter.diagnostics) == 1
    assert not check(places, node_of("{a: b}"), to)


def test_long_texts_are_shortened_in_messages() -> None:
    assert quoted("web") == "`web`"
    assert quoted("") == '`""`'
    assert len(quoted("a" * 1000)) < 100


def test_words_are_enumerated_as_in_a_sentence() -> None:
    assert [enumerated(["a", "b", "c"][:count], "or") for count in (1, 2, 3)] == ["a", "a or b", "a, b or c"]
