"""Files and folders of manifests as a source of changes, without files that are still being written.

The content of a file that is being written stays in force, and so do, for a while, removed objects (`holding`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING

from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes, changes_between
from eastgate.authority.environments import only_deployment
from eastgate.authority.questions import NOT_CONSIDERED
from eastgate.authority.reading import ManifestError, Manifests, read_manifests
from eastgate.authority.sources.holding import HeldObjects, file_of, find_only_allowing
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.cluster.unread import (
    Callers,
    Handling,
    Standing,
    Unconsidered,
    UnreadObjects,
    describe_unconsidered,
    parts_of,
    standing,
)
from eastgate.ir import PolicyRef
from eastgate.reading.jwt import KeySource
from eastgate.reading.manifests import Bounds
from eastgate.reading.manifests.watching.changes import FileStamp, is_being_written, stamps
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.reading.repository import RepositoryOptions

_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.05, 1.0  # seconds between looks at a file that is being written
_REPORT_AFTER_SECONDS = 2.0  # before a file that stays unfinished is reported


class FileSource:
    """Files and folders of manifests, and the manifests in force. `keys` are the keys of token issuers.

    If folders hold several environments, only the one that `environments` name is read.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        follow: bool = False,
        exclude: Sequence[str] = (),
        strict: bool = False,
        unread: Handling = Handling.BY_KIND,
        keys: KeySource | None = None,
        environments: Sequence[str] = (),
        repository: RepositoryOptions | None = None,
    ) -> None:
        self._keys = keys
        self.paths = tuple(paths)
        self._follow = follow
        self._exclude = tuple(exclude)
        self._strict = strict
        self._unread = unread
        self._environments = tuple(environments)
        self._repository = repository
        self._taken: tuple[str, ...] = ()
        self.in_force = Manifests()
        self._is_read = False
        self._holding = HeldObjects()
        self._rested: dict[str, FileStamp] = {}
        self._checked: dict[Settings, tuple[Manifests, dict[str, FileStamp], Authority]] = {}

    def read(self, settings: Settings) -> Authority:
        """Load the current manifests, to be enforced; policies with errors close their targets.

        Raises ManifestError if other objects have errors, and with `strict` for every error.
        """
        rested = stamps(self.watched, self.bounds)
        manifests = self.read_now(settings)
        authority = self.authority(manifests)
        self.in_force, self._rested, self._is_read = manifests, rested, True
        return authority

    def authority(self, manifests: Manifests, *, strict: bool = False) -> Authority:
        """Build an authority. Raises ManifestError if `unread` forbids answers because of unread objects."""
        authority = Authority(
            manifests,
            keys=self._keys,
            strict=strict or self._strict or bool(manifests.unknown_objects),
            unread=self._unread,
            live=True,
        )
        self.check_unread(authority.world, manifests)
        return authority

    def checked(self, settings: Settings) -> Authority:
        """Return the authority by which `check` answers about the current files. Raises ManifestError."""
        stamped = stamps(self.watched, self.bounds)
        in_force, seen, authority = self._checked.get(settings, (None, None, None))
        if authority is None or in_force is not self.in_force or seen != stamped:
            in_force = self.in_force
            authority = Authority(self.read_now(settings), keys=self._keys, strict=False, unread=self._unread)
            self._checked[settings] = (in_force, stamped, authority)
        return authority

    def check_unread(self, world: World, manifests: Manifests) -> None:
        """Raise ManifestError if unread objects forbid enforcement.

        With `--unread warn`, only parts that were left out from the start may be missing.
        """
        unconsidered = unread_at_proxies(world, manifests.unread)
        stands = standing(unconsidered, self._unread, allowed=True)
        lost = parts_of(unconsidered.matches)
        if self._unread is Handling.WARN:
            known = {part.what for part in parts_of(self.in_force.unread.objects)}
            lost = [part for part in lost if part.what not in known] if self._is_read else []
        if stands is Standing.UNDECIDED or lost:
            message = f"enforcement would possibly allow too much: {'; '.join(describe_unconsidered(unconsidered))}"
            raise ManifestError([Diagnostic(NOT_CONSIDERED, message, None, "--unread warn enforces what is read")])

    def is_usable(self, manifests: Manifests) -> bool:
        """Return whether any of these manifests can be enforced."""
        return not (
            manifests.reporter.errors if self._strict or manifests.unknown_objects else manifests.unattributed_errors
        )

    def read_now(self, settings: Settings) -> Manifests:
        """Read the current manifests, valid or not. Several environments are reported as an error of the manifests."""
        try:
            chosen = only_deployment(self.paths, self.bounds, self._environments, self._repository)
        except ManifestError as error:
            return Manifests(settings, reporter=Reporter(error.diagnostics))
        self._taken = tuple(dict.fromkeys(file for path in chosen.paths for file in self._files_of(path)))
        return read_manifests(chosen.paths, settings, bounds=self.bounds)

    def take(self, reading: FileReading, authority: Authority) -> tuple[Changes, float | None]:
        """Return the changes of a reading, and the seconds until the next one, if one is due.

        A policy that has errors now stays as it was, and so do held objects. `authority` is the one in force.
        """
        manifests = reading.manifests
        manifests.keep({policy.ref: policy for policy in self.in_force.policies})

        def only_allowing(held: Manifests, gone: Collection[PolicyRef]) -> Collection[PolicyRef]:
            return find_only_allowing(authority, self.authority(held), gone) if self.is_usable(held) else ()

        unreliable = reading.unfinished | reading.emptied
        due = self._holding.hold(self.in_force, manifests, unreliable, time.monotonic(), only_allowing)
        return changes_between(self.in_force, manifests), due

    def read_at_rest(self, settings: Settings) -> FileReading:
        """Read the current manifests, and note the unreliable files: being written, or emptied."""
        before = stamps(self.watched, self.bounds)
        unfinished = {
            path for path, stamp in before.items() if self._rested.get(path) != stamp and is_being_written(path)
        }
        manifests = self.read_now(settings)
        after = stamps(self.watched, self.bounds)
        unfinished |= {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        emptied, files_in_force = self.emptied(after), {*_files(self.in_force)}
        stamped = before.keys() | after.keys() | self._rested.keys()
        self._rested = {path: stamp for path, stamp in after.items() if path not in unfinished}
        is_built = _is_built(self.in_force) or _is_built(manifests)
        unstamped = any(file not in stamped for file in (*files_in_force, *_files(manifests)))
        rendered = bool(unfinished) and (is_built or unstamped)
        return FileReading(manifests, frozenset(unfinished), frozenset(emptied - unfinished), rendered)

    def emptied(self, stamped: Mapping[str, FileStamp]) -> set[str]:
        """Return the files with content in force that are empty now."""
        in_force = {*_files(self.in_force)}
        return {path for path, (_, _, size, _, _) in stamped.items() if size == 0 and path in in_force}

    @property
    def watched(self) -> tuple[str | os.PathLike[str], ...]:
        """Return the paths to watch: those of the user, and the other files of environments in the last reading."""
        return tuple(dict.fromkeys((*self.paths, *self._taken)))

    def _files_of(self, path: str | os.PathLike[str]) -> Iterable[str]:
        if isinstance(path, str | PurePath):
            return ()
        from eastgate.reading.repository import Environment  # most paths are texts
        from eastgate.reading.repository.builds import files_of_environment

        if isinstance(path, Environment):
            return files_of_environment(path, self.bounds)
        return files_of_environment(Environment.of_kustomization(os.fspath(path)), self.bounds)

    @property
    def bounds(self) -> Bounds:
        """Return the bounds for reading now: a path that is a link may lead elsewhere later."""
        return Bounds.of(self.paths, follow=self._follow, exclude=self._exclude)


@dataclass(frozen=True, slots=True)
class FileReading:
    """A reading: the manifests, the files being written, the emptied files, and whether rendered manifests are
    unreliable.

    A rendered manifest depends on all files: if one of them is being written, the whole manifest is unreliable.
    """

    manifests: Manifests
    unfinished: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    rendered: bool = False

    @property
    def is_half(self) -> bool:
        """Return whether the errors may come only from a half-written file."""
        errors = self.manifests.reporter.errors if self.unfinished else ()
        return self.rendered or any(error.span is None or file_of(error.span) in self.unfinished for error in errors)


@dataclass(slots=True)
class PendingFiles:
    """The unfinished files, each with the time since when."""

    since: dict[str, float] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    _pause: float = _MIN_PAUSE_SECONDS

    def take_overdue(self, files: Collection[str], now: float) -> list[str]:
        """Return the files that have been unfinished for long, and were not reported yet."""
        self.since = {path: self.since.get(path, now) for path in files}
        self.reported &= {*files}
        overdue = sorted(
            path
            for path, since in self.since.items()
            if now - since >= _REPORT_AFTER_SECONDS and path not in self.reported
        )
        self.reported.update(overdue)
        return overdue

    def next_pause(self, files: Collection[str]) -> float | None:
        """Return the seconds until the next read, with backoff; None if no file is unfinished."""
        self._pause = min(2 * self._pause, _MAX_PAUSE_SECONDS) if files else _MIN_PAUSE_SECONDS
        return self._pause if files else None


def _files(manifests: Manifests) -> Iterable[str]:
    """Return the files of these manifests."""
    spans = (entry.span for entry in (*manifests.objects, *manifests.enforced_policies))
    names = {span.file for span in spans if span is not None}
    return map(os.path.abspath, names)


def _is_built(manifests: Manifests) -> bool:
    """Return whether an object in these manifests was rendered, so that no file has it as it is."""
    spans = (entry.span for entry in (*manifests.objects, *manifests.enforced_policies))
    return any(span is not None and span.built is not None for span in spans)


def unread_at_proxies(world: World, unread: UnreadObjects) -> Unconsidered:
    """Return the unread objects that could change the enforced decisions at workloads and gateways."""
    return unread.about((*world.workloads, *points_at_gateways(world)), Callers(anybody=True), world)


def points_at_gateways(world: World) -> Iterator[NamedPoint]:
    """Yield the gateways themselves, the routes and the backends."""
    for gateway in world.gateways.values():
        yield GatewayNamed(gateway.namespace, gateway.name)
    for route in world.routes.values():
        yield RouteNamed(route.namespace, route.name, route.kind)
    for backend in world.backends.values():
        yield BackendNamed(backend.namespace, backend.name)
