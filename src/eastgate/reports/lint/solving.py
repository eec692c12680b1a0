"""Whether a rule can match any request, and the reason if it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from eastgate.basics.caching import SizedCache
from eastgate.ir import Not, Or, Predicate, all_of, any_of, atoms, conjuncts, mentions
from eastgate.ir.attributes import MCP_METHOD, METHOD
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reach.searching import BODILESS


def is_possible(wanted: Predicate) -> bool:
    """Return whether any request meets a predicate; True if the search gives up."""
    return _POSSIBLE.get(wanted, lambda: (_is_possible(wanted), 1 + sum(1 for _ in atoms(wanted))))


_POSSIBLE: Final[SizedCache[Predicate, bool]] = SizedCache(1 << 15)
"""By condition, because environments and pods share rules. The size is in atoms."""


def _is_possible(wanted: Predicate) -> bool:
    try:
        return witness(wanted, (BODILESS,) if mentions(wanted) >= {METHOD, MCP_METHOD} else ()) is not None
    except GaveUp:
        return True


def contradiction(impossible: Predicate) -> Predicate:
    """Return requirements of a condition that exclude each other. Without any one of them, the rest is possible."""
    left = _needed(_requirements(impossible), [])
    for index, part in enumerate(left):
        if isinstance(part, Or):
            others = [other for other in left if other is not part]
            left[index] = any_of(all_of(_needed(_requirements(option), others)) for option in part.parts)
    return all_of(left)


def _needed(requirements: Iterable[Predicate], others: Sequence[Predicate]) -> list[Predicate]:
    """Return the requirements that are needed for a contradiction with the others."""
    left = list(requirements)
    for part in reversed(left.copy()):
        rest = [each for each in left if each is not part]
        if (rest or others) and not is_possible(all_of([*others, *rest])):
            left = rest
    return left


def _requirements(predicate: Predicate) -> Iterator[Predicate]:
    """Yield the requirements of a condition."""
    for part in conjuncts(predicate):
        match part:
            case Not(Or(parts)):
                yield from map(Not, parts)
            case _:
                yield part
