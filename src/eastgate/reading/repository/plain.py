"""Environments of plain manifests: what is left of a repository when every tool has taken its own.

All that is left is one environment, as a folder of manifests has always been. Only folders that define the same object
differently, as variants and places to deploy to do, are environments of their own; what none of them repeats belongs
to each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.yaml.parser import chunks
from eastgate.reading.repository.declarations import ManifestFile
from eastgate.reading.repository.flux import is_release
from eastgate.reading.repository.tree import Folder, Tree

_TOP = regex(r"(?m)^(apiVersion|kind):[ ]*[\"']?([^\s\"'#]+)")
_BLOCK = regex(r"(?m)^metadata:[ \t]*(?:#.*)?\r?\n((?:[ \t]+.*\n|[ \t]*\r?\n|#.*\n)*)")
_FIELD = regex(r"(?m)^([ ]+)(name|namespace):[ ]*[\"']?([^\s\"'#]+)")
_SHARED = ("Namespace", "CustomResourceDefinition")  # several folders have the same ones, and no copy decides

_MOST_PLACES = 12

_Object = tuple[str, str, str]


@dataclass(slots=True, eq=False)
class PlainFolder:
    """Manifests that belong together: the folder that names them, and the files."""

    folder: str
    files: list[ManifestFile]


def plain_folders(tree: Tree, used_files: set[str], used_folders: set[str]) -> list[PlainFolder]:
    """Return the environments of the manifests that nothing else uses."""
    groups = [group for group in _groups(tree.root, used_files, used_folders) if any(map(_deploys, group.files))]
    if not groups:
        return []
    rivals = _rivals(groups) if len(groups) > 1 else []
    if not rivals:
        folder = _common([group.folder for group in groups])
        return [PlainFolder(folder, [file for group in groups for file in group.files])]
    others = [group for group in groups if group not in rivals]
    shared = [file for group in others for file in group.files]
    if len(rivals) > _MOST_PLACES:  # of tests or examples, which have nothing in common
        return [*rivals, *([PlainFolder(_common([group.folder for group in others]), shared)] if shared else [])]
    return [PlainFolder(rival.folder, [*shared, *rival.files]) for rival in rivals]


def _deploys(file: ManifestFile) -> bool:
    return file.has_objects or any(map(is_release, file.declarations))


def _common(folders: list[str]) -> str:
    return os.path.commonpath(folders) or os.curdir if folders[0] != os.curdir else os.curdir


def _groups(folder: Folder, used_files: set[str], used_folders: set[str]) -> Iterator[PlainFolder]:
    """Yield the topmost folders with plain manifests, each with all that is left below it."""
    own = [file for file in _left(folder, used_files, used_folders) if file.may_have_objects]
    if any(map(_deploys, own)):
        below = [file for inner in folder.folders for file in _all_left(inner, used_files, used_folders)]
        yield PlainFolder(folder.path, own + below)
        return
    for inner in folder.folders if _may_hold(folder) else ():
        yield from _groups(inner, used_files, used_folders)


def _all_left(folder: Folder, used_files: set[str], used_folders: set[str]) -> Iterator[ManifestFile]:
    yield from (file for file in _left(folder, used_files, used_folders) if file.may_have_objects)
    for inner in folder.folders if _may_hold(folder) else ():
        yield from _all_left(inner, used_files, used_folders)


def _may_hold(folder: Folder) -> bool:
    """Return whether there may be plain manifests in a folder or below it: what a tool has made its own has none."""
    if folder.kustomization is not None or folder.is_templates:
        return False
    return folder.chart is None or folder.parent is None


def _left(folder: Folder, used_files: set[str], used_folders: set[str]) -> list[ManifestFile]:
    if not _may_hold(folder) or (folder.real in used_folders and folder.kustomization is not None):
        return []
    return [file for file in folder.files if file.real not in used_files]


def _rivals(groups: list[PlainFolder]) -> list[PlainFolder]:
    """Return the folders that define some object otherwise than another one does."""
    definitions: dict[_Object, list[tuple[PlainFolder, bytes]]] = {}
    for group in groups:
        for file in group.files:
            for identity, digest in _objects(file.path):
                definitions.setdefault(identity, []).append((group, digest))
    rivals: list[PlainFolder] = []
    for several in definitions.values():
        if len({id(group) for group, _ in several}) > 1 and len({digest for _, digest in several}) > 1:
            rivals += [group for group, _ in several if group not in rivals]
    return [group for group in groups if group in rivals]


def _objects(path: str) -> Iterator[tuple[_Object, bytes]]:
    """Yield what the documents of a file define, as far as their text tells, with a digest of each."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 24)
    except OSError:
        return
    for start, end in chunks(text):
        chunk = text[start:end]
        head = dict(_TOP.findall(chunk))
        block = _BLOCK.search(chunk if chunk.endswith("\n") else chunk + "\n")
        if block is None or "kind" not in head or head["kind"] in _SHARED:
            continue
        fields: dict[str, tuple[int, str]] = {}
        for indent, key, value in _FIELD.findall(block[1]):
            if key not in fields or len(indent) < fields[key][0]:
                fields[key] = (len(indent), value)
        if "name" in fields:
            namespace = fields["namespace"][1] if "namespace" in fields else ""
            lines = "\n".join(line.rstrip() for line in chunk.splitlines() if line.strip(" -") and line[:1] != "#")
            yield (head["kind"], namespace, fields["name"][1]), blake2b(lines.encode(), digest_size=16).digest()
