"""Keeps the policies of a running authorizer those of its files: a good save comes in force, a broken one does not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import ManifestError
from eastgate.authority.sources.files import FileSource
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.watching.changes import FileStamp, is_being_written, stamps, watch_changes
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
    """The files of an authorizer, all of which are in force or none."""

    def __init__(self, source: FileSource, settings: Settings) -> None:
        self.source = source
        self._settings = settings
        self.stamps: Mapping[str, FileStamp] = {}
        """The stamps of the files before they were last read without an unexpected failure."""

    def load(self) -> Authority:
        """Load what is there at the start; a policy with errors closes what it targets. Raises ManifestError."""
        self.stamps = self._stamps()
        authority = self.source.read(self._settings)
        programs_of(authority).compile_all()
        return authority

    def reload(self) -> Reload:
        """Load what is there now; where anything has errors, or is empty that was not, all stays as it is."""
        before = self._stamps()
        reload = self._reload()
        self.stamps = before
        return reload

    def _reload(self) -> Reload:
        try:
            manifests = self.source.read_now(self._settings)
            if emptied := self.source.emptied(self._stamps()):
                return Reload(None, (f"{min(emptied)} is empty: remove it, if that is meant",))
            authority = self.source.authority(manifests, strict=True)
        except ManifestError as error:
            return Reload(None, tuple(map(_in_a_line, error.diagnostics)), tuple(error.diagnostics))
        programs_of(authority).compile_all()
        self.source.in_force = manifests
        return Reload(authority)

    def has_changed(self) -> bool:
        """Tell whether the files differ from those that were last read."""
        return self.stamps != self._stamps()

    def unfinished(self) -> bool:
        """Tell whether somebody is writing one of the files."""
        return any(map(is_being_written, self._stamps()))

    def _stamps(self) -> dict[str, FileStamp]:
        return stamps(self.source.watched, self.source.bounds)


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
        watch_changes(lambda: files.source.watched, bounds=lambda: files.source.bounds, since=files.stamps)
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
