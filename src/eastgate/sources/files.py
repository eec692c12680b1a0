"""Which files are meant by the paths that somebody gave, and their bytes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from eastgate.diagnostics import Reporter
from eastgate.printable import printable
from eastgate.sources.codes import EMPTY_FOLDER, UNREADABLE
from eastgate.sources.findings import suggestion
from eastgate.sources.limits import MAX_BYTES

__all__ = ["STDIN", "STDIN_NAME", "Inputs", "files_of", "load"]

STDIN = "-"
STDIN_NAME = "<stdin>"
_SUFFIXES = (".yaml", ".yml", ".json")
_Identity = tuple[int, int]


@dataclass(slots=True)
class Inputs:
    """The files to read, each once, however often and under however many names it was given."""

    reporter: Reporter
    names: list[str] = field(default_factory=list)
    _seen: set[_Identity | str] = field(default_factory=set)

    def add_all(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Add files, folders with all that is below them, and `-` for standard input."""
        for path in paths:
            name = os.fspath(path)
            if name == STDIN:
                self._add(STDIN, STDIN)
            else:
                self._add_path(name)

    def _add_path(self, name: str) -> None:
        try:
            status = os.stat(name)
        except (OSError, ValueError) as error:
            _report(self.reporter, name, error)
            return
        if not stat.S_ISDIR(status.st_mode):
            self._add(name, (status.st_dev, status.st_ino))
            return
        found = False
        for file, identity in _walk(name, set(), self.reporter):
            found = True
            self._add(file, identity)
        if not found:
            self.reporter.report(
                EMPTY_FOLDER,
                f"the folder `{printable(name)}` has no manifests in it",
                help="manifests end in `.yaml`, `.yml` or `.json`; hidden ones are not read",
            )

    def _add(self, name: str, identity: _Identity | str) -> None:
        if identity not in self._seen:
            self._seen.add(identity)
            self.names.append(name)


def _walk(folder: str, above: set[_Identity], reporter: Reporter) -> Iterator[tuple[str, _Identity]]:
    """The manifest files below a folder in the order of their names. A link to a folder above ends the way."""
    try:
        status = os.stat(folder)
        entries = sorted(os.listdir(folder))
    except OSError as error:
        _report(reporter, folder, error)
        return
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    for entry in entries:
        if entry.startswith("."):
            continue
        path = os.path.join(folder, entry)
        is_manifest = entry.lower().endswith(_SUFFIXES)
        try:
            status = os.stat(path)
        except OSError as error:
            if is_manifest:  # a broken link
                _report(reporter, path, error)
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(path, above | {identity}, reporter)
        elif is_manifest and stat.S_ISREG(status.st_mode):  # a pipe in a folder would wait for ever
            yield path, (status.st_dev, status.st_ino)


def load(name: str, stdin: BinaryIO | None, reporter: Reporter) -> bytes | None:
    """The bytes of a file; None, and a finding, where they cannot be had."""
    try:
        if name == STDIN:
            content = (stdin or sys.stdin.buffer).read(MAX_BYTES + 1)
        else:
            with open(name, "rb") as file:
                content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        _report(reporter, name, error)
        return None
    return content  # one byte too many is enough for `decode` to refuse it


def _report(reporter: Reporter, name: str, error: OSError | ValueError) -> None:
    help_ = None
    if isinstance(error, FileNotFoundError):
        reason = "there is no such file or folder"
        if os.path.islink(name):
            reason = f"it is a link to `{printable(os.readlink(name))}`, which does not exist"
        else:
            help_ = _near(name)
    elif isinstance(error, PermissionError):
        reason, help_ = "permission denied", "make it readable for this user"
    elif isinstance(error, OSError) and error.strerror:
        reason = error.strerror.lower()
    else:
        reason = str(error)
    reporter.report(UNREADABLE, f"`{printable(name)}` cannot be read: {reason}", help=help_)


def _near(name: str) -> str | None:
    folder, base = os.path.split(name)
    try:
        near = suggestion(base, os.listdir(folder or "."))
    except (OSError, ValueError):
        return None
    return f"did you mean `{printable(os.path.join(folder, near))}`?" if near else None


def files_of(paths: Iterable[str | os.PathLike[str]], reporter: Reporter) -> list[str]:
    """The files that paths mean, each once."""
    inputs = Inputs(reporter)
    inputs.add_all(paths)
    return inputs.names
