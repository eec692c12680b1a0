"""Adds would-be layers, in which audited policies are in force, to the layers of a dialect.

A dialect assembles its policies twice: as they are, and with `enforce` applied to each. So no dialect needs code for
the effect of an audited policy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from eastgate.ir import AllowAny, Attachment, Audit, Chain, Effect, FirstMatch, Layer, Observe, Origin, Stage, rules_of

if TYPE_CHECKING:
    from eastgate.dialects.base import Policy

P = TypeVar("P", bound="Policy")

_MAX_ENFORCED_ALONE = 16  # audited policies at a point that are also enforced one by one


def enforced(policy: P) -> P:
    """Return an audited policy as if it were in force, and any other policy unchanged."""
    return replace(policy, audit=False) if policy.audit else policy


def with_audit(
    attached: Sequence[Attachment[P]],
    stance: Hashable,
    assemble: Callable[[Sequence[Attachment[P]], Hashable], list[Layer]],
    enforce: Callable[[P], P],
    enforce_stance: Callable[[Hashable], Hashable],
) -> list[Layer]:
    """Return the layers at a point. Each layer that an audited policy would change has its would-be layer (`Audit`)."""
    layers = assemble(attached, stance)
    audited = list(dict.fromkeys(each.policy for each in attached if enforce(each.policy) is not each.policy))
    would_stance = enforce_stance(stance)
    if not audited and would_stance is stance:
        return layers

    def enforcing(policies: Sequence[P], under: Hashable) -> dict[str, Layer]:
        chosen = {id(policy): enforce(policy) for policy in policies}
        put = [replace(each, policy=chosen.get(id(each.policy), each.policy)) for each in attached]
        return {layer.name: layer for layer in assemble(put, under)}

    would = enforcing(audited, would_stance)
    few = len(audited) <= _MAX_ENFORCED_ALONE
    alone = [(policy, enforcing([policy], stance) if few else would) for policy in audited]
    return [_audited(layer, would.get(layer.name), alone) for layer in _united(layers, list(would.values()))]


def _united(layers: Sequence[Layer], would: Sequence[Layer]) -> Iterator[Layer]:
    """Yield the layers in order, with an empty layer for each that only audited policies would create."""
    names = [layer.name for layer in layers]
    for layer in would:
        if layer.name not in names:
            yield Layer(layer.at, Chain(()))
    yield from layers


def _audited(layer: Layer, would: Layer | None, alone: Sequence[tuple[P, dict[str, Layer]]]) -> Layer:
    would = would or Layer(layer.at, Chain(()))
    if would == layer:
        return layer
    others = [(policy, by_name.get(layer.name)) for policy, by_name in alone]
    changing = [(policy, other) for policy, other in others if other is not None and other != layer]
    return replace(
        layer,
        audit=Audit(
            would,
            tuple(Origin(policy.ref, 0, policy.span) for policy, _ in changing),
            tuple(Origin(policy.ref, 0, policy.span) for policy, other in changing if _closes(layer, other)),
        ),
    )


def _closes(layer: Layer, would: Layer) -> bool:
    """Return whether a layer would deny by a policy's presence: it gets another allow list, or another selector."""
    if [case.when for case in layer.cases] != [case.when for case in would.cases]:
        return True
    return bool(_closing_stages(would) - _closing_stages(layer) or _accepting(layer) - _accepting(would))


def _stages(layer: Layer) -> Iterator[Stage]:
    return (stage for chain in layer.chains for stage in chain.stages)


def _closing_stages(layer: Layer) -> set[str]:
    """Return the names of the stages that deny requests that none of their rules matches."""
    return {
        stage.name
        for stage in _stages(layer)
        if isinstance(stage, AllowAny) or (isinstance(stage, FirstMatch) and stage.otherwise is Effect.DENY)
    }


def _accepting(layer: Layer) -> set[Origin]:
    """Return the origins of the rules that may allow a request."""
    stages = (stage for stage in _stages(layer) if not isinstance(stage, Observe))
    return {rule.origin for stage in stages if isinstance(stage, AllowAny) for rule in rules_of(stage)}
