"""Translates errors of the core to a sentence, with the text to underline.

The core names a position by line and column and speaks of overloads and selects; an author thinks of variables,
functions and signs. What is not translated here is passed on in its words.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from eastgate.basics.diagnostics.suggest import did_you_mean
from eastgate.basics.records import dataclass
from eastgate.dialects.cel.variables import Variables

_FUNCTIONS: Final = (
    *("bool", "bytes", "double", "duration", "dyn", "has", "int", "size", "string", "timestamp", "type", "uint"),
)
_METHODS: Final = (
    *("all", "contains", "endsWith", "exists", "exists_one", "filter", "map", "matches", "size", "startsWith"),
    *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds"),
    *("getMinutes", "getMonth", "getSeconds"),
)
_LONGEST_WORD: Final = 40  # that is repeated in a message
_SIGNS: Final = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "&": "&&",
    "|": "||",
    "=": "==",
    "===": "==",
    "!==": "!=",
    "<>": "!=",
    "=>": ">=",
    "=<": "<=",
}


@dataclass(frozen=True, slots=True)
class CelProblem:
    """A problem and its position: `text[start:end]`, which is empty at the end of a text that ends too early."""

    message: str
    start: int
    end: int
    help: str | None = None
    is_unknown_variable: bool = field(default=False, compare=False)


def translate(message: str, text: str, variables: Variables) -> CelProblem:
    """Translate the first error of the core about an expression."""
    located = re.search(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?:\n \| |\n?ERROR: <input>|$)", message, re.DOTALL)
    if located is None:
        return CelProblem(re.sub(r"^[A-Z_]+: ", "", message), 0, len(text))
    line, column, error = int(located[1]), int(located[2]), re.sub(r" \[[A-Z_]+\]$", "", located[3])
    if line < 1:
        return CelProblem(error, 0, len(text))
    at = min(sum(len(part) for part in text.split("\n")[: line - 1]) + line - 1 + column - 1, len(text))
    for pattern, make in _TRANSLATIONS:
        match = re.match(pattern, error, re.DOTALL)
        if match is not None:
            return make(text, at, match, variables)
    sentence = "".join(character if character.isprintable() else " " for character in error[:1].lower() + error[1:])
    return CelProblem(sentence, at, _end_of_word(text, at))


def unknown_variable(text: str, path: str, at: int, variables: Variables) -> CelProblem:
    """Return a problem for a name that the dialect does not offer."""
    start, end = underlined(text, path, at)
    below = sorted(variable for variable in variables if variable.startswith(f"{path}."))
    if below:
        return CelProblem(f"`{path}` cannot stand alone", start, end, f"write one of {_listed(below)}")
    near = did_you_mean(path, variables)
    help_ = f"did you mean `{near}`?" if near else f"there are {_listed(sorted(variables))}"
    return CelProblem(f"there is no variable `{path}`", start, end, help_, is_unknown_variable=True)


def underlined(text: str, path: str, at: int) -> tuple[int, int]:
    """Return the extent of a dotted name: the core points at its last dot, at its start or at the bracket before it."""
    pattern = re.compile(r"\s*\.\s*".join(rf"`?{re.escape(part)}`?" for part in path.split(".")))
    for match in pattern.finditer(text):
        if match.end() >= at:
            return match.span()
    return at, _end_of_word(text, at)


def _undeclared(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:
    name, before = match[1], text[:at].rstrip()
    if text[at : at + 1] != "(" or not before.endswith(name):
        return unknown_variable(text, name, at, variables)
    start = len(before) - len(name)
    end = start + len(name)
    is_method = text[:start].rstrip().endswith(".")
    allowed, others = (_METHODS, _FUNCTIONS) if is_method else (_FUNCTIONS, _METHODS)
    if name in allowed:
        return CelProblem(f"`{name}` does not take this many arguments", start, end)
    near = did_you_mean(name, allowed)
    help_ = f"did you mean `{near}`?" if near else None
    if name in others:
        help_ = f"write `{name}(value)`" if is_method else f"write `value.{name}(...)`"
    return CelProblem(f"there is no {'method' if is_method else 'function'} `{name}`", start, end, help_)


def _wrong_types(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:  # noqa: ARG001
    function, types = match[1], re.split(r", (?![^(]*\))", match[2].replace("null_type", "null"))
    sign = function.strip("@_")
    listed = " and ".join(filter(None, (", ".join(types[:-1]), types[-1])))
    if function == "_[_]":
        end = text.find("]", at) + 1 or at + 1
        return CelProblem(f"{types[0]} cannot be looked up by {types[1]}", at, end)
    if function == "_?_:_":
        return CelProblem(
            f"`?` does not work on {listed}", at, at + 1, "a bool stands before it, and one type after it"
        )
    if function in ("_==_", "_!=_"):
        return CelProblem(f"`{sign}` cannot compare {listed}", at, at + 2)
    if text.startswith(sign, at):
        return CelProblem(f"`{sign}` does not work on {listed}", at, at + len(sign))
    start = len(text[:at].rstrip()) - len(sign)
    return CelProblem(f"`{sign}` does not work on {listed}", max(start, 0), at)


def _no_fields(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:  # noqa: ARG001
    field = re.compile(r"\.\s*`?[\w-]*`?").match(text, at)
    return CelProblem(f"{match[1]} has no fields", at, field.end() if field else at)


def _ends_early(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:  # noqa: ARG001
    missing = re.findall(r"'([\])}:])'", match[1])
    end = len(text.rstrip())
    return CelProblem("the expression ends too early", end, end, f"`{missing[0]}` is missing" if missing else None)


def _misplaced(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:  # noqa: ARG001
    if at >= len(text.rstrip()):
        return CelProblem("the expression ends too early", len(text.rstrip()), len(text.rstrip()))
    start, end = at, _end_of_word(text, at)
    for sign in re.finditer(r"[=!<>&|]+", text):
        if sign.start() <= at < sign.end():
            start, end = sign.span()
    word = text[start:end]
    instead = _SIGNS.get(word)
    subject = f"`{word}`" if word.isprintable() and len(word) <= _LONGEST_WORD else "this"
    return CelProblem(f"{subject} cannot stand here", start, end, f"write `{instead}`" if instead else None)


def _not_a_token(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:
    if text[at : at + 1] in ("'", '"'):
        end = len(text.rstrip()) if "\n" not in text[at:] else text.index("\n", at)
        return CelProblem("this text is not closed, or has a `\\` that means nothing", at, end)
    return _misplaced(text, at, match, variables)


def _not_a_field(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:  # noqa: ARG001
    start = max(text.rfind("has", 0, at + 1), 0)
    return CelProblem("`has` takes a field, as in `has(a.b)`", start, start + 3, 'or write `"b" in a`')


_TRANSLATIONS: Final = (
    (r"undeclared reference to '([^']*)'", _undeclared),
    (r"found no matching overload for '([^']*)' applied to '\((.*)\)'", _wrong_types),
    (r"has\(\) argument must be a field selection", _not_a_field),
    (r"expression of type '([^']*)' cannot be the operand of a select", _no_fields),
    (r"Syntax error: mismatched input '<EOF>' expecting (.*)", _ends_early),
    (r"Syntax error: token recognition error", _not_a_token),
    (r"Syntax error: ", _misplaced),
)


def _end_of_word(text: str, at: int) -> int:
    word = re.compile(r"\w+|'[^'\n]*'|\"[^\"\n]*\"|\S?").match(text, at)
    return word.end() if word else at


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
