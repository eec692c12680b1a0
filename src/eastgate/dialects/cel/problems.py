"""Translates errors of the core to sentences for authors, with the text to underline.

The core names a position by line and column, and uses the terms overload and select. An author thinks of variables,
functions and operators. Errors without a translation keep the words of the core.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from eastgate.basics.diagnostics.suggest import did_you_mean
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.cel.syntax import (
    Call,
    CreateList,
    CreateStruct,
    HasEntry,
    HasVariable,
    Literal,
    Local,
    Loop,
    MapEntry,
    Node,
    Select,
    Variable,
)
from eastgate.dialects.cel.variables import Variables

# Bounds the work of an expression before it ever runs.
#
# CEL has no endless loops, but a short text can still keep a processor busy: nested loops over long lists, texts
# doubled by each link of a chain of `map`, patterns with large repetitions. So this file computes an upper bound of the
# work, in steps of about 30 ns. Each constant below was measured with the evaluator. An expression that could take more
# than about a tenth of a second is refused. The bound is for values of up to 4096 characters; longer values cost in
# proportion.


MAX_STEPS: Final = 3_000_000

_MAX_VALUE_CHARACTERS: Final = 4096
_CHARACTERS_PER_STEP: Final = 32  # copied or compared
_CONTAINS_PER_STEP: Final = 2000  # pairs of characters
_ITERATION: Final = MAX_STEPS // 10_000  # the evaluator gives up after 10,000: no accepted expression gets there
_PATTERN_COMPILED: Final = 150  # for each character of a pattern, at each evaluation: the pattern is not cached
_PATTERN_CHARACTERS: Final = 2  # of the text, for each step and character of the pattern, in the worst case
_UNICODE_CLASS: Final = 50  # the cost of \pL and similar classes, in characters


def most_steps(tree: Node) -> int:
    """Return an upper bound of the work of an expression."""
    return _measure(tree, {})[0]


@dataclass(frozen=True, slots=True)
class _Size:
    """The largest size of a value: the characters of a text, or the entries of a list or map and the largest entry."""

    length: int
    element: _Size | None = None

    @property
    def of_one(self) -> _Size:
        return self.element or self

    @property
    def copied(self) -> int:
        """Return the steps to copy the value. The entries of a list are shared, not copied."""
        return self.length if self.element else self.length // _CHARACTERS_PER_STEP

    @property
    def read(self) -> int:
        """Return the steps to compare all of the value."""
        return self.length * (1 + self.element.read) if self.element else self.length // _CHARACTERS_PER_STEP


_SCALAR: Final = _Size(1)
_TEXT: Final = _Size(_MAX_VALUE_CHARACTERS)
_CONVERTED: Final = _Size(64)  # the longest text of a number, a time or a duration


def _largest(sizes: Iterable[_Size]) -> _Size:
    sizes = tuple(sizes)
    elements = tuple(size.element for size in sizes if size.element)
    return _Size(max((size.length for size in sizes), default=0), _largest(elements) if elements else None)


def _measure(node: Node, scope: Mapping[str, _Size]) -> tuple[int, _Size]:
    """Return the steps for a node, and the size of its value."""
    match node:
        case Literal():
            return 1, _Size(node.length)
        case Variable() | MapEntry():
            return 1, _TEXT
        case HasVariable() | HasEntry():
            return 1, _SCALAR
        case Local(name):
            return 1, scope.get(name, _SCALAR)
        case Select(operand):
            steps, size = _measure(operand, scope)
            return steps + 1, size.of_one
        case CreateList(items) | CreateStruct(items):
            measured = [_measure(item, scope) for item in items]
            element = _largest(size for _, size in measured) if measured else _SCALAR
            return 1 + sum(steps for steps, _ in measured), _Size(len(items), element)
        case Call():
            return _call(node, scope)
        case Loop():
            return _loop(node, scope)


def _call(call: Call, scope: Mapping[str, _Size]) -> tuple[int, _Size]:
    measured = [_measure(argument, scope) for argument in call.arguments]
    sizes = [size for _, size in measured]
    steps = 1 + sum(steps for steps, _ in measured)
    result = _SCALAR if call.scalar else _largest((*sizes, _CONVERTED))
    match call.function, sizes:
        case "_&&_" | "_||_" | "!_", _:
            pass
        case "_?_:_", [_, first, second]:
            result = _largest((first, second))
        case "_[_]", [container, _]:
            result = container.of_one
        case "_+_", [left, right] if not call.scalar:
            steps += left.copied + right.copied
            result = _Size(left.length + right.length, _largest(sizes).element)
        case "matches", [text, _]:
            steps += _pattern_length(call.arguments[1]) * (_PATTERN_COMPILED + text.length // _PATTERN_CHARACTERS)
        case "contains", [text, part]:
            steps += text.length * part.length // _CONTAINS_PER_STEP
        case _:
            steps += sum(size.read for size in sizes)
    return steps, result


def _loop(loop: Loop, scope: Mapping[str, _Size]) -> tuple[int, _Size]:
    """Measure a loop.

    Macros only add to an accumulator, so its final size is the size added in one turn, times the turns.
    """
    over_steps, over = _measure(loop.over, scope)
    start_steps, start = _measure(loop.start, scope)
    inner = {**scope, **dict.fromkeys(loop.names, over.of_one), loop.accumulator: start}
    condition_steps, _ = _measure(loop.condition, inner)
    turn_steps, turned = _measure(loop.step, inner)
    added = max(0, turned.length - start.length)
    final = _Size(start.length + over.length * added, turned.element or start.element)
    result_steps, result = _measure(loop.result, {**scope, loop.accumulator: final})
    each = _ITERATION + condition_steps + turn_steps + added * over.length  # a growing list is copied in every turn
    return over_steps + start_steps + over.length * each + result_steps, result


_PATTERN_TOKEN: Final = regex(
    r"\{(?P<low>[0-9]{1,4})(?P<range>,(?P<high>[0-9]{0,4}))?\}|\\[pP]\{[^}]*\}|\\[pP].|\\.|\[(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)


def _pattern_length(pattern: Node) -> int:
    """Return the length of a pattern with its repetitions written out."""
    if not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
        return _MAX_VALUE_CHARACTERS
    open_groups, last = [0], 0
    for token in _PATTERN_TOKEN.finditer(pattern.value):
        if token["low"]:
            times = max(int(token["low"]) + bool(token["range"]), int(token["high"] or 0), 1)
            open_groups[-1] += last * (times - 1)
            last *= times
        elif token[0] == "(":
            open_groups.append(0)
        elif token[0] == ")" and len(open_groups) > 1:
            last = open_groups.pop() + 1
            open_groups[-1] += last
        else:
            last = 1 + _UNICODE_CLASS * len(re.findall(r"\\[pP]", token[0]))
            open_groups[-1] += last
    return sum(open_groups) + 1


_FUNCTIONS: Final = (
    *("bool", "bytes", "double", "duration", "dyn", "has", "int", "size", "string", "timestamp", "type", "uint"),
)
_METHODS: Final = (
    *("all", "contains", "endsWith", "exists", "exists_one", "filter", "map", "matches", "size", "startsWith"),
    *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds"),
    *("getMinutes", "getMonth", "getSeconds"),
)
_MAX_WORD_LENGTH: Final = 40  # repeated in a message
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
    """A problem and its position `text[start:end]`. The position is empty at the end of a text that ends too early."""

    message: str
    start: int
    end: int
    help: str | None = None
    is_unknown_variable: bool = field(default=False, compare=False)


def translate(message: str, text: str, variables: Variables) -> CelProblem:
    """Translate the first error that the core reports for an expression."""
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
    """Return a problem for a name that is not a variable of the dialect."""
    start, end = underlined(text, path, at)
    below = sorted(variable for variable in variables if variable.startswith(f"{path}."))
    if below:
        return CelProblem(f"`{path}` cannot be used alone", start, end, f"write one of {_listed(below)}")
    near = did_you_mean(path, variables)
    help_ = f"did you mean `{near}`?" if near else f"there are {_listed(sorted(variables))}"
    return CelProblem(f"there is no variable `{path}`", start, end, help_, is_unknown_variable=True)


def underlined(text: str, path: str, at: int) -> tuple[int, int]:
    """Return the extent of a dotted name. The core points at its last dot, at its start or at the bracket before it."""
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
            f"`?` does not work on {listed}", at, at + 1, "write a bool before it, and values of one type after it"
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
    subject = f"`{word}`" if word.isprintable() and len(word) <= _MAX_WORD_LENGTH else "this"
    return CelProblem(f"{subject} is not allowed here", start, end, f"write `{instead}`" if instead else None)


def _not_a_token(text: str, at: int, match: re.Match[str], variables: Variables) -> CelProblem:
    if text[at : at + 1] in ("'", '"'):
        end = len(text.rstrip()) if "\n" not in text[at:] else text.index("\n", at)
        return CelProblem("this text is not closed, or has an invalid `\\` escape", at, end)
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
