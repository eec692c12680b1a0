"""Layers, compiled: a request goes in, a small integer comes out.

The integer is twice the number of an outcome, plus one where it allows; `Program.outcome` turns it into words.
Nothing is built for a decision: the outcomes exist since the program was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eastgate.engine.completions import complete
from eastgate.engine.index import build_first, compile_test
from eastgate.policy import (
    OPEN,
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Layer,
    Observe,
    Outcome,
    Refusal,
    Request,
    Rule,
)
from eastgate.policy.attributes import IDENTITY, PATH, PORT

__all__ = ["Program", "Verdict", "compile_layers"]

Verdict = int
Decide = Callable[[Request], Verdict]

_OPEN: Verdict = 1  # outcome number 0, allowed
_GO_ON = -1  # what a stage says when it neither decides nor accepts


class _Outcomes:
    """Numbers for outcomes. The same outcome gets the same number."""

    def __init__(self) -> None:
        self.all: list[Outcome] = [OPEN]
        self._numbers: dict[tuple[object, ...], int] = {_key(OPEN): 0}

    def verdict(self, outcome: Outcome) -> Verdict:
        """The integer that stands for an outcome."""
        key = _key(outcome)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.all)
            self.all.append(outcome)
        return number * 2 + outcome.allowed


def _key(outcome: Outcome) -> tuple[object, ...]:
    """Rules are told apart by identity: comparing their predicates would be slow, and means nothing more."""
    return outcome.allowed, outcome.layer, outcome.stage, id(outcome.rule) if outcome.rule else None, outcome.refusal


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Program:
    """What a class of workloads decides."""

    layers: tuple[Layer, ...]
    decide: Decide
    _outcomes: _Outcomes

    def outcome(self, verdict: Verdict) -> Outcome:
        """What a verdict of this program means."""
        return self._outcomes.all[verdict >> 1]


def compile_layers(layers: Sequence[Layer]) -> Program:
    """One program for layers in path order: ALL must allow, the first denial decides."""
    outcomes = _Outcomes()
    compiled = tuple(_compile_layer(layer, outcomes) for layer in layers)
    if not compiled:
        return Program((), lambda _request: _OPEN, outcomes)
    if len(compiled) == 1:
        return Program(tuple(layers), compiled[0], outcomes)

    def decide(request: Request) -> Verdict:
        accepted = _OPEN
        for layer in compiled:
            verdict = layer(request)
            if not verdict & 1:
                return verdict
            if verdict != _OPEN:
                accepted = verdict
        return accepted

    return Program(tuple(layers), decide, outcomes)


def _compile_layer(layer: Layer, outcomes: _Outcomes) -> Decide:
    """The layer's selector, and round it the two things that come before any rule: unknowns and refused paths."""
    inner = _compile_selector(layer, outcomes)
    looks_at = layer.looks_at
    bad_path = (
        outcomes.verdict(Outcome(False, layer.name, None, None, Refusal.BAD_REQUEST)) if PATH in looks_at else None
    )

    def unknown(request: Request) -> Verdict:
        return outcomes.verdict(complete(layer, request).outcome)

    if looks_at <= {IDENTITY, PORT}:

        def decide_network(request: Request) -> Verdict:
            return unknown(request) if request.open else inner(request)

        return decide_network

    def decide(request: Request) -> Verdict:
        if bad_path is not None and request.refused_path:
            return bad_path
        return inner(request) if looks_at <= request.values.keys() and not request.open else unknown(request)

    return decide


def _compile_selector(layer: Layer, outcomes: _Outcomes) -> Decide:
    chains = [_compile_chain(layer.name, chain, outcomes) for chain in layer.chains]
    if len(chains) == 1:
        return chains[0]
    pick = build_first([case.when for case in layer.cases])  # a miss is the place of `otherwise`, which is the last
    return lambda request: chains[pick(request)](request)


# A stage is a function that gives a verdict (>= 0: the chain ends), `_GO_ON`, or the complement of a verdict
# (< -1): it accepted, go on, and this is what to say if nothing later has more to say.
_StageFunction = Callable[[Request], int]


def _compile_chain(layer: str, chain: Chain, outcomes: _Outcomes) -> Decide:
    stages: list[_StageFunction] = []
    pending: Deny | None = None  # merged with an AllowAny behind it: one look-up for both
    enforced = [stage for stage in chain.stages if not isinstance(stage, Observe)]
    for place, stage in enumerate(enforced):
        last = place == len(enforced) - 1
        if isinstance(stage, Deny) and pending is None and not last and isinstance(enforced[place + 1], AllowAny):
            pending = stage
            continue
        stages.append(_compile_stage(layer, pending, stage, outcomes, last=last))
        pending = None
    if not stages:
        return lambda _request: _OPEN
    if len(stages) == 1 and isinstance(enforced[-1], AllowAny):
        return stages[0]  # never goes on: every request is denied or accepted here

    def decide(request: Request) -> Verdict:
        accepted = _OPEN
        for stage in stages:
            said = stage(request)
            if said >= 0:
                return accepted if said == _OPEN else said
            if said != _GO_ON:
                accepted = ~said
        return accepted

    return decide


def _compile_stage(
    layer: str, before: Deny | None, stage: Deny | AllowAny | AskAll | FirstMatch, outcomes: _Outcomes, *, last: bool
) -> _StageFunction:
    if isinstance(stage, AskAll):
        return _compile_asks(layer, stage, outcomes)
    rules: list[Rule] = []
    says: list[int] = []  # what each rule says, and last what is said when none matches

    def denying(deny: Deny) -> None:
        rules.extend(deny.rules)
        says.extend(outcomes.verdict(Outcome(False, layer, deny.name, rule, deny.refusal)) for rule in deny.rules)

    if before is not None:
        denying(before)
    match stage:
        case Deny():
            denying(stage)
            says.append(_GO_ON)
        case AllowAny(name, allowing, refusal):
            rules.extend(allowing)
            accepts = [outcomes.verdict(Outcome(True, layer, name, rule)) for rule in allowing]
            says.extend(accepts if last else [~verdict for verdict in accepts])
            says.append(outcomes.verdict(Outcome(False, layer, name, None, refusal)))
        case FirstMatch(steps=steps, otherwise=otherwise):
            rules.extend(step.rule for step in steps)
            says.extend(_effect(layer, stage, step.effect, step.rule, outcomes) for step in steps)
            says.append(_effect(layer, stage, otherwise, None, outcomes))
    first = build_first([rule.when for rule in rules])
    return lambda request: says[first(request)]


def _effect(layer: str, stage: FirstMatch, effect: Effect, rule: Rule | None, outcomes: _Outcomes) -> int:
    match effect:
        case Effect.PASS:
            return _GO_ON
        case Effect.DENY:
            return outcomes.verdict(Outcome(False, layer, stage.name, rule, stage.refusal))
        case Effect.ACCEPT:
            return outcomes.verdict(Outcome(True, layer, stage.name, rule)) if rule else _OPEN


def _compile_asks(layer: str, stage: AskAll, outcomes: _Outcomes) -> _StageFunction:
    asks = [
        (
            compile_test(ask.rule.when),
            ask.authorizer,
            outcomes.verdict(Outcome(False, layer, stage.name, ask.rule, stage.refusal)),
            ~outcomes.verdict(Outcome(True, layer, stage.name, ask.rule)),
        )
        for ask in stage.asks
    ]

    def ask_all(request: Request) -> int:
        said = _GO_ON
        for test, authorizer, denied, accepted in asks:
            if test(request):
                if request.answers.get(authorizer) != "allow":
                    return denied
                said = accepted
        return said

    return ask_all
