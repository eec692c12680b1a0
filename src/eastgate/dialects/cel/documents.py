"""CEL over JSON documents: the variables of an expression are the members of one object, and have any type.

The types are unknown until there is a document, so a missing member is an error at evaluation. The paths that an
expression can read are known before: they are its `mentions`, and it gets only these parts of a document. All numbers
are doubles, as in the documents of other CEL hosts.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

from eastgate.basics.caching import SizedCache
from eastgate.basics.records import dataclass
from eastgate.dialects.cel import upstream
from eastgate.dialects.cel.as_go import BODY, REQUEST_BODY_JSON, body_declarations, declarations, reading_body, rewrite
from eastgate.dialects.cel.expression import _unreadable
from eastgate.dialects.cel.problems import MAX_STEPS, CelProblem, _measure, _Size, translate
from eastgate.dialects.cel.syntax import (
    Call,
    CreateList,
    CreateStruct,
    Literal,
    Local,
    Loop,
    Node,
    Select,
    _children,
    walk,
)
from eastgate.dialects.cel.upstream import CelEvaluationError, in_plain_words
from eastgate.dialects.cel.variables import Variables

Path: TypeAlias = tuple[str, ...]

ROOTS: Final = ("request", "source", "destination", "metadata", "auth")
GATEWAY_ROOTS: Final = ("request", "source", "destination", "connection")
"""The variables of expressions that the filter of a gateway evaluates. It also has `requestBodyJSON`."""
MAX_TEXT: Final = 4 << 20
"""Characters of a text that an expression builds: nested `replace` calls grow faster than step counting notices."""
MAX_VALUE: Final = 1 << 16
"""Characters of one text of a document that an expression reads."""
MAX_DEPTH: Final = 64
_FIRST_UNSAFE_INTEGER: Final = 2**53  # integers from here on become texts in JSON, since not all readers know them
_FIRST_EXPONENT_NUMBER: Final = 1e21  # numbers from here on are written with an exponent

_ASSUMED: Final = _Size(96)  # of a list or text, for the bound of steps; the core itself ends loops at 10,000 turns
_ASSUMED_TEXT_CHARACTERS: Final = 4096
_ASSUMED_TURNS: Final = 64
_LOOKUPS: Final = ("_[_]", "_?._", "_[?_]")


@dataclass(frozen=True, slots=True)
class DocumentExpression:
    """A checked expression that can be evaluated. It reads the paths in `mentions` and nothing else."""

    text: str
    mentions: frozenset[Path]
    type: str
    """The name of its type. DYN: the document decides the type."""
    compares_texts: bool
    """Whether the answer is true or false if all mentioned values are texts."""
    tree: Node = field(repr=False, compare=False)
    _compiled: Any = field(repr=False, compare=False)

    def evaluate(self, document: Mapping[str, object]) -> object:
        """Return the answer as plain JSON data. Raises CelEvaluationError if there is none."""
        data: dict[str, object] = {path[0]: {} for path in self.mentions}
        for path in sorted(self.mentions):
            _copy(document, data, path)
        try:
            with reading_body(_body(document)):
                result = self._compiled.eval(data=data)
            kind, answer = result.type().name(), result.plain_value()
        except Exception as error:  # bare RuntimeErrors of the core; a TypeError for an optional as the answer
            raise CelEvaluationError(in_plain_words(str(error).partition("\n")[0])) from error
        if kind == "ERROR":
            raise CelEvaluationError(in_plain_words(str(answer)))
        return _plain(answer)


_COMPILED: Final = SizedCache[tuple[str, tuple[str, ...]], DocumentExpression | CelProblem](1 << 20)  # characters


def compile_document_cel(text: str, roots: tuple[str, ...] = ROOTS) -> DocumentExpression | CelProblem:
    """Compile an expression, or return its first problem. Never raises."""
    return _COMPILED.get((text, roots), lambda: (_compile(text, roots), len(text)))


def _compile(text: str, roots: tuple[str, ...]) -> DocumentExpression | CelProblem:
    problem = _unreadable(text)
    if problem:
        return problem
    try:
        compiled, tree = _checked(text, roots)
    except Exception as error:  # the core raises bare RuntimeErrors, protobuf its own
        core_error = upstream._core_error(error)
        if core_error.message == upstream.TOO_DEEP:
            return CelProblem("the expression is nested too deeply", 0, len(text), "32 levels are allowed")
        return _with_roots(translate(core_error.message, text, Variables()), roots)
    if any(_is_unclear_format(node) for node in walk(tree)):
        return CelProblem("the template of `format` must be a literal without `%e`", 0, len(text))
    steps, _ = _measure(tree, dict.fromkeys(roots, _ASSUMED))
    if steps > MAX_STEPS:
        message = f"the expression can take {steps:,} steps, and {MAX_STEPS:,} are allowed"
        return CelProblem(message, 0, len(text), "shorten its lists or patterns, or nest fewer loops")
    if _most_text(tree, {}) > MAX_TEXT:
        return CelProblem(f"the expression can make a text of more than {MAX_TEXT:,} characters", 0, len(text))
    mentions = {*_mentions(tree, roots), *((BODY,) if any(map(_reads_body, walk(tree))) else ())}
    kind, compares_texts = compiled.return_type().name(), _compares_texts(tree, roots)
    return DocumentExpression(text, frozenset(mentions), kind, compares_texts, tree, compiled)


def _reads_body(node: Node) -> bool:
    return isinstance(node, Call) and node.function == REQUEST_BODY_JSON


def _body(document: Mapping[str, object]) -> object:
    request = document.get("request")
    return request.get("body") if isinstance(request, Mapping) else None


def _is_unclear_format(node: Node) -> bool:
    """Return whether the core may format numbers differently from CEL in Go."""
    match node:
        case Call("format", (Literal(str(text)), _)):
            return re.search(r"%[.0-9]*e", text.replace("%%", "")) is not None
        case Call("format"):
            return True
    return False


def _with_roots(problem: CelProblem, roots: tuple[str, ...]) -> CelProblem:
    """Add the names of the existing variables to a problem with an unknown variable."""
    if not problem.is_unknown_variable:
        return problem
    return replace(problem, help="there are " + ", ".join(f"`{root}`" for root in roots))


def _checked(text: str, roots: tuple[str, ...]) -> tuple[Any, Node]:
    environment = _environment(roots)
    compiled = environment.compile(text)
    checked = upstream._unpacked(compiled, "CheckedExpr")
    reader = upstream._TreeReader(Variables(), checked.source_info.positions, checked.type_map)
    tree = reader.read(checked.expr, frozenset())
    return (environment.deserialize(upstream._packed(checked)) if rewrite(checked) else compiled), tree


@lru_cache(maxsize=16)
def _environment(roots: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # type: ignore[import-untyped]
    from cel_expr_python.ext import ext_optional, ext_strings  # type: ignore[import-untyped]

    functions = [*declarations(cel), *(body_declarations(cel) if roots == GATEWAY_ROOTS else ())]
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional(), cel.CelExtension("go", functions)]
    return cel.NewEnv(variables=dict.fromkeys(roots, cel.Type.DYN), extensions=extensions)


# Paths that an expression can read


def _mentions(node: Node, roots: tuple[str, ...]) -> Iterator[Path]:
    path = _path(node, roots) or _looked_up(node, roots)
    if path is not None:
        yield path
        return
    for child in _children(node):
        yield from _mentions(child, roots)


def _path(node: Node, roots: tuple[str, ...]) -> Path | None:
    """Return the path that a chain of literal names spells."""
    match node:
        case Local(name, bound=False) if name in roots:
            return (name,)
        case Select(operand, name) | Call(_, (operand, Literal(str(name)))):
            if isinstance(node, Call) and node.function not in _LOOKUPS:
                return None
            before = _path(operand, roots)
            return None if before is None else (*before, name)
        case _:
            return None


def _looked_up(node: Node, roots: tuple[str, ...]) -> Path | None:
    """Return the path of a name in a membership test of a map: `"a" in request.headers`."""
    match node:
        case Call("@in", (Literal(str(name)), container)):
            path = _path(container, roots)
            return None if path is None else (*path, name)
        case _:
            return None


def _compares_texts(node: Node, roots: tuple[str, ...]) -> bool:
    """Return whether an expression only compares members of the roots with text literals."""
    match node:
        case Call("_&&_" | "_||_" | "!_", parts):
            return all(_compares_texts(part, roots) for part in parts)
        case Call("_==_" | "_!=_" | "startsWith" | "endsWith" | "contains", (left, right)):
            return _is_text(left, roots) and _is_text(right, roots)
        case Call("@in", (member, CreateList(items))):
            return _is_text(member, roots) and all(isinstance(item, Literal) for item in items)
        case _:
            return False


def _is_text(node: Node, roots: tuple[str, ...]) -> bool:
    match node:
        case Literal(str()):
            return True
        case Select(Local(name, bound=False), _, tested=False):
            return name in roots
        case _:
            return False


def _copy(document: Mapping[str, object], data: dict[str, object], path: Path) -> None:
    """Copy the value at a path. Shorter paths come first and include everything below."""
    source: object = document
    target = data
    for at, key in enumerate(path):
        if not isinstance(source, Mapping) or key not in source:
            return
        source = source[key]
        last = at == len(path) - 1
        if last or not isinstance(source, Mapping):
            target[key] = _fitting(source, ".".join(path[: at + 1]), 0)
            return
        inner = target.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        target = inner


def _fitting(value: object, where: str, depth: int) -> object:
    """Return the value in the form that the core needs.

    The core would end a text at a NUL, and round large integers.
    """
    if depth > MAX_DEPTH:
        raise CelEvaluationError(f"`{where}` is nested too deeply")
    match value:
        case None | bool():
            return value
        case str():
            return _whole(value, where)
        case int() | float():
            return _number(value, where)
        case Mapping():
            return {_whole(str(key), where): _fitting(item, where, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_fitting(item, where, depth + 1) for item in value]
    raise CelEvaluationError(f"`{where}` is not JSON")


def _number(value: int | float, where: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number != value:
        raise CelEvaluationError(f"`{where}` has a number that cannot be compared exactly")
    return number


def _whole(text: str, where: str) -> str:
    if len(text) > MAX_VALUE:
        raise CelEvaluationError(f"`{where}` has a text of more than {MAX_VALUE} characters")
    if "\0" in text or (not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)):
        raise CelEvaluationError(f"`{where}` has a text that cannot be evaluated")
    return text


def _plain(value: object) -> object:
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < _FIRST_UNSAFE_INTEGER else str(value)
        case float() if math.isfinite(value):
            return int(value) if value.is_integer() and abs(value) < _FIRST_EXPONENT_NUMBER else value
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _plain(value[key]) for key in sorted(value)}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes() | bytearray():
            return base64.b64encode(bytes(value)).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{value.total_seconds():g}s"
    raise CelEvaluationError("the answer is not JSON")


# The maximum length of a text


def _most_text(node: Node, scope: Mapping[str, int]) -> int:
    """Return an upper bound of the characters of a value with all its parts."""
    match node:
        case Literal():
            return node.length
        case Local(name, bound):
            return scope.get(name, _ASSUMED_TEXT_CHARACTERS) if bound else _ASSUMED_TEXT_CHARACTERS
        case CreateList(items) | CreateStruct(items):
            return sum((_most_text(item, scope) for item in items), 0)
        case Call():
            return _most_of_call(node, scope)
        case Loop():
            turns = len(node.over.items) if isinstance(node.over, CreateList) else _ASSUMED_TURNS
            over = _most_text(node.over, scope)
            inner = {
                **scope,
                **dict.fromkeys(node.names, max(over // max(turns, 1), _ASSUMED_TEXT_CHARACTERS)),
                node.accumulator: 0,
            }
            return _most_text(node.start, scope) + turns * _most_text(node.step, inner)
        case _:
            return _ASSUMED_TEXT_CHARACTERS


def _most_of_call(call: Call, scope: Mapping[str, int]) -> int:
    sizes = [_most_text(argument, scope) for argument in call.arguments]
    if max(sizes, default=0) > MAX_TEXT:
        return MAX_TEXT + 1
    if call.scalar:
        return 1
    match call.function, sizes:
        case "replace", [text, _, new, *_]:
            return text * max(new, 1)
        case "join", [texts, separator]:
            return texts + _ASSUMED_TURNS * _ASSUMED_TURNS * separator
        case "format", [text, arguments]:
            return text * max(arguments, 1) if text > _ASSUMED_TEXT_CHARACTERS else text + text * arguments // 2
        case "_?_:_", [_, first, second]:
            return max(first, second)
        case _:
            return sum(sizes)
