"""Telling when manifests change, soon after they did and whatever way an editor or a mount has of changing them.

The kernel says in which folders something happened; looking at the files says whether that means anything.
So it does not matter which events a way of saving makes: writing in place, renaming over, a new link to another
folder as mounted ConfigMaps do. Folders are watched and not files, because a saved file is often a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field

from watchfiles import awatch

from eastgate.sources.bounds import ANYWHERE, Bounds
from eastgate.sources.files import SUFFIXES
from eastgate.sources.kustomizations import FILES

__all__ = ["Mark", "changes", "marks"]

_STEP_MS = 5
_DEBOUNCE_MS = 20
_SETTLE_MS = 100
_LOOK_AGAIN = 3.0
_POLL = 0.5
_MOST_LINKS = 40

Mark = tuple[int, int, int, int, int]
"""The device, inode, size and times of a file."""


@dataclass(slots=True)
class _Seen:
    """The manifests as they are now, the names under which events may speak of them, and the folders to watch."""

    marks: dict[str, Mark] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def changed(self, since: _Seen, told: Iterable[str] = ()) -> frozenset[str]:
        """The manifests that differ from before, or of which somebody told that they do."""
        differ = {
            path for path in self.marks.keys() | since.marks.keys() if self.marks.get(path) != since.marks.get(path)
        }
        named = {self.names.get(path) or since.names.get(path) for path in told}
        return frozenset(differ | {path for path in named if path is not None})


async def changes(
    paths: Iterable[str | os.PathLike[str]],
    *,
    on_poll: Callable[[str], None] = lambda _: None,
    poll_every: float = _POLL,
    bounds: Callable[[], Bounds] = lambda: ANYWHERE,
) -> AsyncGenerator[frozenset[str], None]:
    """The manifests that changed, appeared or went, each time that any did. It never ends by itself.

    Links that lead out of the bounds are watched, and nothing behind them.
    `on_poll` hears why, when the kernel does not watch for us and the files are looked at every so often instead.
    """
    roots = [os.path.abspath(path) for path in paths]
    seen = await asyncio.to_thread(_look, roots, bounds())
    refused = False
    while True:
        try:
            async with contextlib.aclosing(_told(seen.folders, poll_every if refused else None)) as telling:
                async for told in telling:
                    now = await asyncio.to_thread(_look, roots, bounds())
                    changed, moved, seen = now.changed(seen, told), now.folders != seen.folders, now
                    if changed:
                        yield changed
                    if moved:
                        break
        except (OSError, RuntimeError, ValueError) as error:  # the last for names that are no UTF-8
            if not isinstance(error, FileNotFoundError):  # a folder that went since we looked is not a refusal
                refused = True
                on_poll(str(error))
            await asyncio.sleep(_STEP_MS / 1000)


async def _told(folders: set[str], poll_every: float | None) -> AsyncGenerator[set[str], None]:
    """The paths that the kernel names. Empty sets mean that it is time to look, named or not."""
    if poll_every is not None:
        while True:
            await asyncio.sleep(poll_every)
            yield set()
    began, looked = time.monotonic(), 0.0
    watching = awatch(
        *sorted(folders),
        watch_filter=None,
        step=_STEP_MS,
        debounce=_DEBOUNCE_MS,
        rust_timeout=_SETTLE_MS,
        yield_on_timeout=True,
        recursive=False,
    )
    async with contextlib.aclosing(watching):
        async for events in watching:
            now = time.monotonic()
            # At first, for what happened before the kernel watched; later, for file systems that tell nothing.
            if events or now - looked > _LOOK_AGAIN or now - began < 3 * _SETTLE_MS / 1000:
                looked = now
                yield {path for _, path in events}


def marks(paths: Iterable[str | os.PathLike[str]], bounds: Bounds) -> dict[str, Mark]:
    """What tells the manifests from what they will be when they were changed."""
    return _look([os.path.abspath(path) for path in paths], bounds).marks


def _look(roots: list[str], bounds: Bounds = ANYWHERE) -> _Seen:
    seen = _Seen()
    for root in roots:
        _follow(root, seen)
        if os.path.isdir(root):
            _walk(root, seen, frozenset(), bounds)
        else:
            _mark(root, seen)
    return seen


def _walk(folder: str, seen: _Seen, above: frozenset[tuple[int, int]], bounds: Bounds) -> None:
    try:
        status = os.stat(folder)
        entries = sorted(os.listdir(folder))
    except OSError:
        return
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    seen.folders.add(folder)
    for entry in entries:
        path = os.path.join(folder, entry)
        if entry.startswith("."):
            continue
        if os.path.islink(path):
            if not bounds.hold(path):
                _mark_link(path, seen)
                continue
            _follow(path, seen)
        if os.path.isdir(path):
            _walk(path, seen, above | {identity}, bounds)
        elif entry.lower().endswith(SUFFIXES) or entry in FILES:
            _mark(path, seen)


def _mark(path: str, seen: _Seen) -> None:
    try:
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):  # a pipe is a finding, which comes and goes with it
        seen.names[path] = path
        seen.names[os.path.realpath(path)] = path
        seen.marks[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _mark_link(path: str, seen: _Seen) -> None:
    """Notices a link that is not followed: it comes and goes as a finding does."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        seen.names[path] = path
        seen.marks[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _follow(path: str, seen: _Seen) -> None:
    """Watches where each link on the way to a path is, and where the way ends: any of them may be put elsewhere."""
    for _ in range(_MOST_LINKS):
        seen.folders.add(_nearest(os.path.dirname(path)))
        link = path
        while link != os.path.dirname(link) and not os.path.islink(link):
            link = os.path.dirname(link)
        if not os.path.islink(link):
            return
        above = os.path.dirname(link)
        seen.folders.add(above)
        path = os.path.normpath(os.path.join(above, os.readlink(link), os.path.relpath(path, link)))


def _nearest(folder: str) -> str:
    """The folder, or the first above it that exists."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
