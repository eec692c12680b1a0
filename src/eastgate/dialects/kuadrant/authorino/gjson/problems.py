"""Finds problems of a path before it is used.

gjson itself reports no errors: it reads an unknown modifier as a key, and an unbalanced query matches nothing. A policy
that selects nothing by mistake may allow every caller, so its author should see the problem first.
"""

from __future__ import annotations

from difflib import get_close_matches

from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_DEPTH, MAX_PATH, TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import is_json, read_json
from eastgate.dialects.kuadrant.authorino.gjson.paths import (
    MODIFIER_NAMES,
    end_of_name,
    literal_at,
    modifier_at,
    query_at,
    sub_paths,
)
from eastgate.dialects.kuadrant.authorino.gjson.queries import TILDES

_CHOICES = {"case": ("upper", "lower"), "base64": ("encode", "decode")}
_FIELDS: dict[str, dict[str, type]] = {
    "extract": {"sep": str, "pos": int},
    "flatten": {"deep": bool},
    "join": {"preserve": bool},
    "pretty": {"sortKeys": bool, "indent": str, "prefix": str, "width": int},
    "replace": {"old": str, "new": str},
}
_TYPE_NAMES = {str: "a string", int: "a whole number", bool: "true or false"}


class _Problem(Exception):  # noqa: N818 - never leaves this module
    pass


def path_problem(path: str) -> str | None:
    """Return the problem of a path, in words for its author; None if no problem is known before its use."""
    if len(path) > MAX_PATH:
        return f"the path has {len(path)} characters, at most {MAX_PATH} are allowed"
    if not path:
        return "the path is empty"
    try:
        _check(path, 1)
    except _Problem as problem:
        return str(problem)
    except TooMuch as problem:
        return str(problem)
    return None


def _check(path: str, depth: int) -> None:
    """Check each component. Brackets nest paths in paths."""
    if depth > MAX_DEPTH // 2:
        raise _Problem(f"the path is nested deeper than {MAX_DEPTH // 2} levels")
    if path.startswith(".."):
        raise _Problem('".." is for JSON Lines, and a document is a single value')
    rest: str | None = path
    while rest is not None:
        rest = _component(rest, depth)


def _component(path: str, depth: int) -> str | None:
    """Check the first component; return the rest of the path, or None at the end."""
    match path[:1]:
        case "@":
            return _modifier(path)
        case "!" if len(path) > 1:
            return _literal(path)
        case "[" | "{" if len(path) > 1:
            return _multipath(path, depth)
        case "#" if path[1:2] in ("(", "["):
            return _query(path, depth)
    return _key(path)


def _key(path: str) -> str | None:
    at = 0
    while at < len(path):
        if path[at] in ".|":
            return path[at + 1 :]
        if path[at] == "\\":
            at += 1
            if at == len(path):
                raise _Problem("a backslash at the end escapes nothing")
        at += 1
    return None


def _after(rest: str, what: str) -> str | None:
    if not rest:
        return None
    if rest[0] not in ".|":
        raise _Problem(f'expected "." or "|" after {what}, not "{rest[:20]}"')
    return rest[1:]


def _literal(path: str) -> str | None:
    parsed = literal_at(path)
    if parsed is None:
        raise _Problem(f'"{path[:20]}" is not a literal; write "\\!" for a key that starts with "!"')
    literal, rest = parsed
    if literal.lower() not in ("nan", "inf") and not is_json(literal):
        raise _Problem(f'the literal "{literal[:40]}" is not valid JSON')
    return _after(rest, "a literal")


def _multipath(path: str, depth: int) -> str | None:
    parsed = sub_paths(path)
    if parsed is None:
        raise _Problem(f'the multipath "{path[:20]}" is not closed')
    parts, rest = parsed
    for part in parts:
        if not part.path:
            raise _Problem(f'the multipath "{path[:20]}" has an empty part')
        _check(part.path, depth + 1)
    return _after(rest, "a multipath")


def _query(path: str, depth: int) -> str | None:
    parsed = query_at(path)
    if parsed is None:
        raise _Problem(f'the query "{path[:20]}" is not closed')
    query, end = parsed
    if query.operator == "!" or query.operand.startswith("!"):
        raise _Problem(f'"{path[:end]}" has no operator; the operators are == != < <= > >= % !%')
    if query.operand.startswith("~") and query.operand not in TILDES:
        raise _Problem(f'"{query.operand}" is none of {" ".join(TILDES)}')
    if query.operand.startswith('"'):
        raise _Problem(f"the text in {path[:end]} is not closed")
    if query.path:
        _check(query.path, depth + 1)
    return _after(path[end + query.every :], "a query")


def _modifier(path: str) -> str | None:
    parsed = modifier_at(path)
    if parsed is None:
        name = path[1 : end_of_name(path)]
        near = get_close_matches(name, MODIFIER_NAMES, n=1)
        hint = f"did you mean @{near[0]}?" if near else f'write "\\@{name}" for a key of that name'
        raise _Problem(f"there is no modifier @{name}; {hint}")
    name, argument, rest = parsed
    if name in _CHOICES:
        _choice(name, argument)
    elif name in _FIELDS and argument:
        _fields(name, argument)
    if name == "replace" and not argument:
        raise _Problem('@replace takes {"old":...,"new":...}')
    return _after(rest, f"@{name}")


def _choice(name: str, argument: str) -> None:
    choices = _CHOICES[name]
    if argument not in choices:
        hint = '; what follows begins with "|"' if argument.startswith(choices) else ""
        raise _Problem(f'@{name} takes {" or ".join(choices)}, not "{argument[:40]}"{hint}')


def _fields(name: str, argument: str) -> None:
    fields = _FIELDS[name]
    try:
        given = read_json(argument)
    except ValueError:
        raise _Problem(f'the argument of @{name} is not valid JSON: "{argument[:40]}"') from None
    if not isinstance(given, dict):
        raise _Problem(f"@{name} takes an object")
    for key, value in given.items():
        if key not in fields:
            raise _Problem(f'@{name} knows no "{key}", only {", ".join(fields)}')
        if type(value) is not fields[key]:
            raise _Problem(f'"{key}" of @{name} must be {_TYPE_NAMES[fields[key]]}')
    if name == "extract" and given.get("pos", 0) < 0:
        raise _Problem('"pos" of @extract counts from 0')
    if name == "replace" and "old" not in given:
        raise _Problem('@replace takes {"old":...,"new":...}')
