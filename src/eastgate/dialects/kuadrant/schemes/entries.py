"""Entries of all sections: a name, a priority, conditions, a cache, and one method."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.conditions import WHEN
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import (
    Checking,
    Demand,
    entry_name,
    exactly_one,
    record,
    unique_names,
)
from eastgate.dialects.kuadrant.schemes.values import KEPT_SECONDS, value
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Field, Flag, ListOf, MapOf, Record, Text, Whole, constraint
from eastgate.settings import Settings

_MAX_ENTRIES = 32  # entries of a section that an API server accepts
_PRIORITY = Whole(-(2**31), 2**31 - 1, what="a priority")


def _common(style: Style) -> dict[str, Field[Settings]]:
    key = Field(value(style, "key"), required=True, help=f"write key: {_selected_as(style)}")
    common: dict[str, Field[Settings]] = {
        "priority": Field(_PRIORITY),
        "when": WHEN,
        "cache": Field(record("cache", {"key": key, "ttl": Field(KEPT_SECONDS)})),
        "metrics": Field(Flag()),
    }
    if style is Style.OLD:
        return {"name": Field(Text("a name", entry_name), required=True, help="write name: .."), **common}
    return common


def _selected_as(style: Style) -> str:
    return style.pick("{valueFrom: {authJSON: ..}}", "{selector: ..}")


def entry(
    style: Style,
    what: str,
    methods: Mapping[str, Field[Settings]],
    *rules: Demand,
    extra: Mapping[str, Field[Settings]] | None = None,
    unsupported: tuple[str, ...] = (),
    renamed: Mapping[str, str] | None = None,
    moved: Mapping[str, str] | None = None,
    misspelt: Mapping[str, str] | None = None,
    misplaced: Mapping[str, str] | None = None,
) -> Record[Settings]:
    """Return the shape of an entry. It has exactly one of the fields in `methods`.

    `renamed` are methods of the other style, and `moved` its other fields, each with the replacement. `misplaced` are
    fields that belong inside of the entry, with their place.
    """
    reported = (*unsupported, *(renamed or {}), *(misplaced or {}))
    demand = exactly_one(codes.ONE_METHOD, what, tuple(methods), reported)
    one_method = constraint(oneOf=[{"required": [name]} for name in methods])(demand)
    by_key = {"name": "remove it: here the key of an entry is its name"} if style is Style.NEW else {}
    return record(
        what,
        {**_common(style), **(extra or {}), **methods},
        one_method,
        *rules,
        unsupported=unsupported,
        renamed={**(renamed or {}), **(moved or {}), **by_key},
        misspelt={"conditions": "when", **(misspelt or {})},
        advice=misplaced,
    )


def section(style: Style, what: str, item: Record[Settings], *rules: Demand) -> Field[Settings]:
    """Return the shape of a section: a list of entries with names, or a mapping by name."""
    if style is Style.OLD:
        unique = constraint(list_type="map", list_keys=["name"])
        return Field(
            ListOf(item, f"a list of {what}", unique(_all_of(unique_names(what), *rules)), served=_MAX_ENTRIES)
        )
    return Field(MapOf(item, f"a mapping of {what} by name", _all_of(_entry_names, *rules), served=_MAX_ENTRIES))


def _all_of(*demands: Demand) -> Demand:
    def rule(node: Node, to: Checking) -> None:
        for demand in demands:
            demand(node, to)

    return rule


def _entry_names(node: Node, to: Checking) -> None:
    for key in node.keys.values():
        entry_name(key, to)
