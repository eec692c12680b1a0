"""Reads YAML as plain data, fast: no positions, no diagnostics, no unusual syntax.

Unusual documents (any error, and aliases, tags and merge keys) raise, and `yaml_nodes` reads them again with positions.
This keeps the fast path short, and gives two guarantees: the result has no duplicate keys, and no part of it depends on
an anchor elsewhere, so any stretch of it can be read again alone.

Values are built from libyaml's events instead of PyYAML's node tree. Events cost less, show aliases, and allow a depth
limit before memory is used.
"""

from __future__ import annotations

import sys

from eastgate.reading.manifests.document import Extent, PlainDocument
from eastgate.reading.manifests.limits import MAX_DEPTH, MAX_DIRECTIVES
from eastgate.reading.manifests.node import NoNumberError, Plain, resolve
from eastgate.reading.manifests.yaml.parser import (
    DOCUMENT_END,
    LIBYAML_ERROR,
    MAPPING,
    MAPPING_END,
    SCALAR,
    SEQUENCE,
    SEQUENCE_END,
    STREAM_END,
    Event,
    event_source,
)


class _UnusualError(Exception):
    """Error: the document needs the precise reader."""


class _PlainReader:
    """Reads one document; `items` are the extents of the entries of its top-level `items`."""

    __slots__ = ("_end", "_get", "items")

    def __init__(self, text: str) -> None:
        self._get = event_source(text)
        self._end = 0
        self.items: list[Extent] = []

    def document(self, offset: int) -> PlainDocument:
        """Read the document; `offset` is the offset of the chunk in the text."""
        get = self._get
        get()
        if type(get()) is STREAM_END:
            return PlainDocument(None, (offset, offset), [])
        event = get()
        start, self._end = offset + event.start_mark.index, event.end_mark.index
        value: Plain = _scalar(event) if type(event) is SCALAR else self._collection(event, 1)
        end = offset + self._end
        if type(get()) is not DOCUMENT_END or type(get()) is not STREAM_END:
            raise _UnusualError
        items = [(offset + first, offset + last) for first, last in self.items]
        return PlainDocument(value, (start, end), items)

    def _collection(self, event: Event, depth: int) -> Plain:
        if depth > MAX_DEPTH or event.anchor is not None or event.tag is not None:
            raise _UnusualError
        if type(event) is MAPPING:
            return self._mapping(depth)
        if type(event) is SEQUENCE:
            return self._sequence(depth)
        raise _UnusualError

    def _mapping(self, depth: int) -> dict[str, Plain]:
        get = self._get
        result: dict[str, Plain] = {}
        while True:
            event = get()
            if type(event) is not SCALAR:
                if type(event) is MAPPING_END:
                    self._end = event.end_mark.index
                    return result
                raise _UnusualError
            key = _scalar(event)
            if type(key) is not str or key in result or key == "<<":
                raise _UnusualError
            event = get()
            if type(event) is SCALAR:
                result[sys.intern(key)] = _scalar(event)
            elif depth == 1 and key == "items" and type(event) is SEQUENCE:
                result[key] = self._items(event)
            else:
                result[sys.intern(key)] = self._collection(event, depth + 1)

    def _sequence(self, depth: int) -> list[Plain]:
        get = self._get
        result: list[Plain] = []
        while True:
            event = get()
            if type(event) is SCALAR:
                result.append(_scalar(event))
            elif type(event) is SEQUENCE_END:
                self._end = event.end_mark.index
                return result
            else:
                result.append(self._collection(event, depth + 1))

    def _items(self, event: Event) -> list[Plain]:
        """Read a list whose entries may be objects, and keep the extent of each."""
        if event.anchor is not None or event.tag is not None:
            raise _UnusualError
        result: list[Plain] = []
        while True:
            event = self._get()
            if type(event) is SEQUENCE_END:
                return result
            start = event.start_mark.index
            if type(event) is SCALAR:
                result.append(_scalar(event))
                self._end = event.end_mark.index
            else:
                result.append(self._collection(event, 3))
            self.items.append((start, self._end))


def _scalar(event: Event) -> str | int | float | bool | None:
    if event.anchor is not None or event.tag is not None:
        raise _UnusualError
    return event.value if event.style else resolve(event.value)


def read_plain_yaml(chunk: str, offset: int) -> PlainDocument | None:
    """Read one document as plain data; None if it is unusual in any way, or has an error."""
    if chunk.count("%TAG") > MAX_DIRECTIVES or "\\/" in chunk or ("?" in chunk and ("{" in chunk or "[" in chunk)):
        return None
    try:
        return _PlainReader(chunk).document(offset)
    except (_UnusualError, LIBYAML_ERROR, NoNumberError):
        return None
