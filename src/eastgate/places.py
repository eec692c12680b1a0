"""Where something was written: the one notion of a place that every layer shares.

A rule of the IR, a diagnostic and an explanation all point into the text that a person wrote. They
do so with a `Span`, and a span keeps the text it points into alive, so that an explanation can
underline it later without reading the file again (it may have changed, or been standard input).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["SourceText", "Span"]


@dataclass(eq=False, slots=True)
class SourceText:
    """One text that was read: a file, or standard input."""

    name: str
    text: str
    _lines: list[str] | None = field(default=None, repr=False)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line break; empty where there is none.

        What stands in a Secret is not for showing: there all but the names of fields is starred out.
        """
        if self._lines is None:
            self._lines = _without_secrets(self.text.splitlines())
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


_SECRET = re.compile(r"""["']?kind["']?\s*:\s*["']?Secret\b""")
_FIELD = re.compile(
    r"""\s*(?:-\s+)?["']?(?:apiVersion|kind|metadata|name|namespace|type|data|stringData|immutable)["']?\s*:(?=\s|$)"""
)
_SHOWN = re.compile(r"\s*(?:-\s+)?(?:apiVersion|kind|name|namespace)\s*:\s+[-\w./]+\s*")


def _without_secrets(lines: list[str]) -> list[str]:
    """The lines, starred out in each document that is a Secret, or has one in it."""
    if not any(_SECRET.search(line) for line in lines):
        return lines
    starts = [0, *(number for number, line in enumerate(lines) if line.startswith("---")), len(lines)]
    shown: list[str] = []
    for start, end in pairwise(starts):
        document = lines[start:end]
        secret = any(_SECRET.search(line) for line in document)
        shown += [_starred(line) for line in document] if secret else document
    return shown


def _starred(line: str) -> str:
    if _SHOWN.fullmatch(line) or line.startswith("---"):
        return line
    field = _FIELD.match(line)
    end = field.end() if field else 0
    return line[:end] + re.sub(r"\S", "*", line[end:])


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
        """The name of the text, as the user gave it."""
        return self.source.name

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    @property
    def first_line(self) -> str:
        """The whole first line that the span touches."""
        return self.source.line(self.line)

    @property
    def underlined(self) -> str:
        """What a caret line underlines: the span itself, or its part on the first line."""
        line = self.first_line
        end = self.end_column if self.end_line == self.line else len(line.rstrip()) + 1
        return line[self.column - 1 : max(end, self.column + 1) - 1]
