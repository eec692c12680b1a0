"""Layers without some of their rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from eastgate.ir import AllowAny, AskAll, Chain, Deny, Derived, FirstMatch, Layer, Observe, Origin, PolicyRef, Stage

__all__ = ["RuleKey", "key_of", "leave_out"]

RuleKey: TypeAlias = tuple[PolicyRef | None, int, Derived | None]
"""What tells a rule apart, in whichever layer it is."""


def key_of(origin: Origin) -> RuleKey:
    """Return what tells a rule of this origin apart."""
    return origin.policy, origin.index, origin.derived


def leave_out(layer: Layer, keys: frozenset[RuleKey]) -> Layer:
    """Return a layer without some rules; the layer itself where it has none of them."""
    if not any(key_of(rule.origin) in keys for chain in layer.chains for rule in chain.rules(observed=False)):
        return layer
    cases = tuple(replace(case, chain=_chain(case.chain, keys)) for case in layer.cases)
    return replace(layer, cases=cases, otherwise=_chain(layer.otherwise, keys))


def _chain(chain: Chain, keys: frozenset[RuleKey]) -> Chain:
    return replace(chain, stages=tuple(_stage(stage, keys) for stage in chain.stages))


def _stage(stage: Stage, keys: frozenset[RuleKey]) -> Stage:
    match stage:
        case Observe():
            return stage
        case Deny(rules=rules) | AllowAny(rules=rules):
            return replace(stage, rules=tuple(rule for rule in rules if key_of(rule.origin) not in keys))
        case FirstMatch(steps=steps):
            return replace(stage, steps=tuple(step for step in steps if key_of(step.rule.origin) not in keys))
        case AskAll(asks=asks):
            return replace(stage, asks=tuple(ask for ask in asks if key_of(ask.rule.origin) not in keys))
