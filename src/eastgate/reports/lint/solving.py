"""Whether a rule can match at all, and why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from eastgate.basics.caching import SizedCache
from eastgate.ir import Not, Or, Predicate, all_of, any_of, atoms, conjuncts, mentions
from eastgate.ir.attributes import MCP_METHOD, METHOD
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reach.searching import BODILESS


def is_possible(wanted: Predicate) -> bool:
    """Return whether any request meets a predicate. Where the search gives up, it counts as possible."""
    return _POSSIBLE.get(wanted, lambda: (_is_possible(wanted), 1 + sum(1 for _ in atoms(wanted))))


_POSSIBLE: Final[SizedCache[Predicate, bool]] = SizedCache(1 << 15)
"""By condition, since environments and pods share rules. The size is in atoms."""


def _is_possible(wanted: Predicate) -> bool:
    try:
        return witness(wanted, (BODILESS,) if mentions(wanted) >= {METHOD, MCP_METHOD} else ()) is not None
    except GaveUp:
        return True


def contradiction(impossible: Predicate) -> Predicate:
    """Return the requirements of a condition that exclude each other: without any of them it would be possible."""
    left = _needed(_requirements(impossible), [])
    for index, part in enumerate(left):
        if isinstance(part, Or):
            others = [other for other in left if other is not part]
            left[index] = any_of(all_of(_needed(_requirements(option), others)) for option in part.parts)
    return all_of(left)


def _needed(requirements: Iterable[Predicate], others: Sequence[Predicate]) -> list[Predicate]:
    """Return those requirements without which, beside the others, there would be no contradiction."""
    left = list(requirements)
    for part in reversed(left.copy()):
        rest = [each for each in left if each is not part]
        if (rest or others) and not is_possible(all_of([*others, *rest])):
            left = rest
    return left


def _requirements(predicate: Predicate) -> Iterator[Predicate]:
    """Yield what must hold, and each thing that must not."""
    for part in conjuncts(predicate):
        match part:
            case Not(Or(parts)):
                yield from map(Not, parts)
            case _:
                yield part
