"""From values and conditions of a checked scheme to their model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    CelExpression,
    CelPredicate,
    Condition,
    LiteralValue,
    MissingPatterns,
    Pattern,
    PatternOperator,
    Property,
    Selected,
    Value,
)
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.reading.manifests.node import Node


@dataclass(frozen=True, slots=True)
class Patterns:
    """The named sets of patterns that conditions refer to."""

    sets: Mapping[str, All] = field(default_factory=dict)
    drop_missing: bool = False
    """A reference to a set that does not exist is left out, as Authorino does. Otherwise it errs."""

    def resolve(self, reference: Node) -> tuple[Condition, ...]:
        """Return the patterns of the set with this name."""
        named = self.sets.get(reference.text)
        if named is not None:
            return named.parts
        return () if self.drop_missing else (MissingPatterns(reference.text, reference.span),)


def texts(node: Node | None) -> tuple[str, ...]:
    """Read the strings of a list."""
    return tuple(item.text for item in node or ())


# Values


def value_of(node: Node) -> Value:
    """Read a value: a literal, a selector or an expression."""
    selected = node["valueFrom"]["authJSON"] if "valueFrom" in node else node.get("selector")
    if selected is not None:
        return Selected(selected.text)
    if "expression" in node:
        return CelExpression(node["expression"].text)
    return LiteralValue(node["value"].plain())


def optional_value(node: Node | None) -> Value | None:
    """Read a value, if there is one: an empty mapping has none."""
    return value_of(node) if node is not None and node.value else None


def properties(node: Node | None, *, overwrite: bool = False) -> tuple[Property, ...]:
    """Read named values, in a list or a mapping."""
    return tuple(Property(name, value_of(entry), overwrite or _overwrites(entry)) for name, entry in entries(node))


def _overwrites(entry: Node) -> bool:
    flag = entry.get("overwrite")
    return flag is not None and flag.value is True


# Conditions


def named_patterns(entries: Iterable[tuple[str, Node]], *, drop_missing: bool = False) -> Patterns:
    """Read sets of patterns: a list, or a mapping with the list under `allOf`."""
    sets = {name: All(tuple(_condition(pattern, Patterns()) for pattern in _listed(node))) for name, node in entries}
    return Patterns(sets, drop_missing)


def _listed(patterns: Node) -> Node:
    return patterns["allOf"] if isinstance(patterns.value, dict) else patterns


def all_of(conditions: Node | None, patterns: Patterns) -> All | None:
    """Read a list of conditions, ALL of which must hold; None where there are none."""
    if conditions is None or not list(conditions):
        return None
    return All(tuple(_condition(condition, patterns) for condition in conditions))


def at_gateway(predicates: Node | None) -> All | None:
    """Read the `when` of an AuthPolicy: predicates that the filter of a gateway evaluates, ALL of which must hold."""
    if predicates is None or not list(predicates):
        return None
    nodes = (condition["predicate"] for condition in predicates)
    return All(tuple(CelPredicate(node.text, node.span, at_gateway=True) for node in nodes))


def _alternatives(node: Node, patterns: Patterns) -> tuple[Condition, ...]:
    """Read a member of `any`. A named set becomes its patterns one by one, as Authorino flattens it."""
    return patterns.resolve(node["patternRef"]) if "patternRef" in node else (_condition(node, patterns),)


def _condition(node: Node, patterns: Patterns) -> Condition:
    if "patternRef" in node:
        return All(patterns.resolve(node["patternRef"]))
    if "predicate" in node:
        return CelPredicate(node["predicate"].text, node["predicate"].span)
    if "all" in node:
        return All(tuple(_condition(member, patterns) for member in node["all"]))
    if "any" in node:
        members = [(member, _alternatives(member, patterns)) for member in node["any"]]
        apart = tuple(member["patternRef"].span for member, parts in members if len(parts) > 1)
        return AnyOf(tuple(part for _, parts in members for part in parts), apart)
    value = node.get("value")
    operator = PatternOperator(node["operator"].text)
    return Pattern(node["selector"].text, operator, value.text if value is not None else "", node.span)
