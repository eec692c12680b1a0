"""The input files of a build, collected before it runs.

A program builds a copy of these files and sees no others. So the key of a cached build is a hash over exactly its
input, whatever is saved meanwhile. Forbidden files are not in the copy, and parts that cannot be built can be removed
from it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.files import Bounds, RealPaths
from eastgate.reading.repository.written import WrittenFile

_MAX_FILES = 20_000
_MAX_BYTES = 256 * 1024 * 1024
_SKIPPED = (".git", "node_modules")


class BuildTooLargeError(Exception):
    """Error: a build would read more than any build needs."""


class FileCache:
    """The files that the builds of one run read, each once, because builds share bases."""

    def __init__(self) -> None:
        self._files: dict[str, WrittenFile] = {}

    def get(self, path: str, shown: str) -> WrittenFile | None:
        """Return a regular file by its real path; None if it cannot be read."""
        if path not in self._files:
            try:
                opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
                with open(opened, "rb") as file:
                    if not stat.S_ISREG(os.fstat(opened).st_mode):
                        return None
                    content = file.read(_MAX_BYTES + 1)
            except (OSError, ValueError):
                return None
            self._files[path] = WrittenFile(shown, content)
        return self._files[path]


class Paths:
    """Real paths, and whether they may be read. Results are cached for the builds of one run."""

    def __init__(self, bounds: tuple[Bounds, ...]) -> None:
        self._bounds = bounds
        self._real = RealPaths()
        self._held: dict[str, bool] = {}
        self._followed: dict[str, tuple[str, dict[str, str]]] = {}

    def holds(self, path: str) -> bool:
        """Return whether a path leads to a place that may be read."""
        if path not in self._held:
            real = self._real.of(path)
            self._held[path] = any(bounds.hold_real(real) for bounds in self._bounds)
        return self._held[path]

    def real(self, path: str) -> str:
        """Return a path without links."""
        return self._real.of(path)

    def resolve(self, path: str) -> tuple[str | None, dict[str, str]]:
        """Return the real path of a file, or None if it is out of bounds, and the links on the way to it."""
        return self._follow(os.path.abspath(path)) if self.holds(path) else (None, {})

    def _follow(self, path: str) -> tuple[str, dict[str, str]]:
        if path not in self._followed:
            folder, name = os.path.split(path)
            current, links = (path, {}) if folder == path else self._follow(folder)
            current = os.path.join(current, name)
            if os.path.islink(current):
                target = self.real(current)
                links = {**links, current: target} if self.holds(target) else links
                current = target
            self._followed[path] = current, links
        return self._followed[path]


@dataclass(slots=True)
class BuildFiles:
    """Files by their real paths, links on the way to them, and replaced contents for the copy.

    `linked` are the files of a folder that is copied whole, by the paths of links to them.
    """

    paths: Paths
    cache: FileCache
    files: dict[str, WrittenFile] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    above: set[str] = field(default_factory=set)
    """Folders that relative paths to these files go up to."""
    linked: dict[str, WrittenFile] = field(default_factory=dict)
    replaced: dict[str, bytes] = field(default_factory=dict)
    size: int = 0

    def holds(self, path: str) -> bool:
        """Return whether a path leads to a place that may be read."""
        return self.paths.holds(path)

    def resolve(self, path: str) -> str | None:
        """Return the real path of a file, and keep the links on the way to it; None if it is out of bounds."""
        real, links = self.paths.resolve(path)
        self.links |= links
        return real

    def add_file(self, path: str, shown: str) -> WrittenFile | None:
        """Add a file. Return None if it cannot be read, or must not be."""
        real = self.resolve(path)
        if real is None:
            return None
        return self._add(real, shown, real)

    def add_folder(self, folder: str, shown: str) -> list[str]:
        """Add all files below a folder, by its real path. Return the links that lead out of bounds.

        The copy has files in the place of links. A link to a folder above is skipped.
        """
        outside: list[str] = []
        waiting, count = [(folder, shown)], 0
        while waiting:
            current, name = waiting.pop()
            count += 1
            if count > _MAX_FILES:
                raise BuildTooLargeError
            try:
                entries = sorted(os.listdir(current))
            except OSError:
                continue
            for entry in entries:
                path, label = os.path.join(current, entry), os.path.join(name, entry)
                if entry in _SKIPPED:
                    continue
                if not self.holds(path):
                    outside.append(label)
                elif os.path.isdir(path):
                    if not os.path.islink(path) or not _is_above(os.path.realpath(path), os.path.realpath(current)):
                        waiting.append((path, label))
                elif os.path.isfile(path):
                    self._add(os.path.realpath(path), label, path)
        return outside

    def goes_up(self, folder: str, path: str) -> None:
        """Record the highest folder on a relative path, so that the path works in the copy."""
        depth = lowest = 0
        for step in path.split(os.sep):
            depth += -1 if step == os.pardir else 1 if step not in ("", os.curdir) else 0
            lowest = min(lowest, depth)
        for _ in range(-lowest):
            folder = os.path.dirname(folder)
        self.above.add(folder)

    def all_files(self) -> dict[str, WrittenFile]:
        """Return the files by their paths in the copy, except for replaced ones."""
        return {**self.files, **self.linked}

    def at(self, path: str) -> WrittenFile | None:
        """Return the file at a path of the copy."""
        return self.files.get(path) or self.linked.get(path)

    def _add(self, real: str, shown: str, path: str) -> WrittenFile | None:
        if real not in self.files:
            file = self.cache.get(real, shown)
            if file is None:
                return None
            self.size += len(file.content)
            self.files[real] = file
        if path != real:
            self.linked[path] = self.files[real]
            self.replaced[path] = self.files[real].content
        if len(self.files) + len(self.linked) > _MAX_FILES or self.size > _MAX_BYTES:
            raise BuildTooLargeError
        return self.files[real]

    def root(self) -> str:
        """Return the folder that contains all files."""
        paths = {*(os.path.dirname(path) for path in (*self.files, *self.replaced)), *self.folders, *self.above}
        paths |= {os.path.dirname(path) for path in self.links} | {
            os.path.dirname(path) for path in self.links.values()
        }
        return os.path.commonpath(paths)

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the path and the content of each file of the copy, in order of the paths."""
        for path in sorted(self.files.keys() | self.replaced.keys()):
            yield path, self.replaced[path] if path in self.replaced else self.files[path].content

    def key(self) -> Iterator[bytes]:
        """Yield the content of the copy, independent of its location."""
        root = self.root()
        for path, content in self.contents():
            yield from (b"file", _relative(path, root), content)
        for path, target in sorted(self.links.items()):
            yield from (b"link", _relative(path, root), _relative(target, root))

    def copy(self, into: str) -> None:
        """Write the copy into a folder."""
        root = self.root()
        os.makedirs(into, exist_ok=True)
        for path, target in sorted(self.links.items()):
            name = os.path.join(into, os.path.relpath(path, root))
            os.makedirs(os.path.dirname(name), exist_ok=True)
            if not os.path.lexists(name):
                os.symlink(os.path.relpath(target, os.path.dirname(path)), name)
        for folder in self.folders:
            os.makedirs(os.path.join(into, os.path.relpath(folder, root)), exist_ok=True)
        for path, content in self.contents():
            name = os.path.join(into, os.path.relpath(path, root))
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "wb") as file:
                file.write(content)


def _is_above(folder: str, path: str) -> bool:
    return f"{path}{os.sep}".startswith(f"{folder.rstrip(os.sep)}{os.sep}")


def _relative(path: str, root: str) -> bytes:
    """Return a path relative to a folder. Most paths are in it, and neither has links."""
    above = root.rstrip(os.sep) + os.sep
    return os.fsencode(path[len(above) :] if path.startswith(above) else os.path.relpath(path, root))
