"""Translates libyaml's syntax errors to the position that the user should look at, and to a help text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import (
    BAD_INDENTATION,
    CONTROL_CHARACTER,
    NOT_APPLIED,
    TAB,
    TAG_UNKNOWN,
    TEMPLATE,
    UNCLOSED,
    YAML_SYNTAX,
)
from eastgate.reading.manifests.findings import shown
from eastgate.reading.manifests.text import DecodedText
from eastgate.reading.manifests.yaml.parser import READER_ERROR, LibyamlError, Mark

# A syntax error of libyaml, with its positions in the text.


_WORD = regex(r"[^\s,\[\]{}:]+|\S")
_MAX_BLANK_LINES = 20  # blank lines that are searched


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """An error in one chunk of a text."""

    text: DecodedText
    chunk: str
    base: int  # the offset in the text of index 0 of the chunk
    first_line: int
    problem: str
    at: Mark
    since: Mark  # the start of the element with the error; the same as `at` if libyaml does not know it

    def line_of(self, mark: Mark) -> int:
        """Return the line of a mark in the whole text."""
        return self.first_line + mark.line

    def line_above(self, top: int) -> int:
        """Return the nearest line above the error that is not blank, but not above a given line."""
        line = self.line_of(self.at) - 1
        for _ in range(_MAX_BLANK_LINES):
            if line <= top or self.text.source.line(line).strip():
                break
            line -= 1
        return line

    def span(self, mark: Mark, *, rest_of_line: bool = False) -> Span:
        """Return the word at a mark; without one, the last character before it."""
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
        """Return whether only spaces are before the error on its line."""
        return not self.text.source.line(self.line_of(self.at))[: self.at.column].strip()

    @property
    def at_end(self) -> bool:
        """Return whether the document ends at the error."""
        return not self.chunk[self.at.index :].strip()


_TEMPLATE_HELP: Final = "this looks like a Helm template: render it first (helm template ...)"
# The characters that YAML never allows in a text.
_FORBIDDEN: Final = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_BRACES = regex(r"\{\{")
_ESCAPE = regex(r"\\(?:x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}|.)")
_NO_SPACE_AFTER_COLON = regex(r"\s*(?:- )?[\w./-]+:[^\s/:]")


_Finding = Callable[[SyntaxProblem], Diagnostic]


def explain(error: Exception, text: DecodedText, chunk: str, start: int) -> Diagnostic:
    """Translate an error in the chunk that starts at an offset of the text."""
    first_line, column = text.position(start)
    padding = column - 1  # the spaces that keep the chunk in its column
    if isinstance(error, READER_ERROR):
        return _control_character(text, chunk, start - padding)
    libyaml_error = cast("LibyamlError", error)
    at = libyaml_error.problem_mark or libyaml_error.context_mark
    assert at is not None  # noqa: S101 - libyaml always says where
    trouble = SyntaxProblem(
        text, chunk, start - padding, first_line, libyaml_error.problem or "", at, libyaml_error.context_mark or at
    )
    span = trouble.span(at)
    template = template_finding(span)
    if template is not None:
        return template
    for part, finding in _FINDINGS.items():
        if part in trouble.problem:
            return finding(trouble)
    return Diagnostic(YAML_SYNTAX, f"this is not YAML: {trouble.problem}", span)


def template_finding(span: Span) -> Diagnostic | None:
    """Return the finding for an unreadable line with `{{` outside quotes, or None."""
    line = span.first_line
    for start in (match.start() for match in _BRACES.finditer(line)):
        before = line[:start]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            end = line.find("}}", start)
            braces = Span(span.source, span.line, start + 1, span.line, end + 3 if end >= 0 else start + 3)
            return Diagnostic(TEMPLATE, "`{{` starts template text, which is not YAML", braces, _TEMPLATE_HELP)
    return None


def _control_character(text: DecodedText, chunk: str, base: int) -> Diagnostic:
    match = _FORBIDDEN.search(chunk)
    assert match is not None  # noqa: S101 - libyaml has found one
    code = ord(match.group())
    help_ = f'remove it, or write it as "\\u{code:04x}" in double quotes'
    if code == 0:
        help_ = "this looks like UTF-16 or like no text at all: save it as UTF-8"
    span = text.span(base + match.start(), base + match.end())
    return Diagnostic(CONTROL_CHARACTER, f"the control character U+{code:04X} cannot stand in YAML", span, help_)


def _fixed(code: Code, message: str, help_: str, *, since: bool = False, line: bool = False) -> _Finding:
    """Return a finding with a fixed message."""

    def finding(trouble: SyntaxProblem) -> Diagnostic:
        span = trouble.span(trouble.since if since else trouble.at, rest_of_line=line)
        return Diagnostic(code, message, span, help_)

    return finding


def _strange_character(trouble: SyntaxProblem) -> Diagnostic:
    span = trouble.span(trouble.at)
    character = trouble.chunk[trouble.at.index]
    if character == "\t":
        return _tab(trouble)
    rest = trouble.span(trouble.at, rest_of_line=True)
    return Diagnostic(
        YAML_SYNTAX,
        f"a value cannot start with {'a backtick' if character == '`' else f'`{character}`'}",
        span,
        f"put it in quotes: {_quoted(rest.underlined)}",
    )


def _tab(trouble: SyntaxProblem) -> Diagnostic:
    line, column = trouble.line_of(trouble.at), trouble.at.column + 1
    line_text = trouble.text.source.line(line)
    end = column + len(line_text[column - 1 :]) - len(line_text[column - 1 :].lstrip("\t"))
    span = Span(trouble.text.source, line, column, line, end)
    return Diagnostic(TAB, "a tab cannot indent YAML", span, "use spaces instead of the tab")


def _colon(trouble: SyntaxProblem) -> Diagnostic:
    help_ = "put the value in quotes if the `:` belongs to it; if not, check the indentation of this line"
    above = trouble.line_above(trouble.first_line)
    if above < trouble.line_of(trouble.at) and _NO_SPACE_AFTER_COLON.match(trouble.text.source.line(above)):
        help_ = f"write a space after the `:` in line {above}"
    return Diagnostic(YAML_SYNTAX, "a `:` cannot stand here", trouble.span(trouble.at), help_)


def _outside(what: str) -> _Finding:
    """Return a finding for a line that is not an entry of the mapping or list around it."""

    def finding(trouble: SyntaxProblem) -> Diagnostic:
        span = trouble.span(trouble.at)
        if span.underlined == ":":
            return Diagnostic(YAML_SYNTAX, "a key is missing before this", span, "write `key: value`")
        if not trouble.starts_line:
            help_ = "put the whole value in quotes"
            return Diagnostic(YAML_SYNTAX, "this text does not belong to the value before it", span, help_)
        line = trouble.line_of(trouble.since)
        message = f"this line does not fit into the {what} that starts in line {line}"
        return Diagnostic(BAD_INDENTATION, message, span, _indentation_help(trouble, what))

    return finding


def _indentation_help(trouble: SyntaxProblem, what: str) -> str:
    """Suggest the indentation of the collection around the line, or of the one that ended above it."""
    source = trouble.text.source
    outer, outer_indent = trouble.line_of(trouble.since), trouble.since.column
    above = trouble.line_above(outer)
    indent = len(source.line(above)) - len(source.line(above).lstrip(" "))
    if indent != outer_indent and above != outer:
        return f"indent it by {indent} like line {above}, or by {outer_indent} like line {outer}"
    if indent != trouble.at.column:
        return f"indent it by {outer_indent} like line {outer}"
    return "start it with `- `" if what == "list" else "write `key: value`"


def _bracket(bracket: str, closing: str) -> _Finding:
    def finding(trouble: SyntaxProblem) -> Diagnostic:
        opened = f"the `{bracket}` in line {trouble.line_of(trouble.since)}"
        if trouble.at_end:
            span = trouble.span(trouble.since)
            return Diagnostic(UNCLOSED, f"this `{bracket}` is never closed", span, f"add a `{closing}`")
        span = trouble.span(trouble.at)
        return Diagnostic(
            YAML_SYNTAX, f"a `,` or a `{closing}` is missing before this", span, f"it belongs to {opened}"
        )

    return finding


def _no_value(trouble: SyntaxProblem) -> Diagnostic:
    span = trouble.span(trouble.at)
    if trouble.at_end:
        message = "a bracket is still open where the document ends"
        return Diagnostic(UNCLOSED, message, span, "add the missing `]` or `}`")
    return Diagnostic(YAML_SYNTAX, "a value is expected here", span, "put it in quotes if it is text")


def _behind_the_end(trouble: SyntaxProblem) -> Diagnostic:
    span = trouble.span(trouble.at)
    if span.first_line.startswith("%"):
        span = Span(span.source, span.line, 1, span.line, len(span.first_line.rstrip()) + 1)
        return Diagnostic(YAML_SYNTAX, "a directive cannot stand here", span, "leave the line out")
    help_ = "check the indentation, or start a new document with `---`"
    return Diagnostic(NOT_APPLIED, "the document has ended before this", span, help_)


def _alias(trouble: SyntaxProblem) -> Diagnostic:
    rest = trouble.span(trouble.since, rest_of_line=True)
    sign = next(
        (character for character in rest.underlined if character in "&*"), "&"
    )  # a byte order mark may come before it
    name = "alias" if sign == "*" else "anchor"
    return Diagnostic(
        YAML_SYNTAX,
        f"`{sign}` starts an {name}, and no name follows it",
        trouble.span(trouble.since),
        f"if this is text, put it in quotes: {_quoted(rest.underlined)}",
    )


def _quote(trouble: SyntaxProblem) -> Diagnostic:
    quote = trouble.chunk[trouble.since.index]
    span = trouble.span(trouble.since, rest_of_line=True)
    return Diagnostic(UNCLOSED, "this quote is never closed", span, f"add the closing `{quote}`")


def _escape(trouble: SyntaxProblem) -> Diagnostic:
    start = trouble.chunk.rfind("\\", 0, trouble.at.index + 1)
    column = trouble.at.column + 1 - (trouble.at.index - start)
    line = trouble.line_of(trouble.at)
    escape = _ESCAPE.match(trouble.chunk, start)
    span = Span(trouble.text.source, line, column, line, column + (len(escape.group()) if escape else 1))
    help_ = "write `\\\\` for a backslash, or use single quotes"
    return Diagnostic(YAML_SYNTAX, f"`{shown(span.underlined)}` is not an escape that YAML knows", span, help_)


def _quoted(words: str) -> str:
    words = shown(words.rstrip())
    return f'"{words}"' if '"' not in words else f"'{words}'"


_ESCAPES = ("found unknown escape", "hexdecimal number", "Unicode character escape code")

# By a part of libyaml's message
_FINDINGS: Final[dict[str, _Finding]] = {
    "cannot start any token": _strange_character,
    "found a tab character": _tab,
    "mapping values are not allowed": _colon,
    "did not find expected key": _outside("mapping"),
    "did not find expected '-' indicator": _outside("list"),
    "did not find expected ',' or ']'": _bracket("[", "]"),
    "did not find expected ',' or '}'": _bracket("{", "}"),
    "could not find expected ':'": _fixed(
        YAML_SYNTAX, "this line has no `:`", "write `key: value`", since=True, line=True
    ),
    "found unexpected end of stream": _quote,
    "found unexpected document indicator": _quote,
    **dict.fromkeys(_ESCAPES, _escape),
    "did not find expected alphabetic or numeric character": _alias,
    "block sequence entries are not allowed": _fixed(
        YAML_SYNTAX, "a list entry cannot start here", "put the `-` on a line of its own, below the key"
    ),
    "mapping keys are not allowed": _fixed(
        YAML_SYNTAX, "a `?` key cannot start here", "put the value in quotes if the `?` belongs to it"
    ),
    "did not find expected comment or line break": _fixed(
        YAML_SYNTAX, "text cannot follow `|` or `>` on the same line", "start the text on the next line"
    ),
    "indentation indicator equal to 0": _fixed(YAML_SYNTAX, "a block cannot be indented by 0", "leave the number out"),
    "did not find expected node content": _no_value,
    "did not find expected <document start>": _behind_the_end,
    "undefined tag handle": _fixed(TAG_UNKNOWN, "this tag is not known here", "leave the tag out"),
    "incompatible YAML document": _fixed(YAML_SYNTAX, "this version of YAML is not known here", "leave the line out"),
    "directive": _fixed(YAML_SYNTAX, "this directive is not known here", "leave the line out", since=True),
}
