"""Bounds of reading: the content of a folder must not make Eastgate read, and show, other files.

A file or a folder that is named on the command line is meant, wherever it is. What is found there (a link in a folder,
a path in a table) may have come with a pull request, and its errors are shown with a line of what was read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from eastgate.basics.records import dataclass

_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The folders that reading stays in, without links in their names; None is no bound.

    `exclude` are patterns of what is left out of each folder that is read.
    """

    folders: tuple[str, ...] | None
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, paths: Iterable[_Path], *, follow: bool = False, exclude: Iterable[str] = ()) -> Bounds:
        """Return the bounds of the paths that a user names: each of them, and with `follow` none."""
        return cls(None if follow else tuple(map(_real, paths)), tuple(exclude))

    def hold(self, path: _Path) -> bool:
        """Return whether a path leads to somewhere inside."""
        if self.folders is None:
            return True
        real = _real(path)
        return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.folders)


ANYWHERE = Bounds(None)


def _real(path: _Path) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL: there is no such file, as whoever opens it finds
        return os.path.abspath(path)


def around(file: _Path) -> Bounds:
    """Return the bounds of the paths that a file names: the checkout of a repository that the file is in.

    Outside of a checkout it is the folder above the file's own, so that `../policies` can be named, and the working
    directory where the file is below it. The root of the file system is never the bound.
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
