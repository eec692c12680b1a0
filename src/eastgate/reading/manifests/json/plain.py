"""JSON as plain data, fast: msgspec, with a proof that no duplicate key was dropped.

msgspec silently keeps the last of two equal keys. So two numbers are compared: the keys in the result, and the places
in the text where a key can end. The first is never too large, and the second never too small. If they are equal, no key
was dropped. If not, or if there is any error, `json_nodes` reads the text again with positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.document import Extent, PlainDocument
from eastgate.reading.manifests.limits import MAX_DEPTH
from eastgate.reading.manifests.node import Plain

_KEY_END = regex(rb'"[ \t\r\n]*:')
_KEY = regex(r'[ \t\r\n,]*+"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\r\n]*+:[ \t\r\n]*+')
_GAP = regex(r"[ \t\r\n,]*+")
_SPACE = regex(r"[ \t\r\n]*+")


class _TooDeepError(Exception):
    pass


def read_plain_json(text: str, raw: bytes) -> PlainDocument | None:
    """Read one JSON value from text and UTF-8 bytes; None if it is unusual in any way."""
    try:
        value: Plain = msgspec.json.decode(raw)
        if isinstance(value, dict | list) and _keys(value, 1) != _most_keys(raw):
            return None
    except (msgspec.MsgspecError, UnicodeError, RecursionError, _TooDeepError):
        return None
    space = _SPACE.match(text)
    start = space.end() if space else 0
    items = _items(text, raw) if isinstance(value, dict) and isinstance(value.get("items"), list) else []
    return PlainDocument(value, (start, len(text.rstrip(" \t\r\n"))), items)


def _keys(value: dict[str, Plain] | list[Plain], depth: int) -> int:
    """Return the keys of all mappings in a value."""
    if depth > MAX_DEPTH:
        raise _TooDeepError
    count = 0
    children: Iterable[Plain] = value
    if isinstance(value, dict):
        count = len(value)
        children = value.values()
    for child in children:
        if type(child) is dict or type(child) is list:
            count += _keys(child, depth + 1)
    return count


def _most_keys(raw: bytes) -> int:
    """Return an upper bound of the number of keys: the quotes before a `:`, except escaped ones.

    A key can end in an escaped backslash, after which the quote only looks escaped. The result is then -1: no proof.
    """
    if b'\\\\":' in raw:
        return -1
    escaped = raw.count(b'\\":')
    if b" :" in raw or b"\n:" in raw or b"\t:" in raw or b"\r:" in raw:
        return len(_KEY_END.findall(raw)) - escaped
    return raw.count(b'":') - escaped


def _items(text: str, raw: bytes) -> list[Extent]:
    """Return the extents of the entries of the top-level `items`. The length of each value in msgspec is enough."""
    length = _bytes_length if text.isascii() else _text_length
    position = text.index("{") + 1
    extents: list[Extent] = []
    for key, value in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items():
        position = _after(_KEY, text, position)
        if key != "items":
            position += length(value)
            continue
        position += 1
        for item in msgspec.json.decode(value, type=list[msgspec.Raw]):
            start = _after(_GAP, text, position)
            position = start + length(item)
            extents.append((start, position))
        break
    return extents


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None  # noqa: S101 - msgspec has accepted the text
    return match.end()


def _bytes_length(value: msgspec.Raw) -> int:
    return len(memoryview(value))


def _text_length(value: msgspec.Raw) -> int:
    return len(str(memoryview(value), "utf-8"))
