"""Guess which name was meant, among thousands too: the comparison is slow, so only likely names are compared."""

from __future__ import annotations

from collections.abc import Collection

from eastgate.basics.diagnostics import did_you_mean

_MOST = 300


def nearest_name(word: str, names: Collection[str]) -> str | None:
    """Return the name that was most likely meant."""
    likely = sorted(names)
    if len(likely) > _MOST:
        likely = [name for name in likely if abs(len(name) - len(word)) <= 2 and _is_alike(name, word)][:_MOST]
    close = did_you_mean(word, likely)
    if close is None and len(word) > 2:  # in a short name one letter makes another name
        close = next((name for name in likely if len(name) > 2 and _distance(word, name) == 1), None)
    return close


def _is_alike(name: str, word: str) -> bool:
    return name[:2] == word[:2] or name[-2:] == word[-2:]


def corrected_name(word: str, names: Collection[str]) -> str | None:
    """Return the name that a word misspells by a letter or two; `web-2` does not misspell `web-1`."""
    close = nearest_name(word, names)
    if close is None or min(len(word), len(close)) < 4 or _letters(word) == _letters(close):
        return None
    return close if _distance(word.casefold(), close.casefold()) <= (1 if len(close) < 6 else 2) else None


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _distance(word: str, other: str) -> int:
    """Count the letters that must be changed, added, removed, or swapped with the next."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def list_some(names: Collection[str]) -> str:
    """List a few of the names."""
    ordered = sorted(names)
    return ", ".join(ordered[:5]) + (", .." if len(ordered) > 5 else "")
