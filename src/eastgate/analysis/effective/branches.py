"""Layers as a list of branches, of which the FIRST whose condition holds decides.

A chain of stages is what an engine runs; a person wants to read "allow if this, by that rule; otherwise deny". The list
says the same: built from the last stage backwards, each stage puts its own branches before those of the rest. What an
external authorizer answers is a condition like any other, on an attribute of its own (`answer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eastgate.analysis.effective.residual import Facts, residual
from eastgate.analysis.effective.simplify import both, conjuncts, either
from eastgate.policy import (
    ALWAYS,
    NEVER,
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Observe,
    OneOf,
    Origin,
    Predicate,
    Refusal,
    Rule,
    Stage,
)
from eastgate.policy.attributes import Attribute

__all__ = ["Branch", "TooManyBranches", "answer", "branches", "folded", "in_turn"]

_MOST_BRANCHES = 400
_MOST_COMPARED = 120


class TooManyBranches(Exception):  # noqa: N818 - it is an answer: too much to be read
    """More conditions than anybody reads."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What happens where a condition holds, and none of those before it. `origin` is the rule that decides, if any."""

    when: Predicate
    allowed: bool
    origin: Origin | None = None
    layer: str | None = None
    stage: str | None = None
    status: int | None = 200  # None: not the same everywhere

    @property
    def outcome(self) -> tuple[bool, Origin | None, str | None, str | None, int | None]:
        """What happens, without when."""
        return self.allowed, self.origin, self.layer, self.stage, self.status


_OPEN = Branch(ALWAYS, True)


def answer(authorizer: str) -> Predicate:
    """The condition that an external authorizer allows."""
    return Is(Attribute("answer", authorizer), OneOf(frozenset({"allow"})))


def branches(layers: Sequence[Layer], facts: Facts) -> list[Branch]:
    """All layers in path order: ALL must allow, the first denial decides."""
    return in_turn([_layer(layer, facts) for layer in layers])


def in_turn(lists: Sequence[Sequence[Branch]]) -> list[Branch]:
    """Several lists of branches, one behind the other: ALL must allow, the first denial decides."""
    rest = [_OPEN]
    for one in reversed(lists):
        behind = rest
        rest = _tidy(
            branch
            for first in one
            for branch in (_guarded(first.when, _accepted(behind, first)) if first.allowed else [first])
        )
    return rest


def _layer(layer: Layer, facts: Facts) -> list[Branch]:
    found: list[Branch] = []
    for case in layer.cases:
        when = residual(case.when, facts)
        if when != NEVER:
            found += _guarded(when, _chain(layer.name, case.chain, facts))
        if when == ALWAYS:
            return _tidy(found)
    return _tidy([*found, *_chain(layer.name, layer.otherwise, facts)])


def _chain(layer: str, chain: Chain, facts: Facts) -> list[Branch]:
    rest = [_OPEN]
    for stage in reversed(chain.stages):
        rest = _tidy(_stage(layer, stage, rest, facts))
    return rest


def _stage(layer: str, stage: Stage, rest: list[Branch], facts: Facts) -> Iterable[Branch]:
    match stage:
        case Observe():
            return rest
        case Deny(name, rules, refusal):
            return [*(_denied(layer, name, refusal, rule, residual(rule.when, facts)) for rule in rules), *rest]
        case AllowAny(name, rules, refusal):
            found: list[Branch] = []
            for rule in rules:
                found += _guarded(residual(rule.when, facts), _accepted(rest, _by(layer, name, rule)))
            return [*found, _denied(layer, name, refusal, None, ALWAYS)]
        case AskAll():
            return _asked(layer, stage, rest, facts)
        case FirstMatch():
            return _first_match(layer, stage, rest, facts)


def _asked(layer: str, stage: AskAll, rest: list[Branch], facts: Facts) -> list[Branch]:
    for ask in reversed(stage.asks):
        when = residual(ask.rule.when, facts)
        agreed = _guarded(both((when, answer(ask.authorizer))), _accepted(rest, _by(layer, stage.name, ask.rule)))
        rest = _tidy([*agreed, _denied(layer, stage.name, stage.refusal, ask.rule, when), *rest])
    return rest


def _first_match(layer: str, stage: FirstMatch, rest: list[Branch], facts: Facts) -> list[Branch]:
    found: list[Branch] = []
    for step in stage.steps:
        when = residual(step.rule.when, facts)
        match step.effect:
            case Effect.ACCEPT:
                found.append(replace(_by(layer, stage.name, step.rule), when=when))
            case Effect.DENY:
                found.append(_denied(layer, stage.name, stage.refusal, step.rule, when))
            case Effect.PASS:
                found += _guarded(when, rest)
    match stage.otherwise:
        case Effect.ACCEPT:
            return [*found, _OPEN]
        case Effect.DENY:
            return [*found, _denied(layer, stage.name, stage.refusal, None, ALWAYS)]
        case Effect.PASS:
            return [*found, *rest]


def _by(layer: str, stage: str, rule: Rule) -> Branch:
    return Branch(ALWAYS, True, rule.origin, layer, stage)


def _denied(layer: str, stage: str, refusal: Refusal, rule: Rule | None, when: Predicate) -> Branch:
    return Branch(when, False, rule.origin if rule else None, layer, stage, int(refusal))


def _guarded(when: Predicate, found: Sequence[Branch]) -> list[Branch]:
    if when == NEVER:
        return []
    if when == ALWAYS:
        return list(found)
    return [replace(branch, when=both((when, branch.when))) for branch in found]


def _accepted(rest: Sequence[Branch], by: Branch) -> list[Branch]:
    """What was open behind something that accepted is accepted by that."""
    return [replace(by, when=one.when) if one.allowed and one.origin is None else one for one in rest]


def _tidy(found: Iterable[Branch]) -> list[Branch]:
    """Without branches that nobody can take, and without those that say what the last one says anyway."""
    kept: list[Branch] = []
    sets: list[frozenset[Predicate]] = []
    for branch in found:
        if branch.when == NEVER:
            continue
        mine = frozenset(conjuncts(branch.when))
        if len(kept) <= _MOST_COMPARED and any(other <= mine for other in sets):
            continue
        kept.append(branch)
        sets.append(mine)
        if branch.when == ALWAYS:
            break
        if len(kept) > _MOST_BRANCHES:
            raise TooManyBranches
    while len(kept) > 1 and kept[-2].outcome == kept[-1].outcome:
        del kept[-2]
    return kept


def folded(found: Sequence[Branch]) -> tuple[Branch, ...]:
    """The same list, as short as it can easily be said: a refusal that no rule brings about needs few words."""
    if len(found) > _MOST_COMPARED:
        return tuple(found)
    kept = _without_shadowed(_without_idle_refusals(list(found)))
    merged: list[Branch] = []
    for branch in kept:
        before = merged[-1] if merged else None
        if before is not None and (before.outcome == branch.outcome or (_is_default(before) and _is_default(branch))):
            merged[-1] = replace(_agreeing(before, branch), when=either((before.when, branch.when)))
        else:
            merged.append(branch)
    return tuple(merged)


def _agreeing(one: Branch, other: Branch) -> Branch:
    """The other, with what only one of the two refusals says left out."""
    same = one.outcome == other.outcome
    return other if same else replace(other, stage=None, status=other.status if one.status == other.status else None)


def _is_default(branch: Branch) -> bool:
    return not branch.allowed and branch.origin is None


def _without_idle_refusals(found: list[Branch]) -> list[Branch]:
    """Without refusals that no rule brings about and that nothing behind them would let in."""
    place = 0
    while place < len(found) - 1:
        if _is_default(found[place]) and _is_idle(found, place):
            found[-1] = _agreeing(found[place], found[-1])
            del found[place]
        else:
            place += 1
    return found


def _is_idle(found: list[Branch], place: int) -> bool:
    """Whether all that a refusal keeps from later branches is decided before it, or is refused by default there too."""
    before = [frozenset(conjuncts(branch.when)) for branch in found[:place]]
    for later in found[place + 1 :]:
        if _is_default(later):
            continue
        overlap = both((found[place].when, later.when))
        if overlap != NEVER and not any(one <= frozenset(conjuncts(overlap)) for one in before):
            return False
    return _is_default(found[-1])


def _without_shadowed(found: list[Branch]) -> list[Branch]:
    """Without branches for which a later one does the same, and none between them does anything else."""
    place = 0
    while place < len(found):
        mine = found[place]
        wanted = frozenset(conjuncts(mine.when))
        for later in found[place + 1 :]:
            if later.outcome == mine.outcome and frozenset(conjuncts(later.when)) <= wanted:
                del found[place]
                break
            if later.outcome != mine.outcome and both((mine.when, later.when)) != NEVER:
                place += 1
                break
        else:
            place += 1
    return found
