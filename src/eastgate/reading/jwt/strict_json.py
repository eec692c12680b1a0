"""Reads JSON that strangers wrote, so that no other reader of the same bytes could see something else in it.

Python's own reader takes the last of two equal keys, UTF-16, NaN, and numbers that others round. Where two parties read
one token differently, one of them can be deceived, so all of that is a problem here.
"""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn, TypeAlias

from eastgate.basics.regexes import regex

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH = 32
"""Objects and arrays inside each other. Claims go through readers that recurse."""

_INTEGERS = range(-(2**63), 2**64)
_STRING = regex(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = regex(r"[][{}]")


class JsonProblem(ValueError):  # noqa: N818 - what is wrong with their text, not with us
    """Says what is wrong in a few words that complete "the header …", and repeats nothing of the text."""


def read_object(data: bytes) -> dict[str, Json]:
    """Read the JSON object that these bytes are. Raises JsonProblem."""
    value = read_json(data)
    if not isinstance(value, dict):
        raise JsonProblem("is not a JSON object")
    return value


def read_json(data: bytes, max_depth: int = MAX_DEPTH) -> Json:
    """Read the JSON that these bytes are. Raises JsonProblem."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise JsonProblem("is not UTF-8") from None
    _check_depth(text, max_depth)
    try:
        value: Json = _DECODER.decode(text)
    except JsonProblem:
        raise
    except (ValueError, RecursionError):
        raise JsonProblem("is not JSON") from None
    if "\\u" in text:
        _check_characters(value)
    return value


def _check_depth(text: str, max_depth: int) -> None:
    if text.count("{") + text.count("[") <= max_depth:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(_STRING.sub("", text)):
        depth += 1 if bracket[0] in "{[" else -1
        if depth > max_depth:
            raise JsonProblem(f"is nested more than {max_depth} deep")


def _check_characters(value: Json) -> None:
    """Refuse an escape that spells half of a surrogate pair, which is no character and cannot be written out again."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonProblem("has an escape that is not a character") from None


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise JsonProblem("has the same key twice")
    return read


def _integer(digits: str) -> int:
    # The length first: reading a number takes time that grows with its square.
    if len(digits) > 20 or (number := int(digits)) not in _INTEGERS:
        raise JsonProblem("has an integer of more than 64 bits")
    return number


def _fraction(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonProblem("has a number that is too large")
    return number


def _constant(_name: str) -> NoReturn:
    raise JsonProblem("has a number that is not one")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)
