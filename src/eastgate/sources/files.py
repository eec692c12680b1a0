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
from eastgate.sources.bounds import ANYWHERE, Bounds
from eastgate.sources.codes import EMPTY_FOLDER, LEADS_OUT, NOT_A_FILE, UNREADABLE
from eastgate.sources.findings import suggestion
from eastgate.sources.limits import MAX_BYTES
from eastgate.sources.text import report_too_large

__all__ = ["STDIN", "STDIN_NAME", "SUFFIXES", "Inputs", "files_of", "load"]

STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
_Identity = tuple[int, int]
_ENOUGH = MAX_BYTES + 1  # one byte too many is enough for `decode` to refuse it
_NOT_A_FILE_HELP = "remove it, or give what comes out of it as standard input: -f -"
_DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Descriptors that this process was started with, such as the shell makes of `-f <(command)`."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(slots=True)
class Inputs:
    """The files to read, each once, however often and under however many names it was given, and none out of bounds."""

    reporter: Reporter
    bounds: Bounds = ANYWHERE
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
            inside = self.bounds.hold(name)
            status = os.stat(name) if inside else None
        except (OSError, ValueError) as error:
            _report(self.reporter, name, error)
            return
        if status is None:
            _report_way_out(self.reporter, name)
            return
        if not stat.S_ISDIR(status.st_mode):
            if _is_readable(name, status, self.reporter):
                self._add(name, (status.st_dev, status.st_ino))
            return
        before, found = len(self.reporter.found), False
        for file, identity in self._walk(name, set()):
            found = True
            self._add(file, identity)
        if not found and len(self.reporter.found) == before:
            self.reporter.report(
                EMPTY_FOLDER,
                f"the folder `{printable(name)}` has no manifests in it",
                help="manifests end in `.yaml`, `.yml` or `.json`; hidden ones are not read",
            )

    def _add(self, name: str, identity: _Identity | str) -> None:
        if identity not in self._seen:
            self._seen.add(identity)
            self.names.append(name)

    def _walk(self, folder: str, above: set[_Identity]) -> Iterator[tuple[str, _Identity]]:
        """The manifest files below a folder in the order of their names. A link to a folder above ends the way."""
        try:
            status = os.stat(folder)
            entries = sorted(os.listdir(folder))
        except OSError as error:
            _report(self.reporter, folder, error)
            return
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            return
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
                if is_manifest:  # a broken link
                    _report(self.reporter, path, error)
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            if leads_out and (is_folder or is_manifest):
                _report_way_out(self.reporter, path)
            elif is_folder:
                yield from self._walk(path, above | {identity})
            elif is_manifest and _is_readable(path, status, self.reporter):
                yield path, (status.st_dev, status.st_ino)


def load(name: str, stdin: BinaryIO | None, reporter: Reporter) -> bytes | None:
    """The bytes of a file; None, and a finding, where they cannot be had."""
    try:
        if name == STDIN:
            return (stdin or sys.stdin.buffer).read(_ENOUGH)
        return _bytes(name, reporter)
    except (OSError, ValueError) as error:
        _report(reporter, name, error)
        return None


def _bytes(name: str, reporter: Reporter) -> bytes | None:
    """The bytes of a regular file. One that becomes a pipe at the last moment is not waited for either."""
    if not _is_readable(name, os.stat(name), reporter):
        return None
    waiting = 0 if name.startswith(_DESCRIPTORS) else os.O_NONBLOCK
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | waiting), "rb") as file:
        status = os.fstat(file.fileno())
        if not _is_readable(name, status, reporter):
            return None
        if status.st_size > MAX_BYTES:
            report_too_large(name, reporter)
            return None
        return file.read(_ENOUGH)


def _is_readable(name: str, status: os.stat_result, reporter: Reporter) -> bool:
    """Whether it is a file, or what the shell has opened for us; a finding where it is neither, nor a folder."""
    kind = next((words for is_one, words in _KINDS if is_one(status.st_mode)), None)
    if kind is None or name.startswith(_DESCRIPTORS):
        return True
    reporter.report(NOT_A_FILE, f"`{printable(name)}` is {kind}, and no manifest", help=_NOT_A_FILE_HELP)
    return False


def _report_way_out(reporter: Reporter, name: str) -> None:
    message = f"`{printable(name)}` leads out of what is read, and is not followed"
    reporter.report(LEADS_OUT, message, help="give what it leads to with -f, or read it all the same with --follow")


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


def files_of(paths: Iterable[str | os.PathLike[str]], reporter: Reporter, bounds: Bounds = ANYWHERE) -> list[str]:
    """The files that paths mean, each once."""
    inputs = Inputs(reporter, bounds)
    inputs.add_all(paths)
    return inputs.names
