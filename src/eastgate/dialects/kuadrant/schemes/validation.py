"""Checks that many parts of a scheme share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eastgate.basics.diagnostics import Code
from eastgate.dialects.kuadrant.hosts import HOST_PATTERN, host_problem
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Anything, Check, Field, Record, constraint, enumerated, quoted
from eastgate.reading.manifests.shapes.shape import whole
from eastgate.settings import Settings

Checking = Check[Settings]
Demand = Callable[[Node, Checking], None]
NOT_EVALUATED = "Authorino has this field. Eastgate does not evaluate it, and rejects it."


def record(
    what: str,
    fields: Mapping[str, Field[Settings]],
    *rules: Demand,
    unsupported: tuple[str, ...] = (),
    renamed: Mapping[str, str] | None = None,
    misspelt: Mapping[str, str] | None = None,
    advice: Mapping[str, str] | None = None,
) -> Record[Settings]:
    """Make the shape of a mapping.

    `unsupported` are Authorino's fields that `unsupported.py` reports; no help suggests them. `renamed` are fields of
    the other style, with their replacements.
    """
    taken = ", ".join(f"`{name}`" for name in fields)
    return Record(
        what,
        {**fields, **{name: Field(Anything(), about=NOT_EVALUATED, refused=True) for name in unsupported}},
        rules=rules,
        misspelt=misspelt or {},
        advice=advice or {},
        foreign={name: (codes.MIXED_VERSIONS, instead) for name, instead in (renamed or {}).items()},
        otherwise=f"the fields here are {taken}" if fields else "it has no fields: write {}",
    )


def exactly_one(code: Code, what: str, names: tuple[str, ...], reported: tuple[str, ...] = ()) -> Demand:
    """Require exactly one of several fields. Fields in `reported` count, but are not reported again."""

    @constraint(oneOf=[{"required": [name]} for name in names])
    def rule(node: Node, to: Checking) -> None:
        present = [key for key, value in node.items() if key in names and value.value is not None]
        others = [key for key in reported if key in node]
        if len(present) > 1:
            message = f"{what} has one of `{present[0]}` and `{present[1]}`, not both"
            to.report(code, message, node.key_span(present[1]), help="remove one of them")
        elif not present and not others:
            words = enumerated([f"`{name}`" for name in names], "or")
            to.report(code, f"{what} needs {words}", node, help="write one of them")

    return rule


def unless_empty(demand: Demand) -> Demand:
    """Restrict a check to mappings that are not empty."""

    def rule(node: Node, to: Checking) -> None:
        if node.value:
            demand(node, to)

    return rule


def needs(code: Code, what: str, name: str, example: str, *reported: str) -> Demand:
    """Require a field, unless one of the fields in `reported` replaces it."""

    @constraint(oneOf=[{"required": [name]}])
    def rule(node: Node, to: Checking) -> None:
        if not any(key in node for key in (name, *reported)):
            to.report(code, f"{what} needs `{name}`", node, help=f"write {name}: {example}")

    return rule


def unique_names(what: str, *, fold: bool = False) -> Demand:
    """Reject a duplicate name. `fold`: letter case is ignored."""

    def rule(node: Node, to: Checking) -> None:
        seen: set[str] = set()
        names = list(node.keys.values()) if isinstance(node.value, dict) else _names(node)
        for name in names:
            word = name.text.lower() if fold else name.text
            if word in seen:
                message = f"there are two {what} named {quoted(name.text)}"
                to.report(codes.DUPLICATE_NAME, message, name, help="write another name, or remove one of them")
            seen.add(word)

    return rule


def _names(items: Node) -> list[Node]:
    return [name for item in items if (name := item.get("name")) is not None and isinstance(name.value, str)]


def entry_name(node: Node, to: Checking) -> None:
    """Require a name that is not blank."""
    if not node.text.strip():
        to.report(codes.NAME, "the name is empty", node, help="write a name")


@constraint(pattern=whole(rf"\*|{HOST_PATTERN}"))
def host(node: Node, to: Checking) -> None:
    """Require a host, possibly with a wildcard."""
    problem = host_problem(node.text)
    if problem is not None:
        reason, way_out = problem
        to.report(codes.HOST, f"{quoted(node.text)} is not a host: {reason}", node, help=way_out)
