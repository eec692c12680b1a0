"""Decision lists for output: "allow if this, by that rule; otherwise deny", as short as possible."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.ir import (
    ALWAYS,
    NEVER,
    REFUSED_HOST,
    REFUSED_SPELLING,
    Chain,
    Layer,
    Origin,
    Outcome,
    Refusal,
    at_port,
    conjuncts,
    is_network,
)
from eastgate.ir.attributes import PORT
from eastgate.ir.paths import is_sensitive
from eastgate.ir.symbolic.cells import MAX_COMPARED_ENTRIES, in_sequence, list_tree
from eastgate.ir.symbolic.judging import is_about_path
from eastgate.ir.symbolic.partial import ArmIndex, Facts, Partial, residual
from eastgate.ir.symbolic.simplify import both, either
from eastgate.ir.symbolic.trees import Entry


@dataclass(frozen=True, slots=True)
class EnforcementPoint:
    """An enforcement point, or several that decide alike, with the known facts about all requests that arrive there."""

    names: tuple[str, ...]
    layers: tuple[Layer, ...]
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True, slots=True)
class Ending:
    """A verdict on some requests. `origin` is the rule that decides, if any; `status` None: not always the same."""

    allowed: bool
    origin: Origin | None = None
    layer: str | None = None
    stage: str | None = None
    status: int | None = 200

    @property
    def is_unopposed(self) -> bool:
        """Return whether the verdict is allow because no rule matched."""
        return self.allowed and self.origin is None

    @property
    def is_default(self) -> bool:
        """Return whether the verdict is deny because no rule matched."""
        return not self.allowed and self.origin is None


OPEN = Ending(True)
Branch: TypeAlias = Entry[Ending]


class Spelling(enum.Enum):
    """The spelling of the path and host of a request. Some spellings are refused if rules read the path or host."""

    PLAIN = enum.auto()
    ENCODED_SLASH = enum.auto()  # servers interpret the path differently
    RESPELLED = enum.auto()  # encoded characters may change the result of regular expressions
    BAD_HOST = enum.auto()  # the host is invalid


def list_layer(layer: Layer, facts: Facts, index: ArmIndex, spelling: Spelling = Spelling.PLAIN) -> list[Branch]:
    """Return the decision list of a layer for requests with these facts. Raises TooManyEntries."""
    partial = Partial(layer, lambda predicate: residual(predicate, facts), _ending, index, facts.caller)
    match spelling:
        case Spelling.PLAIN:
            return list_tree(partial.tree())
        case Spelling.ENCODED_SLASH:
            return list_tree(partial.tree_without(is_about_path, _bad_request(layer, None)))
        case Spelling.RESPELLED:
            return list_tree(partial.tree_without(is_sensitive, _bad_request(layer, REFUSED_SPELLING)))
        case Spelling.BAD_HOST:
            if _reads_http(layer, facts):
                return [Entry(ALWAYS, _bad_request(layer, REFUSED_HOST))]
            return list_tree(partial.tree())


def _bad_request(layer: Layer, stage: str | None) -> Ending:
    return Ending(False, None, layer.name, stage, int(Refusal.BAD_REQUEST))


def _reads_http(layer: Layer, facts: Facts) -> bool:
    port = facts.values.get(PORT)
    return not is_network(at_port(layer, port) if isinstance(port, int) else layer)


def list_points(
    points: Sequence[EnforcementPoint], facts: Facts, index: ArmIndex, spelling: Spelling = Spelling.PLAIN
) -> tuple[list[list[Branch]], list[Branch]]:
    """Return the decision list of each point, and of all together: ALL must allow. Raises TooManyEntries."""
    lists = [
        in_sequence([list_layer(layer, facts.and_(point.facts), index, spelling) for layer in point.layers], OPEN)
        for point in points
    ]
    return lists, in_sequence(lists, OPEN)


def _ending(outcome: Outcome, _chain: Chain) -> Ending:
    return ending_of(outcome)


def ending_of(outcome: Outcome) -> Ending:
    """Return an outcome as the end of a decision list."""
    origin = outcome.rule.origin if outcome.rule is not None else None
    return Ending(outcome.allowed, origin, outcome.layer, outcome.stage, outcome.status)


def fold(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """Return a shorter list: branches with equal output are merged, and refusals without effect are left out."""
    if len(branches) > MAX_COMPARED_ENTRIES:
        return tuple(branches)
    kept = _without_shadowed(_without_idle_refusals(list(branches)))
    merged: list[Branch] = []
    for branch in kept:
        before = merged[-1] if merged else None
        if before is not None and _reads_alike(before.end, branch.end):
            merged[-1] = Entry(either((before.when, branch.when)), _merge(before.end, branch.end))
        else:
            merged.append(branch)
    return tuple(merged)


def _reads_alike(first: Ending, second: Ending) -> bool:
    return first == second or (first.is_default and second.is_default)


def _merge(first: Ending, second: Ending) -> Ending:
    """Return the second ending, without the parts in which two refusals differ."""
    if first == second:
        return second
    return replace(second, stage=None, status=second.status if first.status == second.status else None)


def _without_idle_refusals(branches: list[Branch]) -> list[Branch]:
    """Remove refusals without a rule whose requests no later branch allows."""
    index = 0
    while index < len(branches) - 1:
        if branches[index].end.is_default and _is_idle(branches, index):
            last = branches[-1]
            branches[-1] = Entry(last.when, _merge(branches[index].end, last.end))
            del branches[index]
        else:
            index += 1
    return branches


def _is_idle(branches: list[Branch], index: int) -> bool:
    """Return whether a refusal has no effect: its overlap with later branches is decided earlier, or refused anyway."""
    before = [frozenset(conjuncts(branch.when)) for branch in branches[:index]]
    for later in branches[index + 1 :]:
        if later.end.is_default:
            continue
        overlap = both((branches[index].when, later.when))
        if overlap != NEVER and not any(asked <= frozenset(conjuncts(overlap)) for asked in before):
            return False
    return branches[-1].end.is_default


def _without_shadowed(branches: list[Branch]) -> list[Branch]:
    """Remove a branch if a later one has the same ending, and no branch between them has another ending."""
    index = 0
    while index < len(branches):
        branch = branches[index]
        asked = frozenset(conjuncts(branch.when))
        for later in branches[index + 1 :]:
            if later.end == branch.end and frozenset(conjuncts(later.when)) <= asked:
                del branches[index]
                break
            if later.end != branch.end and both((branch.when, later.when)) != NEVER:
                index += 1
                break
        else:
            index += 1
    return branches
