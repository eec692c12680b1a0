"""What the mTLS modes of ports do to a chain: STRICT refuses plaintext, DISABLE leaves callers without identities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from eastgate.dialects.istio.authentications import MtlsMode
from eastgate.dialects.istio.peer_modes import PLAINTEXT, Mode, PeerModes
from eastgate.dialects.istio.provenance import MtlsDemand, StageName
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AllowAny,
    AskAll,
    Chain,
    Computed,
    Deny,
    FirstMatch,
    Is,
    Observe,
    Origin,
    Predicate,
    Refusal,
    Rule,
    Stage,
    rewrite,
)
from eastgate.ir.attributes import IDENTITY

__all__ = ["plaintext_stage", "ports_by_mode", "rewrite_chain", "without_identity"]


def ports_by_mode(modes: PeerModes) -> Iterator[tuple[Mode, frozenset[int]]]:
    """Yield each mode that some ports have and the others have not."""
    ports: dict[Mode, set[int]] = {}
    for port, mode in modes.ports:
        if mode != modes.others:
            ports.setdefault(mode, set()).add(port)
    yield from ((mode, frozenset(numbers)) for mode, numbers in ports.items())


def plaintext_stage(mode: Mode) -> tuple[Deny, ...]:
    """Return the stage that refuses plaintext where the mode is STRICT."""
    if mode.mode is not MtlsMode.STRICT or mode.policy is None:
        return ()
    origin = Origin(mode.policy.ref, 0, mode.span or mode.policy.span, derived=MtlsDemand())
    return (Deny(StageName.MTLS, (Rule(PLAINTEXT, origin),), Refusal.CLOSED),)


def without_identity(predicate: Predicate) -> Predicate:
    """Return a predicate on connections in plaintext, whose callers have no identity."""
    return rewrite(predicate, _in_plaintext)


def _in_plaintext(atom: Is | Computed) -> Predicate:
    attributes = {atom.attribute} if isinstance(atom, Is) else atom.attributes
    if attributes != {IDENTITY}:
        return atom
    holds = atom.accepts(None) if isinstance(atom, Is) else atom.holds({IDENTITY: None})
    return ALWAYS if holds else NEVER


def rewrite_chain(chain: Chain, change: Callable[[Predicate], Predicate]) -> Chain:
    """Return a chain with other predicates."""
    return replace(chain, stages=tuple(_rewritten(stage, change) for stage in chain.stages))


def _rewritten(stage: Stage, change: Callable[[Predicate], Predicate]) -> Stage:
    def rule(old: Rule) -> Rule:
        return replace(old, when=change(old.when))

    match stage:
        case Deny() | AllowAny() | Observe():
            return replace(stage, rules=tuple(map(rule, stage.rules)))
        case AskAll():
            return replace(stage, asks=tuple(replace(ask, rule=rule(ask.rule)) for ask in stage.asks))
        case FirstMatch():
            return replace(stage, steps=tuple(replace(step, rule=rule(step.rule)) for step in stage.steps))
