"""Values and conditions of a checked scheme, as the model has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    CelExpression,
    CelPredicate,
    Condition,
    Literal,
    Operator,
    Pattern,
    Property,
    Selected,
    Value,
)
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.manifests.node import Node

__all__ = ["Patterns", "all_of", "named_patterns", "optional_value", "properties", "texts", "value_of"]

Patterns: TypeAlias = Mapping[str, All]
"""The named sets of patterns of a scheme, which conditions refer to."""


def texts(node: Node | None) -> tuple[str, ...]:
    """The strings of a list."""
    return tuple(item.text for item in node or ())


# Values


def value_of(node: Node) -> Value:
    """What is written out, selected or computed."""
    selected = node["valueFrom"]["authJSON"] if "valueFrom" in node else node.get("selector")
    if selected is not None:
        return Selected(selected.text)
    if "expression" in node:
        return CelExpression(node["expression"].text)
    return Literal(node["value"].plain())


def optional_value(node: Node | None) -> Value | None:
    """The value, where there is one."""
    return value_of(node) if node is not None else None


def properties(node: Node | None, *, overwrite: bool = False) -> tuple[Property, ...]:
    """Named values, in a list or a mapping."""
    return tuple(Property(name, value_of(entry), overwrite or _overwrites(entry)) for name, entry in entries(node))


def _overwrites(entry: Node) -> bool:
    flag = entry.get("overwrite")
    return flag is not None and flag.value is True


# Conditions


def named_patterns(node: Node | None) -> Patterns:
    """Each set of patterns, by its name."""
    if node is None:
        return {}
    return {name: All(tuple(_condition(one, {}) for one in patterns)) for name, patterns in node.items()}


def all_of(conditions: Node | None, patterns: Patterns) -> All | None:
    """ALL of a list of conditions; None where there is none, and nothing to ask."""
    if conditions is None or not list(conditions):
        return None
    return All(tuple(_condition(one, patterns) for one in conditions))


def _alternatives(node: Node, patterns: Patterns) -> tuple[Condition, ...]:
    """What a member of `any` contributes. A named set is its patterns one by one, as Authorino flattens it."""
    return patterns[node["patternRef"].text].parts if "patternRef" in node else (_condition(node, patterns),)


def _condition(node: Node, patterns: Patterns) -> Condition:
    if "patternRef" in node:
        return patterns[node["patternRef"].text]
    if "predicate" in node:
        return CelPredicate(node["predicate"].text, node["predicate"].span)
    if "all" in node:
        return All(tuple(_condition(one, patterns) for one in node["all"]))
    if "any" in node:
        members = [(one, _alternatives(one, patterns)) for one in node["any"]]
        apart = tuple(one["patternRef"].span for one, parts in members if len(parts) > 1)
        return AnyOf(tuple(part for _, parts in members for part in parts), apart)
    value = node.get("value")
    operator = Operator(node["operator"].text)
    return Pattern(node["selector"].text, operator, value.text if value is not None else "", node.span)
