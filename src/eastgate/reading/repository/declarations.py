"""Objects that declare a deployment, such as a Flux Kustomization, and their files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from eastgate.basics.records import brief, dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.heads import type_of
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.roots import read_nodes_text
from eastgate.reading.manifests.yaml.parser import chunks
from eastgate.reading.manifests.yaml.plain import read_plain_yaml

_HEAD = regex(r"""(?m)^[ \t\-{,"']*(?:apiVersion|kind)["']?\s*:\s*["']?([^\s"',}#]*)""")
_DEPLOYS = regex(r"""(?m)^apiVersion:\s*["']?(?:(?:kustomize|helm)\.toolkit\.fluxcd|argoproj)\.io/""")
_KINDS: Final = frozenset(
    {
        "Application",
        "ApplicationSet",
        "ArtifactGenerator",
        "ConfigMap",
        "FluxInstance",
        "GitRepository",
        "HelmChart",
        "HelmRelease",
        "Kustomization",
        "List",
        "OCIRepository",
        "ResourceSet",
        "Secret",
    }
)


@dataclass(slots=True, eq=False)
class Declaration:
    """An object with its whole content and its place."""

    path: str
    line: int
    data: dict[str, Plain]
    folder: str = ""
    """The folder of the kustomization that builds it; empty for a plain manifest."""
    unsure: str = ""
    """Why its build may differ from this; empty if all changes are followed."""

    def __repr__(self) -> str:
        return brief(self, f"{self.kind} {self.name} in {self.path}:{self.line}")

    @property
    def group(self) -> str:
        """Return the API group."""
        return str(self.data.get("apiVersion") or "").rpartition("/")[0]

    @property
    def kind(self) -> str:
        """Return the kind."""
        return str(self.data.get("kind") or "")

    @property
    def name(self) -> str:
        """Return the name."""
        return text_of(mapping(self.data.get("metadata")).get("name"))

    @property
    def namespace(self) -> str:
        """Return the namespace; empty if there is none."""
        return text_of(mapping(self.data.get("metadata")).get("namespace"))

    @property
    def spec(self) -> dict[str, Plain]:
        """Return the `spec`."""
        return mapping(self.data.get("spec"))

    @property
    def place(self) -> tuple[str, int]:
        """Return the file, by its real path, and the line."""
        return os.path.realpath(self.path), self.line

    @property
    def key(self) -> tuple[str, int, str]:
        """Return a unique key: the place, and the kustomization that changes it."""
        return *self.place, os.path.realpath(self.folder) if self.folder else ""

    @property
    def where(self) -> str:
        """Return the file and the line."""
        return f"{self.path}:{self.line}"

    @property
    def title(self) -> str:
        """Return the kind and the name, as `kubectl` writes them."""
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"

    def with_data(self, data: dict[str, Plain], folder: str = "") -> Declaration:
        """Return the same declaration with the data after a build."""
        return Declaration(self.path, self.line, data, folder or self.folder, self.unsure)


def mapping(value: Plain | None) -> dict[str, Plain]:
    """Return a value that should be a mapping; an empty mapping if it is not."""
    return value if isinstance(value, dict) else {}


def entries(value: Plain | None) -> list[Plain]:
    """Return a value that should be a list; an empty list if it is not."""
    return value if isinstance(value, list) else []


def text_of(value: Plain | None) -> str:
    """Return a value that should be a string; an empty string if it is not."""
    return value if isinstance(value, str) else ""


def texts(value: Plain | None) -> list[str]:
    """Return the strings of a list."""
    return [entry for entry in entries(value) if isinstance(entry, str) and "\0" not in entry]


@dataclass(slots=True, eq=False)
class ManifestFile:
    """A YAML or JSON file: whether it may have manifests, and its declarations."""

    path: str
    real: str
    may_have_objects: bool = False
    """Whether it may have an object. It is then read, and its errors are shown."""
    has_objects: bool = False
    """Whether it may have an object that an API server accepts."""
    chunks: list[tuple[int, str]] = field(default_factory=list)
    """Documents that may declare something: the line, and the text."""
    broken: list[int] = field(default_factory=list)
    """The lines of unreadable declarations; set when the declarations are read."""
    _declarations: list[Declaration] | None = None

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return os.path.basename(self.path)

    @property
    def declarations(self) -> list[Declaration]:
        """Return the declarations. They are read on first use."""
        if self._declarations is None:
            self._declarations = []
            for line, chunk in self.chunks:
                objects = [data for value in parsed(self.path, chunk) for data in objects_in(value)]
                self._declarations += [
                    Declaration(self.path, line, data) for data in objects if data.get("kind") in _KINDS
                ]
                self.broken += [line] if not objects and _DEPLOYS.search(chunk) is not None else []
        return self._declarations


Index = dict[tuple[str, str], list[Declaration]]
"""Declarations by kind and name."""


def indexed(declarations: Iterable[Declaration]) -> Index:
    """Return declarations by kind and name."""
    index: Index = {}
    for declaration in declarations:
        index.setdefault((declaration.kind, declaration.name), []).append(declaration)
    return index


def objects_in(value: Plain) -> Iterator[dict[str, Plain]]:
    """Yield an object, or the objects of a list."""
    if isinstance(value, dict):
        items = value.get("items")
        if isinstance(items, list) and text_of(value.get("kind")).endswith("List"):
            yield from (item for item in items if isinstance(item, dict))
        else:
            yield value


def parsed(path: str, text: str) -> list[Plain]:
    """Return the values of a text, read as plain data if possible. Documents with errors are left out."""
    if path.lower().endswith(".json"):
        # imported here because only JSON needs msgspec
        from eastgate.reading.manifests.json.plain import read_plain_json

        document = read_plain_json(text, text.encode("utf-8", "replace"))
        if document is not None:
            return [document.value]
    values: list[Plain] = []
    for start, end in chunks(text):
        plain = read_plain_yaml(text[start:end], start)
        if plain is not None:
            values.append(plain.value)
        else:
            values += [node.plain() for node in read_nodes_text(path, text[start:end]).nodes]
    return [value for value in values if value is not None]


def declaring(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the documents of a text that may declare something, with the line of each."""
    if path.lower().endswith(".json"):
        yield 1, text
        return
    line, last = 1, 0
    for start, end in chunks(text):
        chunk = text[start:end]
        if _may_declare(chunk):
            line += text.count("\n", last, start)
            last = start
            yield line + _first_line(chunk), chunk


def _may_declare(chunk: str) -> bool:
    """Return whether a document may declare something. The CRD of such a kind has its name, but declares nothing."""
    type_ = type_of(chunk)
    if type_ is not None and (type_[1] in _KINDS or _DEPLOYS.search(chunk) is None):
        return type_[1] in _KINDS
    return not _KINDS.isdisjoint(_HEAD.findall(chunk))


def _first_line(chunk: str) -> int:
    for number, line in enumerate(chunk.split("\n", 50)):
        if line.strip() and not line.startswith(("---", "#")):
            return number
    return 0
