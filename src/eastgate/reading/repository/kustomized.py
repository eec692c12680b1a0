"""Makes the text of a built kustomization: origins are recorded and removed, and variables are filled in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.roots import read_nodes_text
from eastgate.reading.repository.charts import InflatedChart
from eastgate.reading.repository.closure import BuildFiles
from eastgate.reading.repository.model import KustomizeBuild
from eastgate.reading.repository.origins import BuiltDocument, BuiltText
from eastgate.reading.repository.variables import DISABLED, may_substitute, substitute
from eastgate.reading.repository.written import WrittenFile

_SEPARATOR = "---\n"
_METADATA = regex(r"(?m)^metadata:\n")
_NEXT_KEY = regex(r"(?m)^[^ \n]")
_ANNOTATIONS = regex(r"(?m)^  annotations:\n")
_NEXT_FIELD = regex(r"(?m)^ {0,2}[^ \n]")
_ORIGIN = regex(r"(?m)^    config\.kubernetes\.io/origin: \|-?\n((?:      .*\n|\n)+)")
_PATH = regex(r"(?m)^ +path: (.+)$")
_PLACE = regex(r"(?m)^( +(?:path|configuredIn): )(.+)$")
_QUOTED = regex(r"(?m)^ +(?:path|configuredIn): [\"']")
_CONFIGURED = regex(r"(?m)^ +configuredIn: (.+)$")


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of the objects of a build: files, patches, and charts by the paths of their output."""

    closure: BuildFiles
    root: str
    patches: tuple[WrittenFile, ...]
    inflated: Mapping[str, InflatedChart]

    def document(self, line: int, origin: str) -> BuiltDocument:
        """Return the document that begins on a line, given the annotation with its origin."""
        path, configured = _PATH.search(origin), _CONFIGURED.search(origin)
        found = path or configured
        if found is None:
            return BuiltDocument(line)
        real = os.path.normpath(os.path.join(self.root, found[1].strip("\"'")))
        chart = self.inflated.get(real)
        if chart is not None:
            name, file = chart.written(real)
            return BuiltDocument(line, name, file, self.patches, is_template=True, index=None)
        file = self.closure.files.get(real) or self.closure.files.get(os.path.realpath(real))
        if file is None:
            return BuiltDocument(line)
        return BuiltDocument(line, file.name, file if path is not None else None, self.patches)


def built_text(name: str, content: str, origins: Origins, part: KustomizeBuild) -> BuiltText:
    """Return the text of a build, with the origins of its documents."""
    documents: list[BuiltDocument] = []
    parts: list[str] = []
    line = 1
    for text in split(content):
        cleaned, origin = _without_origin(text)
        if part.substitute and "$" in cleaned and not _is_disabled(cleaned):
            cleaned, _ = substitute(cleaned, part.variables, part.hidden)
        documents.append(origins.document(line, origin))
        parts.append(cleaned)
        line += len(cleaned.splitlines()) + 1
    return BuiltText(name, _SEPARATOR.join(parts), documents)


def split(content: str) -> list[str]:
    """Return the documents in the output of kustomize."""
    parts = content.split("\n" + _SEPARATOR)
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:]


def _without_origin(text: str) -> tuple[str, str]:
    """Return a document without the annotation of its origin, and the annotation.

    kustomize writes two spaces for each level, so no text inside a value can look like the annotations.
    """
    found = _annotations(text)
    origin = _ORIGIN.search(text, *found[1:]) if found is not None else None
    if found is None or origin is None:
        return text, ""
    start, first, end = found
    is_only = origin.span() == (first, end)
    return text[: start if is_only else origin.start()] + text[origin.end() :], origin[1]


def relocated(text: str, old: str, new: str) -> str | None:
    """Return a document whose origin is relative to another folder; None if the origin has an unexpected form."""
    found = _annotations(text)
    origin = _ORIGIN.search(text, *found[1:]) if found is not None else None
    if origin is None or _QUOTED.search(origin[1]) is not None:
        return None

    def moved(match: re.Match[str]) -> str:
        return f"{match[1]}{os.path.relpath(os.path.normpath(os.path.join(old, match[2])), new)}"

    return text[: origin.start(1)] + _PLACE.sub(moved, origin[1]) + text[origin.end(1) :]


def _annotations(text: str) -> tuple[int, int, int] | None:
    """Return the start of the annotations of a document, the start of the first one, and their end."""
    metadata = _METADATA.search(text)
    if metadata is None:
        return None
    after = _NEXT_KEY.search(text, metadata.end())
    annotations = _ANNOTATIONS.search(text, metadata.end(), after.start() if after else len(text))
    if annotations is None:
        return None
    next_field = _NEXT_FIELD.search(text, annotations.end())
    return annotations.start(), annotations.end(), next_field.start() if next_field else len(text)


def _is_disabled(text: str) -> bool:
    """Return whether Flux leaves the variables of an object unchanged."""
    if DISABLED not in text:
        return False
    value = next((node.plain() for node in read_nodes_text("", text).nodes), None)
    return isinstance(value, dict) and not may_substitute(value)
