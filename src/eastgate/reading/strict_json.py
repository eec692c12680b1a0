"""Reads untrusted JSON, so that no other reader of the same bytes could read something else.

Python's own reader accepts the last of two equal keys, NaN, halves of characters, and numbers that others round. If two
parties read one text differently, one of them can be deceived, so all of these are errors here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import Enum, auto
from typing import NoReturn, TypeAlias

from eastgate.basics.regexes import regex

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH = 32
"""The depth of objects and arrays. Claims are read by recursion."""

_INTEGERS = range(-(2**63), 2**64)
_SURROGATE = regex(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F])|\\.")


class JsonFlaw(Enum):
    """The reason why a text is refused."""

    ENCODING = auto()
    SYNTAX = auto()
    DEPTH = auto()
    DUPLICATE = auto()
    NUMBER = auto()
    CHARACTER = auto()


class JsonProblem(ValueError):  # noqa: N818 - what is wrong with their text, not with us
    """Error: a few words that complete "the header …", and repeat no text of the input."""

    def __init__(self, flaw: JsonFlaw, text: str) -> None:
        super().__init__(text)
        self.flaw = flaw


class JsonReader:
    """Reads JSON within limits.

    `parse_int` and `parse_float` read numbers. A `lenient` reader accepts duplicate keys and halves of characters as
    Python does.
    """

    def __init__(
        self,
        *,
        parse_int: Callable[[str], float] = int,
        parse_float: Callable[[str], float] = float,
        lenient: bool = False,
    ) -> None:
        self._lenient = lenient
        self._decoder = json.JSONDecoder(
            object_pairs_hook=None if lenient else _object,
            parse_int=parse_int,
            parse_float=parse_float,
            parse_constant=_constant,
        )

    def read(self, text: str, max_depth: int | None = None) -> Json:
        """Return the one value in a text. Raises JsonProblem."""
        try:
            value: Json = self._decoder.decode(text)
        except JsonProblem:
            raise
        except RecursionError:
            raise JsonProblem(JsonFlaw.DEPTH, "is nested too deep") from None
        except ValueError:
            raise JsonProblem(JsonFlaw.SYNTAX, "is not JSON") from None
        if not self._lenient and "\\u" in text and any(match.group(1) for match in _SURROGATE.finditer(text)):
            raise JsonProblem(JsonFlaw.CHARACTER, "has an escape that is not a character")
        # There are at least as many brackets as levels, and brackets are counted much faster.
        if max_depth is not None and text.count("{") + text.count("[") > max_depth and _is_deeper(value, max_depth):
            raise JsonProblem(JsonFlaw.DEPTH, f"is nested more than {max_depth} deep")
        return value


def read_object(data: bytes) -> dict[str, Json]:
    """Read the JSON object in these bytes, with 64-bit numbers. Raises JsonProblem."""
    value = read_json(data)
    if not isinstance(value, dict):
        raise JsonProblem(JsonFlaw.SYNTAX, "is not a JSON object")
    return value


def read_json(data: bytes, max_depth: int = MAX_DEPTH) -> Json:
    """Read the JSON value in these bytes, with 64-bit numbers. Raises JsonProblem."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise JsonProblem(JsonFlaw.ENCODING, "is not UTF-8") from None
    return _READER.read(text, max_depth)


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


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise JsonProblem(JsonFlaw.DUPLICATE, "has the same key twice")
    return read


def _integer(digits: str) -> int:
    # The length is tested first, because reading a number takes quadratic time.
    if len(digits) > 20 or (number := int(digits)) not in _INTEGERS:
        raise JsonProblem(JsonFlaw.NUMBER, "has an integer of more than 64 bits")
    return number


def _fraction(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonProblem(JsonFlaw.NUMBER, "has a number that is too large")
    return number


def _constant(_name: str) -> NoReturn:
    raise JsonProblem(JsonFlaw.NUMBER, "has a number that is not one")


_READER = JsonReader(parse_int=_integer, parse_float=_fraction)
