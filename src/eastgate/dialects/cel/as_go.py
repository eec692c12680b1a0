"""Rewrites expressions so that the core, which is CEL in C++, evaluates them as CEL in Go does.

Authorino and other hosts of documents are written in Go. In Go:

- a missing field of a text or number is absent instead of an error;
- a bool is not a number;
- `substring` may end at the end of the text;
- an optional result is replaced by its content.

The rewriter wraps operands of the checked expression in functions that this file declares and that no author can write.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

# `requestBodyJSON(pointer)`: a value in the body of a request, which is JSON, by a JSON Pointer (RFC 6901).


REQUEST_BODY_JSON: Final = "requestBodyJSON"
BODY: Final = ("request", "body")
"""The path of the body in a document."""
_MAX_DEPTH: Final = 64  # nested objects and arrays


class _Current(threading.local):
    """The body of the request that this thread evaluates an expression for.

    Functions of the core see their arguments only.
    """

    body: object = None


_current = _Current()


@contextmanager
def reading_body(body: object) -> Iterator[None]:
    """Set the body for expressions of this thread."""
    before, _current.body = _current.body, body
    try:
        yield
    finally:
        _current.body = before


def body_declarations(cel: Any) -> list[Any]:
    """Return the declaration of the function, for an environment of the core."""
    overload = cel.Overload(
        id=REQUEST_BODY_JSON, return_type=cel.Type.DYN, parameters=[cel.Type.STRING], impl=_request_body_json
    )
    return [cel.FunctionDecl(REQUEST_BODY_JSON, [overload])]


def _request_body_json(pointer: object) -> object:
    """Return the value, or null if the body has none. A body is an error unless every JSON reader accepts it."""
    from eastgate.reading.strict_json import read_json

    if not isinstance(pointer, str) or not isinstance(_current.body, str):
        raise TypeError("the request has no readable body")
    value: object = read_json(_current.body.encode(), _MAX_DEPTH)
    if pointer and not pointer.startswith("/"):
        return None
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return _doubles(value)


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10 and (name == "0" or not name.startswith("0"))


def _doubles(value: object) -> object:
    """Return the value with all numbers as doubles, as in documents."""
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            return float(value)
        case list():
            return [_doubles(item) for item in value]
        case dict():
            return {key: _doubles(item) for key, item in value.items()}
    raise TypeError("the body is not JSON")


_FIELDS, _ENTRIES, _NUMBER, _SUBSTRING = "@fields", "@entries", "@number", "@substring"
_SCALAR, _NO_DOUBLE = "@scalar", "@no_double"
_STRING: Final = 5  # google.api.expr's number for the primitive type string


def _fields(value: object) -> object:
    """Return a value that has fields: an empty object for a text, a number or null."""
    if isinstance(value, dict):
        return value
    if value is None or isinstance(value, str | bool | int | float):
        return {}
    raise TypeError("it has no fields")


def _entries(value: object) -> object:
    """Return a value that has the entries of a value, by index or by key."""
    return value if isinstance(value, list) else _fields(value)


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise TypeError("no such overload: a bool is no number")
    if isinstance(value, str) and value != value.strip():
        raise ValueError("a number has no blanks around it")
    return value


def _scalar(value: object) -> object:
    if isinstance(value, list | dict):
        raise TypeError("implementations of CEL format lists and maps differently")
    return value


def _no_double(value: object) -> object:
    if isinstance(value, float):
        raise TypeError("implementations of CEL format doubles differently")
    return _scalar(value)


def _substring(text: object, start: object, end: object) -> str:
    if not (isinstance(text, str) and isinstance(start, int) and isinstance(end, int)):
        raise TypeError("no such overload: substring")
    if not 0 <= start <= end <= len(text):
        raise ValueError("substring is out of range")
    return text[start:end]


_IMPLEMENTED: Final[dict[str, tuple[Callable[..., object], int]]] = {
    _FIELDS: (_fields, 1),
    _ENTRIES: (_entries, 1),
    _NUMBER: (_number, 1),
    _SCALAR: (_scalar, 1),
    _NO_DOUBLE: (_no_double, 1),
    _SUBSTRING: (_substring, 3),
}


def only_texts(template: str) -> bool:
    """Return whether a template of `format` has only the clause `%s`, which formats any value."""
    return re.search(r"%(?!s)", template.replace("%%", "")) is None


def declarations(cel: Any) -> list[Any]:
    """Return the declarations of the functions, for an environment of the core."""
    return [
        cel.FunctionDecl(
            name, [cel.Overload(id=name, return_type=cel.Type.DYN, parameters=[cel.Type.DYN] * count, impl=impl)]
        )
        for name, (impl, count) in _IMPLEMENTED.items()
    ]


def rewrite(checked: Any) -> bool:
    """Put the functions into a checked expression, in place; return whether the expression changed."""
    rewriting = _Rewriting(checked)
    rewriting.visit(checked.expr)
    if _is_optional(checked.type_map.get(checked.expr.id)):
        rewriting.unwrap(checked.expr)
    return rewriting.changed


class _Rewriting:
    def __init__(self, checked: Any) -> None:
        self._checked = checked
        self._last = max((*checked.type_map, *checked.source_info.positions, 0))
        self.changed = False

    def visit(self, expr: Any) -> None:
        """Rewrite an expression and all of its parts."""
        for child in _children(expr):
            self.visit(child)
        if expr.HasField("select_expr") and expr.select_expr.test_only:
            self._wrap(expr.select_expr.operand, _FIELDS)
        if expr.HasField("call_expr"):
            self._call(expr, expr.call_expr)

    def _call(self, expr: Any, call: Any) -> None:
        if call.function == "_?._":
            self._wrap(call.args[0], _FIELDS)
        elif call.function == "_[?_]":
            self._wrap(call.args[0], _ENTRIES)
        elif call.function in ("int", "uint", "double") and len(call.args) == 1:
            self._wrap(call.args[0], _NUMBER)
        elif call.function == "format":
            for argument in _listed(call.args[0]):
                self._wrap(argument, _SCALAR if only_texts(call.target.const_expr.string_value) else _NO_DOUBLE)
        elif call.function == "substring" and len(call.args) == 2 and call.HasField("target"):
            arguments = [call.target, *call.args]
            call.ClearField("target")
            del call.args[:]
            call.args.extend(arguments)
            self._name(expr, call, _SUBSTRING)

    def _wrap(self, operand: Any, function: str) -> None:
        """Wrap an operand of unknown type. For a map or a number, the core gives the same result."""
        type_ = self._checked.type_map.get(operand.id)
        is_text = function == _NUMBER and type_ is not None and type_.primitive == _STRING
        if not is_text and (type_ is None or type_.WhichOneof("type_kind") != "dyn"):
            return
        inner = type(operand)()
        inner.CopyFrom(operand)
        operand.Clear()
        self._last += 1
        operand.id = self._last
        self._checked.type_map[operand.id].dyn.SetInParent()
        operand.call_expr.args.append(inner)
        self._name(operand, operand.call_expr, function)

    def unwrap(self, expr: Any) -> None:
        """Take the answer out of an optional; an error if the optional is empty."""
        inner = type(expr)()
        inner.CopyFrom(expr)
        expr.Clear()
        self._last += 1
        expr.id = self._last
        self._checked.type_map[expr.id].dyn.SetInParent()
        expr.call_expr.target.CopyFrom(inner)
        self._name(expr, expr.call_expr, "value", "optional_value")

    def _name(self, expr: Any, call: Any, function: str, overload: str | None = None) -> None:
        call.function = function
        reference = self._checked.reference_map[expr.id]
        reference.Clear()
        reference.overload_id.append(overload or function)
        self.changed = True


def _listed(expr: Any) -> Iterator[Any]:
    """Yield the elements of a list literal. Yield any other list itself."""
    if expr.HasField("list_expr"):
        yield from expr.list_expr.elements
    else:
        yield expr


def _is_optional(type_: Any) -> bool:
    return type_ is not None and type_.abstract_type.name == "optional_type"


def _children(expr: Any) -> Iterator[Any]:
    match expr.WhichOneof("expr_kind"):
        case "select_expr":
            yield expr.select_expr.operand
        case "call_expr":
            if expr.call_expr.HasField("target"):
                yield expr.call_expr.target
            yield from expr.call_expr.args
        case "list_expr":
            yield from expr.list_expr.elements
        case "struct_expr":
            for entry in expr.struct_expr.entries:
                if entry.HasField("map_key"):
                    yield entry.map_key
                yield entry.value
        case "comprehension_expr":
            loop = expr.comprehension_expr
            yield from (loop.iter_range, loop.accu_init, loop.loop_condition, loop.loop_step, loop.result)
