"""The syntax of a path, one step at a time.

A path is parsed during the walk, because the meaning of a step depends on the current value: `#` counts an array and is
a key of an object. Results are cached, because the rest of a path is parsed again for each element of an array.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import end_of_argument, end_of_block, unescaped

# The names of all modifiers. The parser needs them, because a dot before a modifier acts as a pipe.


GJSON_MODIFIERS: Final = frozenset(
    (
        "flatten",
        "fromstr",
        "group",
        "join",
        "keys",
        "pretty",
        "reverse",
        "this",
        "tostr",
        "ugly",
        "valid",
        "values",
    )
)
AUTHORINO_MODIFIERS: Final = frozenset(("base64", "case", "extract", "replace", "strip"))
MODIFIER_NAMES: Final = GJSON_MODIFIERS | AUTHORINO_MODIFIERS


_MAX_CACHED_PATHS = 512
_OPERATORS = ("!=", "!%", "<=", ">=", "==", "<", ">", "=", "%")


@dataclass(frozen=True, slots=True)
class Query:
    """The content of `#(...)`: the path into an element, the comparison, and the operand."""

    path: str = ""
    operator: str = ""
    operand: str = ""
    every: bool = False


@dataclass(frozen=True, slots=True)
class PathStep:
    """The first component of a path, and the two kinds of what follows: `rest` within it, `pipe` after it."""

    part: str
    rest: str | None = None
    pipe: str | None = None
    wild: bool = False
    hashed: bool = False
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class SubPath:
    """One part of a multipath."""

    name: str
    path: str


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def object_step(path: str) -> PathStep:
    """Return the first component of a path into an object."""
    part: list[str] = []
    wild = escaped = False
    at = 0
    while at < len(path):
        character = path[at]
        if character in "|.":
            step = _followed("".join(part), path, at, wild=wild, pipes=True)
            # After an escaped name, gjson looks up the key "" before it continues after a dot that acts as a pipe.
            return replace(step, rest="") if escaped and character == "." and step.pipe is not None else step
        if character == "\\":
            escaped = True
            at += 1
            part.append(path[at : at + 1])
        else:
            wild = wild or character in "*?"
            part.append(character)
        at += 1
    return PathStep("".join(part), wild=wild)


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def array_step(path: str) -> PathStep:
    """Return the first component of a path into an array."""
    hashed = False
    query: Query | None = None
    at = 0
    while at < len(path):
        character = path[at]
        if character in "|.":
            return _followed(path[:at], path, at, hashed=hashed, query=query, pipes=not hashed)
        if character == "#":
            hashed = True
            if at == 0 and path[1:2] in ("(", "["):
                query_and_end = query_at(path)
                if query_and_end is None:
                    return PathStep(path, hashed=True, query=Query())
                query, at = query_and_end
                continue
        at += 1
    return PathStep(path, hashed=hashed, query=query)


def _followed(
    part: str,
    path: str,
    at: int,
    *,
    pipes: bool,
    wild: bool = False,
    hashed: bool = False,
    query: Query | None = None,
) -> PathStep:
    """Return a step that ends at a dot or pipe.

    A dot before a modifier or multipath acts as a pipe, except after `#`.
    """
    rest = path[at + 1 :]
    if path[at] == "|" or (pipes and rest and _starts_anew(rest)):
        return PathStep(part, pipe=rest, wild=wild, hashed=hashed, query=query)
    return PathStep(part, rest=rest, wild=wild, hashed=hashed, query=query)


def _starts_anew(path: str) -> bool:
    return path[0] in "@[{"


def end_of_name(path: str) -> int:
    """Return the end of the modifier name at the start of a path."""
    return next((at for at in range(1, len(path)) if path[at] in ".|:"), len(path))


def query_at(path: str) -> tuple[Query, int] | None:
    """Return the query at the start of a path, and the offset after its closing bracket; None if it never closes."""
    operator_at, depth, escapes = 0, 1, False
    at = 2
    while at < len(path):
        character = path[at]
        if depth == 1 and operator_at == 0 and character in "!=<>%":
            operator_at = at
        elif character == "\\":
            at += 1
        elif character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
            if depth == 0:
                break
        elif character == '"':
            end = _end_of_quotes(path, at)
            escapes = escapes or "\\" in path[at:end]
            at = end
        at += 1
    if depth > 0:
        return None
    every = path[at + 1 : at + 2] == "#"
    if operator_at == 0:
        return Query(_trimmed(path[2:at]), every=every), at + 1
    operator, operand = _comparison(_trimmed(path[operator_at:at]))
    if len(operand) >= 2 and operand[0] == operand[-1] == '"':
        operand = unescaped(operand[1:-1]) if escapes else operand[1:-1]
    return Query(_trimmed(path[2:operator_at]), operator, operand, every), at + 1


def _end_of_quotes(path: str, at: int) -> int:
    """Return the offset of the quote that closes the one at `at`, or the end of the path."""
    at += 1
    while at < len(path) and path[at] != '"':
        at += 2 if path[at] == "\\" else 1
    return at


def _comparison(text: str) -> tuple[str, str]:
    if len(text) == 1:
        return text, ""
    for operator in _OPERATORS:
        if text.startswith(operator):
            return ("=" if operator == "==" else operator), _trimmed(text[len(operator) :])
    return "", text


def _trimmed(text: str) -> str:
    start, end = 0, len(text)
    while start < end and text[start] <= " ":
        start += 1
    while end > start and text[end - 1] <= " ":
        end -= 1
    return text[start:end]


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def split_at_pipe(path: str) -> tuple[str, str | None]:
    """Split a path into the part for each element of an array, and the part for all of the results."""
    if "|" not in path:
        return path, None
    if path[0] == "{":
        end = end_of_argument(path, 1)
        return (path[:end], path[end + 1 :]) if path[end : end + 1] == "|" else (path, None)
    at = 0
    while at < len(path):
        if path[at] == "\\":
            at += 1
        elif path[at] == "." and path[at + 1 : at + 2] == "#":
            at += 2
            if path[at : at + 1] in ("(", "["):
                at = _end_of_query(path, at)
        elif path[at] == "|":
            return path[:at], path[at + 1 :]
        at += 1
    return path, None


def _end_of_query(path: str, at: int) -> int:
    opening, closing = path[at], ")" if path[at] == "(" else "]"
    depth = 1
    at += 1
    while at < len(path):
        if path[at] == "\\":
            at += 1
        elif path[at] == opening:
            depth += 1
        elif path[at] == closing:
            depth -= 1
            if depth == 0:
                break
        elif path[at] == '"':
            at = _end_of_quotes(path, at)
        at += 1
    return at


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def sub_paths(path: str) -> tuple[tuple[SubPath, ...], str] | None:
    """Return the parts of the multipath at the start of a path, and the rest; None if it never closes."""
    parts: list[SubPath] = []
    start, at, colon, depth, modifier = 1, 1, 0, 1, False

    def part() -> SubPath:
        return SubPath(path[start:colon], path[colon + 1 : at]) if colon else SubPath("", path[start:at])

    while at < len(path):
        match path[at]:
            case "\\":
                at += 1
            case "@":
                modifier = modifier or path[at - 1] in ".|"
            case ":" if not (modifier or colon) and depth == 1:
                colon = at
            case "," if depth == 1:
                parts.append(part())
                start, colon, modifier = at + 1, 0, False
            case '"':
                at = _end_of_quotes(path, at)
            case "[" | "(" | "{":
                depth += 1
            case "]" | ")" | "}":
                depth -= 1
                if depth == 0:
                    parts.append(part())
                    return tuple(parts), path[at + 1 :]
        at += 1
    return None


def last_name(path: str) -> str:
    """Return the key for a part of a multipath without a name."""
    at = len(path) - 1
    while at >= 0 and not (path[at] in "|." and (at == 0 or path[at - 1] != "\\")):
        at -= 1
    name = path[at + 1 :]
    return "_" if any(character < " " or character in "[]{}()#|!" for character in name) else name


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def modifier_at(path: str) -> tuple[str, str, str] | None:
    """Return the name and argument of the modifier at the start of a path, and the rest; None if there is none."""
    end = end_of_name(path)
    name = path[1:end]
    if name not in MODIFIER_NAMES:
        return None
    if path[end : end + 1] != ":":
        return name, "", path[end:]
    rest = path[end + 1 :]
    if rest[:1] and rest[0] in '{["':
        end = end_of_argument(rest, 0)
        return name, rest[:end], rest[end:]
    argument, pipe, rest = rest.partition("|")
    return name, argument, pipe + rest


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def literal_at(path: str) -> tuple[str, str] | None:
    """Return the JSON literal after `!` at the start of a path, and the rest; None if it is a key after all."""
    if path[1] in '{["+-0123456789':
        end = end_of_block(path, 1)
        return path[1:end], path[end:]
    end = next((at for at in range(1, len(path)) if path[at] in ".|"), len(path))
    name = path[1:end]
    return (name, path[end:]) if name.lower() in ("true", "false", "null", "nan", "inf") else None
