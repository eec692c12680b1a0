"""JSON strings, numbers and words, as strictly as the standard has them."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import CONTROL_CHARACTER, JSON_SYNTAX, NUMBER_RANGE, UNCLOSED
from eastgate.reading.manifests.findings import shown
from eastgate.reading.manifests.json.cursor import Cursor
from eastgate.reading.manifests.node import Scalar
from eastgate.reading.manifests.scalars import MOST_DIGITS

_STRING = regex(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+"')
_BEGUN = regex(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+\\?+')
_NUMBER = regex(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+(?![\w.+-])", re.ASCII)
_ESCAPE = regex(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_SURROGATE = regex("[\ud800-\udfff]")
_LONE = regex(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NOT_FINITE = frozenset(["NaN", "Infinity", "-Infinity", "+Infinity", "inf", "-inf", "nan"])


def read_string(cursor: Cursor) -> str:
    """Read the string whose opening quote the cursor is before."""
    start = cursor.position
    match = _STRING.match(cursor.string, start, cursor.end)
    if match is None:
        _broken_string(cursor)
    literal = match.group()
    if "\\" not in literal:
        cursor.position = match.end()
        return literal[1:-1]
    for escape in _ESCAPE.finditer(literal):
        if len(escape.group()) == 1:
            _wrong_escape(cursor, start + escape.start())
    value: str = json.loads(literal)
    if _SURROGATE.search(value):
        _lone_surrogate(cursor, literal)
    cursor.position = match.end()
    return value


def _broken_string(cursor: Cursor) -> NoReturn:
    """Report a string that has no end, or a control character in it."""
    start, string = cursor.position, cursor.string
    begun = _BEGUN.match(string, start, cursor.end)
    at = begun.end() if begun else start + 1
    if at < cursor.end and string[at] not in "\r\n":
        code = ord(string[at])
        help_ = "write a tab as `\\t`" if code == 9 else f"remove it, or write it as `\\u{code:04x}`"
        message = f"the control character U+{code:04X} cannot stand in a JSON string"
        cursor.findings.stop(CONTROL_CHARACTER, message, cursor.span(at, at + 1), help_)
    help_ = 'add the closing `"` in the same line'
    cursor.findings.stop(UNCLOSED, "this string is never closed", cursor.span(start, at), help_)


def _wrong_escape(cursor: Cursor, at: int) -> NoReturn:
    escape = cursor.string[at : at + 2]
    help_ = "write `\\\\` for a backslash"
    if escape == "\\u":
        help_ = "write four hexadecimal digits behind it, as in `\\u00e9`"
    message = f"`{shown(escape)}` is not an escape that JSON knows"
    cursor.findings.stop(JSON_SYNTAX, message, cursor.span(at, at + 2), help_)


def _lone_surrogate(cursor: Cursor, literal: str) -> NoReturn:
    lone = next(match for match in _LONE.finditer(literal) if match.group(1))
    start = cursor.position + lone.start()
    message = f"`{lone.group()}` is half of a character"
    cursor.findings.stop(JSON_SYNTAX, message, cursor.span(start, start + 6), "write both halves, or neither")


def read_bare(cursor: Cursor) -> Scalar:
    """Read the number or the word at the cursor."""
    number = _NUMBER.match(cursor.string, cursor.position, cursor.end)
    if number is not None:
        return _number(cursor, number.group())
    word = cursor.word()
    if word in _WORDS:
        cursor.position += len(word)
        return _WORDS[word]
    if word in _NOT_FINITE:
        span = cursor.span(cursor.position, cursor.position + len(word))
        cursor.findings.stop(NUMBER_RANGE, f"JSON has no `{word}`", span, "write a number, or a string")
    return cursor.wrong("this is not a JSON value")


def _number(cursor: Cursor, literal: str) -> int | float:
    start = cursor.position
    cursor.position += len(literal)
    digits = literal.removeprefix("-")
    if not digits.isdigit():
        value = float(literal)
        if value not in (float("inf"), float("-inf")):
            return value
    elif len(digits) <= MOST_DIGITS:
        return int(literal)
    message = "Kubernetes cannot hold this number"
    cursor.findings.report(NUMBER_RANGE, message, cursor.span(start, cursor.position), "write a smaller one")
    return 0
