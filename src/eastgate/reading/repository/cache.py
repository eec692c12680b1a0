"""A cache of the output of programs, in the user's cache folder.

A key is a hash over all input of a build, so an entry never answers for other content. A writer to the cache controls
the answers of Eastgate. So a folder or an entry is not used if it is a link, belongs to another user, or is writable by
others. Without a trusted folder, nothing is cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable

OFF = "off"
VARIABLE = "EASTGATE_CACHE"

_FORMAT = b"eastgate build 1"
_MAX_BYTES = 512 * 1024 * 1024
_MAX_ENTRY_BYTES = 64 * 1024 * 1024
_HASH_CHARS = 64
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def key_of(parts: Iterable[bytes]) -> str:
    """Return the key of a build that reads these bytes. No other sequence of parts has the same key."""
    digest = hashlib.sha256()
    for part in (_FORMAT, *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


class BuildCache:
    """Entries by their key. If an entry cannot be read or written, its build runs again."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._is_larger = False

    @classmethod
    def of_user(cls) -> BuildCache:
        """Return the cache of this user; an empty one if it is switched off or cannot be trusted."""
        if os.environ.get(VARIABLE, "").lower() == OFF:
            return cls(None)
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        if not os.path.isabs(base):
            return cls(None)
        above = os.path.join(base, "eastgate")
        folder = os.path.join(above, "builds")
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            for each in (above, folder):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(each, mode=0o700)
            is_good = all(_is_own(os.lstat(each), stat.S_ISDIR) for each in (above, folder))
        except OSError:
            is_good = False
        return cls(folder if is_good else None)

    def get(self, key: str) -> bytes | None:
        """Return an entry; None if it does not exist, or is not as it was written."""
        if self._folder is None:
            return None
        path = os.path.join(self._folder, key)
        try:
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(opened, "rb") as file:
                status = os.fstat(opened)
                if not _is_own(status, stat.S_ISREG) or status.st_size > _MAX_ENTRY_BYTES:
                    return None
                content = file.read(_MAX_ENTRY_BYTES + 1)
                with contextlib.suppress(OSError):
                    os.utime(opened)  # marks the entry as used; the least recently used entries are removed first
        except OSError:
            return None
        head, entry = content[:_HASH_CHARS], content[_HASH_CHARS:]
        return entry if head == _seal(key, entry) else None

    def put(self, key: str, entry: bytes) -> None:
        """Store an entry, unless it is too large."""
        if self._folder is None or len(entry) + _HASH_CHARS > _MAX_ENTRY_BYTES:
            return
        try:
            descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")  # only this user can read it
        except OSError:
            return
        try:
            with open(descriptor, "wb") as file:
                file.write(_seal(key, entry) + entry)
            os.replace(name, os.path.join(self._folder, key))
            self._is_larger = True
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)

    def trim(self) -> None:
        """Remove the least recently used entries, if the cache has grown too large."""
        if self._folder is None or not self._is_larger:
            return
        entries: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(self._folder) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    entries.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= _MAX_BYTES:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size


def _is_own(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    mode = status.st_mode
    return is_kind(mode) and status.st_uid == os.geteuid() and not mode & _OTHERS_WRITE


def _seal(key: str, entry: bytes) -> bytes:
    """Return a hash that proves that an entry is complete and belongs to its key."""
    return hashlib.sha256(key.encode() + hashlib.sha256(entry).digest()).hexdigest().encode()
