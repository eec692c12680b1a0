"""libyaml, through PyYAML: the one place that touches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, cast

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import CONTROL_CHARACTER, SEPARATOR, YAML_SYNTAX
from eastgate.reading.manifests.text import DecodedText

# Splits a YAML stream into its documents, as kubectl does.
#
# kubectl cuts a stream at the lines that begin with `---` before it reads any YAML, and reads the first document of
# each piece. Its lines end with LF or CRLF only, nothing but a comment may stand on the line of a `---`, and
# directives and `...` split nothing. A text that YAML alone would read as more documents is an error, here or in the
# reader of a piece.


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


try:
    from yaml import _yaml
except ImportError as missing:  # pragma: no cover - needs an installation without the extension
    message = (
        "Eastgate needs PyYAML with libyaml, and this PyYAML was built without it: "
        "`pip install --force-reinstall pyyaml` fetches one that has it"
    )
    raise ImportError(message) from missing

# What `type(event)` is compared with: the classes that the extension itself makes events of. Those of
# `yaml.events` are others once something (a coverage tool, a reload) has imported that module again.
_OWN: Final = vars(_yaml)
ALIAS: Final[type] = _OWN["AliasEvent"]
SCALAR: Final[type] = _OWN["ScalarEvent"]
MAPPING: Final[type] = _OWN["MappingStartEvent"]
MAPPING_END: Final[type] = _OWN["MappingEndEvent"]
SEQUENCE: Final[type] = _OWN["SequenceStartEvent"]
SEQUENCE_END: Final[type] = _OWN["SequenceEndEvent"]
DOCUMENT_END: Final[type] = _OWN["DocumentEndEvent"]
STREAM_END: Final[type] = _OWN["StreamEndEvent"]
LIBYAML_ERROR: Final[type[Exception]] = _OWN["YAMLError"]
READER_ERROR: Final[type[Exception]] = _OWN["ReaderError"]


class Mark(Protocol):
    """A position in the text that the parser was given, counted in characters from 0."""

    index: int
    line: int
    column: int


class Event(Protocol):
    """Any of libyaml's events; those of other sorts than the caller has made sure of lack some of these."""

    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    flow_style: bool | None
    start_mark: Mark
    end_mark: Mark


class LibyamlError(Protocol):
    """The attributes of a syntax error of libyaml."""

    problem: str | None
    problem_mark: Mark | None
    context_mark: Mark | None


def event_source(text: str) -> Callable[[], Event]:
    """Return a function that returns the next event of a YAML text at each call.

    The last line ends with a line feed, as kubectl makes it: it belongs to the value of a block scalar.
    """
    return cast("Callable[[], Event]", _yaml.CParser(text if text.endswith("\n") else text + "\n").get_event)
