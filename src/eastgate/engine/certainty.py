"""An allow that is proven without trying every completion of what is unknown.

It looks at each chain and each step that the unknown attributes may lead to by itself, as if any of them could come
together. That proves less than a search does, but it takes one look at each rule, however many attributes are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.engine.partial import truth
from eastgate.policy import (
    UNOPPOSED,
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Layer,
    Observe,
    Outcome,
    Request,
    Stage,
    consents,
)

__all__ = ["prove_allow"]


def prove_allow(layer: Layer, request: Request) -> Outcome | None:
    """Return an outcome that allows if every chain allows that the request may meet; None where that is not so."""
    if request.bad_host or request.refused_path or request.respelled_path:
        return None
    outcome: Outcome | None = None
    for chain, certain in _chains(layer, request):
        outcome = _from(chain.stages, request, layer.name, UNOPPOSED)
        if outcome is None or certain:
            return outcome
    return outcome


def _chains(layer: Layer, request: Request) -> list[tuple[Chain, bool]]:
    """Return the chains that the request may meet, and whether it meets that one if none before."""
    held = [(case.chain, truth(case.when, request)) for case in layer.cases]
    return [*((chain, certain is True) for chain, certain in held if certain is not False), (layer.otherwise, True)]


def _from(stages: Sequence[Stage], request: Request, layer: str, accepted: Outcome) -> Outcome | None:
    """Return how the rest of a chain allows, whatever the unknown attributes are; None where it may deny."""
    if not stages:
        return accepted
    stage, rest = stages[0], stages[1:]
    match stage:
        case Observe():
            return _from(rest, request, layer, accepted)
        case Deny(rules=rules):
            never = all(truth(rule.when, request) is False for rule in rules)
            return _from(rest, request, layer, accepted) if never else None
        case AllowAny(name, rules):
            rule = next((rule for rule in rules if truth(rule.when, request)), None)
            return _from(rest, request, layer, Outcome(True, layer, name, rule)) if rule is not None else None
        case AskAll(asks=asks):
            asked = [ask for ask in asks if truth(ask.rule.when, request) is not False]
            consent = all(consents(request.answers.get(ask.authorizer)) for ask in asked)
            return _from(rest, request, layer, accepted) if consent else None
        case FirstMatch():
            return _step(stage, rest, request, layer, accepted)


def _step(stage: FirstMatch, rest: Sequence[Stage], request: Request, layer: str, accepted: Outcome) -> Outcome | None:
    """Return how an ordered stage allows: every step that may be the first to match must."""
    possible = [(step.effect, truth(step.rule.when, request), step.rule) for step in stage.steps]
    outcome: Outcome | None = None
    for effect, held, rule in [*possible, (stage.otherwise, True, None)]:
        if held is False:
            continue
        if effect is Effect.DENY:
            return None
        if effect is Effect.PASS:
            outcome = _from(rest, request, layer, accepted)
        else:
            outcome = Outcome(True, layer, stage.name, rule) if rule is not None else accepted
        if outcome is None or held:
            return outcome
    return outcome
