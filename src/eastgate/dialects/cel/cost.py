"""Bounds the work of an expression before it ever runs.

CEL has no endless loops, but a short text can still keep a processor busy: loops inside loops over long lists, texts
doubled by each link of a chain of `map`, patterns with large repetitions. So the work is bounded from above in steps of
about 30 ns, each constant below measured against the evaluator, and an expression that could take more than about a
tenth of a second is refused. The bound is for values of up to 4096 characters; longer ones cost in proportion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

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

MAX_STEPS: Final = 3_000_000

_VALUE_LENGTH: Final = 4096
_CHARACTERS_PER_STEP: Final = 32  # copied or compared
_CONTAINS_PER_STEP: Final = 2000  # pairs of characters
_ITERATION: Final = MAX_STEPS // 10_000  # the evaluator gives up after 10,000: no accepted expression gets there
_PATTERN_COMPILED: Final = 150  # for each character of a pattern, at each evaluation: it is not kept
_PATTERN_CHARACTERS: Final = 2  # of the text, per step and character of the pattern, at worst
_UNICODE_CLASS: Final = 50  # characters that \pL and the like are worth


def most_steps(tree: Node) -> int:
    """Return an upper bound of the work."""
    return _measure(tree, {})[0]


@dataclass(frozen=True, slots=True)
class _Size:
    """The largest size of a value: characters of a text; or entries of a list or map, and the largest size of each."""

    length: int
    element: _Size | None = None

    @property
    def of_one(self) -> _Size:
        return self.element or self

    @property
    def copied(self) -> int:
        """Return the steps to copy it: the entries of a list are shared, not copied."""
        return self.length if self.element else self.length // _CHARACTERS_PER_STEP

    @property
    def read(self) -> int:
        """Return the steps to compare all of it."""
        return self.length * (1 + self.element.read) if self.element else self.length // _CHARACTERS_PER_STEP


_SCALAR: Final = _Size(1)
_TEXT: Final = _Size(_VALUE_LENGTH)
_CONVERTED: Final = _Size(64)  # the longest text of a number, a time or a duration


def _largest(sizes: Iterable[_Size]) -> _Size:
    sizes = tuple(sizes)
    elements = tuple(size.element for size in sizes if size.element)
    return _Size(max((size.length for size in sizes), default=0), _largest(elements) if elements else None)


def _measure(node: Node, scope: Mapping[str, _Size]) -> tuple[int, _Size]:
    """Return the steps that a node takes, and the size of its value."""
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
    """Measure a loop. Macros only ever add to an accumulator, so what one turn adds, times the turns, is its final
    size.
    """
    over_steps, over = _measure(loop.over, scope)
    start_steps, start = _measure(loop.start, scope)
    inner = {**scope, **dict.fromkeys(loop.names, over.of_one), loop.accumulator: start}
    condition_steps, _ = _measure(loop.condition, inner)
    turn_steps, turned = _measure(loop.step, inner)
    added = max(0, turned.length - start.length)
    final = _Size(start.length + over.length * added, turned.element or start.element)
    result_steps, result = _measure(loop.result, {**scope, loop.accumulator: final})
    each = _ITERATION + condition_steps + turn_steps + added * over.length  # a list that grows is copied every turn
    return over_steps + start_steps + over.length * each + result_steps, result


_PATTERN_TOKEN: Final = regex(
    r"\{(?P<low>[0-9]{1,4})(?P<range>,(?P<high>[0-9]{0,4}))?\}|\\[pP]\{[^}]*\}|\\[pP].|\\.|\[(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)


def _pattern_length(pattern: Node) -> int:
    """Return the length of a pattern once its repetitions are written out."""
    if not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
        return _VALUE_LENGTH
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
