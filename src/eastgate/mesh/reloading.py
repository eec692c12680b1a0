"""A saved change becomes what is enforced: read again, compared with what is in force, and only the difference applied.

A policy with errors stays in force as it last was, and closes what it targets if it never was good; everything else
that was changed is enforced. Where anything but a policy has errors, all stays as it was. So does what is in a file
that is being written, and for a while what is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

from eastgate.api.authority import Authority
from eastgate.api.questions import NOT_CONSIDERED
from eastgate.api.reading import ManifestError, Manifests, read_manifests
from eastgate.cluster import ObjectId, World
from eastgate.diagnostics import Diagnostic, Reporter, render_all
from eastgate.diagnostics.printable import printable
from eastgate.dialects import Policy
from eastgate.ir import PolicyRef
from eastgate.languages.jwt import KeySource
from eastgate.manifests import Bounds
from eastgate.manifests.kustomizations import parts
from eastgate.manifests.watching.changes import FileStamp, stamps, watch_changes
from eastgate.manifests.watching.rest import is_being_written
from eastgate.mesh.enforcement import Enforcement
from eastgate.mesh.events import BrokenChange, Changes, Noted
from eastgate.mesh.holding import HeldObjects, file_of, find_only_allowing
from eastgate.mesh.mesh import LocalMesh, unread_at_proxies
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.tasks import BackgroundTask, RetryDelay, innermost
from eastgate.unread import Handling, Standing, describe_unconsidered, standing

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between looks at a file that is being written
_LONGEST_RETRY = 30.0  # seconds, at most, between tries to enforce a change that failed
_LONG_WAIT = 2.0  # seconds, after which people want to know what is waited for
_OLDEST_SAVE = 5.0  # seconds; a file that was changed longer ago was put there by a rename, or the clock was set


class ManifestFiles:
    """Files and folders of manifests, and the manifests of them that are in force. `keys` are of token issuers."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        follow: bool = False,
        exclude: Sequence[str] = (),
        strict: bool = False,
        unread: Handling = Handling.BY_KIND,
        keys: KeySource | None = None,
    ) -> None:
        self._keys = keys
        self.paths = tuple(paths)
        self._follow = follow
        self._exclude = tuple(exclude)
        self._strict = strict
        self._unread = unread
        self.in_force = Manifests()
        self._rested: dict[str, FileStamp] = {}
        self._checked: dict[Settings, tuple[Manifests, dict[str, FileStamp], Authority]] = {}

    def read(self, settings: Settings) -> Authority:
        """Load the manifests as they are now, to be enforced; policies with errors close what they target.

        Raises ManifestError where something else has errors, and with `strict` where anything has.
        """
        rested = stamps(self.watched, self.bounds)
        manifests = self.read_now(settings)
        authority = self.authority(manifests)
        self.in_force, self._rested = manifests, rested
        return authority

    def authority(self, manifests: Manifests) -> Authority:
        """Build an authority. Raises ManifestError where objects that are not read forbid it (`unread`)."""
        authority = Authority(
            manifests,
            keys=self._keys,
            strict=self._strict or bool(manifests.unsure),
            unread=self._unread,
            live=True,
        )
        self.check_unread(authority.world, manifests)
        return authority

    def checked(self, settings: Settings) -> Authority:
        """Return the authority by which `check` answers about these files as they are now. Raises ManifestError."""
        stamped = stamps(self.watched, self.bounds)
        in_force, seen, authority = self._checked.get(settings, (None, None, None))
        if authority is None or in_force is not self.in_force or seen != stamped:
            in_force = self.in_force
            authority = Authority(self.read_now(settings), keys=self._keys, strict=False, unread=self._unread)
            self._checked[settings] = (in_force, stamped, authority)
        return authority

    def check_unread(self, world: World, manifests: Manifests) -> None:
        """Raise ManifestError where nothing is to be enforced because of objects that are not read."""
        unconsidered = unread_at_proxies(world, manifests.unread)
        if standing(unconsidered, self._unread, allowed=True) is Standing.UNDECIDED:
            message = f"what would be enforced may be too wide: {'; '.join(describe_unconsidered(unconsidered))}"
            raise ManifestError([Diagnostic(NOT_CONSIDERED, message, None, "--unread warn enforces what is read")])

    def is_usable(self, manifests: Manifests) -> bool:
        """Return whether anything of these manifests can be enforced."""
        return not (manifests.reporter.errors if self._strict or manifests.unsure else manifests.strays)

    def read_now(self, settings: Settings) -> Manifests:
        """Read the manifests as they are now, valid or not."""
        return read_manifests(self.paths, settings, bounds=self.bounds)

    def read_at_rest(self, settings: Settings) -> ManifestReading:
        """Read the manifests as they are now, and note which files are unreliable: being written, or emptied."""
        before = stamps(self.watched, self.bounds)
        unfinished = {
            path for path, stamp in before.items() if self._rested.get(path) != stamp and is_being_written(path)
        }
        manifests = self.read_now(settings)
        after = stamps(self.watched, self.bounds)
        unfinished |= {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        files_in_force = {*_files(self.in_force)}
        emptied = {path for path, (_, _, size, _, _) in after.items() if size == 0 and path in files_in_force}
        stamped = before.keys() | after.keys() | self._rested.keys()
        self._rested = {path: stamp for path, stamp in after.items() if path not in unfinished}
        rendered = bool(unfinished) and any(file not in stamped for file in (*files_in_force, *_files(manifests)))
        return ManifestReading(manifests, frozenset(unfinished), frozenset(emptied - unfinished), rendered)

    @property
    def watched(self) -> tuple[str | os.PathLike[str], ...]:
        """Return what to watch: the paths, and the folders that their kustomizations include from elsewhere."""
        taken = (folder for path in self.paths for folder in parts(os.fspath(path), self._follow, Reporter()) or ())
        return tuple(dict.fromkeys((*self.paths, *taken)))

    @property
    def bounds(self) -> Bounds:
        """Return the bounds of reading now: a path that is a link may lead elsewhere later."""
        return Bounds.of(self.paths, follow=self._follow, exclude=self._exclude)


@dataclass(frozen=True, slots=True)
class ManifestReading:
    """The manifests that were read, the files that are being written, those that were emptied, and whether others were
    rendered.

    A rendered manifest depends on all files: if one of them is being written, none of it can be relied on.
    """

    manifests: Manifests
    unfinished: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    rendered: bool = False

    @property
    def is_half(self) -> bool:
        """Return whether errors may be there only because a file is half written."""
        errors = self.manifests.reporter.errors if self.unfinished else ()
        return self.rendered or any(error.span is None or file_of(error.span) in self.unfinished for error in errors)


@dataclass(frozen=True, slots=True)
class Difference:
    """The policies to put and to remove. `changes` are those with another meaning, and not just on another line."""

    put: tuple[Policy, ...]
    removed: tuple[PolicyRef, ...]
    changes: Changes

    def apply(self, enforcement: Enforcement) -> frozenset[str]:
        """Enforce the difference; return the workloads whose proxies it concerns."""
        return enforcement.change(put=self.put, remove=self.removed)


def difference(before: Manifests, after: Manifests) -> Difference | None:
    """Return the difference, where only policies differ; None where something else does."""
    if before.objects != after.objects:
        return None
    old = {policy.ref: policy for policy in before.demanded}
    new = {policy.ref: policy for policy in after.demanded}
    removed = tuple(sorted(old.keys() - new.keys(), key=str))
    put = tuple(policy for ref, policy in new.items() if ref not in old or not _same(old[ref], policy))
    added = (policy.ref for policy in put if policy.ref not in old)
    changed = (policy.ref for policy in put if policy.ref in old and not _has_same_text(old[policy.ref], policy))
    return Difference(put, removed, Changes(_names(added), _names(changed), _names(removed)))


def _names(refs: Iterable[PolicyRef | ObjectId]) -> tuple[str, ...]:
    return tuple(sorted(map(str, refs)))


def _same(policy: Policy, other: Policy) -> bool:
    """Return whether two policies have the same text on the same lines: explanations name lines."""
    a, b = policy.span, other.span
    return (a.file, a.line, a.column) == (b.file, b.line, b.column) and _has_same_text(policy, other)


def _has_same_text(policy: Policy, other: Policy) -> bool:
    """Return whether two policies have the same text and type: one may be a policy with errors."""
    return type(policy) is type(other) and _text(policy) == _text(other)


def _text(policy: Policy) -> list[str]:
    span = policy.span
    return [span.source.line(number) for number in range(span.line, span.end_line + 1)]


class Reloading:
    """Watches the manifests of a mesh and enforces what is saved."""

    def __init__(self, mesh: LocalMesh, files: ManifestFiles) -> None:
        self._mesh = mesh
        self._files = files
        self._behind = False  # what is saved is not in force
        self._unsure = False  # a change failed half way
        self._reported_errors = _error_keys(files.in_force)  # errors that were reported
        self._holding = HeldObjects()
        self._pending = PendingFiles()
        self._next_read: float | None = None  # seconds until the next read, without an event
        self._failure: _Failure | None = None  # of the last reload

    async def run(self) -> None:
        """Follow the files until cancelled. What changed while the mesh was starting is noticed too."""
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
                while not saved.empty():  # what was saved meanwhile is read at once
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
        """Queue the changed files; at first an empty set, for what changed before they were watched."""
        since = await asyncio.to_thread(lambda: stamps(self._files.watched, self._files.bounds))

        def on_poll(reason: str) -> None:
            self._mesh.emit(
                Noted(f"files are looked at every now and then, since they cannot be watched: {printable(reason)}")
            )

        async with contextlib.aclosing(
            watch_changes(self._files.watched, on_poll=on_poll, bounds=lambda: self._files.bounds, since=since)
        ) as batches:
            saved.put_nowait(frozenset())
            async for changed in batches:
                saved.put_nowait(changed)

    async def reload(self, began: float) -> None:
        """Enforce what is saved now, or report its errors. No error ends the mesh."""
        try:
            reading = await asyncio.to_thread(self._files.read_at_rest, self._mesh.settings)
            manifests = reading.manifests
            self._next_read = self._report_waiting(reading)
            if reading.is_half:
                return
            manifests.keep({policy.ref: policy for policy in self._files.in_force.policies})
            held = self._holding.hold(
                self._files.in_force,
                manifests,
                reading.unfinished | reading.emptied,
                time.monotonic(),
                self._find_only_allowing,
            )
            self._next_read = min((seconds for seconds in (self._next_read, held) if seconds is not None), default=None)
            if manifests.reporter.errors and _error_keys(manifests) != self._reported_errors:
                self._mesh.metrics.broken_saves.inc()
                self._mesh.emit(BrokenChange(tuple(manifests.reporter.errors)))
            self._reported_errors = _error_keys(manifests)
            if self._files.is_usable(manifests):
                await self._enforce(manifests, began, mended=not manifests.reporter.errors and held is None)
            self._behind = bool(manifests.reporter.errors) or (self._behind and held is not None)
            self._failure = None
        except Exception as error:
            self._behind = True
            reason = printable(str(error)) or type(error).__name__
            if self._failure is None or self._failure.reason != reason:
                self._failure = _Failure(reason, _LONGEST_PAUSE)
                self._mesh.emit(Noted(f"a change could not be enforced: {reason}", trouble=True))
            self._next_read = self._failure.next_pause()

    def _report_waiting(self, reading: ManifestReading) -> float | None:
        """Report files that were waited for long; return the seconds until the next read."""
        for path in self._pending.take_overdue(reading.unfinished | reading.emptied, time.monotonic()):
            why = "is empty: remove it to remove what it said"
            if path in reading.unfinished:
                why = "is open for writing: what it says now counts when it is closed"
            message = f"{os.path.relpath(path)} {why}. Until then all that was in it stays in force"
            self._mesh.emit(Noted(printable(message), trouble=True))
        return self._pending.next_pause(reading.unfinished | (reading.emptied - self._pending.reported))

    def _find_only_allowing(self, manifests: Manifests, gone: Collection[PolicyRef]) -> Collection[PolicyRef]:
        if not self._files.is_usable(manifests):
            return ()
        return find_only_allowing(self._mesh.authority, self._files.authority(manifests), gone)

    async def _enforce(self, manifests: Manifests, began: float, *, mended: bool) -> None:
        before = self._files.in_force
        self._files.check_unread(self._mesh.authority.world, manifests)
        change = None if self._unsure else difference(before, manifests)
        if change is not None and not change.put and not change.removed and not (self._behind and mended):
            self._mesh.report_unconsidered(manifests.unread)
            return  # nothing that anybody decides by
        self._warn(before, manifests)
        was_unsure, self._unsure = self._unsure, True
        if change is not None:
            await self._mesh.change(change.apply, began, change.changes)
            self._mesh.authority.warnings = _warnings(manifests)
            self._mesh.report_unconsidered(manifests.unread)
        else:
            authority = await asyncio.to_thread(self._files.authority, manifests)
            changes = Changes() if was_unsure else _changes(before, manifests)
            await self._mesh.apply(authority, began, changes)
        self._files.in_force, self._unsure = manifests, False

    def _warn(self, before: Manifests, after: Manifests) -> None:
        reported = {(warning.code.id, warning.message) for warning in _warnings(before)}
        new = [warning for warning in _warnings(after) if (warning.code.id, warning.message) not in reported]
        if new:
            self._mesh.emit(Noted(render_all(new), trouble=True))


def _delay() -> RetryDelay:
    return RetryDelay(_LONGEST_PAUSE, _LONGEST_RETRY)


@dataclass(slots=True)
class _Failure:
    """Why the last change was not enforced, and how long to wait before it is tried again."""

    reason: str
    pause: float

    def next_pause(self) -> float:
        """Return the pause, and double the next one."""
        pause, self.pause = self.pause, min(2 * self.pause, _LONGEST_RETRY)
        return pause


@dataclass(slots=True)
class PendingFiles:
    """The files that are unfinished, and since when."""

    since: dict[str, float] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    _pause: float = _FIRST_PAUSE

    def take_overdue(self, files: Collection[str], now: float) -> list[str]:
        """Return the files that have been unfinished for long and were not reported yet."""
        self.since = {path: self.since.get(path, now) for path in files}
        self.reported &= {*files}
        overdue = sorted(
            path for path, since in self.since.items() if now - since >= _LONG_WAIT and path not in self.reported
        )
        self.reported.update(overdue)
        return overdue

    def next_pause(self, files: Collection[str]) -> float | None:
        """Return the seconds until the next read, with backoff; None where no file is unfinished."""
        self._pause = min(2 * self._pause, _LONGEST_PAUSE) if files else _FIRST_PAUSE
        return self._pause if files else None


def _files(manifests: Manifests) -> Iterable[str]:
    """Return the files from which something in these manifests was read."""
    spans = (entry.span for entry in (*manifests.objects, *manifests.demanded))
    names = {span.file for span in spans if span is not None}
    return map(os.path.abspath, names)


def _error_keys(manifests: Manifests) -> list[tuple[str, str, str]]:
    """Return the code, message and position of each error."""
    return [(error.code.id, error.message, str(error.span)) for error in manifests.reporter.errors]


def _warnings(manifests: Manifests) -> list[Diagnostic]:
    return [diagnostic for diagnostic in manifests.reporter if not diagnostic.is_error]


def _changes(before: Manifests, after: Manifests) -> Changes:
    """Return the policies and objects that differ."""
    old, new = {obj.id: obj for obj in before.objects}, {obj.id: obj for obj in after.objects}
    of_policies = difference(
        Manifests(policies=before.policies, faults=before.faults),
        Manifests(policies=after.policies, faults=after.faults),
    )
    policies = of_policies.changes if of_policies is not None else Changes()
    return Changes(
        (*policies.added, *_names(new.keys() - old.keys())),
        (*policies.changed, *_names(key for key in old.keys() & new.keys() if old[key] != new[key])),
        (*policies.removed, *_names(old.keys() - new.keys())),
    )


def _changed_at(paths: Iterable[str]) -> float:
    """Return when the last of these files was saved, on the monotonic clock. Latency is measured from there."""
    now, clock = time.monotonic(), time.time()
    ages = []
    for path in paths:
        with contextlib.suppress(OSError):
            existing = path if os.path.exists(path) else os.path.dirname(path)
            ages.append(clock - os.stat(existing).st_ctime)
    age = min(ages, default=0.0)
    return now - age if 0 <= age <= _OLDEST_SAVE else now
