"""The position in a JSON text, and the errors at that position."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import JSON_SYNTAX, UNCLOSED
from eastgate.reading.manifests.findings import Findings, shown, suggestion
from eastgate.reading.manifests.text import DecodedText

_SPACE = regex(r"[ \t\r\n]*+")
_WORD = regex(r'"[^"\\\r\n]*+"?|[\w.+-]+|\S', re.ASCII)
_MEANT = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}


class Cursor:
    """The position up to which a stretch of a text has been read, and the open brackets."""

    __slots__ = ("_line", "_starts", "end", "findings", "open", "position", "string", "text")

    def __init__(self, text: DecodedText, start: int, end: int) -> None:
        self.text = text
        self.string = text.source.text
        self.position = start
        self.end = end
        self.open: list[int] = []
        self.findings = Findings(Reporter())
        self._starts = text.starts
        self._line = bisect_right(self._starts, start) - 1

    def peek(self) -> str:
        """Skip spaces, and return the next character; empty at the end."""
        match = _SPACE.match(self.string, self.position, self.end)
        if match is not None:
            self.position = match.end()
        return self.string[self.position] if self.position < self.end else ""

    def word(self) -> str:
        """Return the word at the cursor."""
        match = _WORD.match(self.string, self.position, self.end)
        return match.group() if match else ""

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset. Offsets must not decrease between calls."""
        starts, line = self._starts, self._line
        while line + 1 < len(starts) and starts[line + 1] <= offset:
            line += 1
        self._line = line
        return line + 1, offset - starts[line] + 1

    def span(self, start: int, end: int) -> Span:
        """Return the span between two offsets in any place."""
        return self.text.span(start, end)

    def wrong(self, message: str, help_: str | None = None) -> NoReturn:
        """Report an error at the cursor; at the end of the text, report an open bracket."""
        if self.position < self.end:
            span = self.span(self.position, self.position + max(1, len(self.word())))
            self.findings.stop(JSON_SYNTAX, message, span, help_ or self._way_out())
        opening = self.open[-1]
        closing = "}" if self.string[opening] == "{" else "]"
        span = self.span(opening, opening + 1)
        self.findings.stop(UNCLOSED, f"this `{span.underlined}` is never closed", span, f"add a `{closing}`")

    def _way_out(self) -> str:
        """Return the help for the word at the cursor."""
        word = self.word()
        if word in _MEANT:
            return f"write `{_MEANT[word]}`"
        if word == "'":
            return "use double quotes instead of single quotes"
        if word in ("/", "#"):
            return "JSON has no comments: remove it, or name the file `.yaml`"
        if word.startswith("---"):
            return "`---` separates YAML documents: name the file `.yaml`"
        if word in ("}", "]"):
            return "remove it" if not self.open else "write a value before it"
        if word[:1].isdigit() or word[:1] in ("+", "-", "."):
            return "numbers are written like `10`, `-1`, `0.5` or `1e3`"
        near = suggestion(word, ("true", "false", "null"))
        if near:
            return f"did you mean `{near}`?"
        if word[:1].isalpha() or word[:1] == "_":
            return f'put it in double quotes: "{shown(word)}"'
        return "write an object, a list, a string in double quotes, a number, `true`, `false` or `null`"
