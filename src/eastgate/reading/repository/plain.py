"""Environments of plain manifests: the manifests that no tool uses.

All of them are one environment, like any folder of manifests. Only folders that define the same object differently,
such as variants or places of deployment, become separate environments. Manifests that none of them repeats belong to
each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from hashlib import blake2b
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.heads import metadata_in
from eastgate.reading.manifests.yaml.parser import chunks
from eastgate.reading.repository.declarations import ManifestFile, mapping, objects_in, parsed, text_of
from eastgate.reading.repository.flux import makes_objects
from eastgate.reading.repository.tree import Folder, Tree

_TOP = regex(r"(?m)^(apiVersion|kind):[ ]*[\"']?([^\s\"'#]+)")
_MAX_BYTES = 1 << 24
_MAX_PLACES: Final = 12
"""The most folders that define one object differently. More such folders are tests or examples without common files.

All other folders below their common folder are then tests or examples, too.
"""
_NO_RIVALS: Final = frozenset(
    {
        "Certificate",
        "ClusterIssuer",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CustomResourceDefinition",
        "HorizontalPodAutoscaler",
        "Issuer",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "PriorityClass",
        "Role",
        "RoleBinding",
        "Secret",
        "ServiceAccount",
        "StorageClass",
    }
)
"""Kinds that decide nothing. Folders of one environment often have different copies of their objects."""

Alike: TypeAlias = Callable[[str, str], bool]
"""Whether two texts define the same object in the same way."""

_Object = tuple[str, str, str]


def same_text(first: str, second: str) -> bool:  # noqa: ARG001 - the signature of `Alike`
    """Return False: texts that differ are different definitions."""
    return False


@dataclass(frozen=True, slots=True)
class _ObjectText:
    """The text of an object, and a digest of it without comments and empty lines."""

    digest: bytes
    text: str

    def clashes(self, other: _ObjectText, alike: Alike) -> bool:
        return self.digest != other.digest and not alike(self.text, other.text)


@dataclass(slots=True, eq=False)
class PlainFolder:
    """Manifests that belong together: the folder that names them, and the files."""

    folder: str
    files: list[ManifestFile]
    objects: dict[_Object, _ObjectText] | None = None
    """The definitions of each object; read when folders are compared."""

    def defined(self) -> dict[_Object, _ObjectText]:
        """Return the definitions of each object."""
        if self.objects is None:
            self.objects = {identity: written for file in self.files for identity, written in _objects(file.path)}
        return self.objects


def plain_folders(tree: Tree, used_files: Collection[str], alike: Alike = same_text) -> list[PlainFolder]:
    """Return the environments of the manifests that no other entry uses."""
    groups = _groups(tree.root, used_files, alike)
    deploying = [group for group in groups if any(map(_deploys, group.files))]
    if len(groups) <= 1 or not deploying:
        return deploying
    rivals = _rivals(deploying, alike)
    others = [group for group in groups if group not in rivals]
    if len(rivals) > _MAX_PLACES:
        place = _common(rivals)
        apart = [group for group in others if place != os.curdir and f"{group.folder}/".startswith(f"{place}/")]
        rest = [group for group in others if group not in apart]
        return [*rivals, *apart, *([_joined(_common(rest), rest)] if rest else [])]
    return [_joined(rival.folder, [*others, rival]) for rival in rivals] or [_joined(_common(others), others)]


def _deploys(file: ManifestFile) -> bool:
    return file.has_objects or any(map(makes_objects, file.declarations)) or bool(file.broken)


def _groups(folder: Folder, used_files: Collection[str], alike: Alike) -> list[PlainFolder]:
    """Return the manifests in a folder and below it: one group, unless some definitions clash."""
    if not _may_hold(folder):
        return []
    own = [file for file in folder.files if file.may_have_objects or _deploys(file)]
    left = [file for file in own if file.real not in used_files]
    groups = [PlainFolder(folder.path, left)] if left else []
    groups += [group for inner in folder.folders for group in _groups(inner, used_files, alike)]
    if len(groups) <= 1 or _any_clash(groups, alike):
        return groups
    return [_joined(folder.path if left else _common(groups), groups)]


def _any_clash(groups: list[PlainFolder], alike: Alike) -> bool:
    seen: dict[_Object, _ObjectText] = {}
    for group in groups:
        for identity, written in group.defined().items():
            if seen.setdefault(identity, written).clashes(written, alike):
                return True
    return False


def _rivals(groups: list[PlainFolder], alike: Alike) -> list[PlainFolder]:
    """Return the groups that define some object differently than another group does."""
    copies: dict[_Object, list[tuple[PlainFolder, _ObjectText]]] = {}
    for group in groups:
        for identity, written in group.defined().items():
            copies.setdefault(identity, []).append((group, written))
    found: set[int] = set()
    for several in copies.values():
        for group, written in several:
            if id(group) not in found and any(written.clashes(other, alike) for _, other in several):
                found.add(id(group))
    return [group for group in groups if id(group) in found]


def _joined(folder: str, groups: list[PlainFolder]) -> PlainFolder:
    """Return one group of several."""
    objects = {identity: written for group in groups for identity, written in (group.objects or {}).items()}
    whole = all(group.objects is not None for group in groups)
    return PlainFolder(folder, [file for group in groups for file in group.files], objects if whole else None)


def _common(groups: list[PlainFolder]) -> str:
    """Return the common folder of several groups."""
    folders = [group.folder for group in groups]
    return os.curdir if os.curdir in folders else os.path.commonpath(folders) or os.curdir


def _may_hold(folder: Folder) -> bool:
    """Return whether there may be plain manifests in a folder or below it. A folder that a tool uses has none."""
    if folder.kustomization is not None or folder.is_templates:
        return False
    return folder.chart is None or folder.parent is None


def _objects(path: str) -> Iterator[tuple[_Object, _ObjectText]]:
    """Yield the objects that the documents of a file define, if their text shows it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_MAX_BYTES)
    except OSError:
        return
    if path.lower().endswith(".json"):
        yield from _parsed_objects(path, text)
        return
    for start, end in chunks(text):
        chunk = text[start:end]
        head = dict(_TOP.findall(chunk))
        if head.get("kind", "").endswith("List"):
            yield from _parsed_objects(path, chunk)
            continue
        if head.get("kind", "Namespace") in _NO_RIVALS:
            continue
        fields = metadata_in(chunk)
        if "name" in fields:
            namespace = fields.get("namespace", "default")
            lines = "\n".join(line.rstrip() for line in chunk.splitlines() if line.strip(" -") and line[:1] != "#")
            digest = blake2b(lines.encode(), digest_size=16).digest()
            yield (head["kind"], namespace, fields["name"]), _ObjectText(digest, chunk)


def _parsed_objects(path: str, text: str) -> Iterator[tuple[_Object, _ObjectText]]:
    for value in parsed(path, text):
        for data in objects_in(value):
            metadata, kind = mapping(data.get("metadata")), text_of(data.get("kind"))
            name = text_of(metadata.get("name"))
            if name and kind and kind not in _NO_RIVALS:
                written = json.dumps(data, sort_keys=True)
                digest = blake2b(written.encode(), digest_size=16).digest()
                namespace = text_of(metadata.get("namespace")) or "default"
                yield (kind, namespace, name), _ObjectText(digest, written)
