"""Splits a YAML stream into its documents, as kubectl does.

kubectl cuts a stream at the lines that begin with `---` before it reads any YAML, and reads the first document of each
piece. Its lines end with LF or CRLF only, nothing but a comment may stand on the line of a `---`, and directives and
`...` split nothing. A text that YAML alone would read as more documents is an error, here or in the reader of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import CONTROL_CHARACTER, SEPARATOR, YAML_SYNTAX
from eastgate.reading.manifests.text import DecodedText

_SEPARATOR: Final = regex(r"\n(?=---)")
# libyaml has these line breaks besides LF (YAML 1.1), so that what follows them would be content to it.
_BARE: Final = regex("---[ \t]*(?:(?<=[ \t])#[^\r\n\x85\u2028\u2029]*)?(?:\r?\n|\r?\\Z)")
_REST: Final = regex("---[ \t]*([^\r\n\x85\u2028\u2029]*)")
_NOTHING: Final = regex("---(?:\\s|#[^\r\n\x85\u2028\u2029]*)*+(?<=[\r\n\x85\u2028\u2029])(\\.\\.\\.)(?!\\S)")
_SPACE_BEFORE_JSON: Final = regex(r"[ \t\r\n]*+(\s)\s*+\{")
_MARK: Final = regex(r"(?:\A|\s)\ufeff")


def chunks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of each document of a stream, its separator included."""
    start = 0
    for match in _SEPARATOR.finditer(text):
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def chunk_problem(text: DecodedText, start: int, end: int) -> Diagnostic | None:
    """Return the finding for a chunk that libyaml reads and kubectl refuses, or reads as something else."""
    string = text.source.text
    if string.startswith("---", start, end) and not _BARE.match(string, start, end):
        rest = _REST.match(string, start, end)
        assert rest is not None  # noqa: S101 - it matches whatever follows the `---`
        span = text.span(*rest.span(1)) if rest.group(1).strip() else text.span(start, start + 3)
        help_ = "start the document on the next line, and end the line of the `---` with a line feed"
        return Diagnostic(SEPARATOR, "nothing but a comment can follow `---` on its line", span, help_)
    nothing = _NOTHING.match(string, start, end) if start else None
    if nothing is not None:  # kubectl's reader gets no `---` before it, but for the first of a text
        message = "`...` ends a document, and none has begun"
        return Diagnostic(YAML_SYNTAX, message, text.span(*nothing.span(1)), "leave the line out")
    space = _SPACE_BEFORE_JSON.match(string) if start == 0 else None
    if space is not None:  # kubectl passes over it, and reads a mapping in brackets
        message = f"the space U+{ord(space.group(1)):04X} cannot stand before a `{{`"
        return Diagnostic(CONTROL_CHARACTER, message, text.span(*space.span(1)), "remove it")
    mark = _MARK.search(string, max(start - 1, 0), end) if "\ufeff" in string else None
    if mark is not None:
        message = "a byte order mark (U+FEFF) cannot stand inside of a text"
        return Diagnostic(CONTROL_CHARACTER, message, text.span(mark.end() - 1, mark.end()), "remove it")
    return None
