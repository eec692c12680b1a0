"""Leaves files out of a folder: by the patterns of `--exclude`, and those of `.eastgateignore` files.

Both have the syntax of `.gitignore`: the last pattern that fits decides, and a pattern is relative to the folder that
it is given for. As with git, nothing inside a folder that is left out can be taken in again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.codes import BAD_PATTERN, UNREADABLE

IGNORE_FILE = ".eastgateignore"
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Patterns, each set for the files below one folder, the outermost folder first."""

    sets: tuple[tuple[str, object], ...] = ()

    def below(self, folder: str, patterns: Sequence[str], origin: str, reporter: Reporter) -> Exclusion:
        """Add patterns for what is below a folder."""
        if not patterns:
            return self
        from pathspec import GitIgnoreSpec  # most folders have none

        good: list[str] = []
        for pattern in patterns:
            try:
                GitIgnoreSpec.from_lines([pattern])
            except ValueError:
                message = f"{origin}: `{printable(pattern)}` is no pattern"
                reporter.report(BAD_PATTERN, message, help="write it as in a .gitignore file: *.json, /drafts/, **/old")
            else:
                good.append(pattern)
        return Exclusion((*self.sets, (folder, GitIgnoreSpec.from_lines(good)))) if good else self

    def within(self, folder: str, reporter: Reporter) -> Exclusion:
        """Add the patterns of the ignore file of a folder that has one."""
        path = os.path.join(folder, IGNORE_FILE)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
                lines = file.read(_MOST_BYTES).decode("utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            reporter.report(UNREADABLE, f"`{printable(path)}` cannot be read: {printable(str(reason)).lower()}")
            return self
        return self.below(folder, lines, f"`{printable(path)}`", reporter)

    def holds(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path is left out: the innermost set of patterns that matches it decides."""
        for folder, spec in reversed(self.sets):
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            relative = os.fsencode(relative).decode("utf-8", "replace")  # patterns are about names that are UTF-8
            is_excluded = spec.check_file(relative + "/" if is_folder else relative).include  # type: ignore[attr-defined]
            if is_excluded is not None:
                return bool(is_excluded)
        return False
