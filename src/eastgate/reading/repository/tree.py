"""One walk over a folder: the content of each folder below it that environments depend on.

Only the heads of documents are read. A declaration of a deployment, such as a Flux Kustomization, is read whole on
demand. The walk stays in its bounds, skips files of `--exclude` and `.eastgateignore`, and skips hidden folders.
Folders of the same repository that a path leads to are walked on demand.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Final

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import brief, dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.files import SUFFIXES, Bounds, is_readable, report_unreadable, report_way_out
from eastgate.reading.manifests.inputs import IGNORE_FILE, Exclusion
from eastgate.reading.manifests.kustomizations import FILES, Kustomization, is_kustomization, kustomization_of, roots
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.roots import read_nodes_text
from eastgate.reading.repository.declarations import (
    Declaration,
    Index,
    ManifestFile,
    declaring,
    indexed,
    mapping,
    parsed,
)

CHART: Final = "Chart.yaml"
SKAFFOLD: Final = ("skaffold.yaml", "skaffold.yml")
_TEMPLATES = ("templates", "charts", "crds")  # folders of a chart without plain manifests
_MAX_BYTES = 16 * 1024 * 1024  # larger files are not searched for heads
_MAX_DEPTH = 64
_MAX_FILES = 200_000

_MAYBE = regex(rb"""(?i)\bapi_?version\b|\bkind["']?\s*:|\\[ux]""")  # as `may_be_manifest` of heads
_API_VERSION: Final = b"apiVersion"
_BEFORE_KEY: Final = b" \t\r\v\f-{,\"'"
_VALUE = regex(rb"""["']?\s*:\s*["']?([^\s"',}#]*)""")
_ESCAPES: Final = (b"\\u", b"\\x")
_KIND = regex(rb"""\bkind["']?\s*:""")
_WORKLOADS = regex(
    rb"""(?m)^[\s\-{,"']*kind["']?\s*:\s*["']?(?:\w*Rollout|\w*Workflow|Sensor|EventSource)\b"""
)  # of Argo
_DATA = regex(rb"""kind["']?:\s*["']?(?:ConfigMap|Secret)\b""")
# all other kinds of its group are in files only, or decide nothing
_OWN_POLICY = regex(rb"ClusterAuthorizationPolicy|\\[ux]")
# API groups of files that are never sent to an API server. Such files alone deploy nothing.
_NO_OBJECTS = regex(
    r"(?:kustomize\.config\.k8s\.io|skaffold|kind\.x-k8s\.io|k3d\.io|zarf\.dev|uds\.dev|backstage\.io|eastgate\.dev"
    r"|(?:[\w-]+\.)?kubeadm\.k8s\.io|ctlptl\.dev|tilt\.dev|(?:[\w-]+\.)*fluxcd\.(?:controlplane\.)?io)/.*"
    r"|v\d+alpha\d*|v[2-9]|[\d.]+|uds.*"
)


@dataclass(slots=True, eq=False)
class Folder:
    """A folder: its files, its subfolders, and the tools that it has files of."""

    path: str
    real: str
    parent: Folder | None = None
    files: list[ManifestFile] = field(default_factory=list)
    folders: list[Folder] = field(default_factory=list)
    kustomization: Kustomization | None = None
    content: dict[str, Plain] = field(default_factory=dict)
    """The content of the kustomization."""
    chart: dict[str, Plain] | None = None
    """The content of its `Chart.yaml`."""
    is_templates: bool = False
    """Whether its files are not manifests, but part of a chart or of an unrendered kustomization."""
    template: str | None = None
    """The place of template text in its kustomization."""
    skaffold: str | None = None

    def __repr__(self) -> str:
        return brief(self, self.path)

    @property
    def is_chart(self) -> bool:
        """Return whether it is an installable chart that is not part of another one."""
        return self.chart is not None and self.chart.get("type") != "library" and not self.is_templates

    def walk(self) -> Iterator[Folder]:
        """Yield the folder and all below it. Each comes before its subfolders."""
        yield self
        for folder in self.folders:
            yield from folder.walk()

    def above(self) -> Iterator[Folder]:
        """Yield the folders around it, the nearest first."""
        folder = self.parent
        while folder is not None:
            yield folder
            folder = folder.parent


class Tree:
    """The folders below one folder, and those of its repository that paths lead to."""

    def __init__(self, root: str, bounds: Bounds, reporter: Reporter) -> None:
        self.path = root
        self._bounds = bounds
        self._repository = repository_of(root)
        self._store = _WalkedFolders()
        above = os.path.relpath(self._repository, _real(root))
        self.base = os.path.normpath(os.path.join(root, above))
        """The root of the repository, relative to the working directory."""
        self.root = _FolderWalk(self._store, bounds, reporter).start(root)

    def folder(self, path: str) -> Folder | None:
        """Return the folder at a path, by any name; None if it does not exist or may not be read."""
        named = self._store.names.get(os.path.normpath(path))
        if named is not None:
            return named if isinstance(named, Folder) else None
        real = _real(path)
        if real not in self._store.folders and self.may_read(path) and os.path.isdir(path):
            bounds = Bounds((self._repository,), self._bounds.exclude)
            _FolderWalk(self._store, bounds, Reporter()).start(os.path.normpath(path))
        return self._store.folders.get(real)

    def file(self, path: str) -> ManifestFile | None:
        """Return the file at a path, by any name; None if it does not exist or may not be read."""
        named = self._store.names.get(os.path.normpath(path))
        if named is not None:
            return named if isinstance(named, ManifestFile) else None
        real = _real(path)
        if real not in self._store.files:
            if not self.may_read(path) or not os.path.isfile(path):
                return None
            self._store.files[real] = _file(os.path.normpath(path), real)
        return self._store.files[real]

    def may_read(self, path: str) -> bool:
        """Return whether a path in a file is within the bounds, or in the repository."""
        return "\0" not in path and (self._bounds.hold(path) or Bounds((self._repository,)).hold(path))

    def text(self, path: str) -> str | None:
        """Return the text of a file that another one names; None if it cannot or must not be read."""
        content = _content(path) if self.may_read(path) else None
        return None if content is None else _decoded(content)

    def values(self, path: str) -> list[Plain]:
        """Return the content of a file that another one names; nothing if it cannot or must not be read."""
        text = self.text(path)
        return [] if text is None else parsed(path, text)

    @cached_property
    def tops(self) -> list[Folder]:
        """Return the folders of the kustomizations that no other one includes."""
        folders = {id(folder.kustomization): folder for folder in self.root.walk() if folder.kustomization is not None}
        found = roots(folder.kustomization for folder in folders.values() if folder.kustomization is not None)
        return [folders[id(top)] for top in found]

    @cached_property
    def declarations(self) -> list[Declaration]:
        """Return all declarations below the folder. A patch of a declaration is not one."""
        patches = {os.path.normpath(path) for folder in self.root.walk() for path in patch_files(folder)}
        files = (file for folder in self.root.walk() for file in folder.files)
        return [each for file in files if file.path not in patches for each in file.declarations]

    @cached_property
    def index(self) -> Index:
        """Return the declarations by kind and name."""
        return indexed(self.declarations)


@dataclass(slots=True, eq=False)
class _WalkedFolders:
    """The walked folders, by real path."""

    folders: dict[str, Folder] = field(default_factory=dict)
    files: dict[str, ManifestFile] = field(default_factory=dict)
    names: dict[str, Folder | ManifestFile] = field(default_factory=dict)
    """The folders by the paths of the walk, which need no system call."""


class _FolderWalk:
    """A walk from one folder. Links to folders come last, so that real folders are found in their own place."""

    def __init__(self, store: _WalkedFolders, bounds: Bounds, reporter: Reporter) -> None:
        self._store = store
        self._bounds = bounds
        self._reporter = reporter
        self._links: list[tuple[str, str, Folder, Exclusion, int]] = []

    def start(self, path: str) -> Folder:
        """Walk a folder."""
        exclusion = Exclusion().below(path, self._bounds.exclude, "--exclude", self._reporter)
        folder = self._walk(path, _real(path), None, exclusion)
        while self._links:
            self._add_folder(*self._links.pop(0))
        return folder

    def _walk(self, path: str, real: str, parent: Folder | None, exclusion: Exclusion, depth: int = 0) -> Folder:
        folder = Folder(path, real, parent)
        if real in self._store.folders:  # another name of the folder, or a circle of links
            return folder
        if depth > _MAX_DEPTH:
            report_unreadable(self._reporter, path, OSError(errno.ELOOP, "too many folders inside each other"))
            return folder
        self._store.folders[real] = self._store.names[path] = folder
        try:
            found = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            report_unreadable(self._reporter, path, error)
            return folder
        names = {entry.name for entry in found}
        if IGNORE_FILE in names:
            exclusion = exclusion.within(path, self._reporter)
        _look(folder, names, exclusion, self._bounds, self._reporter)
        for entry in found:
            if entry.name.startswith("."):
                continue
            name = _path(path, entry.name)
            is_folder = self._is_folder(entry, name, exclusion)
            if is_folder is None:
                continue
            inside = _real(name) if entry.is_symlink() else os.path.join(real, entry.name)
            if not is_folder:
                self._add_file(folder, name, inside)
                continue
            if entry.is_symlink():
                self._links.append((name, inside, folder, exclusion, depth + 1))
            else:
                self._add_folder(name, inside, folder, exclusion, depth + 1)
        return folder

    def _add_folder(self, path: str, real: str, parent: Folder, exclusion: Exclusion, depth: int) -> None:
        inner = self._walk(path, real, parent, exclusion, depth)
        parent.folders += [inner] if self._store.folders.get(real) is inner else []

    def _is_folder(self, entry: os.DirEntry[str], path: str, exclusion: Exclusion) -> bool | None:
        """Return whether an entry is a folder (True) or a file to read (False); None if it is neither."""
        is_manifest = entry.name.lower().endswith(SUFFIXES)
        try:
            is_folder = entry.is_dir()
            if not is_folder and not is_manifest:
                return None
            if exclusion.holds(path, is_folder=is_folder):
                return None
            if entry.is_symlink() and not self._bounds.hold(path):
                report_way_out(self._reporter, path)
                return None
            if not is_folder and not entry.is_file() and not is_readable(path, entry.stat(), self._reporter):
                return None
        except OSError as error:
            if is_manifest and not exclusion.holds(path, is_folder=False):
                report_unreadable(self._reporter, path, error)
            return None
        return is_folder

    def _add_file(self, folder: Folder, path: str, real: str) -> None:
        name = os.path.basename(path)
        if folder.is_templates or name == CHART or name in SKAFFOLD:
            return
        if (name in FILES and folder.kustomization is not None) or len(self._store.files) >= _MAX_FILES:
            return
        file = self._store.files[real] = self._store.names[path] = self._store.files.get(real) or _file(path, real)
        folder.files.append(file)


def _path(folder: str, name: str) -> str:
    return name if folder == os.curdir else os.path.join(folder, name)


def _look(folder: Folder, names: set[str], exclusion: Exclusion, bounds: Bounds, reporter: Reporter) -> None:
    """Record the tools that a folder has files of."""
    parent = folder.parent
    folder.is_templates = parent is not None and (
        parent.is_templates or (parent.chart is not None and os.path.basename(folder.path) in _TEMPLATES)
    )

    def text(name: str) -> str | None:
        path = os.path.join(folder.path, name)
        if name not in names or exclusion.holds(path, is_folder=False):
            return None
        if not (bounds.hold(path) if os.path.islink(path) else bounds.hold_real(os.path.join(folder.real, name))):
            return None
        return _decoded(_content(path) or b"")

    if (chart := text(CHART)) is not None:
        folder.chart = mapping(next(iter(parsed(CHART, chart)), {}))
    folder.skaffold = next((name for name in SKAFFOLD if name in names), None)
    name = is_kustomization(names)
    written = text(name) if name is not None and not folder.is_templates else None
    if name is not None and written is not None:
        _look_at_kustomization(folder, name, written, reporter)


def _look_at_kustomization(folder: Folder, name: str, text: str, reporter: Reporter) -> None:
    """Record the kustomization of a folder. With an unrendered kustomization, all files of the folder are templates."""
    path = os.path.join(folder.path, name)
    value = next(iter(parsed(path, text)), None)
    findings = read_nodes_text(path, text).reporter if value is None else Reporter()
    kustomization = kustomization_of(folder.path, name, value, findings)
    if kustomization is not None and kustomization.template is not None:
        reporter.diagnostics.append(kustomization.template)
        folder.is_templates = True
        folder.template = kustomization.template.span.location if kustomization.template.span is not None else path
    else:
        folder.kustomization = kustomization
        folder.content = mapping(value) if kustomization is not None else {}


def _file(path: str, real: str) -> ManifestFile:
    content = _content(path)
    if content is None:
        return ManifestFile(path, real, True, True)  # reading it reports the error
    if b"\0" in content:  # UTF-16, which is not searched; reading it reports the error
        return ManifestFile(path, real, True, _MAYBE.search(content.replace(b"\0", b"")) is not None)
    if _MAYBE.search(content) is None:
        return ManifestFile(path, real)
    groups = [group.decode("utf-8", "replace") for group in _api_versions(content)]
    others = [group for group in groups if not _NO_OBJECTS.fullmatch(group)]
    own = [group for group in groups if group.startswith("eastgate.dev/")]
    if own and _OWN_POLICY.search(content) is not None:
        others += own
    of_argo = [group for group in others if group.startswith("argoproj.io/")]
    if of_argo and _WORKLOADS.search(content) is None:
        others = [group for group in others if group not in of_argo]
    names = sum(map(content.count, (_API_VERSION, *_ESCAPES)))
    is_unsure = not others and names > len(groups)  # some kinds or groups are not in the expected place
    has_kind = _KIND.search(content) is not None
    file = ManifestFile(path, real, bool(others) or is_unsure or not groups, bool(others) and has_kind)
    if _may_declare(content):
        file.chunks = list(declaring(path, _decoded(content)))
    return file


def _api_versions(content: bytes) -> Iterator[bytes]:
    """Yield the values of all keys `apiVersion` at the start of a line, or after characters that may precede a key."""
    at = content.find(_API_VERSION)
    while at >= 0:
        end = at + len(_API_VERSION)
        if not content[content.rfind(b"\n", 0, at) + 1 : at].strip(_BEFORE_KEY):
            value = _VALUE.match(content, end)
            if value is not None:
                yield value[1]
                end = value.end()
        at = content.find(_API_VERSION, end)


def _may_declare(content: bytes) -> bool:
    """Return whether a file may have an object that declares a deployment, or data for one."""
    if b"argoproj.io/" in content or b"fluxcd.io" in content or b"fluxcd.controlplane.io/" in content:
        return True
    return (b"ConfigMap" in content or b"Secret" in content) and _DATA.search(content) is not None


def patch_files(folder: Folder) -> Iterator[str]:
    """Yield the paths of the patches of a kustomization."""
    for name in ("patches", "patchesStrategicMerge", "patchesJson6902") if folder.content else ():
        written = folder.content.get(name)
        for entry in written if isinstance(written, list) else ():
            path = mapping(entry).get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str) and "\n" not in path:
                yield os.path.join(folder.path, path)


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


def _content(path: str) -> bytes | None:
    """Return the bytes of a regular file, unless it is too large."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
                return None
            return file.read(_MAX_BYTES)
    except (OSError, ValueError):
        return None


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.abspath(path)


def repository_of(folder: str) -> str:
    """Return the root of the repository of a folder: the nearest folder with `.git`, or else the folder."""
    here = real = _real(folder)
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        above = os.path.dirname(here)
        if above == here:
            return real
        here = above
