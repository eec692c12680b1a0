"""JSON that every reader understands alike, or none at all.

A gateway decides on what it reads, and a server acts on what it reads itself. Whatever two readers may take
differently is refused: duplicate keys, halves of characters, numbers that JSON does not have, bytes behind the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NoReturn, TypeAlias

from eastgate.basics.regexes import regex
from eastgate.reading.mcp.problems import BadMessage, MessageProblem

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64

_SURROGATE = regex(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F])|\\.")


def decode_text(body: bytes, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a body: UTF-8 without a byte order mark, within a size."""
    if len(body) > max_bytes:
        raise BadMessage(MessageProblem.TOO_LARGE)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadMessage(MessageProblem.ENCODING) from None
    if text.startswith("\ufeff"):
        raise BadMessage(MessageProblem.ENCODING)
    return text


def read_json(text: str, max_depth: int = MAX_DEPTH) -> Json:
    """Read the one value in a text."""
    try:
        value: Json = _DECODER.decode(text)
    except BadMessage:
        raise
    except RecursionError:
        raise BadMessage(MessageProblem.TOO_DEEP) from None
    except ValueError:
        raise BadMessage(MessageProblem.SYNTAX) from None
    if "\\" in text and any(match.group(1) for match in _SURROGATE.finditer(text)):
        raise BadMessage(MessageProblem.SURROGATE)
    # The brackets are at least as many as the levels, and are counted much faster.
    if text.count("{") + text.count("[") > max_depth and _is_deeper(value, max_depth):
        raise BadMessage(MessageProblem.TOO_DEEP)
    return value


def refuse_lookalikes(keys: Iterable[str], known: frozenset[str]) -> None:
    """Refuse keys that some readers take for a known one: those that ignore case, or stop at a NUL."""
    for key in keys:
        if key not in known and key.partition("\0")[0].casefold() in known:
            raise BadMessage(MessageProblem.LOOKALIKE_KEY)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BadMessage(MessageProblem.DUPLICATE_KEY)
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise BadMessage(MessageProblem.SYNTAX)


def _is_deeper(value: Json, levels: int) -> bool:
    layer: list[Json] = [value]
    for _ in range(levels):
        layer = [
            child
            for item in layer
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
