"""Kustomizations in the copy for a build: with the fields that Flux adds, and without remote parts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.roots import read_nodes_text
from eastgate.reading.repository.written import WrittenFile

_ADDRESS = regex(r"(?:[\w.-]+=)?(?:https?|git|ssh|oci)://[^\s]+\Z")

Text = Callable[[str], WrittenFile | None]
"""The file that a patch names, or None."""


def patch_files(kustomization: Mapping[str, Plain]) -> Iterator[str]:
    """Yield the names of files with patches, without line breaks."""
    for entry in _list(kustomization.get("patchesStrategicMerge")):
        if isinstance(entry, str) and "\n" not in entry:
            yield entry
    for key in ("patches", "patchesJson6902"):
        for entry in _list(kustomization.get(key)):
            path = entry.get("path") if isinstance(entry, dict) else None
            if isinstance(path, str) and "\n" not in path:
                yield path


def allow_missing_targets(kustomization: dict[str, Plain], file: Text) -> dict[str, Plain]:
    """Return a kustomization whose patches may match nothing.

    A patch without a `target` fails if its object does not exist. A patch with an equal `target` does not.
    """
    patches: list[Plain] = []
    for entry in _list(kustomization.get("patches")):
        if isinstance(entry, dict) and "target" not in entry:
            patches += _targeted(entry.get("path"), entry.get("patch"), entry.get("options"), entry, file)
        else:
            patches.append(entry)
    for text in _list(kustomization.get("patchesStrategicMerge")):
        is_file = isinstance(text, str) and "\n" not in text and file(text) is not None
        entry = {"path": text} if is_file else {"patch": text}
        patches += _targeted(entry.get("path"), entry.get("patch"), None, entry, file)
    patches += _list(kustomization.get("patchesJson6902"))
    left = ("patches", "patchesStrategicMerge", "patchesJson6902")
    result = {key: value for key, value in kustomization.items() if key not in left}
    return {**result, "patches": patches} if patches else result


def merged(value: dict[str, Plain], overlay: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return a kustomization with the fields that Flux adds: lists are extended, images are replaced by name."""
    result = dict(value)
    for key, added in overlay.items():
        present = result.get(key)
        if key == "images" and isinstance(present, list) and isinstance(added, list):
            result[key] = _images(present, added)
        elif isinstance(present, list) and isinstance(added, list):
            result[key] = [*present, *added]
        elif isinstance(present, dict) and isinstance(added, dict):
            result[key] = {**present, **added}
        else:
            result[key] = added
    return result


def _images(present: list[Plain], added: list[Plain]) -> list[Plain]:
    by_name = {image.get("name"): dict(image) for image in present if isinstance(image, dict)}
    for image in added:
        if not isinstance(image, dict):
            continue
        given = {key: text for key, text in image.items() if text not in (None, "")}
        old = by_name.get(image.get("name"), {})
        if given.keys() & {"newTag", "digest"}:
            old = {key: text for key, text in old.items() if key not in ("newTag", "digest")}
        by_name[image.get("name")] = {**old, **given}
    return list(by_name.values())


def remote_files(kustomization: dict[str, Plain]) -> list[tuple[tuple[str | int, ...], str]]:
    """Remove the remote patches and the remote files of generators. Return their places, and their addresses."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    for key in ("patches", "patchesStrategicMerge", "patchesJson6902", "configurations", "crds"):
        kept: list[Plain] = []
        for index, entry in enumerate(_list(kustomization.get(key))):
            name = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(name, str) and _is_address(name):
                found.append(((key, index), name))
            else:
                kept.append(entry)
        if key in kustomization:
            kustomization[key] = kept
    for key in ("configMapGenerator", "secretGenerator"):
        for index, entry in enumerate(_list(kustomization.get(key))):
            for inner in ("files", "envs") if isinstance(entry, dict) else ():
                names = _list(entry.get(inner)) if isinstance(entry, dict) else []
                far = {number: name for number, name in enumerate(names) if isinstance(name, str) and _is_address(name)}
                if far and isinstance(entry, dict):
                    entry[inner] = [name for number, name in enumerate(names) if number not in far]
                    found += [((key, index, inner, number), name) for number, name in far.items()]
    return found


def _is_address(name: str) -> bool:
    return _ADDRESS.match(name) is not None


def _targeted(path: Plain, text: Plain, options: Plain, entry: dict[str, Plain], file: Text) -> list[Plain]:
    written = file(path) if isinstance(path, str) else None
    nodes = written.nodes if written is not None else read_nodes_text("", text).nodes if isinstance(text, str) else []
    found: list[Plain] = []
    for node in nodes:
        target = _target(node)
        if target is None:
            return [entry]  # kustomize reports the error
        patch: dict[str, Plain] = {"patch": json.dumps(node.plain()), "target": target}
        found.append({**patch, "options": options} if options is not None else patch)
    return found or [entry]


def _target(node: Node) -> dict[str, Plain] | None:
    value = node.plain()
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(metadata, dict):
        return None
    api_version, kind, name = value.get("apiVersion"), value.get("kind"), metadata.get("name")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not isinstance(name, str):
        return None
    group, _, version = api_version.rpartition("/")
    target: dict[str, Plain] = {"group": group, "version": version, "kind": kind, "name": re.escape(name)}
    namespace = metadata.get("namespace")
    return {**target, "namespace": re.escape(namespace)} if isinstance(namespace, str) else target


def _list(value: Plain | None) -> list[Plain]:
    return value if isinstance(value, list) else []
