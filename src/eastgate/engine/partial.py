"""Three-valued evaluation: what a layer says of a request that is not wholly known.

True, False, or None where the unknown attributes decide. Also used with everything known, by the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from eastgate.policy import (
    REFUSED_HOST,
    REFUSED_SPELLING,
    UNOPPOSED,
    AllowAny,
    And,
    AskAll,
    Chain,
    Computed,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Not,
    Observe,
    Or,
    Outcome,
    Predicate,
    Refusal,
    Request,
    Rule,
    Ruling,
    Stage,
    assume,
    at_port,
    atoms,
    consents,
    is_network,
    mentions,
    rules_of,
)
from eastgate.policy.attributes import PATHS, PORT, UNKNOWN
from eastgate.policy.paths import is_sensitive

__all__ = ["Undetermined", "deciding_atoms", "judge", "judge_stage", "pick_chain", "truth"]


T = TypeVar("T")


class Undetermined(Exception):  # noqa: N818 - it is not an error, it is a third answer
    """The unknown attributes decide."""


def truth(predicate: Predicate, request: Request) -> bool | None:
    """Whether a predicate holds; None where that depends on what is unknown."""
    match predicate:
        case Is(attribute):
            value = request.get(attribute)
            if value is UNKNOWN or (predicate.joined and request.assumed.get(predicate) is not None):
                return request.assumed.get(predicate)
            return predicate.accepts(value)
        case Computed(attributes=attributes):
            if predicate in request.assumed:
                return request.assumed[predicate]
            return predicate.holds(request.values) if attributes <= request.values.keys() else None
        case Not(part):
            held = truth(part, request)
            return None if held is None else not held
        case And(parts):
            return _combine((truth(part, request) for part in parts), decisive=False)
        case Or(parts):
            return _combine((truth(part, request) for part in parts), decisive=True)


def _combine(values: Iterable[bool | None], *, decisive: bool) -> bool | None:
    """And (decisive False) or Or (decisive True) of three-valued parts."""
    unknown = False
    for value in values:
        if value is decisive:
            return decisive
        unknown = unknown or value is None
    return None if unknown else not decisive


def judge(layer: Layer, request: Request) -> Outcome:
    """What a layer says; raises Undetermined where the unknown attributes decide."""
    if request.bad_host and _reads_http(layer, request):
        return Outcome(False, layer.name, REFUSED_HOST, None, Refusal.BAD_REQUEST)
    if request.refused_path:
        chain = _pick_blindly(layer, request, _is_about_path)
        if chain is None or not PATHS.isdisjoint(chain.looks_at):
            return Outcome(False, layer.name, None, None, Refusal.BAD_REQUEST)
    elif request.respelled_path and any(map(is_sensitive, deciding_atoms(layer))):
        chain = _pick_blindly(layer, request, is_sensitive)
        if chain is None or any(map(is_sensitive, deciding_atoms(chain))):
            return Outcome(False, layer.name, REFUSED_SPELLING, None, Refusal.BAD_REQUEST)
    else:
        chain = pick_chain(layer, request)
    accepted = UNOPPOSED
    for stage in chain.stages:
        outcome, ends = judge_stage(layer.name, stage, request)
        if not outcome.allowed:
            return outcome
        if outcome.rule is not None:
            accepted = outcome
        if ends:
            break
    return accepted


def deciding_atoms(part: Layer | Chain) -> Iterator[Is | Computed]:
    """Every atom that can change the outcome."""
    if isinstance(part, Layer):
        for case in part.cases:
            yield from atoms(case.when)
        for chain in part.chains:
            yield from deciding_atoms(chain)
        return
    for stage in part.stages:
        if not isinstance(stage, Observe):
            for rule in rules_of(stage):
                yield from atoms(rule.when)


def pick_chain(layer: Layer, request: Request) -> Chain:
    """The chain of the FIRST case that matches."""
    for case in layer.cases:
        if _sure(case.when, request):
            return case.chain
    return layer.otherwise


def _reads_http(layer: Layer, request: Request) -> bool:
    if is_network(layer):
        return False
    if isinstance(request.port, int):
        return not is_network(at_port(layer, request.port))
    if request.port is UNKNOWN and PORT in layer.looks_at:
        raise Undetermined
    return True


def _is_about_path(atom: Is | Computed) -> bool:
    return not PATHS.isdisjoint(mentions(atom))


def _pick_blindly(layer: Layer, request: Request, asks: Callable[[Is | Computed], bool]) -> Chain | None:
    """Return the chain of a request at which such atoms may not look; None where the choice depends on them."""
    for case in layer.cases:
        if case.synthetic:
            possible = certain = _sure(case.when, request)
        else:
            possible, certain = (_sure(assume(case.when, asks, held=held), request) for held in (True, False))
        if certain:
            return case.chain
        if possible:
            return None
    return layer.otherwise


def judge_stage(layer: str, stage: Stage, request: Request) -> tuple[Outcome, bool]:
    """What one stage says, and whether the chain ends with it."""
    match stage:
        case Observe():
            return UNOPPOSED, False
        case Deny(name, rules, refusal):
            rule = _first(rules, request, lambda rule: rule)
            return (Outcome(False, layer, name, rule, refusal), True) if rule else (UNOPPOSED, False)
        case AllowAny(name, rules, refusal):
            rule = _first(rules, request, lambda rule: rule)
            if rule is None:
                return Outcome(False, layer, name, None, refusal), True
            return Outcome(True, layer, name, rule), False
        case AskAll():
            return _ask(layer, stage, request)
        case FirstMatch(name, steps, otherwise, refusal):
            step = _first(steps, request, lambda step: step.rule)
            effect, rule = (step.effect, step.rule) if step else (otherwise, None)
            if effect is Effect.PASS:
                return UNOPPOSED, False
            if effect is Effect.DENY:
                return Outcome(False, layer, name, rule, refusal), True
            return (Outcome(True, layer, name, rule) if rule else UNOPPOSED), True


def _ask(layer: str, stage: AskAll, request: Request) -> tuple[Outcome, bool]:
    accepted = UNOPPOSED
    for ask in stage.asks:
        if _sure(ask.rule.when, request):
            answer = request.answers.get(ask.authorizer)
            if not consents(answer):
                status = answer.status if isinstance(answer, Ruling) else stage.refusal
                return Outcome(False, layer, stage.name, ask.rule, status), True
            accepted = Outcome(True, layer, stage.name, ask.rule)
    return accepted, False


def _first(items: Iterable[T], request: Request, rule_of: Callable[[T], Rule]) -> T | None:
    return next((item for item in items if _sure(rule_of(item).when, request)), None)


def _sure(predicate: Predicate, request: Request) -> bool:
    held = truth(predicate, request)
    if held is None:
        raise Undetermined
    return held
