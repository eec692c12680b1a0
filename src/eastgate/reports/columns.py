"""Text in columns: each as wide as its widest entry, or all of them together as wide as there is room.

What is shown is laid out last, when it is known how wide that may be: a table is kept as a `Grid` until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from eastgate.diagnostics.printable import printable
from eastgate.records import dataclass
from eastgate.regexes import regex

__all__ = ["Grid", "Line", "Lines", "columns", "fitted", "indented", "laid_out", "narrowed", "toned"]

Lines = list[str]  # of one cell; most have one

_GREEN, _RED, _RESET = "\033[32m", "\033[31m", "\033[0m"
_VERDICT = regex(r"(?<![^\s])(allow|deny|ALLOW|DENY)\b")
_TONED = ("VERDICT", "ACTION")  # columns whose cells begin with a verdict
_VERDICTS = frozenset({"allow", "deny", "ALLOW", "DENY"})
_LEAST = 10  # the narrowest that a column gets, if it has more to say
_ENOUGH = 30  # the last column stands below the others where it has less
_BELOW = "    "
_BREAKS = regex(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells, each of which may have several lines: the lines of a row stand side by side.

    `least` are widths that columns have in any case where there is room. Where there is not, the last column is
    continued below, or stands below the others as a whole.
    """

    headers: tuple[str, ...] | None
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    least: tuple[int, ...] = ()
    gap: int = 2
    indent: str = ""

    def lines(self, width: int | None = None, *, color: bool = False) -> list[str]:
        """As text that is at most so wide, if that can be; None: as wide as it likes."""
        rows = _flat(([[header] for header in self.headers] if self.headers is not None else None), self.rows)
        natural = self._natural(rows, self.least)
        room = width - len(self.indent) if width is not None else None
        if room is None or sum(natural) - self.gap <= room:
            return self._shown([[[cell] for cell in row] for row in rows], natural, color)
        *others, last = self._natural(rows, ())
        left = room - sum(others)
        if left + self.gap < min(last, _ENOUGH):
            return self._stacked(rows, room, color)
        widths = [*others, left + self.gap]
        return self._shown([[*([cell] for cell in row[:-1]), fitted(row[-1], left)] for row in rows], widths, color)

    def _natural(self, rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[int]:
        """The widths of the columns where there is room, with the gap behind each."""
        count = len(rows[0]) if rows else 0
        return [max([*least[at : at + 1], *(len(row[at]) + self.gap for row in rows)]) for at in range(count)]

    def _stacked(self, rows: Sequence[Sequence[str]], room: int, color: bool) -> list[str]:
        """Each row with its last cell below the others."""
        widths = narrowed(self._natural([row[:-1] for row in rows], ()), room + self.gap, _LEAST + self.gap)
        found: list[str] = []
        for place, row in enumerate(rows):
            cells = [fitted(cell, width - self.gap) for cell, width in zip(row[:-1], widths, strict=True)]
            if any(row[:-1]):
                found += self._shown([cells], widths, color, first=place)
            if row[-1]:
                found += [f"{self.indent}{_BELOW}{line}" for line in fitted(row[-1], room - len(_BELOW))]
        return found

    def _shown(
        self, rows: Sequence[Sequence[Lines]], widths: Sequence[int], color: bool, *, first: int = 0
    ) -> list[str]:
        """Rows whose cells fit. `first` is the place of the first of them, which is the header or not."""
        found = []
        for place, cells in enumerate(rows, first):
            paint = color and (place > 0 or self.headers is None)
            for at in range(max(map(len, cells), default=0)):
                parts = [cell[at] if at < len(cell) else "" for cell in cells]
                while parts and not parts[-1]:
                    parts.pop()
                padded = [part.ljust(width) for part, width in zip(parts[:-1], widths, strict=False)] + parts[-1:]
                shown = "".join(self._painted(padded) if paint else padded)
                found.append(f"{self.indent}{shown}".rstrip())
        return found

    def _painted(self, parts: Sequence[str]) -> list[str]:
        titles = self.headers or ("",) * len(parts)
        return [
            toned(part) if title in _TONED or part.strip() in _VERDICTS else part
            for part, title in zip(parts, titles, strict=False)
        ]


def _flat(headers: Sequence[Lines] | None, rows: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
    """Every line of every row, as a row of its own."""
    every = [*([headers] if headers is not None else []), *rows]
    return [
        [printable(cell[at]) if at < len(cell) else "" for cell in row]
        for row in every
        for at in range(max(map(len, row), default=0))
    ]


def narrowed(widths: Sequence[int], room: int, least: int) -> list[int]:
    """Take from the widest first, until all fit or none has more than the least."""
    found = list(widths)
    while sum(found) > room and max(found) > least:
        found[found.index(max(found))] -= 1
    return found


Line = str | Grid


def columns(
    headers: Sequence[str] | None,
    rows: Sequence[Sequence[Lines]],
    *,
    least: Sequence[int] = (),
    gap: int = 2,
) -> list[Line]:
    """Rows of cells as a table; nothing where there are none."""
    if not rows:
        return []
    held = tuple(tuple(tuple(cell) for cell in row) for row in rows)
    return [Grid(tuple(headers) if headers is not None else None, held, tuple(least), gap)]


def indented(lines: Iterable[Line], indent: str) -> list[Line]:
    """The same, further to the right."""
    return [
        replace(line, indent=indent + line.indent) if isinstance(line, Grid) else f"{indent}{line}" for line in lines
    ]


def laid_out(lines: Iterable[Line], width: int | None = None, *, color: bool = False) -> list[str]:
    """Lines and tables as text that is at most so wide, if that can be."""
    found: list[str] = []
    for line in lines:
        if isinstance(line, Grid):
            found += line.lines(width, color=color)
        else:
            parts = fitted(printable(line), width)
            found += [toned(parts[0]), *parts[1:]] if color else parts
    return found


def fitted(line: str, width: int | None) -> list[str]:
    """A line, continued below where it is too long: at spaces, else behind a slash, else wherever it must be."""
    if width is None or len(line) <= width:
        return [line]
    start = len(line) - len(line.lstrip())
    indent = " " * min(start + 2, max(0, width - _LEAST))
    found, current = [], line[:start]
    for word in (match.group() for match in _BREAKS.finditer(line)):
        for piece in _pieces(word, width - len(indent)):
            if current.strip() and len(current) + len(piece.rstrip()) > width:
                found.append(current.rstrip())
                current = indent
            current += piece
    return [*found, current.rstrip()]


def _pieces(word: str, width: int) -> list[str]:
    if len(word.rstrip()) <= width:
        return [word]
    found: list[str] = []
    for part in re.findall(r"[^/]*/+|[^/]+", word):
        while len(part) > width:
            found.append(part[:width])
            part = part[width:]
        found.append(part)
    return found


def toned(text: str) -> str:
    """The same, with a verdict in its color."""
    return _VERDICT.sub(lambda match: f"{_tone(match[1])}{match[1]}{_RESET}", text, count=1)


def _tone(verdict: str) -> str:
    return _GREEN if verdict.lower() == "allow" else _RED
