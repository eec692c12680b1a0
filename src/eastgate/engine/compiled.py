"""Compiled layers: a function from requests to small integers.

A decision builds no objects: the outcome of each verdict number is known after compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eastgate.basics.records import dataclass
from eastgate.engine.clauses import ClausesByCaller
from eastgate.engine.conditions import compile_condition
from eastgate.engine.search import build_search
from eastgate.engine.table import VerdictTable, build_table
from eastgate.engine.verdicts import PASSED, VerdictNumber, Verdicts
from eastgate.ir import (
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Layer,
    Observe,
    Outcome,
    Predicate,
    Request,
    Rule,
    Ruling,
)
from eastgate.ir.attributes import IDENTITY, PORT
from eastgate.ir.symbolic.completions import complete

__all__ = ["Finder", "Program", "VerdictNumber", "compile_layers"]

_Decide = Callable[[Request], VerdictNumber]

_NETWORK = frozenset({IDENTITY, PORT})


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A finder for layers that one table cannot decide."""

    find: _Decide


Finder = VerdictTable | Function


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Program:
    """The compiled layers of a class of workloads."""

    layers: tuple[Layer, ...]
    finder: Finder
    _verdicts: Verdicts

    def decide(self, request: Request) -> VerdictNumber:
        """Decide a request. An odd number allows it."""
        return self.finder.find(request)

    def outcome(self, verdict: VerdictNumber) -> Outcome:
        """Return the outcome of a verdict of this program."""
        return self._verdicts.outcome(verdict)


def compile_layers(layers: Sequence[Layer]) -> Program:
    """Compile layers in path order to one program. ALL must allow, and the first denial decides."""
    verdicts = Verdicts()
    compiled = tuple(_compile_layer(layer, verdicts) for layer in layers)
    if not compiled:
        return Program((), Function(lambda _request: PASSED), verdicts)
    if len(compiled) == 1:
        return Program(tuple(layers), compiled[0], verdicts)

    def decide(request: Request) -> VerdictNumber:
        accepted = PASSED
        for layer in compiled:
            verdict = layer.find(request)
            if not verdict & 1:
                return verdict
            if verdict != PASSED:
                accepted = verdict
        return accepted

    return Program(tuple(layers), Function(decide), verdicts)


def _compile_layer(layer: Layer, verdicts: Verdicts) -> Finder:
    """Compile a layer, to a table if possible. Requests with unknown attributes are completed."""
    chains = [_steps(layer.name, chain, verdicts) for chain in layer.chains]

    def complete_and_decide(request: Request) -> VerdictNumber:
        return verdicts.of(complete(layer, request).outcome)

    match chains:
        case [[_Search(rules, results)]] if layer.looks_at <= _NETWORK:
            table = build_table(
                ClausesByCaller.of(rules), [_final(verdict) for verdict in results], complete_and_decide
            )
            if table is not None:  # the table handles unknown attributes itself
                return table

    decide = _compile_selector(layer, [_compile_chain(steps) for steps in chains])

    def decide_with_completion(request: Request) -> VerdictNumber:
        if request.needs_care:
            return complete_and_decide(request)
        try:
            return decide(request)
        except KeyError:  # an attribute that a rule reads is unknown
            return complete_and_decide(request)

    return Function(decide_with_completion)


def _compile_selector(layer: Layer, chains: Sequence[_Decide]) -> _Decide:
    if len(chains) == 1:
        return chains[0]
    pick = _compile_search(_Search([case.when for case in layer.cases], range(len(chains))))  # `otherwise` is last
    return lambda request: chains[pick(request)](request)


# A step of a chain returns a verdict (>= 0: the chain ends), `_CONTINUE`, or the complement of a verdict (< -1). The
# complement means: the step accepted, and its verdict is the result of the chain if no later step accepts or denies.
_CONTINUE = -1


@dataclass(slots=True)
class _Search:
    """Rules with the result of each if it is the first that matches. The last result is for no match."""

    rules: Sequence[Predicate]
    results: Sequence[int]


_Step = _Search | Callable[[Request], int]


def _steps(layer: str, chain: Chain, verdicts: Verdicts) -> list[_Step]:
    """Compile the stages of a chain. Consecutive stages become one step if one search can decide them."""
    steps: list[_Step] = []
    rules: list[Predicate] = []
    results: list[int] = []
    enforced = [stage for stage in chain.stages if not isinstance(stage, Observe)]
    for number, stage in enumerate(enforced, 1):
        if isinstance(stage, AskAll):
            if rules:
                steps.append(_Search(rules, [*results, _CONTINUE]))
                rules, results = [], []
            steps.append(_compile_asks(layer, stage, verdicts))
            continue
        stage_rules, stage_says, otherwise = _compile_stage(layer, stage, verdicts, last=number == len(enforced))
        rules += [rule.when for rule in stage_rules]
        results += stage_says
        # Otherwise the next stage follows exactly if no rule matched so far.
        if otherwise != _CONTINUE or _CONTINUE in stage_says:
            steps.append(_Search(rules, [*results, otherwise]))
            rules, results = [], []
    if rules:
        steps.append(_Search(rules, [*results, _CONTINUE]))
    return steps


def _compile_chain(steps: Sequence[_Step]) -> _Decide:
    if len(steps) == 1 and isinstance(steps[0], _Search):
        return _compile_search(_Search(steps[0].rules, [_final(verdict) for verdict in steps[0].results]))
    compiled = [_compile_search(step) if isinstance(step, _Search) else step for step in steps]

    def decide(request: Request) -> VerdictNumber:
        accepted = PASSED
        for step in compiled:
            verdict = step(request)
            if verdict >= 0:
                return accepted if verdict == PASSED else verdict
            if verdict != _CONTINUE:
                accepted = ~verdict
        return accepted

    return decide


def _compile_search(search: _Search) -> Callable[[Request], int]:
    filed = ClausesByCaller.of(search.rules)
    table = build_table(filed, search.results, _reject_unknown)
    return table.find if table is not None else build_search(filed, search.results)


def _reject_unknown(request: Request) -> VerdictNumber:
    raise AssertionError(f"identity and port must be known: {request}")


def _final(verdict: int) -> VerdictNumber:
    """Return the verdict of the chain for the result of its last step."""
    return PASSED if verdict == _CONTINUE else verdict if verdict >= 0 else ~verdict


def _compile_stage(
    layer: str, stage: Deny | AllowAny | FirstMatch, verdicts: Verdicts, *, last: bool
) -> tuple[Sequence[Rule], Sequence[int], int]:
    """Return the rules of a stage, the result of each, and the result if none matches."""
    match stage:
        case Deny(name, rules, refusal):
            return rules, verdicts.of_rules(False, layer, name, refusal, rules), _CONTINUE
        case AllowAny(name, rules, refusal):
            accepts = verdicts.of_rules(True, layer, name, None, rules)
            denied = verdicts.of_rules(False, layer, name, refusal)[0]
            return rules, accepts if last else [~verdict for verdict in accepts], denied
        case FirstMatch(name, steps, otherwise, refusal):
            rules = tuple(step.rule for step in steps)
            by_effect = {
                Effect.ACCEPT: verdicts.of_rules(True, layer, name, None, rules),
                Effect.DENY: verdicts.of_rules(False, layer, name, refusal, rules),
                Effect.PASS: [_CONTINUE] * len(rules),
            }
            results = [by_effect[step.effect][index] for index, step in enumerate(steps)]
            by_default = {
                Effect.ACCEPT: PASSED,
                Effect.DENY: verdicts.of_rules(False, layer, name, refusal)[0],
                Effect.PASS: _CONTINUE,
            }
            return rules, results, by_default[otherwise]


def _compile_asks(layer: str, stage: AskAll, verdicts: Verdicts) -> Callable[[Request], int]:
    rules = [ask.rule for ask in stage.asks]
    denied = verdicts.of_rules(False, layer, stage.name, stage.refusal, rules)
    accepted = verdicts.of_rules(True, layer, stage.name, None, rules)
    asks = [
        (compile_condition(ask.rule.when), ask, denied[index], ~accepted[index]) for index, ask in enumerate(stage.asks)
    ]

    def ask_all(request: Request) -> int:
        verdict = _CONTINUE
        for applies, ask, denial, acceptance in asks:
            if applies(request):
                answer = request.answers.get(ask.authorizer)
                if isinstance(answer, Ruling) and not answer.allowed:
                    return verdicts.of(Outcome(False, layer, stage.name, ask.rule, answer.status))
                if not ask.consents(answer):
                    return denial
                verdict = acceptance
        return verdict

    return ask_all
