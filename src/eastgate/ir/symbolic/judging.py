"""Three-valued evaluation of layers for requests with unknown attributes: one outcome, or every possible outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eastgate.basics.records import dataclass
from eastgate.ir import (
    REFUSED_HOST,
    REFUSED_SPELLING,
    UNOPPOSED,
    Chain,
    Computed,
    Is,
    Known,
    Layer,
    Outcome,
    Predicate,
    Refusal,
    Request,
    Rule,
    Ruling,
    Stage,
    asks_of,
    assume,
    at_port,
    is_network,
    mentions,
)
from eastgate.ir.attributes import PATHS, PORT, UNKNOWN, Attribute
from eastgate.ir.paths import is_sensitive
from eastgate.ir.symbolic.stages import Arm, Move, OrderedStage, answer_attribute, order_chain, order_stage
from eastgate.ir.symbolic.trees import truth

AtomTest = Callable[[Is | Computed], bool]
Order = Callable[[Stage], Sequence[OrderedStage]]


class Undetermined(Exception):  # noqa: N818 - not an error: a third answer
    """The outcome depends on unknown attributes."""


def judge(layer: Layer, request: Request, order: Order = order_stage) -> Outcome:
    """Return the outcome of a layer. Raises Undetermined if it depends on unknown attributes.

    `order`: an `Ordering`, for callers that judge the same layer many times.
    """
    if request.bad_host and _reads_http(layer, request):
        return Outcome(False, layer.name, REFUSED_HOST, None, Refusal.BAD_REQUEST)
    if request.refused_path:
        chain = _pick_without(layer, request, is_about_path)
        if chain is None or not PATHS.isdisjoint(chain.looks_at):
            return Outcome(False, layer.name, None, None, Refusal.BAD_REQUEST)
    elif request.respelled_path and any(map(is_sensitive, layer.atoms(observed=False))):
        chain = _pick_without(layer, request, is_sensitive)
        if chain is None or any(map(is_sensitive, chain.atoms(observed=False))):
            return Outcome(False, layer.name, REFUSED_SPELLING, None, Refusal.BAD_REQUEST)
    else:
        chain = pick_chain(layer, request)
    accepted = UNOPPOSED
    for stage in chain.stages:
        judged = judge_stage(layer.name, stage, request, order)
        if judged.move is Move.DENY:
            return judged.outcome
        if judged.outcome.rule is not None:
            accepted = judged.outcome
        if judged.move is Move.ACCEPT:
            break
    return accepted


def pick_chain(layer: Layer, request: Request) -> Chain:
    """Return the chain of the FIRST case that matches. Raises Undetermined."""
    return next((case.chain for case in layer.cases if _certain(case.when, request)), layer.otherwise)


def _reads_http(layer: Layer, request: Request) -> bool:
    if is_network(layer):
        return False
    if isinstance(request.port, int):
        return not is_network(at_port(layer, request.port))
    if request.port is UNKNOWN and PORT in layer.looks_at:
        raise Undetermined
    return True


# Paths that rules may not read


def is_about_path(atom: Is | Computed) -> bool:
    """Return whether an atom reads a path in any form."""
    return not PATHS.isdisjoint(mentions(atom))


def cases_without(layer: Layer, asks: AtomTest) -> Iterator[tuple[Predicate, Chain | None]]:
    """Yield the selector of a layer without the atoms that may not be evaluated; None if the choice depends on them."""
    for case in layer.cases:
        if case.synthetic:
            yield case.when, case.chain
        else:
            yield assume(case.when, asks, held=False), case.chain
            yield assume(case.when, asks, held=True), None


def _pick_without(layer: Layer, request: Request, asks: AtomTest) -> Chain | None:
    return next(
        (chain for when, chain in cases_without(layer, asks) if _certain(when, request)),
        layer.otherwise,
    )


# Stages


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """The outcome of one stage, and the next move. `rule` is also set if the rule only passes the request on."""

    outcome: Outcome
    move: Move
    rule: Rule | None = None


def judge_stage(layer: str, stage: Stage, request: Request, order: Order = order_stage) -> StageOutcome:
    """Return the outcome of one stage for a request. Raises Undetermined."""
    judged = StageOutcome(UNOPPOSED, Move.PASS)
    request = with_answers(stage, request)
    for ordered in order(stage):
        arm = next((arm for arm in ordered.arms if _certain(arm.when, request)), None)
        move = arm.move if arm is not None else ordered.otherwise
        outcome = _outcome(layer, ordered, arm, move, request)
        if move in (Move.ACCEPT, Move.DENY):
            return StageOutcome(outcome, move, outcome.rule)
        if move is Move.PROCEED:
            judged = StageOutcome(outcome, move, outcome.rule)
        elif arm is not None:
            judged = StageOutcome(judged.outcome, move, arm.rule)
    return judged


def _outcome(layer: str, stage: OrderedStage, arm: Arm | None, move: Move, request: Request) -> Outcome:
    """Return the outcome of an arm of a stage, or UNOPPOSED if the arm neither accepts nor denies."""
    rule = arm.rule if arm is not None else None
    if move is Move.DENY:
        answer = request.answers.get(arm.authorizer) if arm is not None and arm.authorizer is not None else None
        status = answer.status if isinstance(answer, Ruling) else stage.refusal
        return Outcome(False, layer, stage.name, rule, status)
    if move is Move.PASS or rule is None:
        return UNOPPOSED
    return Outcome(True, layer, stage.name, rule)


def with_answers(stage: Stage, request: Request) -> Request:
    """Return the request with the answers of the authorizers of a stage as attributes. A missing answer is absent.

    An authorizer whose rule does not match the request is not asked.
    """
    values: dict[Attribute, Known] = {}
    for ask in asks_of(stage):
        if truth(ask.rule.when, request) is not False:
            answer = request.answers.get(ask.authorizer)
            verdict = None if answer is None else "allow" if ask.consents(answer) else "deny"
            values[answer_attribute(ask.authorizer)] = verdict
    if not values:
        return request
    return Request({**request.values, **values}, request.answers, request.assumed, request.within)


def _certain(predicate: Predicate, request: Request) -> bool:
    held = truth(predicate, request)
    if held is None:
        raise Undetermined
    return held


# All possible outcomes, with the results of unknown tests independent of each other


def possible_chains(layer: Layer, request: Request) -> Iterator[Chain]:
    """Yield the chains that the selector may pick."""
    for case in layer.cases:
        held = truth(case.when, request)
        if held is not False:
            yield case.chain
        if held is True:
            return
    yield layer.otherwise


def possible_outcomes(layer: Layer, request: Request, *, answered: bool = False) -> Iterator[Outcome]:
    """Yield the possible outcomes of a request. The last one is the outcome if no other is possible.

    Each unknown test counts as independent of all others. So some of the outcomes may be impossible, but none is
    missing, and each rule is evaluated once for any number of unknown attributes. `answered`: an authorizer without an
    answer did not answer; without this option, its answer is unknown.
    """
    for chain in possible_chains(layer, request):
        completed = request
        for stage in chain.stages:
            if answered:
                completed = with_answers(stage, completed)
        yield from _possible(layer.name, order_chain(chain), completed)


def _possible(layer: str, stages: Sequence[OrderedStage], request: Request) -> Iterator[Outcome]:
    seen: set[tuple[int, int]] = set()
    todo = [(0, UNOPPOSED)]
    while todo:
        index, accepted = todo.pop()
        if index == len(stages):
            yield accepted
            continue
        if (index, id(accepted.rule)) in seen:
            continue
        seen.add((index, id(accepted.rule)))
        later: list[tuple[int, Outcome]] = []
        for arm in _possible_arms(stages[index], request):
            move = arm.move if arm is not None else stages[index].otherwise
            outcome = _outcome(layer, stages[index], arm, move, request)
            if move in (Move.ACCEPT, Move.DENY):
                yield outcome if outcome.rule is not None or not outcome.allowed else accepted
            else:
                later.append((index + 1, outcome if outcome.rule is not None else accepted))
        todo += reversed(later)


def _possible_arms(stage: OrderedStage, request: Request) -> Iterator[Arm | None]:
    for arm in stage.arms:
        held = truth(arm.when, request)
        if held is not False:
            yield arm
        if held is True:
            return
    yield None


def prove_allow(layer: Layer, request: Request) -> Outcome | None:
    """Return an outcome that allows if every possible outcome allows, without a search; otherwise None."""
    if request.bad_host or request.refused_path or request.respelled_path:
        return None
    outcome: Outcome | None = None
    for outcome in possible_outcomes(layer, request, answered=True):
        if not outcome.allowed:
            return None
    return outcome
