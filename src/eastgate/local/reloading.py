"""Follows the files of a mesh: each saved change is applied to its authority, and enforced.

A policy with errors keeps its last valid version in force; without one, it closes its targets. All other changes are
enforced. If any other object has errors, nothing changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterable

from eastgate.authority.reading import ManifestError, Manifests
from eastgate.authority.sources.files import FileReading, FileSource, PendingFiles
from eastgate.basics.diagnostics import Diagnostic, render_all
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.tasks import BackgroundTask, RetryDelay, innermost
from eastgate.control.events import BrokenChange, Noted
from eastgate.local.mesh import LocalMesh
from eastgate.reading.manifests.watching.changes import stamps, watch_changes

_FIRST_RETRY_SECONDS = 1.0  # between the first tries to enforce a failed change
_MAX_RETRY_SECONDS = 30.0  # between later tries
_MAX_SAVE_AGE_SECONDS = 5.0  # a file with an older change was renamed, or the clock was set


class Reloading:
    """Watches the manifests of a mesh and enforces saved changes."""

    def __init__(self, mesh: LocalMesh, files: FileSource) -> None:
        self._mesh = mesh
        self._files = files
        self._behind = False  # the saved files are not in force
        self._reported_errors = _error_keys(files.in_force)  # reported errors
        self._pending = PendingFiles()
        self._next_read: float | None = None  # seconds until the next read, without an event
        self._failure: _Failure | None = None  # of the last reload

    async def run(self) -> None:
        """Follow the files until cancelled, including changes while the mesh was starting."""
        await BackgroundTask("following the files", self._follow, self._report_failure, _delay()).run()

    async def _follow(self) -> None:
        saved: asyncio.Queue[frozenset[str]] = asyncio.Queue()
        watching = BackgroundTask("watching the files", lambda: self._watch(saved), self._report_failure, _delay())
        watching.start()
        began = time.monotonic()
        try:
            while True:
                changed: frozenset[str] = frozenset()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._next_read):  # wait_for of Python 3.11 may swallow a cancellation
                        changed = await saved.get()
                while not saved.empty():  # read all queued changes at once
                    changed |= saved.get_nowait()
                began = _changed_at(changed) if changed else began
                await self.reload(began)
        finally:
            await watching.stop()

    def _report_failure(self, name: str, error: Exception) -> None:
        reason = printable(str(innermost(error))) or type(error).__name__
        self._mesh.metrics.task_failures.labels(name).inc()
        self._mesh.emit(Noted(f"{name} failed, and begins again: {reason}", trouble=True))

    async def _watch(self, saved: asyncio.Queue[frozenset[str]]) -> None:
        """Queue the changed files. The first set is empty, for changes before the watch."""
        since = await asyncio.to_thread(lambda: stamps(self._files.watched, self._files.bounds))

        def on_poll(reason: str) -> None:
            self._mesh.emit(Noted(f"files are read periodically, since they cannot be watched: {printable(reason)}"))

        async with contextlib.aclosing(
            watch_changes(lambda: self._files.watched, on_poll=on_poll, bounds=lambda: self._files.bounds, since=since)
        ) as batches:
            saved.put_nowait(frozenset())
            async for changed in batches:
                saved.put_nowait(changed)

    async def reload(self, began: float) -> None:
        """Enforce the saved files, or report their errors. No error ends the mesh."""
        try:
            reading = await asyncio.to_thread(self._files.read_at_rest, self._mesh.settings)
            manifests = reading.manifests
            self._next_read = self._report_waiting(reading)
            if reading.is_half:
                return
            changes, held = self._files.take(reading, self._mesh.authority)
            self._next_read = min((seconds for seconds in (self._next_read, held) if seconds is not None), default=None)
            if manifests.reporter.errors and _error_keys(manifests) != self._reported_errors:
                self._mesh.metrics.broken_saves.inc()
                self._mesh.emit(BrokenChange(tuple(manifests.reporter.errors)))
            self._reported_errors = _error_keys(manifests)
            is_mended = self._behind and not manifests.reporter.errors and held is None
            if self._files.is_usable(manifests):
                self._files.check_unread(self._mesh.authority.world, manifests)
                if changes or self._mesh.is_behind or is_mended:
                    before, self._files.in_force = self._files.in_force, manifests
                    self._warn(before, manifests)
                    try:
                        await self._mesh.apply(changes, began)
                    except ManifestError:  # they do not decide
                        self._files.in_force = before
                        raise
            self._behind = bool(manifests.reporter.errors) or (self._behind and held is not None)
            self._failure = None
        except Exception as error:
            self._behind = True
            reason = printable(str(error)) or type(error).__name__
            if self._failure is None or self._failure.reason != reason:
                self._failure = _Failure(reason, _FIRST_RETRY_SECONDS)
                self._mesh.emit(Noted(f"a change could not be enforced: {reason}", trouble=True))
            self._next_read = self._failure.next_pause()

    def _report_waiting(self, reading: FileReading) -> float | None:
        """Report files that stay unfinished for long; return the seconds until the next read."""
        for path in self._pending.take_overdue(reading.unfinished | reading.emptied, time.monotonic()):
            why = "is empty: remove the file to remove its objects"
            if path in reading.unfinished:
                why = "is open for writing: its new content counts when it is closed"
            message = f"{os.path.relpath(path)} {why}. Until then its old content stays in force"
            self._mesh.emit(Noted(printable(message), trouble=True))
        return self._pending.next_pause(reading.unfinished | (reading.emptied - self._pending.reported))

    def _warn(self, before: Manifests, after: Manifests) -> None:
        reported = {(warning.code.id, warning.message) for warning in _warnings(before)}
        new = [warning for warning in _warnings(after) if (warning.code.id, warning.message) not in reported]
        if new:
            self._mesh.emit(Noted(render_all(new), trouble=True))


def _delay() -> RetryDelay:
    return RetryDelay(_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS)


@dataclass(slots=True)
class _Failure:
    """The reason why the last change was not enforced, and the pause before the next try."""

    reason: str
    pause: float

    def next_pause(self) -> float:
        """Return the pause, and double the next one."""
        pause, self.pause = self.pause, min(2 * self.pause, _MAX_RETRY_SECONDS)
        return pause


def _error_keys(manifests: Manifests) -> list[tuple[str, str, str]]:
    """Return the code, message and position of each error."""
    return [(error.code.id, error.message, str(error.span)) for error in manifests.reporter.errors]


def _warnings(manifests: Manifests) -> list[Diagnostic]:
    return [diagnostic for diagnostic in manifests.reporter if not diagnostic.is_error]


def _changed_at(paths: Iterable[str]) -> float:
    """Return the time of the last save of these files, on the monotonic clock. Latency is measured from it."""
    now, clock = time.monotonic(), time.time()
    ages = []
    for path in paths:
        with contextlib.suppress(OSError):
            existing = path if os.path.exists(path) else os.path.dirname(path)
            ages.append(clock - os.stat(existing).st_ctime)
    age = min(ages, default=0.0)
    return now - age if 0 <= age <= _MAX_SAVE_AGE_SECONDS else now
