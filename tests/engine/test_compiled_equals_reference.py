"""On generated layers and requests, the compiled engine and the reference evaluator never disagree."""

from __future__ import annotations

from hypothesis import assume, given, settings

from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import Chain, Deny, Layer, Placement, Request, Rule
from eastgate.ir.symbolic.completions import complete
from eastgate.ir.symbolic.trees import truth
from tests.engine import strategies


@settings(max_examples=800, deadline=None)
@given(strategies.layers, strategies.known_request())
def test_known_requests_get_the_same_outcome_by_the_same_rule(layers: list[Layer], request: Request) -> None:
    program = compile_layers(layers)
    verdict = program.decide(request)
    assert bool(verdict & 1) == program.outcome(verdict).allowed
    assert program.outcome(verdict) == reference.decide(layers, request)


@settings(max_examples=600, deadline=None)
@given(strategies.layers, strategies.any_request())
def test_requests_with_unknown_attributes_get_the_same_verdict(layers: list[Layer], request: Request) -> None:
    program = compile_layers(layers)
    outcome = program.outcome(program.decide(request))
    assert outcome.allowed == reference.decide(layers, request).allowed


@settings(max_examples=600, deadline=None)
@given(strategies.layers, strategies.any_request(), strategies.rule())
def test_requests_with_a_condition_on_unknown_attributes_get_the_same_verdict(
    layers: list[Layer], request: Request, rule: Rule
) -> None:
    denying = Layer(Placement(None, "network"), Chain((Deny("deny", (rule,)),)))
    assume(
        not request.refused_path and complete(denying, request).outcome.rule is rule
    )  # some completion meets `within`
    bounded = Request(request.values, request.answers, within=rule.when)
    program = compile_layers(layers)
    outcome = program.outcome(program.decide(bounded))
    assert outcome.allowed == reference.decide(layers, bounded).allowed
    assert outcome.allowed or not program.outcome(program.decide(request)).allowed  # less information denies more


@settings(max_examples=600, deadline=None)
@given(strategies.layer, strategies.any_request())
def test_the_rule_that_decided_really_matches(layer: Layer, request: Request) -> None:
    program = compile_layers([layer])
    outcome = program.outcome(program.decide(request))
    completion = complete(layer, request)
    assert completion.outcome == outcome
    if outcome.rule is not None:
        assert truth(outcome.rule.when, completion.of(request)) is True


@settings(max_examples=800, deadline=None)
@given(strategies.rule())
def test_a_rule_that_some_request_matches_denies_the_wholly_unknown_request(rule: Rule) -> None:
    layer = Layer(Placement(None, "network"), Chain((Deny("deny", (rule,)),)))
    nothing_known = Request({})
    program = compile_layers([layer])
    outcome = program.outcome(program.decide(nothing_known))
    assert outcome.allowed == reference.decide([layer], nothing_known).allowed
