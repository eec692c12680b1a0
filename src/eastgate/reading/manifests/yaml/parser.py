"""The interface to libyaml through PyYAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, cast

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import CONTROL_CHARACTER, SEPARATOR, YAML_SYNTAX
from eastgate.reading.manifests.text import DecodedText

# Splits a YAML stream into its documents, as kubectl does. kubectl cuts a stream at the lines that begin with `---`
# before it parses any YAML, and reads the first document of each piece. Its lines end with LF or CRLF only, only a
# comment may follow a `---` on its line, and directives and `...` split nothing. If YAML alone would find more
# documents in a text, that is an error, here or in the reader of a piece.


_SEPARATOR: Final = regex(r"\n(?=---)")
# libyaml knows more line breaks than LF (YAML 1.1), after which it would find content.
_BARE: Final = regex("---[ \t]*(?:(?<=[ \t])#[^\r\n\x85\u2028\u2029]*)?(?:\r?\n|\r?\\Z)")
_REST: Final = regex("---[ \t]*([^\r\n\x85\u2028\u2029]*)")
_NOTHING: Final = regex("---(?:\\s|#[^\r\n\x85\u2028\u2029]*)*+(?<=[\r\n\x85\u2028\u2029])(\\.\\.\\.)(?!\\S)")
_SPACE_BEFORE_JSON: Final = regex(r"[ \t\r\n]*+(\s)\s*+\{")
_MARK: Final = regex(r"(?:\A|\s)\ufeff")


def chunks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of each document of a stream, including its separator."""
    start = 0
    for match in _SEPARATOR.finditer(text):
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def chunk_problem(text: DecodedText, start: int, end: int) -> Diagnostic | None:
    """Return the finding for a chunk that libyaml reads, but kubectl refuses or reads differently."""
    string = text.source.text
    if string.startswith("---", start, end) and not _BARE.match(string, start, end):
        rest = _REST.match(string, start, end)
        assert rest is not None  # noqa: S101 - it matches whatever follows the `---`
        span = text.span(*rest.span(1)) if rest.group(1).strip() else text.span(start, start + 3)
        help_ = "start the document on the next line, and end the line of the `---` with a line feed"
        return Diagnostic(SEPARATOR, "nothing but a comment can follow `---` on its line", span, help_)
    nothing = _NOTHING.match(string, start, end) if start else None
    if nothing is not None:  # kubectl's reader gets no `---` before a chunk, except before the first one
        message = "`...` ends a document, and none has begun"
        return Diagnostic(YAML_SYNTAX, message, text.span(*nothing.span(1)), "leave the line out")
    space = _SPACE_BEFORE_JSON.match(string) if start == 0 else None
    if space is not None:  # kubectl skips it, and reads a mapping in brackets
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

# The classes of the events that the extension makes, for `type(event)`. The classes in `yaml.events` are other ones
# after a second import of that module, for example by a coverage tool.
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
    """A position in the text of the parser, counted in characters from 0."""

    index: int
    line: int
    column: int


class Event(Protocol):
    """Any event of libyaml. Events of some types lack some of these attributes."""

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

    The last line ends with a line feed, as in kubectl, because it belongs to the value of a block scalar.
    """
    return cast("Callable[[], Event]", _yaml.CParser(text if text.endswith("\n") else text + "\n").get_event)
