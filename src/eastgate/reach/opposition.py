"""Comparison of two decision lists: requests that one allows and the other denies, or the proof that there is none.

A request reaches one entry of each list. For each two entries with different verdicts, the comparison searches a
request that meets both and no earlier entry. So it finds all differences. The search is exact, like the one in
`searching`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.basics.records import dataclass
from eastgate.ir import NEVER, Is, OneOf, Or, Predicate, Present, Request, conjuncts, mentions
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL
from eastgate.ir.symbolic.simplify import both, either, negation
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reach.endings import Branch, Ending
from eastgate.reach.searching import IMPOSSIBLE

# Conditions without their exceptions, in a short form: PUT, not `POST or PUT and not POST`.


_MAX_STEPS = 1_000


def subtract(wanted: Predicate, exceptions: Sequence[Predicate]) -> Predicate:
    """Return a predicate that holds if `wanted` holds and none of the exceptions does."""
    removed = [part for exception in exceptions for part in _alternatives(exception)]
    alternatives = list(_alternatives(wanted))
    if len(alternatives) * len(removed) > _MAX_STEPS:
        return both((wanted, *map(negation, exceptions)))
    kept = [_subtract(alternative, removed) for alternative in alternatives]
    return either(alternative for alternative in kept if alternative != NEVER)


def _alternatives(predicate: Predicate) -> Iterator[Predicate]:
    """Yield alternatives of a predicate: its first disjunction is distributed over the other parts."""
    parts = list(conjuncts(predicate))
    index = next((number for number, part in enumerate(parts) if isinstance(part, Or) and part.parts), None)
    if index is None:
        yield predicate
        return
    chosen = parts[index]
    assert isinstance(chosen, Or)  # noqa: S101 - the search above found one
    for option in chosen.parts:
        yield both((*parts[:index], option, *parts[index + 1 :]))


def _subtract(wanted: Predicate, removed: Sequence[Predicate]) -> Predicate:
    for exception in removed:
        asked = conjuncts(wanted)
        if both((wanted, exception)) == NEVER:
            continue
        rest = [part for part in conjuncts(exception) if not _is_implied(asked, part)]
        if not rest:
            return NEVER
        wanted = _without_values(asked, rest) or both((wanted, negation(both(rest))))
    return wanted


def _is_implied(asked: Sequence[Predicate], part: Predicate) -> bool:
    if part in asked:
        return True
    if not isinstance(part, Is) or part.joined:
        return False
    for own in asked:
        if isinstance(own, Is) and own.attribute is part.attribute and not own.joined:
            if isinstance(part.matcher, Present):
                return True
            if isinstance(own.matcher, OneOf) and all(part.accepts(value) for value in own.matcher.values):
                return not own.attribute.is_repeatable or len(own.matcher.values) == 1
    return False


def _without_values(asked: Sequence[Predicate], rest: Sequence[Predicate]) -> Predicate | None:
    """Return a list of values without those of the exception, or None if the exception has other conditions."""
    match rest:
        case [Is(attribute, matcher, joined=False)] if not attribute.is_repeatable:
            for index, own in enumerate(asked):
                if isinstance(own, Is) and own.attribute is attribute and isinstance(own.matcher, OneOf):
                    left = frozenset(value for value in own.matcher.values if not matcher.contains(value))
                    return both((*asked[:index], Is(attribute, OneOf(left)), *asked[index + 1 :]))
    return None


_MAX_PAIRS = 20_000  # of compared entries


@dataclass(frozen=True, slots=True)
class Opposition:
    """Requests whose verdict differs: `when` holds for all of them, and `request` is one. `old` and `new` decide."""

    when: Predicate
    request: Request
    old: Ending
    new: Ending


def oppositions(
    old: Sequence[Branch], new: Sequence[Branch], impossible: Sequence[Predicate] = ()
) -> Iterator[Opposition]:
    """Yield the oppositions of two lists. Raises GaveUp if there are too many cases.

    Requests that meet one of `impossible` do not exist.
    """
    first, last = _common_ends(old, new)
    tried = 0
    gave_up = False
    for index, was in enumerate(old[first:], first):
        is_common = index >= len(old) - last
        for other, now in enumerate(new[first : len(new) - last if is_common else len(new)], first):
            if was.end.allowed == now.end.allowed:
                continue
            tried += 1
            if tried > _MAX_PAIRS:
                raise GaveUp
            try:
                opposed = _oppose(was, now, old[:index], new[:other], impossible)
            except GaveUp:  # the other pairs may still have results
                gave_up = True
                continue
            if opposed is not None:
                yield opposed
    if gave_up:
        raise GaveUp


def _common_ends(old: Sequence[Branch], new: Sequence[Branch]) -> tuple[int, int]:
    """Return the number of equal entries at the beginning of both lists, and at the end of their rests."""
    shortest = min(len(old), len(new))
    first = next((n for n in range(shortest) if not _is_same_branch(old[n], new[n])), shortest)
    left = shortest - first
    last = next((n for n in range(left) if not _is_same_branch(old[-1 - n], new[-1 - n])), left)
    return first, last


def _is_same_branch(first: Branch, second: Branch) -> bool:
    return first.end.allowed == second.end.allowed and first.when == second.when


def _oppose(
    was: Branch,
    now: Branch,
    before_was: Sequence[Branch],
    before_now: Sequence[Branch],
    impossible: Sequence[Predicate],
) -> Opposition | None:
    wanted = both((was.when, now.when))
    if wanted == NEVER:
        return None
    asked = frozenset(conjuncts(wanted))
    earlier: list[Predicate] = []
    opposing: list[Predicate] = []
    for branches, end in ((before_was, was.end), (before_now, now.end)):
        for branch in branches:
            if frozenset(conjuncts(branch.when)) <= asked:
                return None  # an earlier branch decides
            if both((wanted, branch.when)) != NEVER:
                earlier.append(branch.when)
                if branch.end.allowed != end.allowed:
                    opposing.append(branch.when)
    request = _find(wanted, earlier, opposing, impossible)
    if request is None:
        return None
    return Opposition(subtract(wanted, list(dict.fromkeys(opposing))), request, was.end, now.end)


def _find(
    wanted: Predicate, earlier: list[Predicate], opposing: list[Predicate], impossible: Sequence[Predicate]
) -> Request | None:
    """Return a request that meets no earlier entry or, if that is too hard, none with the other verdict."""
    limits = [*impossible, *_about_messages([wanted, *earlier])]
    try:
        return witness(wanted, [*dict.fromkeys(earlier), *limits])
    except GaveUp:
        if len(opposing) == len(earlier):
            raise
        return witness(wanted, [*dict.fromkeys(opposing), *limits])


def _about_messages(predicates: Sequence[Predicate]) -> Sequence[Predicate]:
    looked_at = frozenset().union(*map(mentions, predicates))
    return IMPOSSIBLE if looked_at & {MCP_METHOD, MCP_TOOL} else ()
