"""Positions in source text, the same type for every layer.

A rule of the IR, a diagnostic and an explanation all point into the user's text with a `Span`. A span keeps its text in
memory. So an explanation can underline it later without reading the file again: the file may have changed, or been
standard input.
"""

from __future__ import annotations

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.redaction import without_secrets
from eastgate.basics.records import brief, dataclass


class SourceText:
    """A text that was read: a file, standard input, or an object of a cluster as YAML."""

    __slots__ = ("_hidden", "_lines", "_text", "name")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._text = text
        self._lines: list[str] | None = None
        self._hidden: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """Return the whole text."""
        return self._text

    @property
    def is_object(self) -> bool:
        """Return whether it is an object of a cluster: then its places are named by fields."""
        return False

    def location(self, span: Span) -> str:
        """Return the name of a place in it, for people: file and line, or object and field."""
        name = printable(self.name)
        if not self.is_object:
            return f"{name}:{span.line}"
        field = self.field_at(span)
        return f"{name} {field}" if field else name

    def field_at(self, span: Span) -> str:
        """Return the field of an object around a span, for people; empty outside of an object, or without a field."""
        return printable(self._field_of(span))

    def _field_of(self, span: Span) -> str:  # noqa: ARG002 - for objects
        return ""

    def place(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        """Return the span of a part of this text. If a program built the text, it is in the written text."""
        return Span(self, line, column, end_line, end_column)

    def near(self, line: int) -> tuple[SourceText, ...]:  # noqa: ARG002 - of one text, all lines are in that
        """Return the texts in which a line of this one may have been written."""
        return (self,)

    def origin_of(self, built: Span) -> Span:
        """Return the written place of a part of this text, if a program built it."""
        return built

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its line break; empty if there is none.

        In a Secret, everything is hidden by stars, except its name, its labels and the names of its fields.
        """
        if self._lines is None:
            lines = self.text.splitlines()
            self._lines = without_secrets(lines)
            if self._lines is not lines:
                pairs = zip(lines, self._lines, strict=True)
                self._hidden = frozenset(number for number, (text, shown) in enumerate(pairs, 1) if text != shown)
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def hides(self, number: int) -> bool:
        """Return whether a part of a line is hidden by stars."""
        self.line(number)
        return number in self._hidden


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one text. Lines and columns count from 1; `end_column` is one past the last character."""

    source: SourceText
    line: int
    column: int
    end_line: int
    end_column: int

    def __repr__(self) -> str:
        return brief(self, str(self))

    @property
    def built(self) -> Span | None:
        """Return the part that a program, such as kustomize, built from this one."""
        return None

    @property
    def file(self) -> str:
        """Return the name of the text, as the user gave it."""
        return self.source.name

    def __str__(self) -> str:
        return self.location if self.source.is_object else f"{self.location}:{self.column}"

    @property
    def location(self) -> str:
        """Return file and line, or object and field, for people."""
        return self.source.location(self)

    def holds(self, other: Span) -> bool:
        """Return whether another part begins inside of this one."""
        mine, theirs = self.built or self, other.built or other
        if mine.file != theirs.file:  # only the written text has comments
            mine, theirs = self, other
        begins, ends = (mine.line, mine.column), (mine.end_line, mine.end_column)
        return mine.file == theirs.file and begins <= (theirs.line, theirs.column) < ends

    @property
    def first_line(self) -> str:
        """Return the whole first line that the span touches."""
        return self.source.line(self.line)

    @property
    def covered(self) -> str:
        """Return the whole text of the span, in its visible form."""
        lines = [self.source.line(number) for number in range(self.line, self.end_line + 1)]
        lines[-1] = lines[-1][: self.end_column - 1]
        return "\n".join([lines[0][self.column - 1 :], *lines[1:]])

    @property
    def underlined(self) -> str:
        """Return the text that a caret line underlines: the span, or its part on the first line."""
        line = self.first_line
        end = self.end_column if self.end_line == self.line else len(line.rstrip()) + 1
        return line[self.column - 1 : max(end, self.column + 1) - 1]


class WrittenSpan(Span):
    """The written place of a part of a built text. It is computed on first use, since most are never shown."""

    __slots__ = ("_built", "_written")

    _built: Span
    _written: Span | None

    def __init__(self, built: Span) -> None:
        object.__setattr__(self, "_built", built)
        object.__setattr__(self, "_written", None)

    def __reduce__(self) -> tuple[type[WrittenSpan], tuple[Span]]:
        return WrittenSpan, (self.built,)

    @property
    def built(self) -> Span:
        """Return the part that was built from this one."""
        return self._built

    @property
    def written(self) -> Span:
        """Return the place as a span of the written text."""
        written = self._written
        if written is None:
            written = self._built.source.origin_of(self._built)
            object.__setattr__(self, "_written", written)
        return written

    @property
    def source(self) -> SourceText:
        """Return the written text."""
        return self.written.source

    @property
    def line(self) -> int:
        """Return its first line there."""
        return self.written.line

    @property
    def column(self) -> int:
        """Return its first column there."""
        return self.written.column

    @property
    def end_line(self) -> int:
        """Return its last line there."""
        return self.written.end_line

    @property
    def end_column(self) -> int:
        """Return one past its last column there."""
        return self.written.end_column
