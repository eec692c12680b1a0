"""On network layers, the compiled engine equals the reference evaluator for known and unknown attributes."""

from __future__ import annotations

from hypothesis import given, settings

from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import Layer, Request
from tests.engine import network_strategies as strategies


@settings(max_examples=200, deadline=None)
@given(strategies.layer, strategies.known_request())
def test_they_agree_on_known_attributes(layer: Layer, request: Request) -> None:
    program = compile_layers([layer])
    outcome = program.outcome(program.decide(request))
    assert outcome == reference.decide([layer], request)


@settings(max_examples=200, deadline=None)
@given(strategies.layer, strategies.any_request())
def test_they_agree_on_unknown_attributes(layer: Layer, request: Request) -> None:
    program = compile_layers([layer])
    assert bool(program.decide(request) & 1) == reference.decide([layer], request).allowed
