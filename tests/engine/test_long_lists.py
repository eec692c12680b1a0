"""Many rules: the indexes of a search, and tables that grow too large, change nothing about the answer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastgate.engine import reference, search, table
from eastgate.engine.compiled import compile_layers
from eastgate.policy import AllowAny, Chain, Deny, Effect, FirstMatch, Layer, Request, Step
from tests.engine import strategies

long_rules = st.lists(strategies.rule(), min_size=5, max_size=14).map(tuple)


@st.composite
def long_layer(draw: st.DrawFn) -> Layer:
    """A chain like that of a GEP-3779 workload: an ordered tier, denials, permissions."""
    steps = tuple(Step(rule, draw(st.sampled_from(Effect))) for rule in draw(long_rules))
    return Layer(
        "application",
        Chain((FirstMatch("admin", steps), Deny("deny", draw(long_rules)), AllowAny("allow", draw(long_rules)))),
    )


def check(layer: Layer, request: Request) -> None:
    program = compile_layers([layer])
    assert program.outcome(program.decide(request)) == reference.decide([layer], request)


@settings(max_examples=300, deadline=None)
@given(long_layer(), strategies.known_request())
def test_long_lists_are_searched_as_the_reference_evaluator_does(layer: Layer, request: Request) -> None:
    check(layer, request)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layer=strategies.layer, request=strategies.known_request())
def test_where_every_list_has_an_index(monkeypatch: pytest.MonkeyPatch, layer: Layer, request: Request) -> None:
    monkeypatch.setattr(search, "_SHORT", 0)
    check(layer, request)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layer=strategies.layer, request=strategies.known_request())
def test_where_no_table_has_room(monkeypatch: pytest.MonkeyPatch, layer: Layer, request: Request) -> None:
    monkeypatch.setattr(table, "_ROOM", -1_000_000)
    check(layer, request)
