"""The content of a folder for Kustomize and Flux: files, kustomizations, and objects that declare deployments.

Nothing is built here. Of the changes of a build, only those are followed that decide where a deployment leads: the
namespace of its declarations, patches of them, and generated ConfigMaps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.inputs import Exclusion
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.declarations import (
    Declaration,
    ManifestFile,
    entries,
    mapping,
    parsed,
    text_of,
    texts,
)
from eastgate.reading.repository.patching import Patch, apply
from eastgate.reading.repository.tree import Folder, Tree

_RESOURCES: Final = ("resources", "bases")
_MAX_DEPTH = 50
_ENTRY = regex(r"\s*(?:export\s+)?([^#=\s][^=]*)=(.*)")


@dataclass(slots=True)
class Contents:
    """The content of a folder: plain files, kustomizations, and the declarations in both."""

    plain: list[ManifestFile] = field(default_factory=list)
    """Files that no kustomization includes."""
    kustomizations: list[Folder] = field(default_factory=list)
    """The kustomizations to build, without those that they include."""
    declarations: list[Declaration] = field(default_factory=list)
    deploys: bool = False
    """Whether there are, or may be, objects other than declarations."""
    files: set[str] = field(default_factory=set)
    """The real paths of all files."""
    excluded: set[str] = field(default_factory=set)
    """The real paths of files that a tool skips. They are not deployed, unless another tool does it."""
    folders: set[str] = field(default_factory=set)
    """The real paths of all folders with a kustomization that is built, or is included in one."""
    broken: list[str] = field(default_factory=list)
    """The places of declarations and kustomizations that cannot be read."""
    unread: list[str] = field(default_factory=list)
    """Kustomizations whose patches of declarations are not followed, and why."""

    def add_file(self, file: ManifestFile) -> list[Declaration]:
        """Add a file. Return its declarations."""
        self.files.add(file.real)
        self.deploys |= file.has_objects
        declarations = file.declarations
        self.broken += [f"{file.path}:{line}" for line in file.broken]
        return declarations

    def drop(self, exclusion: Exclusion) -> None:
        """Drop the plain files that a tool does not get."""
        if not exclusion.sets:
            return
        dropped = {file.real for file in self.plain if exclusion.holds(file.path, is_folder=False)}
        self.plain = [file for file in self.plain if file.real not in dropped]
        self.declarations = [each for each in self.declarations if each.place[0] not in dropped]
        self.files -= dropped
        self.excluded |= dropped


def contents_of(tree: Tree, folder: Folder, *, recurse: bool = True) -> Contents:
    """Return the content that a tool reads from a folder: its kustomization, or all manifests below it."""
    contents = Contents()
    if folder.kustomization is not None:
        contents.kustomizations.append(folder)
        contents.declarations += _kustomized(tree, contents, folder)
    else:
        _add_plain(tree, folder, contents, recurse=recurse)
    return contents


def _add_plain(tree: Tree, folder: Folder, contents: Contents, *, recurse: bool) -> None:
    contents.broken += [folder.template] if folder.template is not None else []
    for file in folder.files:
        contents.declarations += contents.add_file(file)
        contents.plain += [file] if file.may_have_objects else []
    for inner in folder.folders if recurse else ():
        if inner.kustomization is None:
            _add_plain(tree, inner, contents, recurse=True)
        elif not inner.kustomization.is_component:
            contents.kustomizations.append(inner)
            contents.declarations += _kustomized(tree, contents, inner)


def _kustomized(tree: Tree, contents: Contents, folder: Folder) -> list[Declaration]:
    """Return the declarations of a kustomization, each marked with its folder."""
    found = _Kustomized(tree, contents).declarations(folder)
    return [declaration.with_data(declaration.data, folder.path) for declaration in found]


def declarations_as_built(tree: Tree, wanted: Callable[[Declaration], bool]) -> list[Declaration]:
    """Return some declarations of a repository: as they are written, or as changed by the kustomizations
    that include them.
    """
    taken: set[str] = set()
    built: list[Declaration] = []
    for folder in tree.tops:
        contents = contents_of(tree, folder)
        found = [declaration for declaration in contents.declarations if wanted(declaration)]
        built += found
        taken |= {os.path.realpath(declaration.path) for declaration in found}
    plain = [each for each in tree.declarations if wanted(each) and os.path.realpath(each.path) not in taken]
    return plain + built


class _Kustomized:
    """Follows one kustomization into all files and kustomizations that it includes."""

    def __init__(self, tree: Tree, contents: Contents) -> None:
        self._tree = tree
        self._contents = contents
        self._inside: list[str] = []

    def declarations(self, folder: Folder) -> list[Declaration]:
        """Return the declarations of a kustomization in the form that its build gives them."""
        if folder.real in self._inside or len(self._inside) > _MAX_DEPTH:
            return []
        self._inside.append(folder.real)
        self._contents.folders.add(folder.real)
        content = folder.content
        found = [
            declaration
            for name in _RESOURCES
            for entry in texts(content.get(name))
            for declaration in self._resource(folder, entry)
        ]
        found += generated(self._tree, folder)
        for entry in texts(content.get("components")):
            component = self._tree.folder(os.path.join(folder.path, entry))
            if component is not None and component.kustomization is not None:
                found = self._changed(component, found + self.declarations(component))
        self._inside.pop()
        return found if folder.kustomization and folder.kustomization.is_component else self._changed(folder, found)

    def _resource(self, folder: Folder, entry: str) -> Iterable[Declaration]:
        path = os.path.normpath(os.path.join(folder.path, entry))
        inner = self._tree.folder(path)
        if inner is not None:
            return self.declarations(inner) if inner.kustomization is not None else []
        file = self._tree.file(path)
        if file is None:
            self._contents.deploys = True  # a missing part may have any objects
            return []
        return self._contents.add_file(file)

    def _changed(self, folder: Folder, found: list[Declaration]) -> list[Declaration]:
        """Return declarations with the patches and the namespace of a kustomization."""
        content = folder.content
        for patch in patches_of(self._tree, folder.path, content):
            found = apply(patch, found)
            if patch.is_lost and found:
                self._contents.unread.append(folder.path)
        for declaration in found:
            if not declaration.unsure and (name := _may_change(self._tree, folder, declaration)) is not None:
                declaration.unsure = f"`{name}` of `{folder.path}` may change it, which is not followed"
        namespace = text_of(content.get("namespace"))
        return in_namespace(found, namespace) if namespace else found


def _may_change(tree: Tree, folder: Folder, declaration: Declaration) -> str | None:
    """Return the field of a kustomization that may change a declaration in an unsupported way."""
    if folder.content.get("transformers"):
        return "transformers"
    for entry in entries(folder.content.get("replacements")):
        path = mapping(entry).get("path")
        several = tree.values(os.path.join(folder.path, path)) if isinstance(path, str) else [entry]
        flat = [each for value in several for each in (value if isinstance(value, list) else [value])]
        targets = [mapping(target) for each in flat for target in entries(mapping(each).get("targets"))]
        kinds = [text_of(mapping(target.get("select")).get("kind")) for target in targets]
        if not targets or any(kind in ("", declaration.kind) for kind in kinds):
            return "replacements"
    return None


def in_namespace(found: Iterable[Declaration], namespace: str) -> list[Declaration]:
    """Return declarations in another namespace."""
    return [
        each.with_data({**each.data, "metadata": {**mapping(each.data.get("metadata")), "namespace": namespace}})
        for each in found
    ]


def patches_of(tree: Tree, folder: str, content: dict[str, Plain]) -> Iterator[Patch]:
    """Yield the patches of a kustomization, in the order of their application."""
    for entry in entries(content.get("patchesStrategicMerge")):
        for value in _patch_values(tree, folder, entry):
            yield Patch(value)
    for field_ in ("patches", "patchesJson6902"):
        for entry in entries(content.get(field_)):
            fields = mapping(entry)
            target = fields.get("target")
            written = fields.get("patch") if fields.get("patch") is not None else fields.get("path")
            if written is None or ("patch" not in fields and not isinstance(written, str)):
                continue
            values = _patch_values(tree, folder, written) if "patch" not in fields else _inline(folder, written)
            for value in values:
                yield Patch(value, mapping(target) if target is not None else None)


def _inline(folder: str, written: Plain) -> list[Plain]:
    return parsed(folder, written) if isinstance(written, str) else [written]


def _patch_values(tree: Tree, folder: str, entry: Plain) -> list[Plain]:
    """Return the values of a patch, from its file or inline."""
    if not isinstance(entry, str):
        return [entry]
    if "\n" in entry:
        return _inline(folder, entry)
    return tree.values(os.path.join(folder, entry)) or [None]


def generated(tree: Tree, folder: Folder) -> Iterator[Declaration]:
    """Yield the ConfigMaps and Secrets that a kustomization generates, without the suffix of their names."""
    for name, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
        for entry in entries(folder.content.get(name)):
            fields = mapping(entry)
            data: dict[str, Plain] = {}
            for literal in texts(fields.get("literals")):
                key, _, value = literal.partition("=")
                data[key] = value.strip("\"'") if value[:1] in "\"'" and value[:1] == value[-1:] else value
            for source in texts(fields.get("files")):
                key, _, path = source.rpartition("=")
                text = tree.text(os.path.join(folder.path, path))
                if text is not None:
                    data[key or os.path.basename(path)] = text
            for source in [*texts(fields.get("envs")), *texts([fields.get("env")])]:
                data.update(_environment(tree.text(os.path.join(folder.path, source)) or ""))
            metadata: dict[str, Plain] = {"name": fields.get("name"), "namespace": fields.get("namespace")}
            place = os.path.join(folder.path, folder.kustomization.file if folder.kustomization else "")
            content: dict[str, Plain] = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
            content["data" if kind == "ConfigMap" else "stringData"] = data
            yield Declaration(place, 1, content, folder.path)


def _environment(text: str) -> dict[str, Plain]:
    matches = (_ENTRY.fullmatch(line) for line in text.splitlines())
    return {match[1].strip(): match[2] for match in matches if match is not None}
