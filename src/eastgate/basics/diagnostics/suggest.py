"""Suggests the nearest of the words that would have been right."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.regexes import regex

_NUMBER = regex(r"[-_]?\d+")
_SEPARATORS = regex(r"([/.:@])")


def did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that was most likely meant, or None where none is near."""
    words = sorted(allowed)
    folded = {other.casefold(): other for other in reversed(words)}
    exact = folded.get(word.casefold())
    if exact is not None:
        return exact
    if not words:
        return None
    from difflib import get_close_matches  # needed only where something is wrong

    near = get_close_matches(word.casefold(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def mistyped(word: str, allowed: Iterable[str]) -> str | None:
    """Return the known name that was meant where a slip of the keyboard explains what is written; None where none does.

    Much less is near than for `did_you_mean`: names that exist beside each other, such as v1 and v2, are often alike.
    """
    near = sorted((slips, name) for name in allowed if (slips := _slips(word.casefold(), name.casefold())) is not None)
    return near[0][1] if near else None


def _slips(word: str, meant: str) -> int | None:
    """Count the slips that make one name of another, part by part; None where they are two names."""
    parts, others = _SEPARATORS.split(word), _SEPARATORS.split(meant)
    if len(parts) != len(others) or abs(len(word) - len(meant)) > 2:
        return None
    total = 0
    for part, other in zip(parts, others, strict=True):
        slips = _slips_in_part(part, other) if part != other else 0
        if slips is None:
            return None
        total += slips
    return total if total <= 2 else None


def _slips_in_part(word: str, meant: str) -> int | None:
    """Count letters that are missing, added, changed or swapped with the next; None where that makes another name."""
    longest = max(len(word), len(meant))
    most = 2 if longest >= 8 else 1
    if abs(len(word) - len(meant)) > most or len(set(word) ^ set(meant)) > 2 * most:
        return None
    if _NUMBER.sub("", word) == _NUMBER.sub("", meant):
        return None
    slips = _distance(word, meant)
    swapped = sorted(word) == sorted(meant)
    return slips if slips <= most and (longest >= 4 or swapped) else None


def _distance(word: str, meant: str) -> int:
    """Return the edit distance in which a swap of two neighbours counts as one."""
    earlier: list[int] = []
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for at, letter in enumerate(word, 1):
        earlier, before, row = before, row, [at]
        for index, other in enumerate(meant, 1):
            cost = min(before[index] + 1, row[index - 1] + 1, before[index - 1] + (letter != other))
            if at > 1 and index > 1 and (letter, word[at - 2]) == (meant[index - 2], other):
                cost = min(cost, earlier[index - 2] + 1)
            row.append(cost)
    return row[-1]
