"""Did you mean, among thousands of names too: the comparison is slow, so only likely names are compared."""

from __future__ import annotations

from collections.abc import Collection

from eastgate.diagnostics import did_you_mean

__all__ = ["misspelt", "near", "some"]

_MOST = 300


def near(written: str, names: Collection[str]) -> str | None:
    """The name that was most likely meant."""
    likely = sorted(names)
    if len(likely) > _MOST:
        likely = [name for name in likely if abs(len(name) - len(written)) <= 2 and _is_alike(name, written)][:_MOST]
    found = did_you_mean(written, likely)
    if found is None and len(written) > 2:  # of short names a letter is much
        found = next((name for name in likely if len(name) > 2 and _distance(written, name) == 1), None)
    return found


def _is_alike(name: str, written: str) -> bool:
    return name[:2] == written[:2] or name[-2:] == written[-2:]


def misspelt(written: str, names: Collection[str]) -> str | None:
    """The name of which this one is a misspelling, in a letter or two; `web-2` is none of `web-1`."""
    close = near(written, names)
    if close is None or min(len(written), len(close)) < 4 or _letters(written) == _letters(close):
        return None
    return close if _distance(written.casefold(), close.casefold()) <= (1 if len(close) < 6 else 2) else None


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _distance(one: str, other: str) -> int:
    """How many letters are to be changed, added, removed, or swapped with the next."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def some(names: Collection[str]) -> str:
    """A few of the names."""
    found = sorted(names)
    return ", ".join(found[:5]) + (", .." if len(found) > 5 else "")
