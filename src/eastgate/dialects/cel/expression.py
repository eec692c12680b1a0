"""Compiles expressions, and evaluates them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.cel import upstream
from eastgate.dialects.cel.lower import lower, negate
from eastgate.dialects.cel.problems import MAX_STEPS, CelProblem, most_steps, translate, underlined, unknown_variable
from eastgate.dialects.cel.syntax import (
    Call,
    HasEntry,
    HasVariable,
    Literal,
    Local,
    MapEntry,
    Node,
    Select,
    Variable,
    walk,
)
from eastgate.dialects.cel.upstream import CelEvaluationError, CelProgram, fitting
from eastgate.dialects.cel.variables import VariableKind, Variables, presence_of
from eastgate.ir import Value
from eastgate.ir.attributes import Attribute
from eastgate.ir.predicates import Predicate

# Tests of presence: `has(request.path)`.
#
# The core checks dotted variables, and reads `has` of a variable as the variable itself: `has(request.path) == "/x"`
# would compare the path. So each such test becomes a hidden variable of type bool before the check. The name is as long
# as the test that it replaces, so that the offsets of all later characters stay.


def with_presence_tests(text: str, tree: Node, variables: Variables) -> str | CelProblem:
    """Replace tests of variables by hidden variables."""
    for node in walk(tree):
        if not (isinstance(node, Select) and node.tested):
            continue
        path = _dotted(node)
        if path is None or path not in variables:
            continue
        pattern = re.compile(r"has\s*\(\s*\.?\s*" + r"\s*\.\s*".join(path.split(".")) + r"\s*\)")
        match = pattern.match(text, text.rfind("has", 0, node.at))
        if match is None:
            return CelProblem(f"this form of the test is not supported: write `has({path})`", node.at, node.at + 1)
        hidden = presence_of(path).ljust(len(match[0]))
        text = text[: match.start()] + hidden + text[match.end() :]
    return text


def stray_presence(text: str, tree: Node, variables: Variables) -> CelProblem | None:
    """Return a hidden variable that the author wrote, which is not allowed."""
    for node in walk(tree):
        if isinstance(node, HasVariable) and text.startswith(presence_of(node.path), node.at):
            return unknown_variable(text, presence_of(node.path), node.at, variables)
    return None


def _dotted(node: Node) -> str | None:
    """Return the path that a chain of fields spells, unless it starts at a loop variable."""
    match node:
        case Local(name, bound=False):
            return name
        case Select(operand, name):
            path = _dotted(operand)
            return None if path is None else f"{path}.{name}"
        case _:
            return None


MAX_LENGTH: Final = 16_384


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression that can be evaluated. It reads `attributes` and nothing else.

    `lowered` matches exactly if the expression is true, so an allow rule uses it. `lowered_or_error` matches exactly if
    the expression is true or errs, so an error never skips a deny rule. Each is None if there is no equivalent
    predicate; then `evaluate` answers. This holds for values of the declared types: Unicode texts without NUL, and
    64-bit numbers. For other values the predicates answer as CEL would, and `evaluate` errs.
    """

    text: str
    attributes: frozenset[Attribute]
    lowered: Predicate | None
    lowered_or_error: Predicate | None
    _reads: _Reads = field(repr=False)
    _program: CelProgram = field(repr=False, compare=False)

    def evaluate(self, values: Mapping[Attribute, Value | None]) -> bool:
        """Return the answer for a request with known attributes; the value None means absent.

        Raises CelEvaluationError if there is no answer. An attribute outside of `values` is unknown, so there is no
        answer. If it counted as absent, `!has(...)` would be true.
        """
        for attribute in self.attributes:
            if attribute not in values:
                raise CelEvaluationError(f"{attribute} is unknown")
        data: dict[str, object] = {}
        for path, attribute, kind in self._reads.variables:
            value = values[attribute]
            if value is not None:
                data[path] = fitting(value, kind, path)
        for hidden, tested in self._reads.tests:
            data[hidden] = tested is None or values[tested] is not None
        for path, entries in self._reads.maps:
            data[path] = {
                key: fitting(value, VariableKind.TEXT, f"{path}.{key}")
                for key, attribute in entries
                if (value := values[attribute]) is not None
            }
        return self._program.run(data)


@dataclass(frozen=True, slots=True)
class _Reads:
    """The variables that an expression reads from a request, by their names in the evaluator.

    A map that is only tested has no attribute.
    """

    variables: tuple[tuple[str, Attribute, VariableKind], ...]
    tests: tuple[tuple[str, Attribute | None], ...]
    maps: tuple[tuple[str, tuple[tuple[str, Attribute], ...]], ...]

    @property
    def attributes(self) -> frozenset[Attribute]:
        read = [attribute for _, attribute, _ in self.variables]
        read += [attribute for _, attribute in self.tests if attribute is not None]
        read += [attribute for _, entries in self.maps for _, attribute in entries]
        return frozenset(read)


def compile_cel(text: str, variables: Variables) -> Expression | CelProblem:
    """Compile an expression, or return its first problem. Never raises."""
    problem = _unreadable(text)
    if problem:
        return problem
    source = _with_tests(text, variables)
    if isinstance(source, CelProblem):
        return source
    checked = upstream.check(source, variables)
    if isinstance(checked, upstream.CoreError):
        return _translate(checked, text, variables)
    problem = _unwanted(text, checked, variables)
    if problem:
        return problem
    reads = _reads(checked.tree, variables)
    lowered = lower(checked.tree, variables)
    or_error = None if lowered.false is None else negate(lowered.false)
    return Expression(text, reads.attributes, lowered.true, or_error, reads, checked.program)


def _unreadable(text: str) -> CelProblem | None:
    """Return a problem that can be found without a parser."""
    if not text.strip():
        return CelProblem("the expression is empty", 0, len(text))
    if len(text) > MAX_LENGTH:
        message = f"the expression has {len(text)} characters, and at most {MAX_LENGTH} are allowed"
        return CelProblem(message, MAX_LENGTH, len(text))
    for at, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            return CelProblem("this half of a surrogate pair is not Unicode", at, at + 1)
    return None


def _with_tests(text: str, variables: Variables) -> str | CelProblem:
    """Return the text for the core to check."""
    if "has" not in text:
        return text
    parsed = upstream.parse(text, variables)
    if isinstance(parsed, upstream.CoreError):
        return _translate(parsed, text, variables)
    return with_presence_tests(text, parsed, variables)


def _translate(rejected: upstream.CoreError, text: str, variables: Variables) -> CelProblem:
    if rejected.message == upstream.TOO_DEEP:
        return CelProblem("the expression is nested too deeply", 0, len(text), "32 levels are allowed")
    return translate(rejected.message, text, variables)


def _unwanted(text: str, checked: upstream.Checked, variables: Variables) -> CelProblem | None:
    """Return a problem with an expression that CEL accepts and Eastgate does not."""
    if checked.type not in ("BOOL", "DYN"):
        kind = checked.type.lower().replace("<", "(").replace(">", ")")
        return CelProblem(f"the expression is of type {kind}, not bool", 0, len(text))
    stray = stray_presence(text, checked.tree, variables)
    if stray:
        return stray
    for node in walk(checked.tree):
        match node:
            case Variable(path, at) if path in variables.maps:
                start, end = underlined(text, path, at)
                example = f'write `{path}["name"]`, `"name" in {path}` or `has({path}.name)`'
                return CelProblem(f"`{path}` can only be asked for a literal name", start, end, example)
            case MapEntry(key=key) | HasEntry(key=key) if "\0" in key:
                return CelProblem("a looked-up name cannot contain NUL", 0, len(text))
            case Call("matches", (_, pattern), at=at) if not isinstance(pattern, Literal):
                return CelProblem("the pattern of `matches` must be a literal", *underlined(text, "matches", at))
    steps = most_steps(checked.tree)
    if steps > MAX_STEPS:
        message = f"the expression can take {steps:,} steps, and {MAX_STEPS:,} are allowed"
        return CelProblem(message, 0, len(text), "shorten its lists or patterns, or nest fewer loops")
    return None


def _reads(tree: Node, variables: Variables) -> _Reads:
    read: dict[str, tuple[str, Attribute, VariableKind]] = {}
    tests: dict[str, Attribute | None] = {}
    maps: dict[str, dict[str, Attribute]] = {}
    for node in walk(tree):
        match node:
            case Variable(path):
                declared = variables.attribute(path)
                if declared:
                    read[path] = (path, *declared)
            case HasVariable(path):
                declared = variables.attribute(path)
                tests[presence_of(path)] = declared[0] if declared else None
            case MapEntry(map_, key) | HasEntry(map_, key):
                maps.setdefault(map_, {})[key] = variables.maps[map_](key)
    return _Reads(
        tuple(read.values()), tuple(tests.items()), tuple((path, tuple(of.items())) for path, of in maps.items())
    )
