"""The text of a cluster's object: it is shown as YAML, and its place is named by its fields.

A cluster has many objects of any size, so only their JSON is kept. The text and the values with positions take fifty
times as much memory. They are made on demand, and kept only for the last few objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from eastgate.basics.caching import SizedCache
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.text import DecodedText
from eastgate.reading.manifests.yaml.nodes import read_yaml_node

if TYPE_CHECKING:
    import yaml


_MAX_RENDERED_BYTES: Final = 256 * 1024  # JSON of all objects whose texts are kept


@dataclass(slots=True)
class _RenderedText:
    """An object as text, with its values and positions if they were needed."""

    text: SourceText
    root: Node | None = None


class RenderedObject(SourceText):
    """The origin of an object that came as data. Its text is made when a position is needed."""

    __slots__ = ("_extent", "_json")

    written = None  # two objects are compared by their data

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        import msgspec  # imported here because most commands read files

        super().__init__(name, "")
        self._json = msgspec.json.encode(data)
        self._extent = (1, 1, 1, 1)  # extent of the whole text; a span would keep this object alive

    @property
    def is_object(self) -> bool:
        """Return that it is an object of a cluster."""
        return True

    @property
    def data(self) -> dict[str, Plain]:
        """Return the object, as a copy."""
        import msgspec

        data: dict[str, Plain] = msgspec.json.decode(self._json)
        return data

    @property
    def text(self) -> str:
        """Return the whole text."""
        return self._rendering.text.text

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1; see `SourceText.line`."""
        return self._rendering.text.line(number)

    def hides(self, number: int) -> bool:
        """Return whether a line has a hidden value."""
        return self._rendering.text.hides(number)

    def node(self) -> Node:
        """Return the object with positions in its text."""
        rendering = self._rendering
        if rendering.root is None:
            text = DecodedText(self, b"", {})
            root = read_yaml_node(text, 0, len(rendering.text.text), Reporter())
            assert root is not None  # noqa: S101 - it was written by a YAML library
            rendering.root = root
            self._extent = (root.line, root.column, root.end_line, root.end_column)
        return rendering.root

    def span(self) -> Span:
        """Return the position of the whole."""
        return Span(self, *self._extent)

    @property
    def _rendering(self) -> _RenderedText:
        return _RENDERINGS.get(self, lambda: (self._render(), len(self._json)))

    def _render(self) -> _RenderedText:
        import yaml

        text = yaml.dump(self.data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1 << 20)
        return _RenderedText(SourceText(self.name, text))

    def _field_of(self, span: Span) -> str:
        """Return the path of the field at a span: `spec.rules[0].from`."""
        steps: list[str] = []
        node: Node | None = self.node()
        while node is not None:
            step, node = _child_around(node, span)
            steps.append(step)
        return "".join(steps).removeprefix(".")


_RENDERINGS: Final[SizedCache[RenderedObject, _RenderedText]] = SizedCache(_MAX_RENDERED_BYTES)


def forget_renderings() -> None:
    """Drop the texts of all objects. They are made again when a position is needed."""
    _RENDERINGS.clear()


class UnlistedKind(RenderedObject):
    """The origin of a document that represents all objects of an unread kind, with the reason.

    With `beyond`, it represents only those outside of this namespace.
    """

    __slots__ = ("beyond", "reason")

    def __init__(self, name: str, data: Mapping[str, Any], reason: str, beyond: str | None = None) -> None:
        super().__init__(f"{name} ({reason})", data)
        self.reason = reason
        self.beyond = beyond


class LostPart(RenderedObject):
    """The origin of a document in the place of an unreadable part, such as a file with a syntax error."""

    __slots__ = ("_at",)

    def __init__(self, name: str, at: Span | None) -> None:
        super().__init__(name, {})
        self._at = at

    def span(self) -> Span:
        """Return the place where reading stopped, if it is known."""
        return self._at if self._at is not None else super().span()


class OversizedObject(RenderedObject):
    """The origin of a policy that exceeds a limit. Only its short fields are kept, and reading it is an error."""

    __slots__ = ("left_out", "problem")

    def __init__(self, name: str, data: Mapping[str, Any], left_out: tuple[str, ...], problem: Diagnostic) -> None:
        super().__init__(name, data)
        self.left_out = left_out
        self.problem = problem

    def report(self, reporter: Reporter) -> None:
        """Report the limit at each omitted field of its spec, or at its name without such a field."""
        for path in [("spec", field) for field in self.left_out] or [("metadata", "name")]:
            span = self.node().nearest(*path).span
            reporter.report(self.problem.code, self.problem.message, span, help=self.problem.help)


@cache
def _dumper() -> type[yaml.CSafeDumper]:
    """Return a dumper for YAML 1.1 as kubectl reads it, where a bare `y` or `n` is a boolean, and `1e3` a number."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        pass

    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", regex(r"[yYnN]\Z"), list("yYnN"))
    number_like = regex(r"[-+.]*[0-9].*\Z")  # tested after PyYAML's own patterns, so that real numbers stay numbers
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number_like, list("-+.0123456789"))
    return Dumper


def _child_around(node: Node, span: Span) -> tuple[str, Node | None]:
    """Return the step to the entry or item of a node that contains a span, or None."""
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
