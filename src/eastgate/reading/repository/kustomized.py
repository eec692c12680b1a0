"""Makes the text of a built kustomization: origins are noted and taken out, and variables are filled in."""

from __future__ import annotations

import os
from collections.abc import Mapping

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.roots import read_nodes_text
from eastgate.reading.repository.charts import InflatedChart
from eastgate.reading.repository.closure import BuildFiles
from eastgate.reading.repository.model import KustomizeBuild
from eastgate.reading.repository.origins import BuiltDocument, BuiltText, WrittenFile
from eastgate.reading.repository.variables import DISABLED, may_substitute, substitute

_SEPARATOR = "---\n"
_METADATA = regex(r"(?m)^metadata:\n")
_NEXT_KEY = regex(r"(?m)^[^ \n]")
_ANNOTATIONS = regex(r"(?m)^  annotations:\n")
_NEXT_FIELD = regex(r"(?m)^ {0,2}[^ \n]")
_ORIGIN = regex(r"(?m)^    config\.kubernetes\.io/origin: \|-?\n((?:      .*\n|\n)+)")
_PATH = regex(r"(?m)^ +path: (.+)$")
_CONFIGURED = regex(r"(?m)^ +configuredIn: (.+)$")


@dataclass(frozen=True, slots=True)
class Origins:
    """What the objects of a build were made of: files, patches, and charts by the paths of what they rendered to."""

    closure: BuildFiles
    root: str
    patches: tuple[WrittenFile, ...]
    inflated: Mapping[str, InflatedChart]

    def document(self, line: int, origin: str) -> BuiltDocument:
        """Return the document that begins on a line, given the annotation that says where it comes from."""
        path, configured = _PATH.search(origin), _CONFIGURED.search(origin)
        found = path or configured
        if found is None:
            return BuiltDocument(line)
        real = os.path.normpath(os.path.join(self.root, found[1].strip("\"'")))
        chart = self.inflated.get(real)
        if chart is not None:
            name, file = chart.written(real)
            return BuiltDocument(line, name, file, self.patches, is_template=True, index=None)
        file = self.closure.files.get(os.path.realpath(real))
        if file is None:
            return BuiltDocument(line)
        return BuiltDocument(line, file.name, file if path is not None else None, self.patches)


def built_text(name: str, content: str, origins: Origins, part: KustomizeBuild) -> BuiltText:
    """Return the text of what was built, and where its documents were written."""
    documents: list[BuiltDocument] = []
    parts: list[str] = []
    line = 1
    for text in _split(content):
        cleaned, origin = _without_origin(text)
        if part.substitute and "$" in cleaned and not _is_disabled(cleaned):
            cleaned, _ = substitute(cleaned, part.variables, part.hidden)
        documents.append(origins.document(line, origin))
        parts.append(cleaned)
        line += len(cleaned.splitlines()) + 1
    return BuiltText(name, _SEPARATOR.join(parts), documents)


def _split(content: str) -> list[str]:
    parts = content.split("\n" + _SEPARATOR)
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:]


def _without_origin(text: str) -> tuple[str, str]:
    """Return a document without the annotation of its origin, and that.

    kustomize writes two spaces for each level, so that no text inside of a value can look like the annotations.
    """
    metadata = _METADATA.search(text)
    if metadata is None:
        return text, ""
    after = _NEXT_KEY.search(text, metadata.end())
    annotations = _ANNOTATIONS.search(text, metadata.end(), after.start() if after else len(text))
    if annotations is None:
        return text, ""
    next_field = _NEXT_FIELD.search(text, annotations.end())
    end = next_field.start() if next_field else len(text)
    origin = _ORIGIN.search(text, annotations.end(), end)
    if origin is None:
        return text, ""
    is_only = origin.start() == annotations.end() and origin.end() == end
    start = annotations.start() if is_only else origin.start()
    return text[:start] + text[origin.end() :], origin[1]


def _is_disabled(text: str) -> bool:
    """Return whether Flux leaves the variables of an object as they are."""
    if DISABLED not in text:
        return False
    value = next((node.plain() for node in read_nodes_text("", text).nodes), None)
    return isinstance(value, dict) and not may_substitute(value)
