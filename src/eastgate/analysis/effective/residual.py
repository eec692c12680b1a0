"""What is left of a rule once the caller and the port are known: the conditions that a person still has to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eastgate.analysis.effective.simplify import both, either, negation, network
from eastgate.policy import (
    ALWAYS,
    NEVER,
    AllowAny,
    And,
    AskAll,
    Case,
    Chain,
    Computed,
    Deny,
    FirstMatch,
    InNetwork,
    Is,
    Known,
    Layer,
    Not,
    Observe,
    Or,
    Predicate,
    Rule,
    Stage,
)
from eastgate.policy.attributes import Attribute

__all__ = ["Facts", "residual", "specialised"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of all requests of one cell of a table.

    `vague` are attributes whose value stands for many that no matcher tells apart. A test of somebody's own might, so
    one that looks at them stays a condition.
    """

    values: Mapping[Attribute, Known] = field(default_factory=dict)
    vague: frozenset[Attribute] = frozenset()

    def and_(self, other: Facts) -> Facts:
        """What both say."""
        return Facts({**self.values, **other.values}, self.vague | other.vague)


def residual(predicate: Predicate, facts: Facts) -> Predicate:
    """What the predicate still asks: ALWAYS or NEVER where the facts settle it."""
    match predicate:
        case Is(attribute, matcher):
            if attribute in facts.values:
                return ALWAYS if predicate.accepts(facts.values[attribute]) else NEVER
            return network(predicate) if isinstance(matcher, InNetwork) else predicate
        case Computed(attributes=attributes):
            if attributes <= facts.values.keys() and not attributes & facts.vague:
                return ALWAYS if predicate.holds(facts.values) else NEVER
            return predicate
        case Not(part):
            return negation(residual(part, facts))
        case And(parts):
            return both(residual(part, facts) for part in parts)
        case Or(parts):
            return either(residual(part, facts) for part in parts)


def specialised(layer: Layer, facts: Facts) -> Layer:
    """The layer as a caller of whom this is known meets it: without the rules that are not for him."""
    cases = tuple(
        Case(when, _chain(case.chain, facts), case.synthetic)
        for case in layer.cases
        if (when := residual(case.when, facts)) != NEVER
    )
    return Layer(layer.at, _chain(layer.otherwise, facts), cases)


def _chain(chain: Chain, facts: Facts) -> Chain:
    stages = tuple(_stage(stage, facts) for stage in chain.stages if not isinstance(stage, Observe))
    return replace(chain, stages=stages)


def _stage(stage: Stage, facts: Facts) -> Stage:
    match stage:
        case Deny(rules=rules) | AllowAny(rules=rules):
            return replace(stage, rules=tuple(one for rule in rules if (one := _rule(rule, facts)) is not None))
        case FirstMatch(steps=steps):
            kept = ((step, _rule(step.rule, facts)) for step in steps)
            return replace(stage, steps=tuple(replace(step, rule=rule) for step, rule in kept if rule is not None))
        case AskAll(asks=asks):
            asked = ((ask, _rule(ask.rule, facts)) for ask in asks)
            return replace(stage, asks=tuple(replace(ask, rule=rule) for ask, rule in asked if rule is not None))
        case Observe():
            return stage


def _rule(rule: Rule, facts: Facts) -> Rule | None:
    when = residual(rule.when, facts)
    return None if when == NEVER else Rule(when, rule.origin)
