"""The only module that uses `cel-expr-python` and protobuf, which are untyped.

The core checks and runs expressions. The serialized form of a checked expression is its syntax tree, which
`_TreeReader` converts to `syntax`. `expr.binpb` describes the messages of that form (`cel.expr`), so that runs without
proxies do not need xds-protos. The first expression loads all of this, which takes about 60 ms. Runs without CEL do not
load it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from eastgate.basics.records import dataclass
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
from eastgate.dialects.cel.variables import VariableKind, Variables, presence_of

# Runs a compiled expression, and rewrites its errors for the policy's author.


class CelEvaluationError(Exception):
    """The expression has no answer for this request. An error must neither allow the request nor skip a deny rule."""


class CelProgram(Protocol):
    """A compiled expression."""

    def run(self, data: Mapping[str, object]) -> bool:
        """Return the answer. Raises CelEvaluationError if there is none."""
        ...


def fitting(value: str | int, kind: VariableKind, path: str) -> str | int | datetime:
    """Return the value in the type of the evaluator.

    A value of the wrong type errs, because it must not be compared as another type.
    """
    match kind, value:
        case VariableKind.TEXT, str():
            return _whole(value, path)
        case VariableKind.NUMBER, int() if not isinstance(value, bool):
            return value
        case VariableKind.TIME, str():
            try:
                time = datetime.fromisoformat(value)
            except ValueError as error:
                raise CelEvaluationError(f"`{path}` is {value!r}, not a time such as 2026-01-31T12:00:00Z") from error
            if time.tzinfo is not None:
                return time
            raise CelEvaluationError(f"`{path}` is {value!r}, a time without its offset from UTC")
    raise CelEvaluationError(f"`{path}` is {value!r}, not {'an' if kind is VariableKind.NUMBER else 'a'} {kind.value}")


def _whole(text: str, path: str) -> str:
    """Return the text if the core sees all of it.

    The core ends a text at a NUL, and would read `admin\\0x` as `admin`.
    """
    if "\0" in text:
        raise CelEvaluationError(f"`{path}` contains NUL, which cannot be evaluated")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise CelEvaluationError(f"`{path}` is not Unicode") from error
    return text


def in_plain_words(message: str) -> str:
    """Return an evaluation error of the CEL core without its status code."""
    absent = re.search(r'No value with name "(.*)" found in Activation', message)
    if absent:
        return f"`{absent[1]}` is absent"
    missing = re.search(r"Key not found in map : (.*)", message)
    if missing:
        return f"there is no entry {missing[1]}"
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", message)


TOO_DEEP = "recursion limit exceeded"


@dataclass(frozen=True, slots=True)
class CoreError:
    """An error of the core: it does not accept an expression."""

    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression that the core accepts: its tree, the name of its type, and its program."""

    tree: Node
    type: str
    program: _Program


def parse(text: str, variables: Variables) -> Node | CoreError:
    """Parse an expression without a check of names and types."""
    try:
        compiled = _environment(variables).compile(text, disable_check=True)
        parsed = _unpacked(compiled, "ParsedExpr")
        return _TreeReader(variables, parsed.source_info.positions, {}).read(parsed.expr, frozenset())
    except Exception as error:  # the core raises bare RuntimeErrors, protobuf its own; none may escape
        return _core_error(error)


def check(text: str, variables: Variables) -> Checked | CoreError:
    """Check names and types of an expression, and compile it."""
    environment = _environment(variables)
    try:
        compiled = environment.compile(text)
        checked = _unpacked(compiled, "CheckedExpr")
        reader = _TreeReader(variables, checked.source_info.positions, checked.type_map)
        tree = reader.read(checked.expr, frozenset())
        if reader.respelled:
            compiled = environment.deserialize(_packed(checked))
    except Exception as error:  # as above
        return _core_error(error)
    return Checked(tree, compiled.return_type().name(), _Program(compiled))


class _Program:
    """Satisfies `runtime.Program`."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def run(self, data: Mapping[str, object]) -> bool:
        """Return the answer. An error that the core returns or raises becomes a CelEvaluationError."""
        try:
            result = self._compiled.eval(data=data)
            answer = result.plain_value()
        except Exception as error:  # a bare RuntimeError, for instance after too many iterations
            raise CelEvaluationError(in_plain_words(str(error))) from error
        if answer is True or answer is False:
            return bool(answer)
        kind = result.type().name()
        message = in_plain_words(str(answer)) if kind == "ERROR" else f"the answer is of type {kind.lower()}, not bool"
        raise CelEvaluationError(message)


@lru_cache(maxsize=64)
def _environment(variables: Variables) -> Any:
    """Return an environment with dotted variables.

    An unknown field is then an error of the expression, not of each request.
    """
    from cel_expr_python import cel  # type: ignore[import-untyped]

    types: dict[str, Any] = {presence_of(path): cel.Type.BOOL for path in variables}
    types |= dict.fromkeys(variables.texts, cel.Type.STRING)
    types |= dict.fromkeys(variables.numbers, cel.Type.INT)
    types |= dict.fromkeys(variables.times, cel.Type.TIMESTAMP)
    types |= dict.fromkeys(variables.maps, cel.Type.Map(cel.Type.STRING, cel.Type.STRING))
    return cel.NewEnv(variables=types)


@cache
def _messages() -> Any:
    """Return the pool of the messages of `cel.expr`. The default pool may contain those of xds-protos."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(Path(__file__).with_name("expr.binpb").read_bytes()).file:
        pool.Add(file)
    return pool


def _unpacked(compiled: Any, kind: str) -> Any:
    from google.protobuf.any_pb2 import Any as Envelope
    from google.protobuf.message_factory import GetMessageClass

    message = GetMessageClass(_messages().FindMessageTypeByName(f"cel.expr.{kind}"))()
    envelope = Envelope()
    envelope.ParseFromString(compiled.serialize())
    if not envelope.Unpack(message):
        raise TypeError(f"the core serializes {envelope.type_url}")
    return message


def _packed(message: Any) -> bytes:
    from google.protobuf.any_pb2 import Any as Envelope

    envelope = Envelope()
    envelope.Pack(message)
    return bytes(envelope.SerializeToString())


def _core_error(error: Exception) -> CoreError:
    message = str(error)
    return CoreError(TOO_DEEP if "recursion" in message or "MaxDepth" in message else message)


def _is_scalar(type_: Any) -> bool:
    """Return whether values of the type have a fixed size: bool, int, uint, double, timestamp or duration."""
    return type_ is not None and (type_.primitive in (1, 2, 3, 4) or type_.well_known in (2, 3))


class _TreeReader:
    """Converts the protobuf tree to `syntax`. Names looked up in maps get the spelling of the request."""

    def __init__(self, variables: Variables, positions: Mapping[int, int], types: Any) -> None:
        self._variables = variables
        self._presences = {presence_of(path): path for path in variables}
        self._positions = positions
        self._types = types
        self.respelled = False

    def read(self, expr: Any, bound: frozenset[str]) -> Node:
        """Return the node. `bound` are the variables of the enclosing loops."""
        match expr.WhichOneof("expr_kind"):
            case "const_expr":
                return _literal(expr.const_expr)
            case "ident_expr":
                return self._name(expr, bound)
            case "select_expr":
                return self._select(expr, bound)
            case "call_expr":
                return self._call(expr, bound)
            case "list_expr":
                return CreateList(self._all(expr.list_expr.elements, bound))
            case "struct_expr":
                entries = expr.struct_expr.entries
                keys = [entry.map_key for entry in entries if entry.HasField("map_key")]
                return CreateStruct(self._all([*keys, *(entry.value for entry in entries)], bound))
            case "comprehension_expr":
                return self._loop(expr.comprehension_expr, bound)
            case kind:
                raise TypeError(f"the core made a node that is not known here: {kind}")

    def _all(self, parts: Iterable[Any], bound: frozenset[str]) -> tuple[Node, ...]:
        return tuple(self.read(part, bound) for part in parts)

    def _at(self, expr: Any) -> int:
        return self._positions.get(expr.id, 0)

    def _name(self, expr: Any, bound: frozenset[str]) -> Node:
        name = str(expr.ident_expr.name).lstrip(".")
        if name in bound:
            return Local(name, bound=True)
        if name in self._variables:
            return Variable(name, self._at(expr))
        if name in self._presences:
            return HasVariable(self._presences[name], self._at(expr))
        return Local(name, bound=False)

    def _select(self, expr: Any, bound: frozenset[str]) -> Node:
        select = expr.select_expr
        operand = self.read(select.operand, bound)
        if isinstance(operand, Variable) and operand.path in self._variables.maps:
            select.field = self._spelled(operand.path, select.field)
            return (HasEntry if select.test_only else MapEntry)(operand.path, select.field)
        return Select(operand, select.field, select.test_only, self._at(expr))

    def _call(self, expr: Any, bound: frozenset[str]) -> Node:
        call = expr.call_expr
        parts = [call.target, *call.args] if call.HasField("target") else call.args
        arguments = self._all(parts, bound)
        match call.function, arguments:
            case ("_[_]", (Variable(path), Literal(str(key)))) if path in self._variables.maps:
                parts[1].const_expr.string_value = self._spelled(path, key)
                return MapEntry(path, parts[1].const_expr.string_value)
            case ("@in", (Literal(str(key)), Variable(path))) if path in self._variables.maps:
                parts[0].const_expr.string_value = self._spelled(path, key)
                return HasEntry(path, parts[0].const_expr.string_value)
        return Call(call.function, arguments, _is_scalar(self._types.get(expr.id)), self._at(expr))

    def _loop(self, loop: Any, bound: frozenset[str]) -> Loop:
        names = tuple(str(name) for name in (loop.iter_var, loop.iter_var2) if name)
        inner = bound | {*names, loop.accu_var}
        return Loop(
            names,
            self.read(loop.iter_range, bound),
            loop.accu_var,
            self.read(loop.accu_init, bound),
            self.read(loop.loop_condition, inner),
            self.read(loop.loop_step, inner),
            self.read(loop.result, inner),
        )

    def _spelled(self, path: str, key: str) -> str:
        spelled = self._variables.maps[path](key).key or key.lower()
        self.respelled = self.respelled or spelled != key
        return spelled


def _literal(constant: Any) -> Literal:
    match constant.WhichOneof("constant_kind"):
        case "string_value":
            return Literal(constant.string_value, len(constant.string_value))
        case "int64_value":
            return Literal(constant.int64_value)
        case "bool_value":
            return Literal(constant.bool_value)
        case "bytes_value":
            return Literal(None, len(constant.bytes_value))
        case _:
            return Literal(None)
