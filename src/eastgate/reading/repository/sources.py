"""The repository of a source, and the folder of a path in it.

Nothing is fetched. A source is this repository if its address ends in the name of this repository: a fork, a mirror or
another protocol changes everything except the last part of an address.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from itertools import takewhile

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.inputs import Exclusion
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.declarations import Declaration, entries, indexed, mapping, text_of
from eastgate.reading.repository.parts import inside, leads_out
from eastgate.reading.repository.releases import Find
from eastgate.reading.repository.tree import Folder, Tree

_URL = regex(r'(?m)^\s*url\s*=\s*"?([^"\s]+)')
_MAX_CONFIG_BYTES = 1 << 16
_IGNORE_FILE = ".sourceignore"
_OWN_SOURCE = "flux-system"  # the source that `flux bootstrap` makes for its own repository


class RepositorySource:
    """The repository as a source of deployments."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @cached_property
    def _names(self) -> frozenset[str]:
        """Return the names of the repository: of its remotes, and of its folder."""
        urls = [os.path.realpath(self._tree.base), os.path.realpath(self._tree.path)]
        try:
            with open(os.path.join(self._tree.base, ".git", "config"), encoding="utf-8", errors="replace") as file:
                urls += _URL.findall(file.read(_MAX_CONFIG_BYTES))
        except OSError:
            pass  # a checkout without remotes, or a worktree
        return frozenset(map(_name, urls))

    @cached_property
    def ignored(self) -> Exclusion:
        """Return the patterns of the files that Flux ignores when it fetches."""
        text = self._tree.text(os.path.join(self._tree.base, _IGNORE_FILE)) or ""
        return Exclusion().below(self._tree.base, text.splitlines(), _IGNORE_FILE, Reporter())

    def is_elsewhere(self, url: str, path: str) -> bool:
        """Return whether a path of a source is in another repository.

        Forks and templates keep old addresses. So a path that exists in the checkout is in this repository. Only the
        path `.`, which exists in all repositories, needs an address with the name of this one.
        """
        return _is_root(path) and bool(url) and _name(url) not in self._names

    def doubt(self, url: str, path: str) -> str | None:
        """Return the reason why a source of Argo CD may be another repository, or None.

        If most sources with existing paths name one repository, that is this one, whatever its local name.
        """
        return self._doubt(url, path, self._of_argo)

    def doubt_of_flux(
        self, declaration: Declaration, reference: Mapping[str, Plain], path: str, find: Find
    ) -> str | None:
        """Return the reason why a Git source of Flux may be another repository, or None."""
        name = text_of(reference.get("name"))
        if text_of(reference.get("kind")) != "GitRepository" or name == _OWN_SOURCE:
            return None
        url = _url(find, text_of(reference.get("namespace")) or declaration.namespace, name)
        return self._doubt(url, path, self._of_flux)

    def _doubt(self, url: str, path: str, own: str | None) -> str | None:
        name = _name(url)
        if not url or name in self._names or name == own:
            return None
        return f"it names the repository `{name}`, which may be another one: `{path}` of this one is read"

    @cached_property
    def _of_flux(self) -> str | None:
        """Return the name of the repository that most sources of Flux name; None if it is not unique."""
        repositories = indexed(each for each in self._tree.declarations if each.kind == "GitRepository")
        urls = {name: text_of(several[0].spec.get("url")) for (_, name), several in repositories.items()}
        counts: Counter[str] = Counter()
        for each in self._tree.declarations:
            chart = mapping(mapping(each.spec.get("chart")).get("spec"))
            for holder, path in ((each.spec, each.spec.get("path")), (chart, chart.get("chart"))):
                reference = mapping(holder.get("sourceRef"))
                if reference.get("kind") == "GitRepository" and self._has(path):
                    name = text_of(reference.get("name"))
                    counts[_name(urls.get(name) or name)] += 1
        return _most(counts)

    @cached_property
    def _of_argo(self) -> str | None:
        """Return the name of the repository that most sources of Argo CD name; None if it is not unique."""
        counts: Counter[str] = Counter()
        for each in self._tree.declarations:
            spec = mapping(mapping(each.spec.get("template")).get("spec")) or each.spec
            for source in (spec.get("source"), *entries(spec.get("sources"))):
                url, path = (text_of(mapping(source).get(key)) for key in ("repoURL", "path"))
                if url and ("{{" in path or self._has(path)):
                    counts[_name(url)] += 1
        return _most(counts)

    def _has(self, path: Plain | None) -> bool:
        return isinstance(path, str) and not _is_root(path) and inside(self._tree, path) is not None

    def flux_folder(self, kustomization: Declaration, find: Find) -> Folder | tuple[str, str]:
        """Return the folder of a Flux Kustomization, or the path and the reason why it is not read."""
        path = text_of(kustomization.spec.get("path")) or "./"
        reference = mapping(kustomization.spec.get("sourceRef"))
        kind, name = text_of(reference.get("kind")), text_of(reference.get("name"))
        if "${" in path:
            return path, "its path has a variable whose value is not known"
        if leads_out(path):
            return path, "its path leads out of the repository"
        namespace = text_of(reference.get("namespace")) or kustomization.namespace
        paths, near = [path], "" if kind == "GitRepository" else kustomization.path
        if kind == "ExternalArtifact":
            paths = _artifact_paths(name, path, self._generators, kustomization)
            paths += [path] if not _is_root(path) else []
        else:
            url = _url(find, namespace, name, kind)
            if name != _OWN_SOURCE and self.is_elsewhere(url, path):
                return path, f"it is in another repository, the {kind} `{name}`"
        places = [place for each in paths if (place := inside(self._tree, each, near=near)) is not None]
        folders = (self._tree.folder(place) for place in places)
        found = next((folder for folder in folders if folder is not None), None)
        of = f" of the {kind} `{name}`" if name else ""
        return found if found is not None else (path, f"the folder `{path}`{of} is not in this repository")

    @cached_property
    def _generators(self) -> list[Declaration]:
        return [each for each in self._tree.declarations if each.kind == "ArtifactGenerator"]


def _most(counts: Counter[str]) -> str | None:
    most = [name for name, count in counts.items() if count == max(counts.values())]
    return most[0] if len(most) == 1 else None


def _url(find: Find, namespace: str, name: str, kind: str = "GitRepository") -> str:
    source = find(kind, namespace, name)
    return text_of(source.spec.get("url")) if source is not None else ""


def _is_root(path: str) -> bool:
    return os.path.normpath(path.strip("/") or os.curdir) == os.curdir


def _artifact_paths(name: str, path: str, generators: list[Declaration], user: Declaration) -> list[str]:
    """Return the folders of the repository that a path of a generated artifact may come from.

    Clusters have artifacts of the same names: the generator with the nearest file comes first.
    """
    generators = sorted(generators, key=lambda each: -_shared(each.path, user.path))
    wanted = os.path.normpath(path.lstrip("/") or os.curdir)
    found: list[str] = []
    for generator in generators:
        for artifact in entries(generator.spec.get("artifacts")):
            if mapping(artifact).get("name") != name:
                continue
            for copy in entries(mapping(artifact).get("copy")):
                source, target = (_without_alias(mapping(copy).get(key)) for key in ("from", "to"))
                relative = os.path.relpath(wanted, target) if wanted != target else os.curdir
                if not relative.startswith(os.pardir):
                    found.append(os.path.normpath(os.path.join(source, relative)))
    return found


def _shared(path: str, other: str) -> int:
    """Return the number of folders that two paths share."""
    pairs = zip(path.split(os.sep), other.split(os.sep), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _without_alias(place: Plain) -> str:
    """Return the folder of `@alias/folder/**`."""
    path = text_of(place).partition("/")[2]
    while path.rpartition("/")[2] in ("*", "**"):
        path = path.rpartition("/")[0]
    return os.path.normpath(path or os.curdir)


def _name(url: str) -> str:
    """Return the last part of an address or a path."""
    return url.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git").lower()
