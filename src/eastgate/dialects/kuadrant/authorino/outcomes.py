"""The possible outcomes of a condition when not everything is known.

With everything known exactly one of the three is possible. An unknown value makes more than one possible, and a
decision may only rest on what all of them agree on.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator


class Outcomes(enum.Flag):
    """A set of outcomes."""

    HOLDS = enum.auto()
    FAILS = enum.auto()
    ERRS = enum.auto()


HOLDS = Outcomes.HOLDS
FAILS = Outcomes.FAILS
ERRS = Outcomes.ERRS
EITHER = HOLDS | FAILS
ANYTHING = HOLDS | FAILS | ERRS


def all_hold(parts: Iterable[Outcomes]) -> Outcomes:
    """Combine with ALL, one part after the other as Authorino does it: the first that fails or errs decides."""
    return _folded(iter(parts), go_on=HOLDS)


def any_holds(parts: Iterable[Outcomes]) -> Outcomes:
    """Combine with ANY, one part after the other: the first that holds or errs decides."""
    return _folded(iter(parts), go_on=FAILS)


def _folded(parts: Iterator[Outcomes], go_on: Outcomes) -> Outcomes:
    possible = go_on
    while (possible is go_on or go_on in possible) and (part := next(parts, None)) is not None:
        possible = part if possible is go_on else (possible & ~go_on) | part
    return possible
