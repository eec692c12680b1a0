"""Finds the environments of a repository: the deployments of each tool, and then the manifests that no tool uses.

The order is that of `EntryKind`. Files that an earlier entry uses are not entries of their own. Only files are read
here: nothing is built, no program runs, and nothing is fetched.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.files import STDIN, Bounds
from eastgate.reading.manifests.kustomizations import Kustomized
from eastgate.reading.repository.argo import argo_applications, makes_applications
from eastgate.reading.repository.asking import reads_files
from eastgate.reading.repository.contents import contents_of
from eastgate.reading.repository.declarations import entries, mapping, text_of
from eastgate.reading.repository.flux import add_made, finder, flux_clusters, is_release
from eastgate.reading.repository.model import ChartRender, EntryKind, Environment, RepositoryOptions, Undeployed
from eastgate.reading.repository.naming import is_descriptive, names
from eastgate.reading.repository.parts import Draft
from eastgate.reading.repository.plain import Alike, plain_folders, same_text
from eastgate.reading.repository.releases import local_charts
from eastgate.reading.repository.skaffold import skaffold_projects
from eastgate.reading.repository.sources import RepositorySource
from eastgate.reading.repository.tree import Folder, Tree, patch_files

# names that do not identify a cluster
_GENERIC_FLUX_FOLDERS = ("bootstrap", "cluster", "config", "flux", "flux-system", "gotk", "setup")


def find_environments(
    paths: Iterable[str | os.PathLike[str]],
    bounds: Bounds,
    reporter: Reporter,
    options: RepositoryOptions,
    alike: Alike = same_text,
) -> list[Environment]:
    """Return the environments of the folders among paths. Those of one folder have different names.

    Unreadable folders and links that lead out are reported. `options` are kept for the builds. Folders with plain
    manifests become separate environments if they define an object in ways that are not `alike`.
    """
    found: list[Environment] = []
    for path in paths:
        name = os.fspath(path)
        if name == STDIN or isinstance(path, Kustomized | Environment) or not os.path.isdir(name):
            continue
        if not bounds.hold(name):
            continue
        tree = Tree(os.path.normpath(name), bounds, reporter)
        used = _UsedFiles(alike, RepositorySource(tree))
        entries = list(_entries(tree, used))
        found += _named(name, tree, entries, options, Undeployed(tuple(_undeployed(tree, used))))
    return found


@dataclass(slots=True, eq=False)
class _Entry:
    """An environment without its name: the folder, and other sources for its name."""

    kind: EntryKind
    folder: str
    entry: str
    draft: Draft
    given: str = ""
    namespace: str | None = None


def _named(
    root: str, tree: Tree, found: Sequence[_Entry], options: RepositoryOptions, undeployed: Undeployed
) -> list[Environment]:
    places = [(os.path.relpath(each.folder or os.curdir, tree.path), each.given) for each in found]
    charts = [each.path for each in tree.root.walk() if each.chart is not None and not each.is_templates]
    return [
        Environment(
            name,
            each.kind,
            root,
            each.entry,
            tuple(each.draft.parts),
            each.namespace,
            tuple(each.draft.left_out),
            options,
            undeployed,
            tuple(charts),
        )
        for name, each in zip(names(places), found, strict=True)
    ]


def _entries(tree: Tree, used: _UsedFiles) -> Iterator[_Entry]:
    """Yield the entries of a folder. Each kind excludes the files of those before it."""
    for cluster in flux_clusters(tree, used.sources):
        folder = _before(cluster.folder, _GENERIC_FLUX_FOLDERS)
        given = "cluster" if os.path.relpath(folder or os.curdir, tree.path) == os.curdir else ""
        yield used.by(_Entry(EntryKind.FLUX, folder, cluster.entry, cluster.draft, cluster.name or given))
    for application in argo_applications(tree, used.sources):
        folder, draft, namespace = application.folder, application.draft, application.namespace
        yield used.by(_Entry(EntryKind.ARGO, folder, application.entry, draft, application.name, namespace))
    for entries_of in (_kustomizations, _charts, _skaffold, _plain):
        for entry in list(entries_of(tree, used)):
            yield used.by(entry)


def _before(path: str, last: Collection[str]) -> str:
    """Return a path without its last folders that do not identify a cluster."""
    while os.path.basename(path) in last:
        path = os.path.dirname(path)
    return path


class _UsedFiles:
    """The files that the entries so far use, by real path; `alike` compares two definitions of an object."""

    def __init__(self, alike: Alike, sources: RepositorySource) -> None:
        self.alike = alike
        self.sources = sources
        self.files: set[str] = set()
        self.excluded: set[str] = set()
        self.folders: set[str] = set()

    def by(self, entry: _Entry) -> _Entry:
        """Record the files of an entry."""
        self.files |= entry.draft.files
        self.excluded |= entry.draft.excluded
        self.folders |= entry.draft.folders
        return entry


def _undeployed(tree: Tree, used: _UsedFiles) -> Iterator[str]:
    """Yield the manifests that no entry uses, except patches and parts of builds."""
    folders = list(tree.root.walk())
    left = [file for folder in folders for file in folder.files if file.may_have_objects]
    left = [file for file in left if file.real not in used.files]
    charts = [folder for folder in folders if folder.chart is not None and folder.real in used.folders]
    for chart in charts:  # templates may read any other file of their chart
        inside = [file for file in left if file.real.startswith(chart.real + os.sep)]
        if inside and reads_files(chart.path):
            left = [file for file in left if file not in inside]
    bases = {file.name for file in left}
    named = {path for folder in folders for path in patch_files(folder)}
    for folder in folders:
        if folder.kustomization is not None and folder.real in used.folders:
            named.update(path for path in folder.kustomization.names() if os.path.basename(path) in bases)
    real = {os.path.realpath(path) for path in named if os.path.basename(path) in bases}
    yield from (file.path for file in left if file.real not in real)


def _kustomizations(tree: Tree, used: _UsedFiles) -> Iterator[_Entry]:
    """Yield the kustomizations that no other one includes, with the charts of their HelmReleases."""
    built = set(used.folders)
    for folder in tree.tops:
        if folder.real in built:
            continue
        draft, contents = Draft(), contents_of(tree, folder)
        draft.add_contents(folder, contents)
        add_made(tree, used.sources, contents.declarations, finder(tree, contents.declarations), draft)
        yield _Entry(EntryKind.KUSTOMIZATION, folder.path, folder.path, draft)


def _charts(tree: Tree, used: _UsedFiles) -> Iterator[_Entry]:
    """Yield the charts that no other entry renders, and that are not a dependency of another chart."""
    inflated = {path for folder in tree.root.walk() if folder.real in used.folders for path in _inflated(folder)}
    charts = [folder for folder in tree.root.walk() if folder.is_chart]
    dependencies = _dependencies({chart.real: set(_local_dependencies(chart)) for chart in charts})
    dependencies |= {place for each in tree.declarations if is_release(each) for place in local_charts(tree, each)}
    for folder in charts:
        if folder.real in used.folders | inflated | dependencies:
            continue
        name = text_of(mapping(folder.chart).get("name")) or os.path.basename(folder.real)
        draft = Draft()
        draft.add_chart(folder, ChartRender(folder.path, name))
        if makes_applications(tree, folder):
            why = "it makes Applications of Argo CD, which are not followed"
            draft.leave_out(f"the chart `{name}`", folder.path, why)
        given = "" if is_descriptive(os.path.relpath(folder.path, tree.path)) else name
        yield _Entry(EntryKind.CHART, folder.path, folder.path, draft, given)


def _inflated(folder: Folder) -> Iterator[str]:
    """Yield the real paths of the charts that a kustomization inflates."""
    if folder.kustomization is None:
        return
    home = text_of(mapping(folder.content.get("helmGlobals")).get("chartHome")) or "charts"
    for entry in entries(folder.content.get("helmCharts")):
        name = text_of(mapping(entry).get("name"))
        if name and "\0" not in name + home:
            yield os.path.realpath(os.path.join(folder.path, home, name))


def _dependencies(needed: Mapping[str, set[str]]) -> set[str]:
    """Return the charts that other charts need. The first chart of a circle is not one of them."""
    found = {path for paths in needed.values() for path in paths}
    reached: set[str] = set()
    for first in sorted(needed, key=lambda path: (path in found, path)):
        if first in reached:
            continue
        found.discard(first)
        waiting = [first]
        while waiting:
            current = waiting.pop()
            if current not in reached:
                reached.add(current)
                waiting += needed.get(current, ())
    return found


def _local_dependencies(chart: Folder) -> Iterator[str]:
    for entry in entries(mapping(chart.chart).get("dependencies")):
        repository = text_of(mapping(entry).get("repository"))
        if repository.startswith("file://") and "\0" not in repository:
            path = os.path.realpath(os.path.join(chart.path, repository.removeprefix("file://")))
            if path != chart.real:
                yield path


def _skaffold(tree: Tree, used: _UsedFiles) -> Iterator[_Entry]:
    """Yield the `skaffold.yaml` files that deploy anything that is not deployed yet."""
    for project in skaffold_projects(tree):
        draft = project.draft
        if draft.files - used.files or draft.folders - used.folders:
            given = "" if is_descriptive(os.path.relpath(project.folder, tree.path)) else "skaffold"
            yield _Entry(EntryKind.SKAFFOLD, project.folder, project.entry, draft, given, project.namespace)


def _plain(tree: Tree, used: _UsedFiles) -> Iterator[_Entry]:
    """Yield the plain manifests that are left."""
    for group in plain_folders(tree, used.files | used.excluded, used.alike):
        draft = Draft()
        draft.add_files(group.files)
        declared = [declaration for file in group.files for declaration in file.declarations]
        add_made(tree, used.sources, declared, finder(tree, declared), draft)
        given = "" if os.path.relpath(group.folder, tree.path) != os.curdir else "manifests"
        yield _Entry(EntryKind.FOLDER, group.folder, group.folder, draft, given)
