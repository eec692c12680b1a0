"""Whether a layer can allow a request of which only a part is known. Where that is unclear, it can."""

from __future__ import annotations

from eastgate.engine.partial import truth
from eastgate.policy import (
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Layer,
    Observe,
    Request,
    Rule,
    RuleKind,
    Stage,
)

__all__ = ["can_allow", "chains_for", "is_written"]


def chains_for(layer: Layer, request: Request) -> list[Chain]:
    """The chains that the selector may pick."""
    found: list[Chain] = []
    for case in layer.cases:
        held = truth(case.when, request)
        if held is not False:
            found.append(case.chain)
        if held is True:
            return found
    return [*found, layer.otherwise]


def can_allow(layer: Layer, request: Request) -> bool:
    """Whether some request like this one may be allowed, other than from the workload itself."""
    return any(
        all(_passes(stage, request) for stage in _deciding(chain, request)) for chain in chains_for(layer, request)
    )


def _deciding(chain: Chain, request: Request) -> list[Stage]:
    """The stages of a chain up to one that may accept for good."""
    found: list[Stage] = []
    for stage in chain.stages:
        found.append(stage)
        if isinstance(stage, FirstMatch) and _may_accept(stage, request):
            break
    return found


def _may_accept(stage: FirstMatch, request: Request) -> bool:
    for step in stage.steps:
        held = truth(step.rule.when, request)
        if held is not False and step.effect is Effect.ACCEPT:
            return True
        if held is True:
            return False
    return stage.otherwise is Effect.ACCEPT


def _passes(stage: Stage, request: Request) -> bool:
    match stage:
        case Observe() | AskAll():
            return True
        case Deny(rules=rules):
            return not any(truth(rule.when, request) is True for rule in rules)
        case AllowAny(rules=rules):
            others = (rule for rule in rules if rule.origin.kind is not RuleKind.ITSELF)
            return any(truth(rule.when, request) is not False for rule in others)
        case FirstMatch(steps=steps, otherwise=otherwise):
            for step in steps:
                held = truth(step.rule.when, request)
                if held is not False and step.effect is not Effect.DENY:
                    return True
                if held is True:
                    return False
            return otherwise is not Effect.DENY


def is_written(rule: Rule) -> bool:
    """Whether a rule lets in anybody whom somebody chose: not just the workload itself, or the kubelet."""
    return rule.origin.kind not in (RuleKind.ITSELF, RuleKind.PROBE)
