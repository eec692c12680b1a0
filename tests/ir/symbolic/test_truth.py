"""Three-valued truth of predicates for known, assumed and unknown attributes."""

from __future__ import annotations

import pytest

from eastgate.ir import And, Computed, Is, Known, Not, OneOf, Or, Predicate, Prefix, Request
from eastgate.ir.attributes import METHOD, PORT, Attribute
from eastgate.ir.symbolic.trees import truth
from tests.ir.symbolic.drawing import TEAM

GET, ON_1 = Is(METHOD, OneOf(frozenset({"GET"}))), Is(PORT, OneOf(frozenset({1})))
RED, BOTH = Is(TEAM, OneOf(frozenset({"red"}))), OneOf(frozenset({"red,blue"}))
JOINED, APART = Is(TEAM, BOTH, joined=True), Is(TEAM, BOTH)
NICE = Computed("it is nice", frozenset({METHOD, TEAM}), lambda values: values[METHOD] == "GET")
TEAMS = ("red", "blue")


@pytest.mark.parametrize(
    ("predicate", "values", "assumed", "held"),
    [
        (GET, {METHOD: "GET"}, {}, True),
        (GET, {METHOD: "PUT"}, {}, False),
        (GET, {METHOD: None}, {}, False),
        (GET, {}, {}, None),
        (GET, {}, {GET: True}, True),
        (GET, {METHOD: "GET"}, {GET: False}, True),  # a known value overrides an assumption
        (RED, {TEAM: TEAMS}, {RED: False}, True),
        (Is(METHOD, Prefix("G")), {METHOD: "GET"}, {}, True),
        (ON_1, {PORT: 1}, {}, True),
        (JOINED, {TEAM: TEAMS}, {}, True),
        (APART, {TEAM: TEAMS}, {}, False),
        (JOINED, {TEAM: "red,blue"}, {}, True),
        (JOINED, {TEAM: "red"}, {}, False),
        (JOINED, {TEAM: None}, {}, False),
        (JOINED, {TEAM: TEAMS}, {JOINED: False}, False),  # unless an expression reads several values
        (JOINED, {TEAM: "red,blue"}, {JOINED: False}, False),
        (JOINED, {TEAM: TEAMS}, {JOINED: None}, True),
        (JOINED, {}, {JOINED: True}, True),
        (NICE, {METHOD: "GET", TEAM: None}, {}, True),
        (NICE, {METHOD: "PUT", TEAM: None}, {}, False),
        (NICE, {METHOD: "GET"}, {}, None),
        (NICE, {METHOD: "GET", TEAM: None}, {NICE: False}, False),
        (NICE, {METHOD: "GET", TEAM: None}, {NICE: None}, None),
        (Not(GET), {}, {}, None),
        (Not(GET), {METHOD: "GET"}, {}, False),
        (And((GET, ON_1)), {PORT: 2}, {}, False),
        (And((GET, ON_1)), {PORT: 1}, {}, None),
        (And(()), {}, {}, True),
        (Or((GET, ON_1)), {PORT: 1}, {}, True),
        (Or((GET, ON_1)), {PORT: 2}, {}, None),
        (Or((GET, ON_1)), {PORT: 2, METHOD: "PUT"}, {}, False),
        (Or(()), {}, {}, False),
    ],
)
def test_unknown_attributes_decide_only_if_nothing_else_does(
    predicate: Predicate,
    values: dict[Attribute, Known],
    assumed: dict[Is | Computed, bool | None],
    held: bool | None,
) -> None:
    assert truth(predicate, Request(values).assuming(assumed)) is held
