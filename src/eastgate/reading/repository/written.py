"""Input files of builds. Each is decoded and parsed once, and only if it is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import SourceText
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.document import Extent
from eastgate.reading.manifests.heads import type_of
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.roots import chunk_nodes, read_nodes_text
from eastgate.reading.manifests.text import decode
from eastgate.reading.manifests.yaml.parser import chunks
from eastgate.reading.repository.declarations import parsed

EXTENSIONS: Final = "apiextensions.k8s.io"
DEFINITION: Final = "CustomResourceDefinition"
_SOMETHING = regex(r"(?m)^(?!---)[^#\n]*[^#\s]")
_KIND = regex(r"""(?m)^kind:[ ]+["']?([^\s"'#]+)["']?[ ]*(?:#.*)?$""")
_METADATA = regex(r"(?m)^metadata:.*\n(?:(?:[ #].*)?\n)*")
_FLOW = regex(r"""metadata:[ ]*\{(?:[^{}]*,)?[ ]*name:[ ]*["']?([^\s"',{}]+)""")
_FIRST = regex(r"(?m)^([ ]+)[^ #\n]")
_WORD = regex(rb"[\w.-]+")

ObjectName: TypeAlias = tuple[str, str]
"""The kind and the name of an object."""


class WrittenFile:
    """An input file of a build, under the name that users know."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.content = content
        self._of_kind: dict[str, Sequence[Node]] = {}

    @cached_property
    def nodes(self) -> list[Node]:
        """Return its documents with positions."""
        return read_nodes_text(self.name, self.content).nodes

    @cached_property
    def values(self) -> list[Plain]:
        """Return the content of its documents."""
        return parsed(self.name, self.text.text.removeprefix("\ufeff"))

    @cached_property
    def text(self) -> SourceText:
        """Return its text."""
        return SourceText(self.name, self.content.decode("utf-8", "replace"))

    def of_kind(self, kind: str | None) -> Sequence[Node]:
        """Return at least the documents of a kind. Others are skipped if possible, because CRDs are large."""
        if kind is None or "nodes" in self.__dict__ or self.name.lower().endswith(".json"):
            return self.nodes
        if kind not in self._of_kind:
            text, extents = decode(self.name, self.content, Reporter()), self._extents.get(kind, ())
            found = (chunk_nodes(text, *extent, Reporter()) for extent in extents if text is not None)
            self._of_kind[kind] = [node for nodes in found for node, _ in nodes] or self.nodes
        return self._of_kind[kind]

    @cached_property
    def _extents(self) -> dict[str, list[Extent]]:
        """Return the extents of the documents with a line for a kind."""
        text = decode(self.name, self.content, Reporter())
        string = text.source.text if text is not None else ""
        extents: dict[str, list[Extent]] = {}
        for extent in chunks(string):
            for kind in dict.fromkeys(_KIND.findall(string, *extent)):
                extents.setdefault(kind, []).append(extent)
        return extents

    @cached_property
    def types(self) -> tuple[tuple[str, str], ...] | None:
        """Return `apiVersion` and `kind` of each document; None if readers may differ about one."""
        types = [type_of(document) for document in self._documents]
        good = tuple(type_ for type_ in types if type_ is not None)
        return good if len(good) == len(types) else None

    @cached_property
    def objects(self) -> tuple[ObjectName, ...] | None:
        """Return kind and name of each document; None if its text does not show them."""
        if self.types is None:
            return None
        names = [_name_in(document) for document in self._documents]
        if "" in names:
            return None
        return tuple((kind, name) for (_, kind), name in zip(self.types, names, strict=True))

    @cached_property
    def words(self) -> frozenset[bytes]:
        """Return every word in it that may be a name."""
        return words_in(self.content)

    @cached_property
    def short(self) -> bytes:
        """Return the content with only the type and the metadata of CRDs, because their schemas are large."""
        if DEFINITION.encode() not in self.content:
            return self.content
        string = self.content.decode("utf-8", "surrogateescape")
        pieces = [_short(string[start:end]) for start, end in chunks(string)]
        return "".join(pieces).encode("utf-8", "surrogateescape")

    @property
    def _documents(self) -> Iterator[str]:
        string = self.content.decode("utf-8", "replace")
        pieces = (string[start:end] for start, end in chunks(string))
        return (piece for piece in pieces if _SOMETHING.search(piece))


def words_in(content: bytes) -> frozenset[bytes]:
    """Return every word that may be a name."""
    return frozenset(_WORD.findall(content))


def _name_in(document: str) -> str:
    """Return the name of an object; empty if it is in an unusual place."""
    metadata = _METADATA.search(document if document.endswith("\n") else f"{document}\n")
    block = metadata[0] if metadata is not None else ""
    flow, first = _FLOW.match(block), _FIRST.search(block)
    if flow is not None or first is None:
        return flow[1] if flow is not None else ""
    name = re.search(rf"""(?m)^{first[1]}name:[ ]*(?:&[\w-]+[ ]+)?["']?([\w.$={{}}:-]+)["']?[ ]*(?:#.*)?$""", block)
    return name[1] if name is not None else ""


def _short(document: str) -> str:
    type_ = type_of(document)
    metadata = _METADATA.search(document)
    if metadata is None or type_ is None or type_[0].partition("/")[0] != EXTENSIONS or type_[1] != DEFINITION:
        return document
    return f"---\napiVersion: {type_[0]}\nkind: {type_[1]}\n{metadata[0]}"
