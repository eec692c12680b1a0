"""Reads JSON with positions and diagnostics: strict, several values one after the other, every finding with
its position.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import CONTROL_CHARACTER, JSON_SYNTAX, NUMBER_RANGE, UNCLOSED
from eastgate.reading.manifests.findings import Findings, StopReading, shown
from eastgate.reading.manifests.json.cursor import Cursor
from eastgate.reading.manifests.limits import MAX_DEPTH
from eastgate.reading.manifests.node import MAX_DIGITS, Node, Scalar
from eastgate.reading.manifests.text import DecodedText

# JSON strings, numbers and words, exactly as the standard defines them.


_STRING = regex(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+"')
_BEGUN = regex(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+\\?+')
_NUMBER = regex(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+(?![\w.+-])", re.ASCII)
_ESCAPE = regex(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_SURROGATE = regex("[\ud800-\udfff]")
_LONE = regex(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NOT_FINITE = frozenset(["NaN", "Infinity", "-Infinity", "+Infinity", "inf", "-inf", "nan"])


def read_string(cursor: Cursor) -> str:
    """Read a string. The cursor is at its opening quote."""
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
    """Report a string without an end, or with a control character."""
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
    elif len(digits) <= MAX_DIGITS:
        return int(literal)
    message = "Kubernetes cannot hold this number"
    cursor.findings.report(NUMBER_RANGE, message, cursor.span(start, cursor.position), "write a smaller one")
    return 0


_NEXT_OBJECT = regex(r"\n(?=\{)")


def read_json_nodes(text: DecodedText, start: int, end: int, reporter: Reporter) -> list[Node]:
    """Read the values in a stretch of a text, one after the other. Unreadable ones are reported and left out."""
    nodes: list[Node] = []
    if text.report_bad_bytes(start, end, reporter):
        return nodes
    cursor = Cursor(text, start, end)
    while cursor.peek():
        begin = cursor.position
        cursor.findings = Findings(reporter)
        cursor.open.clear()
        try:
            nodes.append(_value(cursor, 1))
        except StopReading:
            again = _next_object(cursor, begin)
            if again is None:
                break
            cursor = Cursor(text, again, end)
    return nodes


def _next_object(cursor: Cursor, begin: int) -> int | None:
    """Return the position after an unreadable value; None if its end is unknown.

    A line that starts with `{` starts an object if the broken value did the same. Any other rule would make more
    findings of one mistake.
    """
    if cursor.string[begin] != "{" or cursor.text.position(begin)[1] != 1:
        return None
    match = _NEXT_OBJECT.search(cursor.string, max(begin, cursor.position - 1), cursor.end)
    return match.end() if match else None


def _value(cursor: Cursor, depth: int) -> Node:
    """Read the next value. Recursion is bounded by `MAX_DEPTH`."""
    sign = cursor.peek()
    start = cursor.position
    if sign in ("{", "["):
        if depth > MAX_DEPTH:
            cursor.findings.too_deep(cursor.span(start, start + 1))
        return _object(cursor, depth) if sign == "{" else _array(cursor, depth)
    line, column = cursor.line_and_column(min(start, cursor.end - 1))
    return _node(cursor, read_string(cursor) if sign == '"' else read_bare(cursor), line, column)


def _object(cursor: Cursor, depth: int) -> Node:
    line, column = cursor.line_and_column(cursor.position)
    entries: dict[str, Node] = {}
    keys: dict[str, Node] = {}
    more = _enter(cursor, "}")
    while more:
        key = _key(cursor)
        if cursor.peek() != ":":
            cursor.wrong("a `:` is missing before this", 'write `"key": value`')
        cursor.position += 1
        value = _value(cursor, depth + 1)
        if key.text in entries:
            cursor.findings.duplicate_key(key.text, key, keys[key.text])
        else:
            entries[key.text] = value
            keys[key.text] = key
        more = _another(cursor, "}")
    _leave(cursor)
    return _node(cursor, entries, line, column, keys)


def _array(cursor: Cursor, depth: int) -> Node:
    line, column = cursor.line_and_column(cursor.position)
    items: list[Node] = []
    more = _enter(cursor, "]")
    while more:
        items.append(_value(cursor, depth + 1))
        more = _another(cursor, "]")
    _leave(cursor)
    return _node(cursor, items, line, column)


def _key(cursor: Cursor) -> Node:
    if cursor.peek() != '"':
        cursor.wrong("a key must be a string in double quotes")
    line, column = cursor.line_and_column(cursor.position)
    return _node(cursor, read_string(cursor), line, column)


def _enter(cursor: Cursor, closing: str) -> bool:
    """Step past an opening bracket. Return whether an entry follows."""
    cursor.open.append(cursor.position)
    cursor.position += 1
    return cursor.peek() != closing


def _another(cursor: Cursor, closing: str) -> bool:
    """Step past an entry. Return whether another one follows."""
    sign = cursor.peek()
    if sign == closing:
        return False
    if sign != ",":
        cursor.wrong(f"a `,` or a `{closing}` is missing before this", "write it behind the value before this")
    comma = cursor.position
    cursor.position += 1
    if cursor.peek() == closing:
        span = cursor.span(comma, comma + 1)
        cursor.findings.stop(JSON_SYNTAX, f"a `,` cannot stand before a `{closing}`", span, "remove the `,`")
    return True


def _leave(cursor: Cursor) -> None:
    """Step past a closing bracket."""
    cursor.open.pop()
    cursor.position += 1


def _node(
    cursor: Cursor,
    value: dict[str, Node] | list[Node] | Scalar,
    line: int,
    column: int,
    keys: dict[str, Node] | None = None,
) -> Node:
    """Return a node that ends before the cursor."""
    end_line, last_column = cursor.line_and_column(cursor.position - 1)
    return Node(value, cursor.text.source, line, column, end_line, last_column + 1, keys)
