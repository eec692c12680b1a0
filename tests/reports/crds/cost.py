"""The cost of a rule for an API server, computed like the server's estimate from the sizes that the schema allows.

The constants are those of cel-go and of the Kubernetes libraries. `test_server_cost` compares them with a real server.
A text counts with four bytes a character. Without a limit it counts as the largest request, and a list counts as a
request full of the smallest entries. So every list that a rule reads needs a limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eastgate.dialects.cel.syntax import Call, CreateList, Literal, Local, Loop, Node, Select
from eastgate.dialects.cel.upstream import CoreError, parse
from eastgate.dialects.cel.variables import Variables

Schema = dict[str, Any]

LARGEST_REQUEST = 3 * 1024 * 1024
_BYTES_PER_CHARACTER = 4
_SMALLEST = {"string": 2, "boolean": 4, "integer": 1, "number": 1, "array": 2, "object": 2}
_NOTHING = Variables()


@dataclass(frozen=True)
class Rule:
    """A rule at its place: its schema, and the number of such values in one object."""

    text: str
    schema: Schema
    times: int

    @property
    def cost(self) -> int:
        """Return the highest cost of one evaluation, as the server estimates it for a definition."""
        return _Estimate(_BYTES_PER_CHARACTER).cost(_tree(self.text), {"self": self.schema})

    @property
    def spent(self) -> int:
        """Return the highest cost of one evaluation at run time. Then characters are counted, not bytes."""
        return _Estimate(1).cost(_tree(self.text), {"self": self.schema})


def rules(schema: Schema, times: int | None = 1) -> Iterator[Rule]:
    """Yield each rule of a schema, from the outside to the inside."""
    often = LARGEST_REQUEST // (_smallest(schema) + 1) if times is None else times
    for rule in schema.get("x-kubernetes-validations", ()):
        yield Rule(rule["rule"], schema, often)
    for inner in schema.get("properties", {}).values():
        yield from rules(inner, times)
    for name, limit in (("items", "maxItems"), ("additionalProperties", "maxProperties")):
        if name in schema:
            yield from rules(schema[name], None if times is None or limit not in schema else times * schema[limit])


def _tree(rule: str) -> Node:
    tree = parse(rule, _NOTHING)
    assert not isinstance(tree, CoreError), tree
    return tree


@dataclass(frozen=True)
class _Estimate:
    bytes_per_character: int

    def cost(self, node: Node, names: dict[str, Schema]) -> int:
        match node:
            case Literal():
                return 0
            case Local():
                return 1
            case Select():
                return (0 if node.tested else 1) + self.cost(node.operand, names)
            case CreateList():
                return 10 + sum(self.cost(item, names) for item in node.items)
            case Loop():
                return self._loop(node, names)
            case Call("_?_:_", (condition, *ways)):
                return self.cost(condition, names) + max(self.cost(way, names) for way in ways)
            case Call():
                return sum(self.cost(argument, names) for argument in node.arguments) + self._call(node, names)
            case _:
                raise AssertionError(f"no rule has {node}")

    def _loop(self, node: Loop, names: dict[str, Schema]) -> int:
        over = _schema(node.over, names) or {}
        inner = {**names, node.names[0]: _entry(over)}
        each = self.cost(node.condition, inner) + self.cost(node.step, inner)
        once = self.cost(node.over, names) + self.cost(node.start, names) + self.cost(node.result, inner)
        return once + self._size(node.over, names) * each

    def _call(self, node: Call, names: dict[str, Schema]) -> int:
        """Return the cost of a call without its arguments."""
        sizes = [self._size(argument, names) for argument in node.arguments]
        match node.function, sizes:
            case "_&&_" | "_||_", _:
                return 0
            case "matches", [text, pattern]:
                return math.ceil((1 + text) * 0.1) * math.ceil(pattern * 0.25)
            case "contains", [text, part]:
                return math.ceil(text * 0.1) * math.ceil(part * 0.1)
            case "_==_" | "_!=_", [left, right]:
                return math.ceil(min(left, right) * 0.1)
            case "@in", [_, container] if _is_list(node.arguments[1], names):
                return container
            case _:
                return 1

    def _size(self, node: Node, names: dict[str, Schema]) -> int:
        match node:
            case Literal():
                return node.length
            case CreateList(items):
                return len(items)
            case Call("dyn", (argument,)):
                return self._size(argument, names)
        schema = _schema(node, names)
        return 1 if schema is None else self._largest(schema)

    def _largest(self, schema: Schema) -> int:
        match schema:
            case {"type": "string", "maxLength": limit}:
                return int(limit) * self.bytes_per_character
            case {"type": "string", "enum": options}:
                return max(map(len, options))
            case {"type": "string"}:
                return LARGEST_REQUEST - 2
            case {"type": "array", "maxItems": limit} | {"type": "object", "maxProperties": limit}:
                return int(limit)
            case {"type": "array", "items": item}:
                return (LARGEST_REQUEST - 2) // (_smallest(item) + 1)
            case {"type": "object", "additionalProperties": value}:
                return (LARGEST_REQUEST - 2) // (_smallest(value) + 6)
            case _:
                return 0


def _schema(node: Node, names: dict[str, Schema]) -> Schema | None:
    """Return the schema of a value in the object; None for a value that the rule made."""
    match node:
        case Local():
            return names.get(node.name)
        case Select():
            inside = _schema(node.operand, names)
            if inside is None or node.tested:
                return None
            return dict(inside["properties"][node.name])  # a name that does not exist would not compile either
        case Call("_[_]", (container, _)):
            inside = _schema(container, names) or {}
            return dict(inside["additionalProperties"]) if "additionalProperties" in inside else _entry(inside)
        case _:
            return None


def _is_list(node: Node, names: dict[str, Schema]) -> bool:
    return isinstance(node, CreateList) or (_schema(node, names) or {}).get("type") == "array"


def _entry(schema: Schema) -> Schema:
    """Return the schema of a loop variable: entries of a list, or keys of a map, whose length is not counted."""
    return dict(schema["items"]) if "items" in schema else {"type": "string", "maxLength": 0}


def _smallest(schema: Schema) -> int:
    """Return the least size of a value in bytes."""
    required = schema.get("required", ())
    inside = sum(len(name) + _smallest(schema["properties"][name]) + 4 for name in required)
    return _SMALLEST.get(schema.get("type", ""), 0) + inside
