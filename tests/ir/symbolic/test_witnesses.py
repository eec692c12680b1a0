"""Each witness is correct, and found if one exists. The same holds for the ends that a request can reach."""

from __future__ import annotations

from ipaddress import ip_network
from random import Random

import pytest

from eastgate.ir import (
    ALWAYS,
    NEVER,
    AccountsOf,
    And,
    Computed,
    InNetwork,
    Is,
    Known,
    Matcher,
    Not,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Present,
    Request,
    Suffix,
)
from eastgate.ir.attributes import ADDRESS, IDENTITY, METHOD, PATH, PORT, Attribute
from eastgate.ir.symbolic import reaching
from eastgate.ir.symbolic.reaching import Effort, reachable
from eastgate.ir.symbolic.trees import Entry
from eastgate.ir.symbolic.witnesses import GaveUp, complete_with_others, pick_values, witness
from tests.engine.brute_force import holds
from tests.ir.symbolic.drawing import ATOMS, EVERY, TEAM, WORLD, draw


@pytest.mark.parametrize("seed", range(6))
def test_a_witness_is_found_exactly_where_there_is_one(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(25):
        wanted, avoided = draw(random), [draw(random) for _ in range(random.randint(0, 2))]
        found = witness(wanted, avoided)
        exists = any(holds(wanted, values) and not any(holds(other, values) for other in avoided) for values in EVERY)
        assert (found is not None) == exists, (wanted, avoided)
        if found is not None:
            completed = {**dict.fromkeys(WORLD), **found.values}
            assert holds(wanted, completed)
            assert not any(holds(other, completed) for other in avoided)


def _team(*values: str) -> Is:
    return Is(TEAM, OneOf(frozenset(values)))


IS_A, IS_B = Is(METHOD, OneOf(frozenset({"a"}))), Is(METHOD, OneOf(frozenset({"b"})))


@pytest.mark.parametrize(
    ("wanted", "values"),
    [
        (IS_A, {METHOD: "a"}),
        (And((IS_A, Is(PORT, OneOf(frozenset({2, 1}))))), {METHOD: "a", PORT: 1}),
        (And((IS_A, IS_A)), {METHOD: "a"}),
        (And((IS_A, IS_B)), None),
        (Or((IS_A, IS_B)), {METHOD: "a"}),
        (Or(()), None),
        (Not(IS_A), {}),
        (Not(And((IS_A, IS_B))), None),
        (Computed("a test", frozenset({METHOD}), lambda _: True), None),
    ],
)
def test_plain_values_are_the_first_of_each_list(wanted: Predicate, values: dict[Attribute, Known] | None) -> None:
    assert pick_values(wanted) == values


@pytest.mark.parametrize(
    ("attribute", "matcher"),
    [
        (PATH, OneOf(frozenset({"/a", "/b"}))),
        (PATH, Prefix("/a/")),
        (PATH, Suffix(".png")),
        (PATH, Present()),
        (IDENTITY, AccountsOf("td", "a")),
        (ADDRESS, InNetwork((ip_network("10.0.0.0/8"),))),
    ],
)
def test_a_picked_value_is_one_that_matches(attribute: Attribute, matcher: Matcher) -> None:
    values = pick_values(Is(attribute, matcher))
    assert values is not None
    value = values[attribute]
    assert isinstance(value, str)
    assert matcher.contains(value)


@pytest.mark.parametrize(
    ("attribute", "matcher"),
    [(PATH, OneOf(frozenset({"/a%2fb"}))), (PATH, OneOf(frozenset())), (ADDRESS, InNetwork(()))],
)
def test_no_value_is_picked_that_every_policy_refuses(attribute: Attribute, matcher: Matcher) -> None:
    assert pick_values(Is(attribute, matcher)) is None


def test_a_path_that_is_refused_is_no_witness() -> None:
    on_slash = Is(PATH, Prefix("/a%2f"))
    assert witness(on_slash) is None
    assert witness(And((Is(PATH, Prefix("/a")), Not(on_slash)))) is not None


def test_others_than_the_given_values_are_such_as_policies_mention_least() -> None:
    request = complete_with_others({METHOD: "GET"}, [METHOD, PORT, ADDRESS, PATH], 8080)
    assert request.values == {METHOD: "GET", PORT: 8080, ADDRESS: "203.0.113.7", PATH: None}
    assert complete_with_others({PORT: 1}, [PORT], 8080).values == {PORT: 1}
    assert complete_with_others({}, [METHOD], 8080).values == {METHOD: None}


# Ends that a request can reach


@pytest.mark.parametrize("seed", range(8))
def test_the_ends_that_some_completion_comes_to_are_reachable(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(15):
        entries = [Entry(draw(random), number) for number in range(random.randint(1, 5))]
        values = random.choice(EVERY)
        known = {attribute: values[attribute] for attribute in WORLD if random.random() < 0.4}
        possible = [values for values in EVERY if all(values[attribute] == value for attribute, value in known.items())]
        ends = [next((end for when, end in entries if holds(when, values)), None) for values in possible]
        reached = reachable(entries, Request(known), Effort())
        never = {end for when, end in entries if not any(holds(when, values) for values in possible)}
        assert [end for end in reached if end not in never] == [end for _, end in entries if end in ends]


def test_beyond_the_budget_each_entry_is_named_that_is_not_excluded_alone() -> None:
    asked: list[Predicate] = [IS_A, And((IS_A, IS_A)), IS_B, ALWAYS, IS_A]
    entries = [Entry(predicate, number) for number, predicate in enumerate(asked)]
    assert reachable(entries, Request({}), Effort()) == [0, 2, 3]
    assert reachable(entries, Request({}), Effort(6)) == [0, 2, 3]
    assert reachable(entries, Request({}), Effort(5)) == [0, 1, 2, 3]
    assert reachable(entries, Request({METHOD: "b"}), Effort(0)) == [2]


def test_tests_of_ones_own_may_come_out_either_way_unless_the_value_is_known() -> None:
    is_nice = Computed("it is nice", frozenset({METHOD}), lambda values: values[METHOD] == "a")
    is_nicer = Computed("both are nice", frozenset({METHOD, TEAM}), lambda _: True)
    assert reachable([Entry(is_nice, 0), Entry(IS_A, 1), Entry(IS_B, 2)], Request({}), Effort()) == [0, 2]
    assert reachable([Entry(is_nicer, 0), Entry(IS_A, 1)], Request({}), Effort()) == [0, 1]
    red, blue = ATOMS[8], ATOMS[9]
    assert reachable([Entry(red, 0), Entry(blue, 1), Entry(NEVER, 2)], Request({}), Effort()) == [0, 1]
    joined = Is(TEAM, OneOf(frozenset({"red"})), joined=True)
    assert reachable([Entry(joined, 0), Entry(red, 1)], Request({}), Effort()) == [0, 1]


PREFIXED = Is(METHOD, Prefix("a"))
COVERED: list[list[Predicate]] = [
    [PREFIXED, And((PREFIXED, Is(METHOD, Suffix("b"))))],
    [_team("red", "green"), And((_team("red", "blue"), Not(_team("blue"))))],
]


@pytest.mark.parametrize("predicates", COVERED, ids=["prefix", "header"])
def test_a_covered_entry_is_not_reached_though_no_single_value_shows_it(
    predicates: list[Predicate], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [Entry(predicate, number) for number, predicate in enumerate(predicates)]
    assert reachable(entries, Request({}), Effort()) == [0]

    def give_up(*_: object) -> None:
        raise GaveUp

    monkeypatch.setattr(reaching, "witness", give_up)
    assert reachable(entries, Request({}), Effort()) == [0, 1]
