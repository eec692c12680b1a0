"""JSON with positions and diagnostics: strict, several values behind each other, every finding in its place."""

from __future__ import annotations

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import JSON_SYNTAX
from eastgate.reading.manifests.findings import Findings, StopReading
from eastgate.reading.manifests.json.cursor import Cursor
from eastgate.reading.manifests.json.scalars import read_bare, read_string
from eastgate.reading.manifests.limits import MAX_DEPTH
from eastgate.reading.manifests.node import Node, Scalar
from eastgate.reading.manifests.text import DecodedText

_NEXT_OBJECT = regex(r"\n(?=\{)")


def read_json_nodes(text: DecodedText, start: int, end: int, reporter: Reporter) -> list[Node]:
    """Read the values in a stretch of a text, one behind the other. Unreadable ones are reported and left out."""
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
    """Return where to go on behind a value that could not be read; None where nobody can know its end.

    A line that starts with `{` starts an object if the broken value did the same. Anything else would
    only make more findings out of one mistake.
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
    """Go past an opening bracket; return whether an entry follows."""
    cursor.open.append(cursor.position)
    cursor.position += 1
    return cursor.peek() != closing


def _another(cursor: Cursor, closing: str) -> bool:
    """Go past an entry; return whether one more follows."""
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
    """Go past a closing bracket."""
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
