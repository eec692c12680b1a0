"""Layers without some of their rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from eastgate.ir import Chain, Derived, Layer, Observe, Origin, PolicyRef, Rule, rewrite_stage

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
    def leave(rule: Rule) -> Rule | None:
        return None if key_of(rule.origin) in keys else rule

    stages = (stage if isinstance(stage, Observe) else rewrite_stage(stage, leave) for stage in chain.stages)
    return replace(chain, stages=tuple(stages))
