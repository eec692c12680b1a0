"""What a rule may cost an API server, estimated as it estimates: from the sizes that the schema allows.

The constants are those of cel-go and of the Kubernetes libraries. A text without a limit counts as the largest
request, and a list without one as a request full of the smallest entries, which is why every list that a rule looks
into must have a limit.
"""

from __future__ import annotations

import math
from typing import Any

from eastgate.cel.syntax import Call, Field, ListOf, Literal, Local, Loop, Node
from eastgate.cel.upstream import Rejected, parse
from eastgate.cel.variables import Variables

Schema = dict[str, Any]

LARGEST_REQUEST = 3 * 1024 * 1024
_NOTHING = Variables()


def estimated(rule: str, schema: Schema) -> int:
    """The cost of one evaluation, at most."""
    tree = parse(rule, _NOTHING)
    assert not isinstance(tree, Rejected), tree
    return _cost(tree, {"self": schema})


def _cost(node: Node, names: dict[str, Schema]) -> int:
    match node:
        case Literal():
            return 0
        case Local():
            return 1
        case Field():
            return 1 + _cost(node.operand, names)
        case ListOf():
            return 10 + sum(_cost(one, names) for one in node.items)
        case Loop():
            over = _schema(node.over, names) or {}
            inner = {**names, node.names[0]: _entry(over), node.accumulator: {"type": "boolean"}}
            each = _cost(node.condition, inner) + _cost(node.step, inner)
            size = len(node.over.items) if isinstance(node.over, ListOf) else _size(over)
            parts = _cost(node.over, names) + _cost(node.start, names) + _cost(node.result, inner)
            return parts + size * (1 + each)
        case Call():
            return sum(_cost(one, names) for one in node.arguments) + _call(node, names)
        case _:
            raise AssertionError(f"no rule has {node}")


def _call(node: Call, names: dict[str, Schema]) -> int:
    first = _size(_schema(node.arguments[0], names) or {}) if node.arguments else 0
    match node.function, node.arguments:
        case "matches", (_, Literal(length=length)):
            return math.ceil((1 + first) * 0.1) * math.ceil(length * 0.25)
        case "contains", (_, Literal(length=length)):
            return math.ceil(first * 0.1) * math.ceil(length * 0.1)
        case (("_==_" | "_!=_"), (_, Literal(length=length))):
            return math.ceil(length * 0.1)
        case "@in", (_, ListOf(items)):
            return len(items) * 2
        case _:
            return 1


def _schema(node: Node, names: dict[str, Schema]) -> Schema | None:
    match node:
        case Local():
            return names.get(node.name)
        case Field():
            inside = _schema(node.operand, names)
            if inside is None or node.tested:
                return None
            return dict(inside["properties"][node.name])  # a name that there is not would not compile either
        case Call("_[_]", (listed, _)):
            return _entry(_schema(listed, names) or {})
        case _:
            return None


def _entry(schema: Schema) -> Schema:
    """What a loop over a value sees: entries of a list; keys of a map, whose length is not counted."""
    return dict(schema["items"]) if "items" in schema else {"type": "string", "maxLength": 0}


def _size(schema: Schema) -> int:
    if "enum" in schema:
        return max(map(len, schema["enum"]))
    limits = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}
    return int(schema.get(limits.get(str(schema.get("type")), ""), LARGEST_REQUEST))
