"""Splits a YAML stream into its documents.

libyaml stops at the first syntax error of a stream. Each document is therefore cut out and read on its own, which YAML
allows without knowing any syntax: `---` and `...` at the start of a line mark documents everywhere, even inside quotes
and block scalars.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.regexes import regex

__all__ = ["chunks"]

# The line breaks are those of libyaml (YAML 1.1), or a marker could be seen by one of us alone.
_BREAKS = "\n\r\x85\u2028\u2029"
_MARKER = regex(rf"[{_BREAKS}](?:---|(\.\.\.))(?=[ \t{_BREAKS}]|\Z)")
_END_OF_LINE = regex(rf"\r\n|[{_BREAKS}]|\Z")
_FIRST = regex(rf"(?:---|(\.\.\.))(?=[ \t{_BREAKS}]|\Z)")
_PREAMBLE = regex(rf"(?:(?:[ \t]*(?:\#[^{_BREAKS}]*)?|%[^{_BREAKS}]*)(?:\r\n|[{_BREAKS}]))*+\Z")
_NOTHING = regex(
    rf"(?:[ \t]*(?:\#[^{_BREAKS}]*)?(?:\r\n|[{_BREAKS}]))*+\.\.\.[ \t]*(?:[ \t]\#[^{_BREAKS}]*)?(?:\r\n|[{_BREAKS}]|\Z)"
)
_DIRECTIVE = regex(rf"(?:\A|[{_BREAKS}])%")


def chunks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of each document of a stream, its markers and directives included.

    A `...` that ends no document is passed over; libyaml would not know what to do with it alone.
    """
    start = 0
    marked = False  # whether the chunk that starts at `start` starts with its `---`
    for at, ends in _markers(text):
        if ends:
            end = _END_OF_LINE.search(text, at)
            assert end is not None  # noqa: S101 - `\Z` matches at the latest
            if marked or not _NOTHING.match(text, start, end.end()):
                yield start, end.end()
            start, marked = end.end(), False
            continue
        if not marked and _is_preamble(text, start, at):
            marked = True  # the directives belong to the document that this marker starts
            continue
        if at > start:
            yield start, at
        start, marked = at, True
    if start < len(text):
        yield start, len(text)


def _markers(text: str) -> Iterator[tuple[int, bool]]:
    """Yield the offset of each marker line, and whether it is `...`."""
    first = _FIRST.match(text)
    if first is not None:
        yield 0, first.group(1) is not None
    for match in _MARKER.finditer(text):
        yield match.start() + 1, match.group(1) is not None


def _is_preamble(text: str, start: int, end: int) -> bool:
    """Return whether a stretch before a `---` is directives (with comments between them) and nothing else."""
    stretch = text[start:end]
    return _DIRECTIVE.search(stretch) is not None and _PREAMBLE.match(stretch) is not None
