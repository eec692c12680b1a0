"""A syntax error of libyaml, and the positions in the text that it is about."""

from __future__ import annotations

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.text import DecodedText
from eastgate.reading.manifests.yaml.parser import Mark

_WORD = regex(r"[^\s,\[\]{}:]+|\S")
_FAR = 20  # blank lines that are looked across


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error in one chunk of a text."""

    text: DecodedText
    chunk: str
    base: int  # the offset in the text that index 0 of the chunk stands for
    first_line: int
    problem: str
    at: Mark
    since: Mark  # where the thing began that was being read; the same as `at` if libyaml does not say

    def line_of(self, mark: Mark) -> int:
        """Return the line of a mark in the whole text."""
        return self.first_line + mark.line

    def line_above(self, top: int) -> int:
        """Return the nearest line above the error that is not blank, but not above a given line."""
        line = self.line_of(self.at) - 1
        for _ in range(_FAR):
            if line <= top or self.text.source.line(line).strip():
                break
            line -= 1
        return line

    def span(self, mark: Mark, *, rest_of_line: bool = False) -> Span:
        """Return the word at a mark; where there is none, the last character before it."""
        line, column = self.text.position(self.base + mark.index)
        line_text = self.text.source.line(line)
        if mark.index >= len(self.chunk) or not line_text[column - 1 :].strip():
            line, column = self._last_before(mark)
            line_text = self.text.source.line(line)
        if rest_of_line:
            return Span(self.text.source, line, column, line, max(column, len(line_text.rstrip())) + 1)
        word = _WORD.match(line_text, column - 1)
        return Span(self.text.source, line, column, line, word.end() + 1 if word else column + 1)

    def _last_before(self, mark: Mark) -> tuple[int, int]:
        last = len(self.chunk[: mark.index].rstrip()) - 1
        return self.text.position(self.base + max(last, 0))

    @property
    def starts_line(self) -> bool:
        """Return whether nothing but spaces stands before the error on its line."""
        return not self.text.source.line(self.line_of(self.at))[: self.at.column].strip()

    @property
    def at_end(self) -> bool:
        """Return whether the document ends at the error."""
        return not self.chunk[self.at.index :].strip()
