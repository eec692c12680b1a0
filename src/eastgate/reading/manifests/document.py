"""A Kubernetes object as it is written, and the result of reading manifests."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from eastgate.basics.caching import SizedCache
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass
from eastgate.reading.manifests.custom import CustomResources
from eastgate.reading.manifests.json.nodes import read_json_nodes
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.rendered import RenderedObject
from eastgate.reading.manifests.text import DecodedText
from eastgate.reading.manifests.yaml.nodes import read_yaml_node

if TYPE_CHECKING:
    from eastgate.reading.repository.model import LeftOut

# The result of the two fast readers.


Extent = tuple[int, int]
"""The offsets of the start of a value, and of the character after its end."""


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """The value of a document, its position, and the positions of the entries of its top-level `items`.

    It has no duplicate keys, and each extent can be read again alone: it does not depend on the text around it.
    """

    value: Plain
    extent: Extent
    items: list[Extent]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text that can be read again alone, and the path from its root to the selected value."""

    text: DecodedText
    is_json: bool
    start: int
    end: int
    path: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> Stretch:
        """Return the same stretch for a value further inside."""
        return Stretch(self.text, self.is_json, self.start, self.end, self.path + steps)

    def node(self) -> Node:
        """Read the value with positions. Findings are not reported, because the first reading reported them."""
        if not self.path:
            return self._root()
        key = self.text, self.start, self.end
        return _WITH_PARTS.get(key, lambda: (self._root(), self.end - self.start)).nearest(*self.path)

    def keep(self, root: Node) -> None:
        """Cache the value with positions for readers of its parts."""
        _WITH_PARTS.get((self.text, self.start, self.end), lambda: (root, self.end - self.start))

    def _root(self) -> Node:
        silent = Reporter()
        if self.is_json:
            root = next(iter(read_json_nodes(self.text, self.start, self.end, silent)), None)
        else:
            root = read_yaml_node(self.text, self.start, self.end, silent)
        assert root is not None  # noqa: S101 - it could be read the first time
        return root

    @property
    def written(self) -> str | None:
        """Return the text of the value. Equal texts have equal values. None if the value is a part of another."""
        return None if self.path else self.text.source.text[self.start : self.end]

    def span(self) -> Span:
        """Return the position of the value."""
        return self.node().span if self.path else self.text.span(self.start, self.end)


_WITH_PARTS: Final[SizedCache[tuple[DecodedText, int, int], Node]] = SizedCache(1 << 20)
"""Lists, because their entries are read one after the other. The size is in characters."""


@dataclass(slots=True)
class Document:
    """A Kubernetes object: its type and name, its position, and its content with or without positions."""

    api_version: str
    kind: str
    name: str
    namespace: str | None
    _node: Node | None
    data: dict[str, Plain] | None
    """The content without positions, if positions were not requested."""
    _origin: Stretch | Node | RenderedObject = field(repr=False, compare=False)
    """The source from which positions are read on demand."""
    default_namespace: str = field(default="default", repr=False, compare=False)
    _located: Node | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return brief(self, f"{self.kind} {self.namespace or '-'}/{self.name}")

    @property
    def node(self) -> Node | None:
        """Return the content with positions, if they were requested.

        The content of a cluster's object is not cached.
        """
        if self._node is None and self.data is None and isinstance(self._origin, RenderedObject):
            return self._origin.node()
        return self._node

    @property
    def group(self) -> str:
        """Return the API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """Return the version of the API group."""
        return self.api_version.rpartition("/")[2]

    @property
    def home(self) -> str:
        """Return the namespace of an object of a namespaced kind."""
        return self.namespace or self.default_namespace

    @property
    def span(self) -> Span:
        """Return the span of the object, starting at its first key."""
        root = self._node or self._located
        if root is not None:
            return root.span
        return self._origin.span if isinstance(self._origin, Node) else self._origin.span()

    def locate(self, *path: str | int) -> Span:
        """Return the span of the value at a path of keys and indices, or of the nearest value around it."""
        root = self._node or self._located
        if root is None:
            root = self._origin if isinstance(self._origin, Node) else self._origin.node()
            if not isinstance(self._origin, RenderedObject):
                self._located = root
        return root.nearest(*path).span


def origin_of(document: Document) -> Stretch | Node | RenderedObject:
    """Return the source from which positions of an object are read on demand."""
    return document._origin


def content_of(document: Document) -> Plain:
    """Return the content of an object without positions."""
    if document.data is not None:
        return document.data
    if isinstance(document._origin, RenderedObject):
        return document._origin.data
    return document.node.plain() if document.node is not None else None


@dataclass(slots=True)
class ReadResult:
    """The objects that were read, the findings, and the objects that were left out on purpose."""

    documents: list[Document] = field(default_factory=list)
    reporter: Reporter = field(default_factory=Reporter)
    skipped: dict[str, int] = field(default_factory=dict)
    """The number of skipped documents that are not manifests, by file name (`kustomization.yaml`, ...)."""
    excluded: int = 0
    """The number of files that patterns exclude."""
    unused: int = 0
    """The number of unread objects, whose kinds are not used."""
    twice: list[tuple[Document, Diagnostic]] = field(default_factory=list)
    """Objects that differ from an earlier object of the same name, with the finding about it."""
    refused: list[Diagnostic] = field(default_factory=list)
    """Errors in the arguments, such as a path that does not exist. They prevent every answer."""
    head_only: list[tuple[Document, Diagnostic]] = field(default_factory=list)
    """Objects whose head could be read, and the error after it. They are not among the documents."""
    templates: list[tuple[Document | None, Diagnostic]] = field(default_factory=list)
    """Unrendered template texts, each with the object in its head if that is certain."""
    unbuilt: list[LeftOut] = field(default_factory=list)
    """The unread parts, except those with an error in `reporter`."""
    undeployed: list[Document] = field(default_factory=list)
    """Objects of a folder that no environment deploys. They are not among the documents."""
    custom: CustomResources = field(default_factory=CustomResources)
    """Custom resources of unread kinds."""
    seen: dict[tuple[str, str, str, str], Document] = field(default_factory=dict, repr=False, compare=False)
    """The objects by group, kind, namespace and name."""
