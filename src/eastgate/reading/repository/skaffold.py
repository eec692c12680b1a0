"""Environments of skaffold: the manifests, kustomizations and charts that a `skaffold.yaml` names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.applicationsets import matches_any
from eastgate.reading.repository.contents import contents_of
from eastgate.reading.repository.declarations import ManifestFile, entries, mapping, text_of, texts
from eastgate.reading.repository.model import CHARTS_NOT_FETCHED, ChartRender
from eastgate.reading.repository.parts import Draft, ToolChanges
from eastgate.reading.repository.releases import with_parameter
from eastgate.reading.repository.tree import Folder, Tree

_API = "skaffold/"
_MAX_REQUIRED = 200


@dataclass(slots=True, eq=False)
class SkaffoldProject:
    """A `skaffold.yaml` that no other one requires, and the objects that it deploys."""

    folder: str
    entry: str
    namespace: str | None
    draft: Draft


def skaffold_projects(tree: Tree) -> list[SkaffoldProject]:
    """Return the objects of each `skaffold.yaml`."""
    configurations = {
        os.path.realpath(path): (folder, path, _documents(tree, path))
        for folder in tree.root.walk()
        if folder.skaffold is not None
        for path in [os.path.normpath(os.path.join(folder.path, folder.skaffold))]
    }
    required = {real: set(_required(folder, documents)) for real, (folder, _, documents) in configurations.items()}
    taken = {other for real, others in required.items() for other in others if other != real}
    projects = []
    for real, (folder, path, _) in configurations.items():
        if real in taken:
            continue
        draft, namespace = Draft(), None
        for each in _closure(real, required):
            if each in configurations:
                of, _, documents = configurations[each]
                for document in documents:
                    namespace = _add(tree, of, document, draft) or namespace
        projects.append(SkaffoldProject(folder.path, path, namespace, draft))
    return projects


def _documents(tree: Tree, path: str) -> list[dict[str, Plain]]:
    values = [mapping(value) for value in tree.values(path)]
    return [value for value in values if text_of(value.get("apiVersion")).startswith(_API)]


def _required(folder: Folder, documents: list[dict[str, Plain]]) -> Iterator[str]:
    for document in documents:
        for entry in entries(document.get("requires")):
            path = os.path.join(folder.path, text_of(mapping(entry).get("path")))
            for name in ("", "skaffold.yaml", "skaffold.yml"):
                if "\0" not in path:
                    yield os.path.realpath(os.path.join(path, name) if name else path)


def _closure(first: str, required: Mapping[str, set[str]]) -> list[str]:
    waiting, seen = [first], dict[str, None]()
    while waiting and len(seen) < _MAX_REQUIRED:
        current = waiting.pop()
        if current not in seen:
            seen[current] = None
            waiting += sorted(required.get(current, ()), reverse=True)
    return list(seen)


def _add(tree: Tree, folder: Folder, document: Mapping[str, Plain], draft: Draft) -> str | None:
    """Add the objects of one configuration. Return its default namespace."""
    manifests, deploy = mapping(document.get("manifests")), mapping(document.get("deploy"))
    kubectl = mapping(deploy.get("kubectl"))
    patterns = [*texts(manifests.get("rawYaml")), *texts(kubectl.get("manifests"))]
    draft.add_files(_matching(tree, folder, patterns))
    remote = [pattern for pattern in patterns if "://" in pattern]
    remote += [
        text_of(mapping(mapping(entry).get(kind)).get("repo"))
        for entry in entries(document.get("requires"))
        for kind in ("git", "googleCloudStorage")
    ]
    for address in filter(None, remote):
        draft.leave_out(f"`{address}`", folder.path, "it would have to be fetched")
    for name in ("kpt", "transform"):
        if manifests.get(name) or mapping(deploy.get(name)):
            draft.leave_out(f"`{name}` of skaffold", folder.path, "it is not followed")
    folders = [
        path for section in (manifests, deploy) for path in texts(mapping(section.get("kustomize")).get("paths"))
    ]
    if not folders and any("kustomize" in section for section in (manifests, deploy)):
        folders = ["."]
    for path in folders:
        found = tree.folder(os.path.join(folder.path, path))
        if found is not None:
            draft.add_contents(found, contents_of(tree, found), ToolChanges())
        else:
            draft.leave_out(f"the kustomization `{path}`", folder.path, "it is not in this repository")
    for section in (manifests, deploy):
        for entry in entries(mapping(section.get("helm")).get("releases")):
            _add_release(tree, folder, mapping(entry), draft)
    return text_of(kubectl.get("defaultNamespace")) or None


def _matching(tree: Tree, folder: Folder, patterns: list[str]) -> list[ManifestFile]:
    """Return the files of the repository that patterns match, each once."""
    files: dict[str, ManifestFile] = {}
    for pattern in patterns:
        path = os.path.normpath(os.path.join(folder.path, pattern))
        if "*" not in pattern and "?" not in pattern:
            file = tree.file(path)
            files |= {file.path: file} if file is not None else {}
            continue
        fixed = os.path.dirname(path[: path.index("*") if "*" in path else path.index("?")]) or os.curdir
        base = tree.folder(fixed)
        relative = os.path.relpath(path, fixed).replace(os.sep, "/")
        for inner in base.walk() if base is not None else ():
            for file in inner.files:
                if matches_any(os.path.relpath(file.path, fixed).replace(os.sep, "/"), [relative]):
                    files[file.path] = file
    return list(files.values())


def _add_release(tree: Tree, folder: Folder, release: Mapping[str, Plain], draft: Draft) -> None:
    name, path = text_of(release.get("name")), text_of(release.get("chartPath"))
    chart = tree.folder(os.path.join(folder.path, path)) if path else None
    if chart is None or chart.chart is None:
        shown = path or text_of(release.get("remoteChart")) or name
        why = f"the chart `{shown}` is not in this repository, and {CHARTS_NOT_FETCHED}"
        draft.leave_out(f"release `{name}`", folder.path, why, CHARTS_NOT_FETCHED)
        return
    files = [os.path.normpath(os.path.join(folder.path, each)) for each in texts(release.get("valuesFiles"))]
    for file in files:
        if tree.text(file) is None:
            draft.leave_out(f"values of release `{name}`", folder.path, f"`{file}` is not in this repository")
    values: dict[str, Plain] = mapping(release.get("overrides"))
    for key, value in mapping(release.get("setValues")).items():
        values = with_parameter(values, key, value)
    read = tuple(file for file in files if tree.text(file) is not None)
    namespace = text_of(release.get("namespace")) or None
    draft.add_chart(chart, ChartRender(chart.path, name or os.path.basename(path), namespace, read, (values,)))
