"""Resolves given paths to files, kustomizations to render, and excluded files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.codes import (
    BAD_PATTERN,
    EMPTY_FOLDER,
    HELM_CHART,
    KUSTOMIZATION_NAMED,
    NO_KUSTOMIZATION,
    UNREADABLE,
)
from eastgate.reading.manifests.files import (
    ANYWHERE,
    STDIN,
    SUFFIXES,
    Bounds,
    around,
    is_readable,
    report_unreadable,
    report_way_out,
)
from eastgate.reading.manifests.kustomizations import (
    FILES,
    Kustomization,
    Kustomized,
    is_kustomization,
    kustomization_in,
)

if TYPE_CHECKING:
    from eastgate.reading.repository.model import ChartRender, Environment, KustomizeBuild, LeftOut, Undeployed

# Excludes files of a folder: by the patterns of `--exclude`, and by `.eastgateignore` files. Both have the syntax of
# `.gitignore`: the last matching pattern decides, and a pattern is relative to its folder. As with git, a file inside
# an excluded folder cannot be included again.


IGNORE_FILE = ".eastgateignore"
_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Patterns, each for the files below one folder. The outermost folder comes first."""

    sets: tuple[tuple[str, object], ...] = ()

    def below(self, folder: str, patterns: Sequence[str], origin: str, reporter: Reporter) -> Exclusion:
        """Add patterns for the files below a folder."""
        if not patterns:
            return self
        from pathspec import GitIgnoreSpec  # imported here because most folders have no patterns

        good: list[str] = []
        for pattern in patterns:
            try:
                GitIgnoreSpec.from_lines([pattern])
            except ValueError:
                message = f"{origin}: `{printable(pattern)}` is not a pattern"
                reporter.report(BAD_PATTERN, message, help="write it as in a .gitignore file: *.json, /drafts/, **/old")
            else:
                good.append(pattern)
        return Exclusion((*self.sets, (folder, GitIgnoreSpec.from_lines(good)))) if good else self

    def within(self, folder: str, reporter: Reporter) -> Exclusion:
        """Add the patterns of the ignore file of a folder, if it has one."""
        path = os.path.join(folder, IGNORE_FILE)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
                lines = file.read(_MAX_BYTES).decode("utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            reporter.report(UNREADABLE, f"`{printable(path)}` cannot be read: {printable(str(reason)).lower()}")
            return self
        return self.below(folder, lines, f"`{printable(path)}`", reporter)

    def holds(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path is excluded. The innermost set of patterns that matches it decides."""
        for folder, spec in reversed(self.sets):
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            relative = os.fsencode(relative).decode("utf-8", "replace")  # patterns match names in UTF-8
            is_excluded = spec.check_file(relative + "/" if is_folder else relative).include  # type: ignore[attr-defined]
            if is_excluded is not None:
                return bool(is_excluded)
        return False


_Identity = tuple[int, int]
_CHART = "Chart.yaml"


@dataclass(frozen=True, slots=True)
class Input:
    """A file, or standard input, or a folder to render."""

    name: str
    explicit: bool = False
    """Whether the user named this file, and not only a folder around it."""
    namespace: str | None = None
    """The namespace of objects without one."""
    part: KustomizeBuild | ChartRender | None = None
    """The part of an environment that a program builds."""
    environment: Environment | None = None


@dataclass(slots=True)
class Inputs:
    """The files to read, each once, whatever names it was given by, and none out of bounds.

    With `raw`, kustomizations and charts are read as plain files.
    """

    reporter: Reporter
    bounds: Bounds = ANYWHERE
    raw: bool = False
    entries: list[Input] = field(default_factory=list)
    excluded: int = 0
    """The number of files that patterns exclude."""
    refused: list[Diagnostic] = field(default_factory=list)
    """The errors in the paths themselves, without errors below them."""
    unbuilt: list[LeftOut] = field(default_factory=list)
    """The parts that the environments among the paths leave out."""
    undeployed: list[Undeployed] = field(default_factory=list)
    """The manifests of folders that no environment deploys."""
    _seen: set[_Identity | str] = field(default_factory=set)
    _needs_tools: bool = False

    def add_all(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Add files, folders with all that is below them, and `-` for standard input."""
        for path in paths:
            name = os.fspath(path)
            if name == STDIN:
                self._add(Input(STDIN, explicit=True), STDIN)
            elif isinstance(path, Kustomized):
                self._add_kustomization(name)
            elif isinstance(path, str | PurePath) or (environment := _environment(path)) is None:
                self._add_path(name)
            else:
                self._add_environment(environment)

    def _add_environment(self, environment: Environment) -> None:
        """Add the parts of an environment: files, and parts that programs build."""
        # imported here because few commands read environments
        from eastgate.reading.repository.model import ChartRender, Files

        self.unbuilt += environment.left_out
        self._add_undeployed(environment.undeployed)
        exclusion = self._exclusion(environment.root)
        # the places that paths of Flux and Argo CD may lead to
        checkout = around(os.path.join(environment.root, IGNORE_FILE))
        for part in environment.parts:
            if isinstance(part, Files):
                for name in part.paths:
                    namespace = part.default_namespace or environment.namespace
                    self._add_manifest(Input(name, namespace=namespace, environment=environment), exclusion, checkout)
                continue
            default = part.namespace if isinstance(part, ChartRender) else part.default_namespace
            entry = Input(part.folder, namespace=default or environment.namespace, part=part, environment=environment)
            self._add(entry, repr(part))

    def _add_manifest(self, entry: Input, exclusion: Exclusion, checkout: Bounds) -> None:
        """Add a file of an environment."""
        name = entry.name
        try:
            status = os.stat(name) if self.bounds.hold(name) or checkout.hold(name) else None
        except (OSError, ValueError) as error:
            report_unreadable(self.reporter, name, error)
            return
        if status is None:
            report_way_out(self.reporter, name)
        elif exclusion.holds(name, is_folder=False):
            self.excluded += 1
        elif is_readable(name, status, self.reporter):
            self._add(entry, (status.st_dev, status.st_ino))

    def _add_path(self, name: str) -> None:
        before = len(self.reporter.diagnostics)
        if not self._open_path(name):
            self.refused += self.reporter.diagnostics[before:]

    def _open_path(self, name: str) -> bool:
        """Add a path. Return whether it is a folder, in which errors are expected."""
        try:
            inside = self.bounds.hold(name)
            status = os.stat(name) if inside else None
        except (OSError, ValueError) as error:
            report_unreadable(self.reporter, name, error)
            return False
        if status is None:
            report_way_out(self.reporter, name)
        elif stat.S_ISDIR(status.st_mode):
            self._add_folder(name)
            return True
        elif is_readable(name, status, self.reporter):
            self._add_file(name, (status.st_dev, status.st_ino))
        return False

    def _add_file(self, name: str, identity: _Identity) -> None:
        folder, base = os.path.split(name)
        exclusion = self._exclusion(folder or os.curdir)
        if exclusion.holds(name, is_folder=False):
            self.excluded += 1
        elif not self.raw and base in FILES and kustomization_in(folder or os.curdir) is not None:
            message = f"`{printable(name)}` is a kustomization, not a manifest"
            help_ = f"give its folder, which is rendered: -k {printable(folder or os.curdir)}"
            self.reporter.report(KUSTOMIZATION_NAMED, message, help=help_)
        else:
            self._add(Input(name, explicit=True), identity)

    def _add_folder(self, name: str) -> None:
        before, left_out = len(self.reporter.diagnostics), self.excluded
        above = os.path.dirname(os.path.abspath(name))
        if not self.raw and os.path.basename(os.path.abspath(name)) == "templates" and _CHART in _entries(above):
            self._report_chart(os.path.dirname(os.path.normpath(name)) or os.pardir)
        self._needs_tools = False
        files = list(self._walk(name, set(), self._exclusion(name)))
        if self._needs_tools:
            del self.reporter.diagnostics[before:]  # the search for environments reports them again
            self._add_environments(name, [file for file, _ in files])
            return
        for file, identity in files:
            self._add(Input(file), identity)
        if not files and len(self.reporter.diagnostics) == before:
            help_ = "manifests end in `.yaml`, `.yml` or `.json`; hidden ones are not read"
            if self.excluded > left_out:
                help_ = f"{self.excluded - left_out} files are left out by --exclude or {IGNORE_FILE}"
            self.reporter.report(EMPTY_FOLDER, f"the folder `{printable(name)}` has no manifests in it", help=help_)

    def _add_environments(self, name: str, files: list[str]) -> None:
        """Add all environments of a folder, if it has kustomizations or charts and not only manifests."""
        # imported here because most folders have neither
        from eastgate.reading.repository import RepositoryOptions, Undeployed, find_environments

        found = find_environments([name], self.bounds, self.reporter, RepositoryOptions())
        for environment in found:
            self._add_environment(environment)
        if not found:
            self._add_undeployed(Undeployed(tuple(files)))

    def _add_undeployed(self, undeployed: Undeployed) -> None:
        if not any(undeployed is known for known in self.undeployed):
            self.undeployed.append(undeployed)

    def _exclusion(self, folder: str) -> Exclusion:
        return Exclusion().below(folder, self.bounds.exclude, "--exclude", self.reporter)

    def _add(self, entry: Input, identity: _Identity | str) -> None:
        if identity not in self._seen:
            self._seen.add(identity)
            self.entries.append(entry)

    def _add_kustomization(self, folder: str) -> None:
        """Add only the folder of a `-k`, without its other files."""
        if not self.bounds.hold(folder) or kustomization_in(folder) is None:
            help_ = f"manifests as they are: -f {printable(folder)}" if os.path.exists(folder) else None
            self.reporter.report(NO_KUSTOMIZATION, f"`{printable(folder)}` has no kustomization in it", help=help_)
            self.refused.append(self.reporter.diagnostics[-1])
            return
        # imported here because few paths are kustomizations
        from eastgate.reading.repository import Environment, KustomizeBuild

        part = KustomizeBuild(os.path.normpath(folder))
        environment = Environment.of_kustomization(folder)
        self._add(Input(folder, explicit=True, part=part, environment=environment), repr(part))

    def _walk(self, folder: str, above: set[_Identity], exclusion: Exclusion) -> Iterator[tuple[str, _Identity]]:
        """Yield the manifest files below a folder, sorted by name. A link to a folder above is not followed."""
        try:
            status = os.stat(folder)
            entries = sorted(os.listdir(folder))
        except OSError as error:
            report_unreadable(self.reporter, folder, error)
            return
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            return
        if IGNORE_FILE in entries:
            exclusion = exclusion.within(folder, self.reporter)
        if not self.raw:
            kustomization = self._kustomization(folder, entries, exclusion)
            if kustomization is not None and kustomization.template is not None:
                self.reporter.diagnostics.append(kustomization.template)
                return
            has_chart = _CHART in entries and not exclusion.holds(os.path.join(folder, _CHART), is_folder=False)
            self._needs_tools |= has_chart or kustomization is not None
        for path, is_folder, file_identity in self._children(folder, entries, exclusion):
            if is_folder:
                yield from self._walk(path, above | {identity}, exclusion)
            else:
                yield path, file_identity

    def _kustomization(self, folder: str, entries: list[str], exclusion: Exclusion) -> Kustomization | None:
        name = is_kustomization(entries)
        if name is None or exclusion.holds(os.path.join(folder, name), is_folder=False):
            return None
        return kustomization_in(folder)

    def _children(
        self, folder: str, entries: Iterable[str], exclusion: Exclusion
    ) -> Iterator[tuple[str, bool, _Identity]]:
        """Yield the folders and manifests in a folder that are to be read."""
        for entry in entries:
            if entry.startswith("."):
                continue
            path = os.path.join(folder, entry)
            is_manifest = entry.lower().endswith(SUFFIXES)
            try:
                status = os.lstat(path)
                leads_out = stat.S_ISLNK(status.st_mode) and not self.bounds.hold(path)
                status = os.stat(path)
            except OSError as error:
                if is_manifest and not exclusion.holds(path, is_folder=False):  # a broken link
                    report_unreadable(self.reporter, path, error)
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            if not is_folder and not is_manifest:
                continue
            if exclusion.holds(path, is_folder=is_folder):
                self.excluded += _manifests_below(path) if is_folder else 1
            elif leads_out:
                report_way_out(self.reporter, path)
            elif is_folder or is_readable(path, status, self.reporter):
                yield path, is_folder, (status.st_dev, status.st_ino)

    def _report_chart(self, folder: str) -> None:
        shown = printable(folder)
        message = f"`{shown}` is a Helm chart, whose templates are not manifests"
        help_ = f"give the chart, which is rendered: -f {shown}"
        self.reporter.report(HELM_CHART, message, help=help_)


def _environment(path: object) -> Environment | None:
    from eastgate.reading.repository.model import Environment  # imported here because most paths are texts

    return path if isinstance(path, Environment) else None


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _manifests_below(folder: str) -> int:
    count = 0
    for _, folders, files in os.walk(folder):
        folders[:] = [entry for entry in folders if not entry.startswith(".")]
        count += sum(not entry.startswith(".") and entry.lower().endswith(SUFFIXES) for entry in files)
    return count


def files_of(paths: Iterable[str | os.PathLike[str]], reporter: Reporter, bounds: Bounds = ANYWHERE) -> list[str]:
    """Return the files of paths, each once."""
    inputs = Inputs(reporter, bounds, raw=True)
    inputs.add_all(paths)
    return [entry.name for entry in inputs.entries]
