"""The parts that a folder of the repository contributes to an environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.contents import Contents
from eastgate.reading.repository.declarations import ManifestFile
from eastgate.reading.repository.model import ChartRender, Files, KustomizeBuild, LeftOut, Part
from eastgate.reading.repository.tree import Folder, Tree
from eastgate.reading.repository.variables import NO_VARIABLES, FluxVariables


@dataclass(frozen=True, slots=True)
class ToolChanges:
    """The changes of a tool to all objects that it takes from one folder."""

    namespace: str | None = None
    overlay: Mapping[str, Plain] = field(default_factory=dict)
    variables: FluxVariables = NO_VARIABLES
    default_namespace: str | None = None

    @property
    def is_nothing(self) -> bool:
        """Return whether the objects stay unchanged."""
        return not self.namespace and not self.overlay and not self.variables.is_used

    def build(self, folder: str, resources: tuple[str, ...] = ()) -> KustomizeBuild:
        """Return the build of a folder with these changes."""
        return KustomizeBuild(
            folder,
            self.namespace,
            self.variables.values,
            self.variables.is_used,
            self.overlay,
            self.default_namespace,
            resources,
            self.variables.hidden,
        )


UNCHANGED: Final = ToolChanges()


@dataclass(slots=True, eq=False)
class Draft:
    """An environment under construction: its parts so far, and the files that it uses."""

    parts: list[Part] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    deploys: bool = False
    """Whether there are, or may be, objects other than declarations."""
    files: set[str] = field(default_factory=set)
    """The real paths of the used files, which are not environments of their own."""
    excluded: set[str] = field(default_factory=set)
    """The real paths of files that its tool skips."""
    folders: set[str] = field(default_factory=set)
    """The real paths of the used folders."""
    _seen: set[str | LeftOut] = field(default_factory=set)

    def leave_out(self, what: str, where: str, why: str, reason: str = "") -> None:
        """Record an omitted part once."""
        gap = LeftOut(what, where, why, reason=reason)
        if gap not in self._seen:
            self._seen.add(gap)
            self.left_out.append(gap)

    def add(self, part: Part) -> None:
        """Add a part once."""
        if repr(part) not in self._seen:
            self._seen.add(repr(part))
            self.parts.append(part)

    def add_contents(self, folder: Folder, contents: Contents, changes: ToolChanges = UNCHANGED) -> None:
        """Add the content that a tool takes from a folder, with the changes of the tool."""
        self.files |= contents.files
        self.excluded |= contents.excluded
        self.deploys |= contents.deploys
        self.folders |= contents.folders | {folder.real}
        for path in dict.fromkeys(contents.unread):
            what = f"the patches of `{path}`"
            self.leave_out(what, path, "a patch cannot be read, which may change what a Helm chart deploys")
        for where in contents.broken:
            self.leave_out("a declaration of deployments", where, "it cannot be read")
        files = tuple(file.path for file in contents.plain)
        if folder.kustomization is not None:
            self.add(changes.build(folder.path))
        elif changes.is_nothing:
            if files:
                self.add(Files(files, changes.default_namespace))
            for kustomization in contents.kustomizations:
                self.add(changes.build(kustomization.path))
        elif files or contents.kustomizations:
            kustomizations = tuple(kustomization.path for kustomization in contents.kustomizations)
            self.add(changes.build(folder.path, files + kustomizations))

    def add_files(self, files: list[ManifestFile]) -> None:
        """Add plain manifests."""
        self.files.update(file.real for file in files)
        paths = tuple(file.path for file in files if file.may_have_objects or file.broken)
        if paths:
            self.add(Files(paths))

    def add_chart(self, folder: Folder, render: ChartRender) -> None:
        """Add a chart to render."""
        self.folders.add(folder.real)
        self.deploys = True
        self.add(render)


def inside(tree: Tree, path: str, *, near: str = "") -> str | None:
    """Return a path of the repository as seen from the working directory; None if it does not exist, or leads out.

    The path is relative to the root of the repository, or to the given folder, which may be a repository inside
    another one. With `near`, a file, it may be relative to a folder around the file, from the root down, because an
    artifact may contain a part of the repository.
    """
    if "\0" in path or path.startswith("~") or leads_out(path):
        return None
    relative = os.path.normpath(path.lstrip("/") or os.curdir)
    for base in dict.fromkeys((tree.base, tree.path, *_around(tree.path, near))):
        candidate = os.path.normpath(os.path.join(base, relative))
        if os.path.lexists(candidate) and tree.may_read(candidate):
            return candidate
    return None


def _around(root: str, file: str) -> list[str]:
    """Return the folders below a root that contain a file."""
    relative = os.path.relpath(os.path.dirname(file), root) if file else os.curdir
    steps = relative.split(os.sep)
    if steps[0] in (os.curdir, os.pardir):
        return []
    return [os.path.normpath(os.path.join(root, *steps[: length + 1])) for length in range(len(steps))]


def leads_out(path: str) -> bool:
    """Return whether a path of a repository leads out of it."""
    return os.path.normpath(path.lstrip("/") or os.curdir).split(os.sep)[0] == os.pardir
