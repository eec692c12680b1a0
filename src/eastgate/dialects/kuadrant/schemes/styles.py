"""The two styles of a scheme, and how to distinguish them.

Authorino's v1beta1 has lists of entries with names. v1beta2 and v1beta3 have mappings by name, and other names for most
fields. A scheme has one style. Field names that exist in one style only decide which. If there are none, lists or
mappings decide.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.validation import Checking
from eastgate.reading.manifests.node import Node


class Style(enum.StrEnum):
    """A style of schemes, named after the first version of AuthConfig with it."""

    OLD = "v1beta1"
    NEW = "v1beta2"

    def pick(self, old: str, new: str) -> str:
        """Return the field name of this style."""
        return old if self is Style.OLD else new


_WORDS = {"identity": Style.OLD, "denyWith": Style.OLD, "authentication": Style.NEW}
_SECTIONS = ("metadata", "authorization", "response")

_INSTEAD = {
    "identity": "write it as a mapping: authentication: {<name>: {..}}",
    "denyWith": "write response: {unauthenticated: {..}, unauthorized: {..}}",
    "authentication": "write it as a list: identity: [{name: .., ..}]",
}


def in_one_style(scheme: Node, to: Checking) -> tuple[Style, Node]:
    """Return the style of a scheme, and the scheme without the fields of the other style, which are reported."""
    marks = {key: style for key, value in scheme.items() if (style := _style(key, value)) is not None}
    first = next((key for key in marks if key in _WORDS), None) or next(iter(marks), None)
    if first is None:
        return Style.OLD, scheme
    style = marks[first]
    strangers = [key for key, other in marks.items() if other is not style]
    for key in strangers:
        message = f"`{key}` has the form of {marks[key]}, and `{first}` has the form of {style}"
        to.report(codes.MIXED_VERSIONS, message, scheme.key_span(key), help=_instead(key, style))
    return style, _without(scheme, strangers)


def _style(key: str, value: Node) -> Style | None:
    if key in _SECTIONS:
        return Style.OLD if isinstance(value.value, list) else Style.NEW if isinstance(value.value, dict) else None
    return _WORDS.get(key)


def _instead(key: str, style: Style) -> str:
    if key == "response":
        return style.pick(
            "write response: [{name: .., ..}], and denials in denyWith: {..}",
            "write response: {success: {headers: {<name>: {..}}}}",
        )
    as_a = style.pick(f"write a list: {key}: [{{name: .., ..}}]", f"write a mapping: {key}: {{<name>: {{..}}}}")
    return _INSTEAD.get(key) or as_a


def _without(node: Node, keys: list[str]) -> Node:
    """Return the mapping, with its span, without some of its entries."""
    if not keys:
        return node
    kept = {key: value for key, value in node.items() if key not in keys}
    return Node(kept, node.source, node.line, node.column, node.end_line, node.end_column, node.keys)


def entries(section: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the entries of a section in either style, each with its name."""
    if section is None:
        return
    yield from section.items()
    for entry in section:
        name = entry.get("name")
        yield name.text if name is not None and isinstance(name.value, str) else "", entry
