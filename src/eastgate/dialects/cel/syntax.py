"""A CEL expression as a tree of our own types, so that nothing untyped gets further than `upstream`."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.records import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is None for the kinds that nothing here looks into: null, uint, double, bytes."""

    value: str | int | bool | None
    length: int = 1


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the dialect declares; a map stands here only where it is used as a whole."""

    path: str
    at: int


@dataclass(frozen=True, slots=True)
class HasVariable:
    """`has(request.path)`."""

    path: str
    at: int


@dataclass(frozen=True, slots=True)
class MapEntry:
    """`request.headers["x"]` or `request.headers.x`: a name looked up in a map that the dialect declares."""

    map: str
    key: str


@dataclass(frozen=True, slots=True)
class HasEntry:
    """`"x" in request.headers` or `has(request.headers.x)`."""

    map: str
    key: str


@dataclass(frozen=True, slots=True)
class Local:
    """Any other name: the variable of a loop (then it is `bound`), or a type."""

    name: str
    bound: bool


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a value that the expression made itself; `tested`: inside `has()`."""

    operand: Node
    name: str
    tested: bool
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator, the target of a method first. `scalar`: it gives a number, a bool or a time."""

    function: str
    arguments: tuple[Node, ...]
    scalar: bool
    at: int


@dataclass(frozen=True, slots=True)
class CreateList:
    """A list written out."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CreateStruct:
    """A map or message written out: keys and values, one after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A fold over the elements of a value, which `all`, `exists`, `exists_one`, `map` and `filter` become."""

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
