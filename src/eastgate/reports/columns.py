"""Text in columns. Each column is as wide as its widest entry, unless the table is limited to a width.

A table stays a `Grid` until the width of the output is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex

Lines = list[str]  # the lines of one cell, most often one

_GREEN, _RED, _RESET = "\033[32m", "\033[31m", "\033[0m"
_VERDICT = regex(r"(?<![^\s])(allow|deny|ALLOW|DENY)\b")
_COLORED_COLUMNS = ("VERDICT", "ACTION")  # columns whose cells begin with a verdict
_VERDICTS = frozenset({"allow", "deny", "ALLOW", "DENY"})
_MIN_COLUMN_CHARS = 10  # least width of a column that breaks its lines
_READABLE_CHARS = 30  # with less room, the first column moves above the others, or the last below them
_BELOW_FIRST_INDENT, _BELOW_ROW_INDENT = "  ", "    "
_WORD_WITH_SPACES = regex(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells. A cell may have several lines, which stand side by side with those of the other cells.

    `least` are the minimum widths of columns. If the table is too wide, the last column breaks its lines. If that
    column would be too narrow, the first column moves above the others, or else the last column moves below them.
    """

    headers: tuple[str, ...] | None
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    least: tuple[int, ...] = ()
    gap: int = 2
    indent: str = ""

    def lines(self, width: int | None = None, *, color: bool = False) -> list[str]:
        """Render the table at most `width` wide, if possible; None means no limit."""
        rows = _flatten(([[header] for header in self.headers] if self.headers is not None else None), self.rows)
        natural = self._natural_widths(rows, self.least)
        room = width - len(self.indent) if width is not None else None
        if room is None or sum(natural) - self.gap <= room:
            return self._render([[[cell] for cell in row] for row in rows], natural, color)
        widths = self._widths_within(rows, room)
        if widths is not None:
            return self._render(_broken(rows, widths[-1] - self.gap), widths, color)
        below = replace(
            self,
            headers=self.headers[1:] if self.headers is not None else None,
            rows=tuple(row[1:] for row in self.rows),
            indent=self.indent + _BELOW_FIRST_INDENT,
        )
        widths = (
            below._widths_within([row[1:] for row in rows], room - len(_BELOW_FIRST_INDENT))
            if len(rows[0]) > 2
            else None
        )
        if widths is not None:
            return self._render_headed(below, widths, room, color)
        return self._render_stacked(rows, room, color)

    def _widths_within(self, rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
        """Return the widths with which the last column fits by breaking its lines; None if it would be too narrow to
        read.
        """
        *others, last = self._natural_widths(rows, ())
        left = room + self.gap - sum(others)
        return [*others, left] if left >= min(last * 2 // 3, _READABLE_CHARS) else None

    def _natural_widths(self, rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[int]:
        """Return the widths of the columns in a table without a limit, including the gap after each."""
        count = len(rows[0]) if rows else 0
        return [max([*least[at : at + 1], *(len(row[at]) + self.gap for row in rows)]) for at in range(count)]

    def _render_headed(self, below: Grid, widths: Sequence[int], room: int, color: bool) -> list[str]:
        """Render each row with its first cell above the others, which are a table of their own."""
        lines: list[str] = []
        headers = [[[header] for header in self.headers]] if self.headers is not None else []
        for index, row in enumerate((*headers, *self.rows), 1 - len(headers)):
            lines += [f"{self.indent}{line}" for line in break_line(_listed(row[0]), room) if line]
            lines += below._render(
                _broken(_flatten(None, [row[1:]]), widths[-1] - self.gap), widths, color, first=index
            )
        return lines

    def _render_stacked(self, rows: Sequence[Sequence[str]], room: int, color: bool) -> list[str]:
        """Render each row with its last cell below the others."""
        widths = narrow(
            self._natural_widths([row[:-1] for row in rows], ()), room + self.gap, _MIN_COLUMN_CHARS + self.gap
        )
        lines: list[str] = []
        for index, row in enumerate(rows):
            cells = [break_line(cell, width - self.gap) for cell, width in zip(row[:-1], widths, strict=True)]
            if any(row[:-1]):
                lines += self._render([cells], widths, color, first=index)
            if row[-1]:
                lines += [
                    f"{self.indent}{_BELOW_ROW_INDENT}{line}"
                    for line in break_line(row[-1], room - len(_BELOW_ROW_INDENT))
                ]
        return lines

    def _render(
        self, rows: Sequence[Sequence[Lines]], widths: Sequence[int], color: bool, *, first: int = 0
    ) -> list[str]:
        """Render rows whose cells fit. `first` is the index of the first row; 0 is the header."""
        lines = []
        for index, cells in enumerate(rows, first):
            paint = color and (index > 0 or self.headers is None)
            for at in range(max(map(len, cells), default=0)):
                parts = [cell[at] if at < len(cell) else "" for cell in cells]
                while parts and not parts[-1]:
                    parts.pop()
                padded = [part.ljust(width) for part, width in zip(parts[:-1], widths, strict=False)] + parts[-1:]
                shown = "".join(self._paint(padded) if paint else padded)
                lines.append(f"{self.indent}{shown}".rstrip())
        return lines

    def _paint(self, parts: Sequence[str]) -> list[str]:
        titles = self.headers or ("",) * len(parts)
        return [
            color_verdict(part) if title in _COLORED_COLUMNS or part.strip() in _VERDICTS else part
            for part, title in zip(parts, titles, strict=False)
        ]


def _flatten(headers: Sequence[Lines] | None, rows: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
    """Split every row into one row for each of its lines."""
    every = [*([headers] if headers is not None else []), *rows]
    return [
        [printable(cell[at]) if at < len(cell) else "" for cell in row]
        for row in every
        for at in range(max(map(len, row), default=0))
    ]


def _broken(rows: Sequence[Sequence[str]], width: int) -> list[list[Lines]]:
    """Break the last cell of each row. Its other lines stand beside rows in which only the first cell has text."""
    broken: list[list[str]] = []
    rest: Lines = []
    for row in rows:
        if rest and not any(row[1:]):
            broken.append([*row[:-1], rest.pop(0)])
            continue
        broken += [[*[""] * (len(row) - 1), line] for line in rest]
        first, *rest = break_line(row[-1], width)
        broken.append([*row[:-1], first])
    broken += [[*[""] * (len(rows[0]) - 1), line] for line in rest]
    return [[[cell] for cell in row] for row in broken]


def _listed(cell: Sequence[str]) -> str:
    """Return the entries of a cell as one line. Indented lines continue an entry."""
    listed: Lines = []
    for line in map(printable, cell):
        if listed and line.startswith(" "):
            listed[-1] += f" {line.strip()}"
        else:
            listed.append(line.strip())
    return ", ".join(listed)


def narrow(widths: Sequence[int], room: int, least: int) -> list[int]:
    """Narrow the widest columns until all fit, or until each has the least width."""
    narrowed = list(widths)
    while sum(narrowed) > room and max(narrowed) > least:
        narrowed[narrowed.index(max(narrowed))] -= 1
    return narrowed


Line = str | Grid


def columns(
    headers: Sequence[str] | None,
    rows: Sequence[Sequence[Lines]],
    *,
    least: Sequence[int] = (),
    gap: int = 2,
) -> list[Line]:
    """Make a table of rows of cells. Without rows, return no lines."""
    if not rows:
        return []
    held = tuple(tuple(tuple(cell) for cell in row) for row in rows)
    return [Grid(tuple(headers) if headers is not None else None, held, tuple(least), gap)]


def indent_lines(lines: Iterable[Line], indent: str) -> list[Line]:
    """Indent lines and tables."""
    return [
        replace(line, indent=indent + line.indent) if isinstance(line, Grid) else f"{indent}{line}" for line in lines
    ]


def lay_out(lines: Iterable[Line], width: int | None = None, *, color: bool = False) -> list[str]:
    """Render lines and tables as text at most `width` wide, if possible."""
    texts: list[str] = []
    for line in lines:
        if isinstance(line, Grid):
            texts += line.lines(width, color=color)
        else:
            parts = break_line(printable(line), width)
            texts += [color_verdict(parts[0]), *parts[1:]] if color else parts
    return texts


def break_line(line: str, width: int | None) -> list[str]:
    """Break a line that is too long: at spaces, else after a slash, else anywhere."""
    if width is None or len(line) <= width:
        return [line]
    start = len(line) - len(line.lstrip())
    indent = " " * min(start + 2, max(0, width - _MIN_COLUMN_CHARS))
    done, current = [], line[:start]
    for word in (match.group() for match in _WORD_WITH_SPACES.finditer(line)):
        for piece in _pieces(word, width - len(indent)):
            if current.strip() and len(current) + len(piece.rstrip()) > width:
                done.append(current.rstrip())
                current = indent
            current += piece
    return [*done, current.rstrip()]


def _pieces(word: str, width: int) -> list[str]:
    if len(word.rstrip()) <= width:
        return [word]
    pieces: list[str] = []
    for part in re.findall(r"[^/]*/+|[^/]+", word):
        while len(part) > width:
            pieces.append(part[:width])
            part = part[width:]
        pieces.append(part)
    return pieces


def color_verdict(text: str) -> str:
    """Color the first verdict of a text."""
    return _VERDICT.sub(lambda match: f"{_tone(match[1])}{match[1]}{_RESET}", text, count=1)


def _tone(verdict: str) -> str:
    return _GREEN if verdict.lower() == "allow" else _RED
