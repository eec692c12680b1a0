"""Watches manifests for changes, for every editor and every kind of mount.

The kernel reports the folders with events. Comparing the files then shows whether any has changed. So the exact events
do not matter: editors write in place or rename over a file, and mounted ConfigMaps replace a link to a folder. Folders
are watched instead of files, because a saved file is often a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import field

from watchfiles import awatch

from eastgate.basics.records import dataclass
from eastgate.basics.tasks import innermost
from eastgate.reading.manifests.files import ANYWHERE, SUFFIXES, Bounds
from eastgate.reading.manifests.kustomizations import FILES

# Tests whether a file is being written. Reading it then gives half of it, or nothing.


SETTLING = 0.5  # seconds
_F_SETSIG = getattr(fcntl, "F_SETSIG", 10)  # Python has it since 3.13


def is_being_written(path: str) -> bool:
    """Return whether a file is open for writing. If the kernel cannot tell, return whether it was changed just now."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return False
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False  # reading the file will report the same error
    try:
        is_open = _is_open_for_writing(opened)
    finally:
        os.close(opened)
    return is_open if is_open is not None else abs(time.time() - status.st_ctime) < SETTLING


def _is_open_for_writing(opened: int) -> bool | None:
    """Request a read lease, which the kernel grants only without writers. None if it grants none for this file.

    A process that opens the file for writing waits until the lease is returned, which happens at once. The signal is
    ignored.
    """
    try:
        fcntl.fcntl(opened, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


_STEP_MS = 5
_DEBOUNCE_MS = 20
_SETTLE_MS = 100
_RESCAN_SECONDS = 3.0
_POLL_SECONDS = 0.5
_MAX_LINKS = 40

FileStamp = tuple[int, int, int, int, int]
"""The device, inode, size and times of a file."""


@dataclass(slots=True)
class _Snapshot:
    """The present manifests, the names that events may have for them, the folders that are read, and the
    folders to watch.
    """

    stamps: dict[str, FileStamp] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def changed(self, since: _Snapshot, paths: Iterable[str] = ()) -> frozenset[str]:
        """Return the manifests that differ from before, or that an event named.

        A manifest that was added and removed between two scans is in neither, but may have been read.
        """
        differ = {
            path for path in self.stamps.keys() | since.stamps.keys() if self.stamps.get(path) != since.stamps.get(path)
        }
        named = {self.names.get(path) or since.names.get(path) for path in paths}
        fleeting = {path for path in paths if os.path.dirname(path) in self.read | since.read and _is_manifest(path)}
        return frozenset(differ | fleeting | {path for path in named if path is not None})


_Paths = Iterable[str | os.PathLike[str]]


async def watch_changes(
    paths: _Paths | Callable[[], _Paths],
    *,
    on_poll: Callable[[str], None] = lambda _: None,
    poll_every: float = _POLL_SECONDS,
    bounds: Callable[[], Bounds] = lambda: ANYWHERE,
    since: Mapping[str, FileStamp] | None = None,
) -> AsyncGenerator[frozenset[str], None]:
    """Yield the manifests that were changed, added or removed, at each change. It never ends.

    `paths` may be a function, because a saved kustomization may name other files. Links that lead out of the bounds are
    watched, but not followed. `on_poll` is called with the reason if the kernel does not report events, and files are
    polled instead. `since` are the stamps from before the files were read; changes after them are yielded first.
    """

    def take() -> _Snapshot:
        return _take_snapshot([os.path.abspath(path) for path in (paths() if callable(paths) else paths)], bounds())

    snapshot = await asyncio.to_thread(take)
    if since is not None and (missed := snapshot.changed(_Snapshot(dict(since)))):
        yield missed
    polling = False
    while True:
        try:
            async with contextlib.aclosing(_kernel_events(snapshot.folders, poll_every if polling else None)) as events:
                async for touched in events:
                    now = await asyncio.to_thread(take)
                    changed, moved, snapshot = now.changed(snapshot, touched), now.folders != snapshot.folders, now
                    if changed:
                        yield changed
                    if moved:
                        break
        except FileNotFoundError:  # a folder that was removed after the scan is not a refusal
            await asyncio.sleep(_STEP_MS / 1000)
        except Exception as error:  # the library raises many errors: names that are not UTF-8, too many folders
            if polling:
                raise
            polling = True
            on_poll(str(innermost(error)))


async def _kernel_events(folders: set[str], poll_every: float | None) -> AsyncGenerator[set[str], None]:
    """Yield the paths that the kernel names. An empty set means that a scan is due."""
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
            # Scan at first, for changes before the kernel watched, and regularly, for file systems that send no events.
            if events or now - looked > _RESCAN_SECONDS or now - began < 3 * _SETTLE_MS / 1000:
                looked = now
                yield {path for _, path in events}


def stamps(paths: _Paths, bounds: Bounds) -> dict[str, FileStamp]:
    """Return a stamp for each manifest. It differs after a change of the file."""
    return _take_snapshot([os.path.abspath(path) for path in paths], bounds).stamps


def _take_snapshot(roots: list[str], bounds: Bounds = ANYWHERE) -> _Snapshot:
    snapshot = _Snapshot()
    for root in roots:
        _follow(root, snapshot)
        if os.path.isdir(root):
            _walk(root, snapshot, frozenset(), bounds)
        else:
            _stamp(root, snapshot)
    return snapshot


def _walk(folder: str, snapshot: _Snapshot, above: frozenset[tuple[int, int]], bounds: Bounds) -> None:
    try:
        status = os.stat(folder)
        entries = sorted(os.listdir(folder))
    except OSError:
        return
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    snapshot.folders.add(folder)
    snapshot.read.add(folder)
    for entry in entries:
        path = os.path.join(folder, entry)
        if entry.startswith("."):
            continue
        if os.path.islink(path):
            if not bounds.hold(path):
                _stamp_link(path, snapshot)
                continue
            _follow(path, snapshot)
        if os.path.isdir(path):
            _walk(path, snapshot, above | {identity}, bounds)
        elif _is_manifest(path):
            _stamp(path, snapshot)


def _is_manifest(path: str) -> bool:
    entry = os.path.basename(path)
    return not entry.startswith(".") and (entry.lower().endswith(SUFFIXES) or entry in FILES)


def _stamp(path: str, snapshot: _Snapshot) -> None:
    try:
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):  # a pipe is a finding, which is added and removed with it
        snapshot.names[path] = path
        snapshot.names[os.path.realpath(path)] = path
        snapshot.stamps[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _stamp_link(path: str, snapshot: _Snapshot) -> None:
    """Watch a link that is not followed, because its finding is added and removed with it."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        snapshot.names[path] = path
        snapshot.stamps[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _follow(path: str, snapshot: _Snapshot) -> None:
    """Watch the folder of each link on the way to a path, and of its end. Any of them may be replaced."""
    for _ in range(_MAX_LINKS):
        snapshot.folders.add(_nearest(os.path.dirname(path)))
        link = path
        while link != os.path.dirname(link) and not os.path.islink(link):
            link = os.path.dirname(link)
        if not os.path.islink(link):
            return
        above = os.path.dirname(link)
        snapshot.folders.add(above)
        path = os.path.normpath(os.path.join(above, os.readlink(link), os.path.relpath(path, link)))


def _nearest(folder: str) -> str:
    """Return the folder, or the first existing folder above it."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
