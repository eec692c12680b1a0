"""Whether a layer can allow a partial request. Where that is unclear, it can."""

from __future__ import annotations

from eastgate.ir import Chain, Layer, Request, Rule, RuleKind
from eastgate.ir.symbolic.judging import possible_chains, possible_outcomes


def chains_for(layer: Layer, request: Request) -> list[Chain]:
    """Return the chains that the selector may pick."""
    return list(possible_chains(layer, request))


def can_allow(layer: Layer, request: Request) -> bool:
    """Return whether some request like this one may be allowed, other than from the workload itself."""
    return any(
        outcome.allowed and not (outcome.rule is not None and outcome.rule.origin.kind is RuleKind.ITSELF)
        for outcome in possible_outcomes(layer, request)
    )


def admits_clients(rule: Rule) -> bool:
    """Return whether a rule is about clients, and not just about the workload itself or the kubelet."""
    return rule.origin.kind not in (RuleKind.ITSELF, RuleKind.PROBE)
