"""Suggests the valid word that is nearest to an invalid one."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.regexes import regex

_NUMBER = regex(r"[-_]?\d+")
_SEPARATORS = regex(r"([/.:@])")


def did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that is most like the text, or None."""
    words = sorted(allowed)
    folded = {other.casefold(): other for other in reversed(words)}
    exact = folded.get(word.casefold())
    if exact is not None:
        return exact
    if not words:
        return None
    from difflib import get_close_matches  # needed only for errors

    near = get_close_matches(word.casefold(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def mistyped(word: str, allowed: Iterable[str]) -> str | None:
    """Return the known name that differs only by a typing mistake, or None.

    It is much stricter than `did_you_mean`: existing names, such as v1 and v2, are often similar.
    """
    near = sorted((slips, name) for name in allowed if (slips := _slips(word.casefold(), name.casefold())) is not None)
    return near[0][1] if near else None


def _slips(word: str, meant: str) -> int | None:
    """Return the number of typing mistakes between two names, part by part; None if the names differ otherwise."""
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
    """Return the number of missing, added, changed or swapped letters; None for other differences."""
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
    """Return the edit distance, in which a swap of two neighbours counts as one."""
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
