"""Writes keys to disk, where that is asked for, so that no other user can ever read them.

A file gets its mode when it is created, under a new name, and then replaces the old one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from eastgate.control.identity.problems import UnsafeFileError
from eastgate.control.identity.svid import Svid

SVID_FILE = "svid.pem"
_OTHERS = 0o077


def write_private(directory: Path, name: str, content: bytes) -> Path:
    """Write a file that only its owner can read; create its folder if needed."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    temporary = f".{name}.{token_hex(8)}"
    with _folder(directory) as folder:
        try:
            _create(folder, temporary, content)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)
    return directory / name


def write_svid(directory: Path, svid: Svid) -> Path:
    """Write an SVID and its key into ONE file, so that no reader gets the key of one with the certificate of another.

    Envoy and OpenSSL take the same file for both.
    """
    return write_private(directory, SVID_FILE, (svid.chain + svid.private_key).encode())


def read_private(directory: Path, name: str) -> bytes | None:
    """Read a private file; None where there is none. Raises UnsafeFileError where other users have access to it."""
    path = directory / name
    try:
        with _folder(directory) as folder:
            # A FIFO would keep us waiting for a writer.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeFileError(f"the key file {str(path)!r} cannot be opened: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeFileError(f"the key file {str(path)!r} is not a regular file")
        _check_private(path, status, "600")
        return file.read()


@contextmanager
def _folder(directory: Path) -> Iterator[int]:
    """Open a folder, so that nobody can replace it meanwhile."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeFileError(f"the key folder {str(directory)!r} cannot be opened: {error.strerror}") from error
    try:
        _check_private(directory, os.fstat(descriptor), "700")
        yield descriptor
    finally:
        os.close(descriptor)


def _create(folder: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _check_private(path: Path, status: os.stat_result, wanted: str) -> None:
    if status.st_uid != os.geteuid():
        raise UnsafeFileError(f"{str(path)!r} belongs to another user; keys must be in files of the user who runs this")
    if status.st_mode & _OTHERS:
        raise UnsafeFileError(
            f"others can get at {str(path)!r} (mode {stat.S_IMODE(status.st_mode):o}): run `chmod {wanted} {path}`, "
            f"and make new keys if anybody may have read it"
        )
