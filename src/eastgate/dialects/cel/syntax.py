"""A CEL expression as a tree of Eastgate's own types. Only `upstream` handles untyped objects."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.records import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is None for null, uint, double and bytes, whose values are never needed."""

    value: str | int | bool | None
    length: int = 1


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the dialect. A map occurs here only if the expression uses it as a whole."""

    path: str
    at: int


@dataclass(frozen=True, slots=True)
class HasVariable:
    """`has(request.path)`."""

    path: str
    at: int


@dataclass(frozen=True, slots=True)
class MapEntry:
    """`request.headers["x"]` or `request.headers.x`: the lookup of a name in a map of the dialect."""

    map: str
    key: str


@dataclass(frozen=True, slots=True)
class HasEntry:
    """`"x" in request.headers` or `has(request.headers.x)`."""

    map: str
    key: str


@dataclass(frozen=True, slots=True)
class Local:
    """Any other name: a type, or the variable of a loop (`bound`)."""

    name: str
    bound: bool


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a value that the expression created. `tested`: inside `has()`."""

    operand: Node
    name: str
    tested: bool
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator.

    The target of a method is the first argument. `scalar`: the result is a number, bool or time.
    """

    function: str
    arguments: tuple[Node, ...]
    scalar: bool
    at: int


@dataclass(frozen=True, slots=True)
class CreateList:
    """A list literal."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CreateStruct:
    """A map or message literal: keys and values alternate."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over the elements of a value: the form of `all`, `exists`, `exists_one`, `map` and `filter`."""

    names: tuple[str, ...]
    over: Node
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node = Literal | Variable | HasVariable | MapEntry | HasEntry | Local | Select | Call | CreateList | CreateStruct | Loop


def walk(node: Node) -> Iterator[Node]:
    """Yield every node of the tree, outer before inner."""
    yield node
    for child in _children(node):
        yield from walk(child)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Select(operand=operand):
            return (operand,)
        case Call(arguments=parts) | CreateList(items=parts) | CreateStruct(items=parts):
            return parts
        case Loop():
            return (node.over, node.start, node.condition, node.step, node.result)
        case _:
            return ()
