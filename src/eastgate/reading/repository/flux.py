"""Environments of Flux: the objects that a cluster gets through its Kustomizations and HelmReleases.

A root is a Kustomization that is not in the path of another one, such as the one that `flux bootstrap` makes. It and
all that it leads to are one environment. Roots in the folders of one cluster are one environment together.
A Kustomization or HelmRelease with a `kubeConfig` deploys to another cluster, which is an environment of its own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.contents import Contents, contents_of, declarations_as_built, in_namespace, patches_of
from eastgate.reading.repository.declarations import Declaration, entries, indexed, mapping, text_of
from eastgate.reading.repository.model import NOT_HERE
from eastgate.reading.repository.parts import Draft, ToolChanges
from eastgate.reading.repository.patching import apply
from eastgate.reading.repository.releases import GROUP as HELM_GROUP
from eastgate.reading.repository.releases import Find, add_release, data_of, doubts_about, remote_cluster
from eastgate.reading.repository.sources import RepositorySource
from eastgate.reading.repository.tree import Folder, Tree
from eastgate.reading.repository.variables import FluxVariables

GROUP: Final = "kustomize.toolkit.fluxcd.io"
_OPERATOR = "fluxcd.controlplane.io"
_OVERLAY = ("patches", "patchesStrategicMerge", "patchesJson6902", "components", "images", "namePrefix", "nameSuffix")
_MAX_KUSTOMIZATIONS = 5000  # of one environment
_CLUSTERS = "clusters"
_DATA = ("ConfigMap", "Secret")
_Key = tuple[str, int, str]
_RemoteKey = tuple[str, str]  # namespace and name of the object with the kubeconfig
_OWN_FOLDERS = ("flux-system", "flux", "gotk")


@dataclass(slots=True, eq=False)
class FluxCluster:
    """A cluster: the folder that declares it, the file with its first declaration, and all that Flux deploys to it.

    A cluster that the Flux of another one deploys to has the `name` of its `kubeConfig`.
    """

    folder: str
    entry: str
    draft: Draft
    name: str = ""


def flux_clusters(tree: Tree, sources: RepositorySource) -> list[FluxCluster]:
    """Return the objects of each cluster that Flux deploys to."""
    kustomizations = declarations_as_built(tree, is_flux)
    if not kustomizations:
        return []
    held = _NestedKustomizations(tree, sources, kustomizations)
    groups: dict[str, list[Declaration]] = {}
    for root in held.roots():
        groups.setdefault(_cluster_folder(tree, root), []).append(root)
    for folder in sorted(groups):
        above = next((other for other in groups if other != folder and _is_below(folder, other)), None)
        if above is not None and _cluster_name(tree, folder) is None:
            groups[above] += groups.pop(folder)
    anywhere = finder(tree)
    known = {
        folder: _walked(_ClusterWalk(tree, sources, anywhere, anywhere), folder, roots, held).seen
        for folder, roots in groups.items()
    }
    clusters: list[FluxCluster] = []
    for folder, roots in groups.items():
        others = {each.place for other, seen in known.items() if other != folder for each in seen}
        others |= {each.place for each in tree.declarations if _is_of_other(tree, each, folder)}
        of_remote = finder(tree, (), others | {each.place for each in known[folder]})
        walk = _ClusterWalk(tree, sources, finder(tree, known[folder], others), of_remote)
        _walked(walk, folder, roots, held)
        remotes = dict(walk.all_remotes())
        if walk.draft.parts or walk.draft.left_out or not remotes:
            clusters.append(FluxCluster(folder, roots[0].path, walk.draft))
        names = _names_of_remotes(remotes)
        clusters += [FluxCluster(folder, each.entry, each.draft, names[key]) for key, each in remotes.items()]
    return clusters


def _names_of_remotes(keys: Collection[_RemoteKey]) -> dict[_RemoteKey, str]:
    """Return the shortest names that tell clusters apart: those of the `kubeConfig` objects, or their namespaces."""
    for part in (1, 0):
        names = {key: key[part] for key in keys}
        if len(set(names.values())) == len(names) and all(names.values()):
            return names
    return {key: "/".join(filter(None, key)) for key in keys}


def is_flux(declaration: Declaration) -> bool:
    """Return whether an object is a Flux Kustomization, or an instance of the Flux operator that makes one."""
    if not declaration.name:
        return False
    if declaration.group == _OPERATOR:
        return declaration.kind == "FluxInstance" and bool(mapping(declaration.spec.get("sync")))
    return declaration.group == GROUP and declaration.kind == "Kustomization"


def is_release(declaration: Declaration) -> bool:
    """Return whether an object is a HelmRelease of Flux."""
    return declaration.group == HELM_GROUP and declaration.kind == "HelmRelease" and bool(declaration.name)


def makes_objects(declaration: Declaration) -> bool:
    """Return whether an object of Flux makes other objects, and is not a Kustomization."""
    return is_release(declaration) or _is_resource_set(declaration)


def _is_resource_set(declaration: Declaration) -> bool:
    return declaration.group == _OPERATOR and declaration.kind == "ResourceSet"


def add_made(
    tree: Tree, sources: RepositorySource, declarations: Iterable[Declaration], find: Find, draft: Draft
) -> None:
    """Add the charts of HelmReleases to an environment, and record other objects that make objects."""
    for declaration in declarations:
        if is_release(declaration):
            add_release(tree, sources, declaration, find, draft)
        elif _is_resource_set(declaration):
            draft.leave_out(declaration.title, declaration.where, "the objects that it makes are not followed")


class _NestedKustomizations:
    """The Kustomizations that are in the paths of others."""

    def __init__(self, tree: Tree, sources: RepositorySource, kustomizations: list[Declaration]) -> None:
        self._kustomizations = kustomizations
        find = finder(tree)
        self.holds: dict[_Key, set[_Key]] = {}
        for each in kustomizations:
            known = _synchronised(each)
            folder = sources.flux_folder(known, find) if known.spec.get("path") else None  # a patch may add a path
            inner = contents_of(tree, folder).declarations if isinstance(folder, Folder) else []
            self.holds[each.key] = {child.key for child in inner if is_flux(child)}

    def roots(self) -> list[Declaration]:
        """Return the Kustomizations that are in no other path; of a circle, the first."""
        held = {child for parent, children in self.holds.items() for child in children if child != parent}
        roots = [each for each in self._kustomizations if each.key not in held]
        reached: set[_Key] = set()
        for root in roots:
            self._reach(root.key, reached)
        for each in self._kustomizations:
            if each.key not in reached:
                roots.append(each)
                self._reach(each.key, reached)
        return roots

    def _reach(self, key: _Key, reached: set[_Key]) -> None:
        waiting = [key]
        while waiting:
            current = waiting.pop()
            if current not in reached:
                reached.add(current)
                waiting += self.holds.get(current, ())


def _cluster_folder(tree: Tree, root: Declaration) -> str:
    """Return the folder that identifies the cluster of a root: `clusters/NAME`, or the folder of its file.

    If a kustomization elsewhere includes the root, that kustomization identifies the cluster.
    """
    folder = os.path.dirname(root.path) or os.curdir
    if root.folder and not _is_below(folder, root.folder):
        folder = root.folder
    while os.path.basename(folder) in _OWN_FOLDERS and _is_below(folder, tree.path) and folder != tree.path:
        folder = os.path.dirname(folder) or os.curdir
    named = _cluster_name(tree, folder)
    return named if named is not None else folder


def _cluster_name(tree: Tree, folder: str) -> str | None:
    steps = os.path.relpath(folder, tree.path).split(os.sep)
    at = next((index for index, step in enumerate(steps[:-1]) if step == _CLUSTERS), None)
    return None if at is None else os.path.normpath(os.path.join(tree.path, *steps[: at + 2]))


def _is_below(folder: str, other: str) -> bool:
    return not os.path.relpath(folder, other).startswith(os.pardir)


def _is_of_other(tree: Tree, declaration: Declaration, folder: str) -> bool:
    """Return whether a declaration is in the folder of another cluster."""
    named = _cluster_name(tree, os.path.dirname(declaration.path) or os.curdir)
    return named is not None and named != folder


def _walked(walk: _ClusterWalk, folder: str, roots: list[Declaration], held: _NestedKustomizations) -> _ClusterWalk:
    """Follow the roots of a cluster. The first run finds the ConfigMaps that the second one takes variables from."""
    if not any(root.key in held.holds[root.key] for root in roots):
        walk.take_folder(folder)
    for root in roots:
        walk.follow_root(root, is_own=root.key in held.holds[root.key])
    return walk


class _ClusterWalk:
    """Follows the roots of a cluster to all that it gets. `find` finds the ConfigMaps and Secrets of the cluster,
    `find_in_remote` those of clusters that it deploys to.
    """

    def __init__(
        self, tree: Tree, sources: RepositorySource, find: Find, find_in_remote: Find, entry: str = ""
    ) -> None:
        self._tree = tree
        self._sources = sources
        self._find = find
        self._find_in_remote = find_in_remote
        self._followed: set[tuple[*_Key, str, str]] = set()
        self._remotes: dict[_RemoteKey, _ClusterWalk] = {}
        self.entry = entry
        self.draft = Draft()
        self.seen: list[Declaration] = []

    def all_remotes(self) -> Iterator[tuple[_RemoteKey, _ClusterWalk]]:
        """Yield the clusters that this one deploys to, and those that they deploy to."""
        for key, remote in self._remotes.items():
            yield key, remote
            yield from remote.all_remotes()

    def _walk_of(self, declaration: Declaration) -> _ClusterWalk:
        """Return the walk of the cluster that a declaration deploys to."""
        key = remote_cluster(declaration)
        if key is None:
            return self
        if key not in self._remotes:
            find = self._find_in_remote
            self._remotes[key] = _ClusterWalk(self._tree, self._sources, find, find, declaration.path)
        return self._remotes[key]

    def take_folder(self, path: str) -> None:
        """Add the whole folder of a cluster, if the Kustomization of `flux bootstrap` is not in the checkout."""
        folder = self._tree.folder(path)
        if folder is not None and _cluster_name(self._tree, path) is not None:
            self._take(folder, contents_of(self._tree, folder), ToolChanges())

    def follow_root(self, root: Declaration, *, is_own: bool) -> None:
        """Follow a root, and the files beside it unless they are in its own path."""
        if not is_own and os.path.realpath(root.path) not in self.draft.files:
            folder = self._tree.folder(root.folder or os.path.dirname(root.path) or os.curdir)
            holder = folder if root.folder else _kustomization_of(folder, root) if folder is not None else None
            if holder is not None:
                self._take(holder, contents_of(self._tree, holder), ToolChanges())
            elif folder is not None:
                contents = contents_of(self._tree, folder, recurse=False) if folder.kustomization is None else None
                if contents is not None:
                    self._take(folder, contents, ToolChanges())
                else:
                    self.draft.files.add(os.path.realpath(root.path))
        self._walk_of(root)._follow(root, self._find)

    def _take(self, folder: Folder, contents: Contents, changes: ToolChanges) -> None:
        contents.drop(self._sources.ignored)
        self.draft.add_contents(folder, contents, changes)
        for declaration in self._changed(contents.declarations, folder.path, changes):
            self.seen.append(declaration)
            if is_flux(declaration):
                self._walk_of(declaration)._follow(declaration, self._find)
            else:
                add_made(self._tree, self._sources, [declaration], self._find, self._walk_of(declaration).draft)

    def _changed(self, found: Iterable[Declaration], folder: str, changes: ToolChanges) -> list[Declaration]:
        """Return the declarations of a folder as Flux changes them."""
        declarations = list(found)
        for patch in patches_of(self._tree, folder, dict(changes.overlay)):
            declarations = apply(patch, declarations)
        if changes.namespace:
            declarations = in_namespace(declarations, changes.namespace)
        fill = changes.variables.fill
        return [each.with_data(mapping(fill(each.data))) for each in declarations]

    def _follow(self, kustomization: Declaration, find: Find) -> None:
        """Take what a Kustomization deploys here. `find` finds ConfigMaps of the cluster that declares it."""
        key = (*kustomization.key, kustomization.namespace, kustomization.name)
        if key in self._followed or len(self._followed) > _MAX_KUSTOMIZATIONS:
            return
        self._followed.add(key)
        for why in doubts_about(kustomization):
            self.draft.leave_out(kustomization.title, kustomization.where, why)
        kustomization = _synchronised(kustomization)
        found = self._sources.flux_folder(kustomization, find)
        if not isinstance(found, Folder):
            self.draft.leave_out(kustomization.title, kustomization.where, found[1], NOT_HERE)
            return
        reference, path = mapping(kustomization.spec.get("sourceRef")), text_of(kustomization.spec.get("path"))
        if (doubt := self._sources.doubt_of_flux(kustomization, reference, path or ".", find)) is not None:
            self.draft.leave_out(kustomization.title, kustomization.where, doubt)
        changes = ToolChanges(
            text_of(kustomization.spec.get("targetNamespace")) or None,
            overlay_of(kustomization.spec),
            variables_of(kustomization, find),
        )
        if "${" in (changes.namespace or ""):
            why = "its targetNamespace has a variable whose value is not known"
            self.draft.leave_out(kustomization.title, kustomization.where, why)
            return
        self._take(found, contents_of(self._tree, found), changes)
        self._take_components(found, kustomization)

    def _take_components(self, folder: Folder, kustomization: Declaration) -> None:
        """Mark the components of a Kustomization as used, because they are a part of its build."""
        for entry in entries(kustomization.spec.get("components")):
            component = self._tree.folder(os.path.join(folder.path, entry)) if isinstance(entry, str) else None
            if component is not None and component.kustomization is not None:
                contents = contents_of(self._tree, component)
                self.draft.files |= contents.files
                self.draft.folders |= contents.folders


def _kustomization_of(folder: Folder, declaration: Declaration) -> Folder | None:
    """Return the nearest kustomization, in the folder or above, that includes the file of a declaration."""
    real = os.path.realpath(declaration.path)
    for each in (folder, *folder.above()):
        if each.kustomization is not None and not each.kustomization.is_component:
            names = (os.path.realpath(name) for name in each.kustomization.names())
            if real in names:
                return each
    return None


def _synchronised(declaration: Declaration) -> Declaration:
    """Return the Kustomization that the operator makes for an instance; return any other declaration unchanged."""
    if declaration.kind != "FluxInstance":
        return declaration
    sync = mapping(declaration.spec.get("sync"))
    reference: dict[str, Plain] = {"kind": sync.get("kind"), "name": sync.get("name") or "flux-system"}
    spec: dict[str, Plain] = {"path": sync.get("path"), "sourceRef": reference}
    return declaration.with_data({**declaration.data, "spec": spec})


def overlay_of(spec: dict[str, Plain]) -> dict[str, Plain]:
    """Return the fields of a Flux Kustomization that a kustomization also has."""
    overlay = {key: spec[key] for key in _OVERLAY if spec.get(key)}
    common = mapping(spec.get("commonMetadata"))
    if mapping(common.get("labels")):
        overlay["labels"] = [{"pairs": common["labels"]}]
    if mapping(common.get("annotations")):
        overlay["commonAnnotations"] = common["annotations"]
    return overlay


def variables_of(kustomization: Declaration, find: Find) -> FluxVariables:
    """Return the variables of a Flux Kustomization: those of ConfigMaps and Secrets in order, then its own."""
    build = kustomization.spec.get("postBuild")
    if not isinstance(build, dict):
        return FluxVariables({})
    values: dict[str, str] = {}
    hidden: set[str] = set()
    is_complete = True
    for entry in entries(build.get("substituteFrom")):
        reference = mapping(entry)
        source = find(text_of(reference.get("kind")), kustomization.namespace, text_of(reference.get("name")))
        if source is None or source.unsure:
            is_complete = False
            continue
        for name, value in data_of(source).items():
            if value is None:
                hidden.add(name)
                values.pop(name, None)
            else:
                values[name] = value.replace("\n", "")
                hidden.discard(name)
    for name, given in mapping(build.get("substitute")).items():
        if isinstance(given, str | int | float):
            text = str(given).lower() if isinstance(given, bool) else str(given)
            values[name] = text.replace("\n", "")
            hidden.discard(name)
    return FluxVariables(values, tuple(sorted(hidden)) if is_complete else None, True)


def finder(tree: Tree, near: Iterable[Declaration] = (), elsewhere: Collection[tuple[str, int]] = ()) -> Find:
    """Return a function that finds a declaration: in the environment, or else the only one of the repository.

    `elsewhere` are the places of other clusters: a ConfigMap of one cluster does not apply to another one.
    """
    indices = (indexed(near), tree.index)

    def find(kind: str, namespace: str, name: str) -> Declaration | None:
        for index in indices:
            several = index.get((kind, name), [])
            if kind in _DATA and index is not indices[0]:
                several = [each for each in several if each.place not in elsewhere]
            same = [each for each in several if each.namespace == namespace]
            chosen = same or [each for each in several if not each.namespace or not namespace]
            if not chosen and (kind not in _DATA or index is indices[0]):
                chosen = several
            if chosen and (index is indices[0] or all(each.data == chosen[0].data for each in chosen)):
                return chosen[-1]
        return None

    return find
