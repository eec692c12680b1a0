"""Authorino's own modifiers: `@extract`, `@replace`, `@case`, `@base64` and `@strip`.

They change JSON text exactly as Authorino does, including its bugs. `@extract` puts its result between quotes without
escaping it, so a quote in the result ends it. `@case` also changes the letters of keys and escapes.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from typing import Final

from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_TEXT, Budget, TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import well_formed
from eastgate.dialects.kuadrant.authorino.gjson.values import Value, parse_value, whole_number

_BASE64_ALPHABET: Final = frozenset(string.ascii_letters + string.digits + "+/")


def _extract(value: Value, argument: str, budget: Budget) -> Value | str:
    """Return one of the parts of a string between separators."""
    separator, position = " ", 0
    for key, item in parse_value(argument, budget).members():
        match key.string:
            case "sep":
                separator = item.string
            case "pos":
                position = whole_number(item)
    if position < 0:
        raise TooMuch("@extract counts from 0; Authorino panics at a negative position")
    text = value.string
    parts = text.split(separator) if separator else list(text)
    return f'"{parts[position]}"' if position < len(parts) else "n"


def _replace(value: Value, argument: str, budget: Budget) -> Value | str:
    """Replace all occurrences of a text."""
    if not argument:
        return value
    old, new = "", ""
    for key, item in parse_value(argument, budget).members():
        match key.string:
            case "old":
                old = item.string
            case "new":
                new = item.string
    text = value.string
    if len(text) + text.count(old) * len(new) > MAX_TEXT:
        raise TooMuch(f"@replace produces more than {MAX_TEXT} characters")
    return f'"{text.replace(old, new)}"'


def _case(value: Value, argument: str, _budget: Budget) -> Value | str:
    match argument:
        case "upper":
            return _mapped(value.source, str.upper, _upper)
        case "lower":
            return _mapped(value.source, str.lower, lambda character: character.lower()[0])
    return value


def _mapped(text: str, fast: Callable[[str], str], exact: Callable[[str], str]) -> str:
    return fast(text) if text.isascii() else "".join(map(exact, text))


def _upper(character: str) -> str:
    """Convert to upper case, one character for one, as Go does: `ß` is unchanged."""
    for mapped in (character.upper(), character.title()):
        if len(mapped) == 1:
            return mapped
    return character


def _base64(value: Value, argument: str, _budget: Budget) -> Value | str:
    match argument:
        case "encode":
            return f'"{base64.b64encode(value.string.encode("utf-8", "replace")).decode()}"'
        case "decode":
            text = _decoded(value.string).decode("utf-8", "surrogateescape")
            return '"' + well_formed(text).replace('"', '\\"') + '"'
    return value


def _decoded(text: str) -> bytes:
    """Decode with or without padding. The result ends before the first invalid character."""
    letters = text.replace("\r", "").replace("\n", "")
    if len(text.encode("utf-8", "replace")) % 4 == 0 and len(letters) % 4 == 0:
        bare = letters[:-2] + letters[-2:].rstrip("=")
        if bare[-1:] != "=" and _BASE64_ALPHABET.issuperset(bare):
            return base64.b64decode(letters)
    end = next((at for at, letter in enumerate(letters) if letter not in _BASE64_ALPHABET), len(letters))
    if end < len(letters) or end % 4 == 1:
        end -= end % 4
    return base64.b64decode(letters[:end] + "=" * (-end % 4))


def _strip(value: Value, _argument: str, _budget: Budget) -> Value | str:
    """Remove all characters that cannot be printed."""
    return "".join(filter(str.isprintable, value.source))


AUTHORINO: Final[dict[str, Callable[[Value, str, Budget], Value | str]]] = {
    "base64": _base64,
    "case": _case,
    "extract": _extract,
    "replace": _replace,
    "strip": _strip,
}
