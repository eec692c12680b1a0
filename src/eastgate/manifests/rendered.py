"""The text of an object that nobody wrote as a file: what a cluster has is shown as YAML, and named by its fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from eastgate.diagnostics import Reporter
from eastgate.diagnostics.spans import SourceText, Span
from eastgate.manifests.node import Node
from eastgate.manifests.text import DecodedText
from eastgate.manifests.yaml.nodes import read_yaml_node
from eastgate.regexes import regex

if TYPE_CHECKING:
    import yaml

__all__ = ["RenderedObject", "UnlistedKind"]


class RenderedObject:
    """The origin of an object that came as data. Its text is made when somebody asks for a position."""

    __slots__ = ("_data", "_root", "_source")

    written = None  # two objects are compared by their data

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        self._data = data
        self._root: Node | None = None
        self._source = SourceText(name, self._render, self._field_at)

    def node(self) -> Node:
        """Return the object with positions in its text."""
        if self._root is None:
            text = DecodedText(self._source, b"", {})
            root = read_yaml_node(text, 0, len(self._source.text), Reporter())
            assert root is not None  # noqa: S101 - it was written by a YAML library
            self._root = root
        return self._root

    def span(self) -> Span:
        """Return the position of the whole."""
        return self._root.span if self._root is not None else Span(self._source, 1, 1, 1, 1)

    def _render(self) -> str:
        import yaml

        return yaml.dump(self._data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1 << 20)

    def _field_at(self, span: Span) -> str:
        """Return the path of the field that a span is in: `spec.rules[0].from`."""
        steps: list[str] = []
        node: Node | None = self.node()
        while node is not None:
            step, node = _child_around(node, span)
            steps.append(step)
        return "".join(steps).removeprefix(".")


class UnlistedKind(RenderedObject):
    """The origin of a document that stands for all objects of a kind, which were not read, and why.

    With `beyond`, only those outside of this namespace were not.
    """

    __slots__ = ("beyond", "reason")

    def __init__(self, name: str, data: Mapping[str, Any], reason: str, beyond: str | None = None) -> None:
        super().__init__(f"{name} ({reason})", data)
        self.reason = reason
        self.beyond = beyond


@cache
def _dumper() -> type[yaml.CSafeDumper]:
    """Return what writes YAML 1.1 as kubectl reads it: a bare `y` or `n` is a boolean there, and `1e3` a number."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        pass

    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", regex(r"[yYnN]\Z"), list("yYnN"))
    number_like = regex(r"[-+.]*[0-9].*\Z")  # asked after PyYAML's own, so that real numbers stay what they are
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number_like, list("-+.0123456789"))
    return Dumper


def _child_around(node: Node, span: Span) -> tuple[str, Node | None]:
    """Return the step to the entry or item of a node that a span is in; None where it is in none."""
    for key, value in node.items():
        if _is_around(value, span) or _is_around(node.keys.get(key, value), span):
            return f".{key}" if key.isidentifier() else f"[{key}]", value
    for index, item in enumerate(node):
        if _is_around(item, span):
            return f"[{index}]", item
    return "", None


def _is_around(node: Node, span: Span) -> bool:
    begins = (node.line, node.column) <= (span.line, span.column)
    return begins and (span.end_line, span.end_column) <= (node.end_line, node.end_column)
