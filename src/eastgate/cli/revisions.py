"""Revisions of a git repository, each as a folder of its own while something reads it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.records import dataclass

BAD_REVISION = Code(
    "EG0401",
    "revision not read",
    "`--git` takes A..B, A...B (what B adds since it left A) or A alone, which is compared with the files as they are.",
)


class RevisionsError(Exception):
    """Git could not give what was asked for."""

    def __init__(self, message: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.diagnostic = Diagnostic(BAD_REVISION, message, None, help)


@dataclass(frozen=True, slots=True)
class Revisions:
    """Two commits; `new` None: the files as they are."""

    old: str
    new: str | None


def revisions_of(words: str) -> Revisions:
    """Read `A..B`, `A...B` or `A`. Raises RevisionsError."""
    since = "..." in words
    before, dots, after = words.partition("..." if since else "..")
    if not before:
        raise RevisionsError(f"`{words}` names no revision to begin with", "write --git main..HEAD")
    if not dots:
        return Revisions(_commit(before), None)
    new = _commit(after or "HEAD")
    old = _git("merge-base", _commit(before), new).strip() if since else _commit(before)
    return Revisions(old, new)


def _commit(name: str) -> str:
    return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", about=name).strip()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of a commit: what the current folder was in it."""
    prefix = _git("rev-parse", "--show-prefix").strip()
    top = Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))
    with TemporaryDirectory(prefix="eastgate-diff-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        _git("read-tree", commit, folder=top, more=index)
        _git("checkout-index", "--all", "--force", f"--prefix={tree}{os.sep}", folder=top, more=index)
        there = tree / prefix
        there.mkdir(parents=True, exist_ok=True)
        yield there


def _git(*words: str, about: str | None = None, folder: Path | None = None, more: dict[str, str] | None = None) -> str:
    try:
        run = subprocess.run(  # noqa: S603 - no shell, and revisions cannot be taken for options
            ["git", *words],  # noqa: S607 - the one that the user has
            cwd=folder,
            env={**os.environ, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise RevisionsError(f"git cannot be run: {error.strerror}") from None
    if run.returncode:
        lines = run.stderr.strip().splitlines()
        message = lines[-1] if lines else f"git knows no revision `{about}`" if about else "git could not do it"
        raise RevisionsError(message, "is it fetched? `git fetch origin main`" if about else None)
    return run.stdout
