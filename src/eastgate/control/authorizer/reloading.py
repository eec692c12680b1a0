"""Keeps the policies of a running authorizer those of its files: a good save comes in force, a broken one does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from eastgate.authority.authority import Authority
from eastgate.authority.questions import NOT_CONSIDERED
from eastgate.authority.reading import ManifestError, Manifests, read_manifests
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster.unread import Callers, Handling, Standing, describe_unconsidered, standing
from eastgate.reading.jwt import KeySource
from eastgate.reading.manifests import Bounds
from eastgate.reading.manifests.kustomizations import parts
from eastgate.reading.manifests.watching.changes import FileStamp, stamps, watch_changes
from eastgate.reading.manifests.watching.rest import is_being_written
from eastgate.settings import Settings

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between looks at a file that is being written
_MOST_LOOKS = 20


@dataclass(frozen=True, slots=True)
class Reload:
    """What became of a save: the authority that is in force from now on, or why the one before it stays."""

    authority: Authority | None
    problems: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class PolicyFiles:
    """Files and folders of manifests, and how they are read."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        settings: Settings,
        keys: KeySource | None = None,
        *,
        follow: bool = False,
        exclude: Sequence[str] = (),
        strict: bool = False,
        unread: Handling = Handling.BY_KIND,
    ) -> None:
        self._paths = tuple(paths)
        self._settings = settings
        self._keys = keys
        self._follow = follow
        self._exclude = tuple(exclude)
        self._strict = strict
        self._unread = unread
        self._read: frozenset[str] = frozenset()
        self.stamps: Mapping[str, FileStamp] = {}
        """The stamps of the files before they were last read without an unexpected failure."""

    @property
    def bounds(self) -> Bounds:
        """Return the bounds of reading now: a path that is a link may lead elsewhere later."""
        return Bounds.of(self._paths, follow=self._follow, exclude=self._exclude)

    @property
    def watched(self) -> tuple[str | os.PathLike[str], ...]:
        """Return what to watch: the paths, and the folders that their kustomizations include from elsewhere."""
        taken = (folder for path in self._paths for folder in parts(os.fspath(path), self._follow, Reporter()) or ())
        return tuple(dict.fromkeys((*self._paths, *taken)))

    def load(self) -> Authority:
        """Load what is there at the start; a policy with errors closes what it targets. Raises ManifestError."""
        self.stamps = stamps(self.watched, self.bounds)
        manifests = read_manifests(self._paths, self._settings, bounds=self.bounds)
        authority = self._authority(manifests, strict=self._strict or bool(manifests.unsure))
        self._read = _files(manifests)
        return authority

    def reload(self) -> Reload:
        """Load what is there now; where anything has errors, or is empty that was not, all stays as it is."""
        before = stamps(self.watched, self.bounds)
        reload = self._reload()
        self.stamps = before
        return reload

    def _reload(self) -> Reload:
        try:
            manifests = read_manifests(self._paths, self._settings, bounds=self.bounds)
            now = stamps(self.watched, self.bounds)
            emptied = sorted(path for path in self._read if (stamp := now.get(path)) is not None and stamp[2] == 0)
            if emptied:
                return Reload(None, (f"{emptied[0]} is empty: remove it, if that is meant",))
            authority = self._authority(manifests, strict=True)
        except ManifestError as error:
            return Reload(None, tuple(map(_in_a_line, error.diagnostics)), tuple(error.diagnostics))
        self._read = _files(manifests)
        return Reload(authority)

    def has_changed(self) -> bool:
        """Tell whether the files differ from those that were last read."""
        return self.stamps != stamps(self.watched, self.bounds)

    def unfinished(self) -> bool:
        """Tell whether somebody is writing one of the files."""
        return any(is_being_written(path) for path in stamps(self.watched, self.bounds))

    def _authority(self, manifests: Manifests, *, strict: bool) -> Authority:
        authority = Authority(manifests, keys=self._keys, strict=strict, unread=self._unread, live=True)
        world = authority.world
        unconsidered = manifests.unread.about(world.workloads, Callers(anybody=True), world)
        if standing(unconsidered, self._unread, allowed=True) is Standing.UNDECIDED:
            message = f"what would be enforced may be too wide: {'; '.join(describe_unconsidered(unconsidered))}"
            raise ManifestError([Diagnostic(NOT_CONSIDERED, message, None, "--unread warn enforces what is read")])
        authority.programs.compile_all()
        return authority


def _files(manifests: Manifests) -> frozenset[str]:
    return frozenset(os.path.abspath(policy.span.file) for policy in manifests.policies)


def _in_a_line(diagnostic: Diagnostic) -> str:
    at = f"{diagnostic.span.location}: " if diagnostic.span is not None else ""
    return f"{at}{diagnostic.message} ({diagnostic.code.id})"


async def follow_files(
    files: PolicyFiles, on_reload: Callable[[Reload], None], on_following: Callable[[], None] = lambda: None
) -> None:
    """Load again after every save, and report the result. It never ends by itself.

    Earlier saves are loaded first. Then `on_following` is called.
    """
    if await asyncio.to_thread(files.has_changed):
        on_reload(await _reload_at_rest(files))
    on_following()
    async with contextlib.aclosing(
        watch_changes(files.watched, bounds=lambda: files.bounds, since=files.stamps)
    ) as batches:
        async for _ in batches:
            on_reload(await _reload_at_rest(files))


async def _reload_at_rest(files: PolicyFiles) -> Reload:
    """Load the files again, as soon as none of them is being written."""
    pause = _FIRST_PAUSE
    for _ in range(_MOST_LOOKS):
        if not await asyncio.to_thread(files.unfinished):
            break
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return await asyncio.to_thread(files.reload)
