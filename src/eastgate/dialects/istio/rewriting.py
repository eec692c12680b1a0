"""Chains and selector cases, changed as a whole: for ports with modes of their own, and behind waypoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from eastgate.ir import (
    AllowAny,
    AskAll,
    Chain,
    Deny,
    FirstMatch,
    Observe,
    Predicate,
    Rule,
    SelectorCase,
    Stage,
    all_of,
    conjuncts,
)

__all__ = ["narrowed", "rewrite_chain"]


def rewrite_chain(chain: Chain, change: Callable[[Predicate], Predicate]) -> Chain:
    """Return a chain whose rules have other predicates."""
    return replace(chain, stages=tuple(_rewrite_stage(stage, change) for stage in chain.stages))


def _rewrite_stage(stage: Stage, change: Callable[[Predicate], Predicate]) -> Stage:
    def changed(rule: Rule) -> Rule:
        return Rule(change(rule.when), rule.origin)

    match stage:
        case Deny() | AllowAny() | Observe():
            return replace(stage, rules=tuple(map(changed, stage.rules)))
        case AskAll():
            return replace(stage, asks=tuple(replace(ask, rule=changed(ask.rule)) for ask in stage.asks))
        case FirstMatch():
            return replace(stage, steps=tuple(replace(step, rule=changed(step.rule)) for step in stage.steps))


def narrowed(cases: Iterable[SelectorCase], when: Predicate) -> tuple[SelectorCase, ...]:
    """Return cases that hold only where a predicate does, too."""
    return tuple(replace(case, when=all_of((*conjuncts(when), *conjuncts(case.when)))) for case in cases)
