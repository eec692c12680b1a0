"""The trace: the outcome of each layer and stage for a request, in order, and the rules that nearly matched.

A trace is built from the IR on demand. Decisions do not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.records import brief, dataclass
from eastgate.ir import (
    UNOPPOSED,
    And,
    Answer,
    EffectivePolicy,
    Is,
    Known,
    Layer,
    Not,
    Observe,
    OneOf,
    Or,
    Outcome,
    Predicate,
    Reading,
    Request,
    Rule,
    Scope,
    Stage,
    asks_of,
    conjuncts,
    mentions,
    rules_of,
)
from eastgate.ir.attributes import Attribute, AttributeKind, Unknown
from eastgate.ir.symbolic.completions import complete
from eastgate.ir.symbolic.judging import StageOutcome, judge_stage, pick_chain
from eastgate.ir.symbolic.stages import Move, order_stage
from eastgate.ir.symbolic.trees import truth


@dataclass(frozen=True, slots=True)
class Missed:
    """A condition of a rule that a request does not meet. `meant`: the value for which its own is probably a typo."""

    attribute: Attribute
    wanted: str
    actual: Known | Unknown
    meant: str | None = None


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rule that would have allowed, and the conditions that the request missed. `unmet` are these as predicates."""

    rule: Rule
    missed: tuple[Missed, ...]
    unmet: tuple[Predicate, ...] = ()

    def __repr__(self) -> str:
        return brief(self, f"{self.rule.origin}")


@dataclass(frozen=True, slots=True)
class StageTrace:
    """The outcome of one stage. `effect`: `accepted`, `denied`, `passed` or `observed`."""

    stage: str
    effect: str
    rule: Rule | None
    rules: int
    observed: tuple[tuple[Rule, str], ...] = ()
    asked: tuple[tuple[str, Answer], ...] = ()

    def __repr__(self) -> str:
        return brief(self, f"{self.stage}: {self.effect}")


@dataclass(frozen=True, slots=True)
class LayerTrace:
    """The outcome of one layer. `assumed` are the values of unknown attributes that lead to it."""

    layer: str
    outcome: Outcome
    stages: tuple[StageTrace, ...]
    readings: tuple[Reading, ...] = ()
    scope: Scope | None = None
    assumed: tuple[tuple[Attribute, Known], ...] = ()
    exhausted: bool = False
    nearest: tuple[NearMiss, ...] = ()
    effective: EffectivePolicy | None = None

    def __repr__(self) -> str:
        return brief(self, f"{self.layer}: stages={len(self.stages)}")


@dataclass(frozen=True, slots=True)
class Trace:
    """The outcomes of all layers up to the one that denied. The request did not reach the layers after it.

    `unknown` are the attributes that the request leaves out and that decide: with other values it may be allowed.
    """

    outcome: Outcome
    layers: tuple[LayerTrace, ...]
    not_reached: tuple[str, ...] = ()
    unknown: tuple[Attribute, ...] = ()

    def __repr__(self) -> str:
        return brief(self, f"layers={len(self.layers)}")


def trace(layers: Sequence[Layer], request: Request, *, nearest: int = 3) -> Trace:
    """Trace a request through the layers, up to the first denial."""
    accepted = UNOPPOSED
    seen: list[LayerTrace] = []
    for index, layer in enumerate(layers):
        traced = _trace_layer(layer, request, nearest)
        seen.append(traced)
        if not traced.outcome.allowed:
            unknown = _unknown(layers[index:], request, traced.assumed) if traced.assumed else ()
            return Trace(traced.outcome, tuple(seen), tuple(later.name for later in layers[index + 1 :]), unknown)
        if traced.outcome.rule is not None:
            accepted = traced.outcome
    return Trace(accepted, tuple(seen))


def _unknown(
    layers: Sequence[Layer], request: Request, decisive: Sequence[tuple[Attribute, Known]]
) -> tuple[Attribute, ...]:
    """Return the unknown attributes that the rules read which may still match."""
    attributes = [attribute for attribute, _ in decisive]
    for layer in layers:
        chains = [case.chain for case in layer.cases if truth(case.when, request) is not False]
        asked = [case.when for case in layer.cases] + [
            rule.when for chain in [*chains, layer.otherwise] for rule in chain.rules(observed=False)
        ]
        for predicate in asked:
            if truth(predicate, request) is None:
                attributes += sorted(attribute for attribute in mentions(predicate) if attribute not in request.values)
    return tuple(dict.fromkeys(attributes))


def _trace_layer(layer: Layer, request: Request, nearest: int) -> LayerTrace:
    completion = complete(layer, request)
    asked, request = request, completion.of(request)
    if completion.exhausted or completion.outcome.is_unasked:
        return LayerTrace(
            layer.name, completion.outcome, (), assumed=completion.decisive, exhausted=completion.exhausted
        )
    chain = pick_chain(layer, request)
    stages: list[StageTrace] = []
    misses: tuple[NearMiss, ...] = ()
    for stage in chain.stages:
        judged = judge_stage(layer.name, stage, request)
        stages.append(_trace_stage(stage, judged, request))
        if judged.move is Move.DENY and judged.rule is None:
            accepting = (arm.rule for ordered in order_stage(stage) for arm in ordered.accepting)
            misses = _nearest(accepting, asked, nearest)
        if judged.move in (Move.ACCEPT, Move.DENY):
            break
    return LayerTrace(
        layer.name,
        completion.outcome,
        tuple(stages),
        chain.readings,
        chain.scope,
        completion.decisive,
        nearest=misses,
        effective=chain.effective,
    )


def _trace_stage(stage: Stage, outcome: StageOutcome, request: Request) -> StageTrace:
    accepted = outcome.outcome.rule is not None
    result = "denied" if outcome.move is Move.DENY else "accepted" if accepted else "passed"
    rules = tuple(rules_of(stage))
    if isinstance(stage, Observe):
        audited = zip(rules, stage.would, strict=True)
        matched = tuple((rule, would) for rule, would in audited if truth(rule.when, request) is not False)
        return StageTrace(stage.name, "observed", None, len(rules), matched)
    asked = [
        (
            ask.authorizer,
            request.answers.get(ask.authorizer, "no answer") if truth(ask.rule.when, request) else "not asked",
        )
        for ask in asks_of(stage)
    ]
    return StageTrace(stage.name, result, outcome.rule, len(rules), asked=tuple(asked))


def _nearest(rules: Iterable[Rule], request: Request, limit: int) -> tuple[NearMiss, ...]:
    """Return the rules with the fewest missed conditions. Equally near rules stay in order.

    Generated rules are left out, because no author can change them.
    """
    authored = (rule for rule in rules if rule.origin.policy is not None or rule.origin.span is not None)
    misses = [NearMiss(rule, _missed(rule.when, request), _unmet(rule.when, request)) for rule in authored]
    return tuple(sorted(misses, key=lambda miss: len(miss.missed))[:limit])


def _unmet(predicate: Predicate, request: Request) -> tuple[Predicate, ...]:
    return tuple(part for part in conjuncts(predicate) if truth(part, request) is not True)


def _missed(predicate: Predicate, request: Request) -> tuple[Missed, ...]:
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return tuple(
        Missed(
            attribute, _wanted(unmet, attribute), request.get(attribute), _probable_value(unmet, request.get(attribute))
        )
        for part in parts
        if truth(part, request) is not True
        for unmet in _closest(part, request)
        for attribute in sorted(mentions(unmet)) or [Attribute(AttributeKind.ANYTHING)]
    )


def _closest(part: Predicate, request: Request) -> list[Predicate]:
    """Return the unmet conditions of the alternative that is nearest to the request, or the part if several are."""
    alternatives = [conjuncts(each) for each in part.parts] if isinstance(part, Or) else []
    held = [[truth(each, request) is True for each in alternative] for alternative in alternatives]
    most = max((sum(each) for each in held), default=0)
    closest = [pair for pair in zip(alternatives, held, strict=True) if sum(pair[1]) == most]
    if not most or len(closest) != 1:
        return [part]
    ((alternative, met),) = closest
    return [
        unmet for each, is_met in zip(alternative, met, strict=True) if not is_met for unmet in _closest(each, request)
    ]


def _probable_value(part: Predicate, actual: Known | Unknown) -> str | None:
    if not isinstance(part, Is) or not isinstance(part.matcher, OneOf) or not isinstance(actual, str):
        return None
    return did_you_mean(actual, [value for value in part.matcher.values if isinstance(value, str)])


def _wanted(part: Predicate, attribute: Attribute) -> str:
    """Return the text of a condition for output after the name of the attribute. The text leaves the name out."""
    match part:
        case Is(own, matcher) if own is attribute:
            return str(matcher)
        case And(parts) if parts:
            return " and ".join(_bracketed(each, attribute) for each in parts)
        case Or(parts) if parts:
            return " or ".join(_bracketed(each, attribute) for each in parts)
        case Not(denied):
            return f"not {_bracketed(denied, attribute)}"
        case _:
            return str(part)


def _bracketed(part: Predicate, attribute: Attribute) -> str:
    text = _wanted(part, attribute)
    return f"({text})" if isinstance(part, And | Or) else text
