"""Positions in source text: the one notion of them that every layer shares.

A rule of the IR, a diagnostic and an explanation all point into the text that a person wrote. They do so with a `Span`,
and a span keeps the text it points into alive, so that an explanation can underline it later without reading the file
again (it may have changed, or been standard input).
"""

from __future__ import annotations

from dataclasses import field

from eastgate.diagnostics.printable import printable
from eastgate.diagnostics.redaction import without_secrets
from eastgate.records import dataclass

__all__ = ["SourceText", "Span"]


@dataclass(eq=False, slots=True)
class SourceText:
    """One text that was read: a file, or standard input."""

    name: str
    text: str
    _lines: list[str] | None = field(default=None, repr=False)
    _hidden: frozenset[int] = field(default=frozenset(), repr=False)

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its line break; empty where there is none.

        What a Secret holds is not for showing: all but its name, its labels and the names of its fields is starred out.
        """
        if self._lines is None:
            lines = self.text.splitlines()
            self._lines = without_secrets(lines)
            if self._lines is not lines:
                pairs = zip(lines, self._lines, strict=True)
                self._hidden = frozenset(number for number, (text, shown) in enumerate(pairs, 1) if text != shown)
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def hides(self, number: int) -> bool:
        """Return whether something in a line is starred out."""
        self.line(number)
        return number in self._hidden


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one text. Lines and columns count from 1; `end_column` is one past the last character."""

    source: SourceText
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def file(self) -> str:
        """Return the name of the text, as the user gave it."""
        return self.source.name

    def __str__(self) -> str:
        return f"{printable(self.file)}:{self.line}:{self.column}"

    @property
    def location(self) -> str:
        """Return file and line, for people."""
        return f"{printable(self.file)}:{self.line}"

    def holds(self, other: Span) -> bool:
        """Return whether another stretch begins inside of this one."""
        begins = self.line, self.column
        return self.file == other.file and begins <= (other.line, other.column) < (self.end_line, self.end_column)

    @property
    def first_line(self) -> str:
        """Return the whole first line that the span touches."""
        return self.source.line(self.line)

    @property
    def underlined(self) -> str:
        """Return what a caret line underlines: the span itself, or its part on the first line."""
        line = self.first_line
        end = self.end_column if self.end_line == self.line else len(line.rstrip()) + 1
        return line[self.column - 1 : max(end, self.column + 1) - 1]
