"""Did you mean: the nearest of the words that would have been right."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["did_you_mean", "mistyped"]

_NUMBER = re.compile(r"[-_]?\d+")
_SEPARATORS = re.compile(r"([/.:@])")


def did_you_mean(written: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was most likely meant, or None where none is near."""
    words = sorted(allowed)
    folded = {word.casefold(): word for word in reversed(words)}
    exact = folded.get(written.casefold())
    if exact is not None:
        return exact
    if not words:
        return None
    from difflib import get_close_matches  # needed only where something is wrong

    near = get_close_matches(written.casefold(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def mistyped(written: str, known: Iterable[str]) -> str | None:
    """The known name that was meant where a slip of the keyboard explains what is written; None where none does.

    Much less is near than for `did_you_mean`: names that exist beside each other, such as v1 and v2, are often alike.
    """
    near = sorted((slips, name) for name in known if (slips := _slips(written.casefold(), name.casefold())) is not None)
    return near[0][1] if near else None


def _slips(written: str, meant: str) -> int | None:
    """How many slips make one name of another, part by part; None where they are two names."""
    parts, others = _SEPARATORS.split(written), _SEPARATORS.split(meant)
    if len(parts) != len(others) or abs(len(written) - len(meant)) > 2:
        return None
    found = 0
    for part, other in zip(parts, others, strict=True):
        slips = _slips_in_part(part, other) if part != other else 0
        if slips is None:
            return None
        found += slips
    return found if found <= 2 else None


def _slips_in_part(written: str, meant: str) -> int | None:
    """How many letters are missing, added, changed or swapped with the next; None where that makes another name."""
    longest = max(len(written), len(meant))
    most = 2 if longest >= 8 else 1
    if abs(len(written) - len(meant)) > most or len(set(written) ^ set(meant)) > 2 * most:
        return None
    if _NUMBER.sub("", written) == _NUMBER.sub("", meant):
        return None
    slips = _distance(written, meant)
    swapped = sorted(written) == sorted(meant)
    return slips if slips <= most and (longest >= 4 or swapped) else None


def _distance(written: str, meant: str) -> int:
    """The edit distance in which a swap of two neighbours counts as one."""
    earlier: list[int] = []
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for at, letter in enumerate(written, 1):
        earlier, before, row = before, row, [at]
        for place, other in enumerate(meant, 1):
            cost = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != other))
            if at > 1 and place > 1 and (letter, written[at - 2]) == (meant[place - 2], other):
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
    return row[-1]
