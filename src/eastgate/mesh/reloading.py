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
from dataclasses import dataclass, field

from eastgate.authority import Authority, ManifestError, Manifests, read_manifests
from eastgate.diagnostics import Diagnostic, Reporter, render_all
from eastgate.dialects import Policy
from eastgate.mesh.enforcement import Enforcement
from eastgate.mesh.events import Broken, Changes, Noted
from eastgate.mesh.holding import Holding, file_of, only_lets_in
from eastgate.mesh.local.rest import is_being_written
from eastgate.mesh.local.watching import Mark, changes, marks
from eastgate.mesh.mesh import LocalMesh, unread_at_workloads
from eastgate.policy import PolicyRef
from eastgate.printable import printable
from eastgate.questions import NOT_CONSIDERED
from eastgate.settings import Settings
from eastgate.sources import Bounds
from eastgate.sources.kustomizations import parts
from eastgate.unconsidered import Handling, Standing, standing, told
from eastgate.world import ObjectId, World

__all__ = ["Difference", "ManifestFiles", "Reloading", "difference"]

_LOOKING = 0.05  # seconds, after which the files are being watched
_AGAIN, _LATER = 0.05, 1.0  # seconds between looks at a file that is being written
_LATEST = 30.0  # seconds, at most, between tries to enforce a change that failed
_LONG = 2.0  # seconds, after which people want to know what is waited for
_OLDEST = 5.0  # seconds; a file that was changed longer ago was put there by a rename, or the clock was set


class ManifestFiles:
    """Files and folders of manifests, and what of them is in force."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        follow: bool = False,
        exclude: Sequence[str] = (),
        strict: bool = False,
        unread: Handling = Handling.BY_KIND,
    ) -> None:
        self.paths = tuple(paths)
        self._follow = follow
        self._exclude = tuple(exclude)
        self._strict = strict
        self._unread = unread
        self.in_force = Manifests()
        self._rested: dict[str, Mark] = {}

    def read(self, settings: Settings) -> Authority:
        """The authority on what is written now, to be enforced; policies with errors close what they target.

        Raises ManifestError where something else has errors, and with `strict` where anything has.
        """
        rested = marks(self.watched, self.bounds)
        manifests = self.look(settings)
        authority = self.authority(manifests)
        self.in_force, self._rested = manifests, rested
        return authority

    def authority(self, manifests: Manifests) -> Authority:
        """The authority on some manifests. Raises ManifestError where `unread` says so of what is not read."""
        authority = Authority(manifests, strict=self._strict or bool(manifests.unsure), unread=self._unread)
        self.check_unread(authority.world, manifests)
        return authority

    def check_unread(self, world: World, manifests: Manifests) -> None:
        """Raises ManifestError where nothing is to be enforced because of what is not read."""
        found = unread_at_workloads(world, manifests.unread)
        if standing(found, self._unread, allowed=True) is Standing.UNDECIDED:
            message = f"what would be enforced may be too wide: {'; '.join(told(found))}"
            raise ManifestError([Diagnostic(NOT_CONSIDERED, message, None, "--unread warn enforces what is read")])

    def is_usable(self, manifests: Manifests) -> bool:
        """Whether something of what is written can be enforced."""
        return not (manifests.reporter.errors if self._strict or manifests.unsure else manifests.strays)

    def look(self, settings: Settings) -> Manifests:
        """What is written now, good or not."""
        return read_manifests(self.paths, settings, bounds=self.bounds)

    def look_at_rest(self, settings: Settings) -> Look:
        """What is written now, and what of that is not to be relied on."""
        before = marks(self.watched, self.bounds)
        written = {path for path, mark in before.items() if self._rested.get(path) != mark and is_being_written(path)}
        manifests = self.look(settings)
        after = marks(self.watched, self.bounds)
        written |= {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        said = {*_files(self.in_force)}
        emptied = {path for path, (_, _, size, _, _) in after.items() if size == 0 and path in said}
        known = before.keys() | after.keys() | self._rested.keys()
        self._rested = {path: mark for path, mark in after.items() if path not in written}
        rendered = bool(written) and any(file not in known for file in (*said, *_files(manifests)))
        return Look(manifests, frozenset(written), frozenset(emptied - written), rendered)

    @property
    def watched(self) -> tuple[str | os.PathLike[str], ...]:
        """What to watch: the paths, and the folders that their kustomizations take in from elsewhere."""
        taken = (folder for path in self.paths for folder in parts(os.fspath(path), self._follow, Reporter()) or ())
        return tuple(dict.fromkeys((*self.paths, *taken)))

    @property
    def bounds(self) -> Bounds:
        """What reading stays in now: a path that is a link may lead elsewhere later."""
        return Bounds.of(self.paths, follow=self._follow, exclude=self._exclude)


@dataclass(frozen=True, slots=True)
class Look:
    """What was read, the files that are being written, those that were emptied, and whether some others were rendered.

    What is rendered is of all files: if one of them is being written, nothing of it can be relied on.
    """

    manifests: Manifests
    written: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    rendered: bool = False

    @property
    def is_half(self) -> bool:
        """Whether errors may be there only because a file has not been written to its end."""
        errors = self.manifests.reporter.errors if self.written else ()
        return self.rendered or any(one.span is None or file_of(one.span) in self.written for one in errors)


@dataclass(frozen=True, slots=True)
class Difference:
    """What becomes of the policies. `changes` are those that say something else, and not just on another line."""

    put: tuple[Policy, ...]
    removed: tuple[PolicyRef, ...]
    changes: Changes

    def apply(self, enforcement: Enforcement) -> frozenset[str]:
        """Enforce it; tells whose proxies that concerns."""
        return enforcement.change(put=self.put, remove=self.removed)


def difference(before: Manifests, after: Manifests) -> Difference | None:
    """What differs, where only policies do; None where something else does."""
    if before.objects != after.objects:
        return None
    old = {policy.ref: policy for policy in before.demanded}
    new = {policy.ref: policy for policy in after.demanded}
    removed = tuple(sorted(old.keys() - new.keys(), key=str))
    put = tuple(one for ref, one in new.items() if ref not in old or not _same(old[ref], one))
    added = (one.ref for one in put if one.ref not in old)
    changed = (one.ref for one in put if one.ref in old and not _says_the_same(old[one.ref], one))
    return Difference(put, removed, Changes(_names(added), _names(changed), _names(removed)))


def _names(refs: Iterable[PolicyRef | ObjectId]) -> tuple[str, ...]:
    return tuple(sorted(map(str, refs)))


def _same(one: Policy, other: Policy) -> bool:
    """Whether they say the same on the same lines. Policies that moved are put again: explanations name lines."""
    a, b = one.span, other.span
    return (a.file, a.line, a.column) == (b.file, b.line, b.column) and _says_the_same(one, other)


def _says_the_same(one: Policy, other: Policy) -> bool:
    """Whether they have the same text, and are read in the same way: what else there is may be an error in one."""
    return type(one) is type(other) and _text(one) == _text(other)


def _text(policy: Policy) -> list[str]:
    span = policy.span
    return [span.source.line(number) for number in range(span.line, span.end_line + 1)]


class Reloading:
    """Follows the files for as long as it runs."""

    def __init__(self, mesh: LocalMesh, files: ManifestFiles) -> None:
        self._mesh = mesh
        self._files = files
        self._behind = False  # what is written is not in force
        self._unsure = False  # a change failed half way
        self._wrong = _places(files.in_force)  # what has been said to be wrong
        self._holding = Holding()
        self._waiting = Waiting()
        self._again: float | None = None  # seconds, after which to look without being told
        self._failure: _Failure | None = None  # of the last reload

    async def run(self) -> None:
        """Never ends by itself. What changed while the mesh was starting is noticed too."""
        told: asyncio.Queue[frozenset[str]] = asyncio.Queue()
        watching = asyncio.create_task(self._watch(told))
        try:
            await asyncio.sleep(_LOOKING)
            await self.reload(began := time.monotonic())
            while True:
                changed: frozenset[str] = frozenset()
                with contextlib.suppress(TimeoutError):
                    changed = await asyncio.wait_for(told.get(), self._again)
                while not told.empty():  # what was saved meanwhile is read at once
                    changed |= told.get_nowait()
                began = _changed_at(changed) if changed else began
                await self.reload(began)
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch(self, told: asyncio.Queue[frozenset[str]]) -> None:
        """Queue the changed files. A watcher that fails starts again: files that nobody watches are never enforced."""
        while True:
            try:
                await self._watch_once(told)
            except Exception as error:
                reason = printable(str(error)) or type(error).__name__
                self._mesh.tell(Noted(f"watching the files failed, and begins again: {reason}", trouble=True))
                await asyncio.sleep(_LATER)
                told.put_nowait(frozenset())  # what changed meanwhile

    async def _watch_once(self, told: asyncio.Queue[frozenset[str]]) -> None:
        def on_poll(why: str) -> None:
            self._mesh.tell(
                Noted(f"files are looked at every now and then, since they cannot be watched: {printable(why)}")
            )

        async with contextlib.aclosing(
            changes(self._files.watched, on_poll=on_poll, bounds=lambda: self._files.bounds)
        ) as telling:
            async for changed in telling:
                told.put_nowait(changed)

    async def reload(self, began: float) -> None:
        """Enforce what is written now, or say what is wrong with it. Nothing that is wrong ends the mesh."""
        try:
            look = await asyncio.to_thread(self._files.look_at_rest, self._mesh.settings)
            manifests = look.manifests
            self._again = self._wait(look)
            if look.is_half:
                return
            manifests.keep({policy.ref: policy for policy in self._files.in_force.policies})
            held = self._holding.hold(
                self._files.in_force, manifests, look.written | look.emptied, time.monotonic(), self._only_let_in
            )
            self._again = min((one for one in (self._again, held) if one is not None), default=None)
            if manifests.reporter.errors and _places(manifests) != self._wrong:
                self._mesh.metrics.broken_saves.inc()
                self._mesh.tell(Broken(tuple(manifests.reporter.errors)))
            self._wrong = _places(manifests)
            if self._files.is_usable(manifests):
                await self._enforce(manifests, began, mended=not manifests.reporter.errors and held is None)
            self._behind = bool(manifests.reporter.errors) or (self._behind and held is not None)
            self._failure = None
        except Exception as error:
            self._behind = True
            reason = printable(str(error)) or type(error).__name__
            if self._failure is None or self._failure.reason != reason:
                self._failure = _Failure(reason, _LATER)
                self._mesh.tell(Noted(f"a change could not be enforced: {reason}", trouble=True))
            self._again = self._failure.next_pause()

    def _wait(self, look: Look) -> float | None:
        """Say what has been waited for long; tells when to look again."""
        for path in self._waiting.long(look.written | look.emptied, time.monotonic()):
            why = "is empty: remove it to remove what it said"
            if path in look.written:
                why = "is open for writing: what it says now counts when it is closed"
            said = f"{os.path.relpath(path)} {why}. Until then all that was in it stays in force"
            self._mesh.tell(Noted(printable(said), trouble=True))
        return self._waiting.pause(look.written | (look.emptied - self._waiting.told))

    def _only_let_in(self, manifests: Manifests, gone: Collection[PolicyRef]) -> Collection[PolicyRef]:
        if not self._files.is_usable(manifests):
            return ()
        return only_lets_in(self._mesh.authority, self._files.authority(manifests), gone)

    async def _enforce(self, manifests: Manifests, began: float, *, mended: bool) -> None:
        before = self._files.in_force
        self._files.check_unread(self._mesh.authority.world, manifests)
        found = None if self._unsure else difference(before, manifests)
        if found is not None and not found.put and not found.removed and not (self._behind and mended):
            self._mesh.tell_unconsidered(manifests.unread)
            return  # nothing that anybody decides by
        self._warn(before, manifests)
        was_unsure, self._unsure = self._unsure, True
        if found is not None:
            await self._mesh.change(found.apply, began, found.changes)
            self._mesh.authority.warnings = _warnings(manifests)
            self._mesh.tell_unconsidered(manifests.unread)
        else:
            authority = await asyncio.to_thread(self._files.authority, manifests)
            changes = Changes() if was_unsure else _changes(before, manifests)
            await self._mesh.apply(authority, began, changes)
        self._files.in_force, self._unsure = manifests, False

    def _warn(self, before: Manifests, after: Manifests) -> None:
        known = {(one.code.id, one.message) for one in _warnings(before)}
        news = [one for one in _warnings(after) if (one.code.id, one.message) not in known]
        if news:
            self._mesh.tell(Noted(render_all(news), trouble=True))


@dataclass(slots=True)
class _Failure:
    """Why the last change was not enforced, and how long to wait before it is tried again."""

    reason: str
    pause: float

    def next_pause(self) -> float:
        """Return the pause, and double the next one."""
        pause, self.pause = self.pause, min(2 * self.pause, _LATEST)
        return pause


@dataclass(slots=True)
class Waiting:
    """Since when files are waited for."""

    since: dict[str, float] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    _pause: float = _AGAIN

    def long(self, files: Collection[str], now: float) -> list[str]:
        """Those that were not told of, and have been waited for long."""
        self.since = {path: self.since.get(path, now) for path in files}
        self.told &= {*files}
        found = sorted(path for path, since in self.since.items() if now - since >= _LONG and path not in self.told)
        self.told.update(found)
        return found

    def pause(self, files: Collection[str]) -> float | None:
        """How long to wait before looking again: ever longer."""
        self._pause = min(2 * self._pause, _LATER) if files else _AGAIN
        return self._pause if files else None


def _files(manifests: Manifests) -> Iterable[str]:
    """Where something that counts was read from."""
    spans = (one.span for one in (*manifests.objects, *manifests.demanded))
    names = {span.file for span in spans if span is not None}
    return map(os.path.abspath, names)


def _places(manifests: Manifests) -> list[tuple[str, str, str]]:
    """What is wrong, and where."""
    return [(one.code.id, one.message, str(one.span)) for one in manifests.reporter.errors]


def _warnings(manifests: Manifests) -> list[Diagnostic]:
    return [one for one in manifests.reporter if not one.is_error]


def _changes(before: Manifests, after: Manifests) -> Changes:
    """The policies and the objects that a change is about."""
    old, new = {one.id: one for one in before.objects}, {one.id: one for one in after.objects}
    found = difference(
        Manifests(policies=before.policies, faults=before.faults),
        Manifests(policies=after.policies, faults=after.faults),
    )
    policies = found.changes if found is not None else Changes()
    return Changes(
        (*policies.added, *_names(new.keys() - old.keys())),
        (*policies.changed, *_names(key for key in old.keys() & new.keys() if old[key] != new[key])),
        (*policies.removed, *_names(old.keys() - new.keys())),
    )


def _changed_at(paths: Iterable[str]) -> float:
    """When the last of these files was saved, on the monotonic clock: what people wait for begins there."""
    now, clock = time.monotonic(), time.time()
    ages = []
    for path in paths:
        with contextlib.suppress(OSError):
            there = path if os.path.exists(path) else os.path.dirname(path)
            ages.append(clock - os.stat(there).st_ctime)
    age = min(ages, default=0.0)
    return now - age if 0 <= age <= _OLDEST else now
