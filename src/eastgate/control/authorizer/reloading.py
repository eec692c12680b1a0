"""Reloads the policies of a running authorizer from its files. A save with errors does not take effect."""

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

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.05, 1.0  # between checks of a file that is being written
_MAX_POLLS = 20


@dataclass(frozen=True, slots=True)
class Reload:
    """The result of a save: the authority that is now in force, or the problems that kept the old one."""

    authority: Authority | None
    problems: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class PolicyFiles:
    """The policy files of an authorizer. A save takes effect as a whole or not at all."""

    def __init__(self, source: FileSource, settings: Settings) -> None:
        self.source = source
        self._settings = settings
        self.stamps: Mapping[str, FileStamp] = {}
        """The stamps of the files before the last read that did not fail unexpectedly."""

    def load(self) -> Authority:
        """Load the files at the start. A policy with errors closes what it targets. Raises ManifestError."""
        self.stamps = self._stamps()
        authority = self.source.read(self._settings)
        programs_of(authority).compile_all()
        return authority

    def reload(self) -> Reload:
        """Load the files again. If a file has errors, or has become empty, the old policies stay in force."""
        before = self._stamps()
        reload = self._reload()
        self.stamps = before
        return reload

    def _reload(self) -> Reload:
        try:
            manifests = self.source.read_now(self._settings)
            if emptied := self.source.emptied(self._stamps()):
                return Reload(None, (f"{min(emptied)} is empty: remove the file to remove its policies",))
            authority = self.source.authority(manifests, strict=True)
        except ManifestError as error:
            return Reload(None, tuple(map(_in_a_line, error.diagnostics)), tuple(error.diagnostics))
        programs_of(authority).compile_all()
        self.source.in_force = manifests
        return Reload(authority)

    def has_changed(self) -> bool:
        """Return whether the files have changed since they were read."""
        return self.stamps != self._stamps()

    def unfinished(self) -> bool:
        """Return whether one of the files is being written."""
        return any(map(is_being_written, self._stamps()))

    def _stamps(self) -> dict[str, FileStamp]:
        return stamps(self.source.watched, self.source.bounds)


def _in_a_line(diagnostic: Diagnostic) -> str:
    at = f"{diagnostic.span.location}: " if diagnostic.span is not None else ""
    return f"{at}{diagnostic.message} ({diagnostic.code.id})"


async def follow_files(
    files: PolicyFiles, on_reload: Callable[[Reload], None], on_following: Callable[[], None] = lambda: None
) -> None:
    """Load the files after every save, and report each result. Never returns.

    Changes since the last load are loaded first. Then `on_following` is called.
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
    """Load the files once none of them is being written."""
    pause = _FIRST_PAUSE_SECONDS
    for _ in range(_MAX_POLLS):
        if not await asyncio.to_thread(files.unfinished):
            break
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
    return await asyncio.to_thread(files.reload)
