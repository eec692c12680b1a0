"""Reads the bytes of files, and reports why a file cannot be read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import BinaryIO

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.codes import LEADS_OUT, NOT_A_FILE, UNREADABLE
from eastgate.reading.manifests.findings import suggestion
from eastgate.reading.manifests.limits import MAX_BYTES
from eastgate.reading.manifests.text import report_too_large

# Bounds of reading: the content of a folder must not make Eastgate read, and show, other files. A file or folder on
# the command line may be anywhere. Paths inside of files, and links in folders, may come from a pull request, and an
# error would show a line of the file that they lead to.


_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The folders that reading stays in, as paths without links; None means no bound.

    `exclude` are patterns of files to leave out of each folder.
    """

    folders: tuple[str, ...] | None
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, paths: Iterable[_Path], *, follow: bool = False, exclude: Iterable[str] = ()) -> Bounds:
        """Return the bounds for the paths that a user names: each of them, and no bound with `follow`."""
        return cls(None if follow else tuple(map(_real, paths)), tuple(exclude))

    def hold(self, path: _Path) -> bool:
        """Return whether a path leads to a place inside the bounds."""
        return self.folders is None or self.hold_real(_real(path))

    def hold_real(self, real: str) -> bool:
        """Return whether a path without links is inside the bounds."""
        if self.folders is None:
            return True
        return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.folders)


ANYWHERE = Bounds(None)


class RealPaths:
    """`os.path.realpath` for many paths at one time. Each folder is examined once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return a path without links."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._find(path)
        return known

    def _find(self, path: str) -> str:
        folder, name = os.path.split(path)
        if not folder or name in ("", os.curdir, os.pardir):
            return _real(path)
        whole = os.path.join(self.of(folder), name)
        return _real(whole) if os.path.islink(whole) else whole


def _real(path: _Path) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL: opening the file will report that it does not exist
        return os.path.abspath(path)


def around(file: _Path) -> Bounds:
    """Return the bounds of the paths that a file names: the checkout of its repository.

    Outside a checkout, the bound is the folder above the folder of the file, so that the file can name `../policies`;
    and the working directory, if the file is below it. The root of the file system is never the bound.
    """
    folder = os.path.dirname(os.path.realpath(file))
    above = folder
    while above != os.path.dirname(above):
        if os.path.lexists(os.path.join(above, ".git")):
            return Bounds((above,))
        above = os.path.dirname(above)
    working_folder = os.path.realpath(os.curdir)
    near = [
        folder_near
        for folder_near in (os.path.dirname(folder), working_folder)
        if folder_near != os.path.dirname(folder_near) and Bounds((folder_near,)).hold(folder)
    ]
    return Bounds((folder, *near))


STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
_MAX_READ_BYTES = MAX_BYTES + 1  # one byte more than the limit, so that `decode` refuses the file
_NOT_A_FILE_HELP = "remove it, or pass its content as standard input: -f -"
_DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Descriptors that this process inherited, such as the shell's for `-f <(command)`."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def load(name: str, stdin: BinaryIO | None, reporter: Reporter) -> bytes | None:
    """Return the bytes of a file; None, with a finding, if they cannot be read."""
    try:
        if name == STDIN:
            return (stdin or sys.stdin.buffer).read(_MAX_READ_BYTES)
        return _bytes(name, reporter)
    except (OSError, ValueError) as error:
        report_unreadable(reporter, name, error)
        return None


def _bytes(name: str, reporter: Reporter) -> bytes | None:
    """Return the bytes of a regular file, without waiting if it becomes a pipe at the last moment."""
    if not is_readable(name, os.stat(name), reporter):
        return None
    waiting = 0 if name.startswith(_DESCRIPTORS) else os.O_NONBLOCK
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | waiting), "rb") as file:
        status = os.fstat(file.fileno())
        if not is_readable(name, status, reporter):
            return None
        if status.st_size > MAX_BYTES:
            report_too_large(name, reporter)
            return None
        return file.read(_MAX_READ_BYTES)


def is_readable(name: str, status: os.stat_result, reporter: Reporter) -> bool:
    """Return whether the name is a file, or a descriptor from the shell.

    Report a finding if it is neither that nor a folder.
    """
    kind = next((words for is_repeat, words in _KINDS if is_repeat(status.st_mode)), None)
    if kind is None or name.startswith(_DESCRIPTORS):
        return True
    reporter.report(NOT_A_FILE, f"`{printable(name)}` is {kind}, not a manifest", help=_NOT_A_FILE_HELP)
    return False


def report_way_out(reporter: Reporter, name: str) -> None:
    """Report a link that is not followed."""
    message = f"`{printable(name)}` leads out of the given folder, and is followed only with --follow"
    help_ = "give its target with -f, or use --follow"
    reporter.diagnostics.append(Diagnostic(LEADS_OUT, message, None, help_, f"`{printable(name)}`", cause=LEADS_OUT.id))


def report_unreadable(reporter: Reporter, name: str, error: OSError | ValueError) -> None:
    """Report the reason why a file or a folder cannot be read."""
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
