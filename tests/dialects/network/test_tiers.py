"""Policies without a defined order allow exactly the requests that every order allows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.dialects.network.assemble import in_any_order
from eastgate.engine import reference
from eastgate.ir import ALWAYS, AllowAny, Chain, Effect, FirstMatch, Layer, Not, Placement, Predicate, Request, Step
from tests.engine import network_strategies as strategies
from tests.engine.network_strategies import rule_of


def _allowed(steps: Sequence[Step], after: Predicate, request: Request) -> bool:
    """Return the decision of a tier and the stages after it."""
    stages = (FirstMatch("tier", tuple(steps)), AllowAny("after", (rule_of(after, 0),)))
    return reference.decide([Layer(Placement(None, "ingress"), Chain(stages))], request).allowed


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(strategies.step, max_size=3), max_size=4),
    st.sampled_from([ALWAYS, Not(ALWAYS)]),
    strategies.known_request(),
)
def test_every_order_allows_or_it_is_denied(sequences: list[list[Step]], after: Predicate, request: Request) -> None:
    orders = permutations(sequences)
    every = all(_allowed([step for sequence in order for step in sequence], after, request) for order in orders)
    assert _allowed(in_any_order(sequences), after, request) == every


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(strategies.step, max_size=3), max_size=3), strategies.known_request())
def test_it_can_be_combined_again(sequences: list[list[Step]], request: Request) -> None:
    """Groups of one priority are combined first, and the results are combined with those of another kind."""
    once = in_any_order(sequences)
    again = in_any_order([in_any_order(sequences[:1]), in_any_order(sequences[1:])])
    for after in (ALWAYS, Not(ALWAYS)):
        assert _allowed(once, after, request) == _allowed(again, after, request)


def test_one_policy_stays_as_it_is_written() -> None:
    steps = [Step(rule_of(ALWAYS, number), effect) for number, effect in enumerate(Effect)]
    assert in_any_order([[], steps, []]) == tuple(steps)
