"""Chains and selector cases, changed as a whole: for ports with modes of their own, and behind waypoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from eastgate.ir import Chain, Predicate, Rule, SelectorCase, all_of, conjuncts, rewrite_stage


def rewrite_chain(chain: Chain, change: Callable[[Predicate], Predicate]) -> Chain:
    """Return a chain whose rules have other predicates."""

    def rewrite(rule: Rule) -> Rule:
        return Rule(change(rule.when), rule.origin)

    return replace(chain, stages=tuple(rewrite_stage(stage, rewrite) for stage in chain.stages))


def narrowed(cases: Iterable[SelectorCase], when: Predicate) -> tuple[SelectorCase, ...]:
    """Return cases that hold only where a predicate does, too."""
    return tuple(replace(case, when=all_of((*conjuncts(when), *conjuncts(case.when)))) for case in cases)
