"""Manages the private folder of one running mesh: it has the sockets, and it is locked while the mesh runs.

The lock is an flock on the folder itself, so that no lock file can remain. An unlocked folder was left by a killed
mesh, and the next mesh removes it.

Another user can create a folder of this name in the system's temporary folder first. Eastgate never uses such a folder:
a spare one with an unpredictable name takes its place, and clients look into every folder of such a name that belongs
to this user.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.local.machine import procfs

# The errors of a mesh on a laptop, for its user.


class LocalMeshError(Exception):
    """An error of the local mesh. `help` is a remedy for the user, if there is any."""

    def __init__(self, message: str, *, help: str = "") -> None:  # noqa: A002 - the word of our diagnostics
        super().__init__(message)
        self.help = help

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}: {self.help}" if self.help else message


DEFAULT_NAME = "default"
_NAME = regex(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")
_LABEL = regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,23}")
_MAX_SOCKET_PATH_BYTES = 107  # sun_path holds 108 bytes, the last of which is zero
_SOCKET_NAME_BYTES = 1 + 24 + len(".sock")
_SPARE_SUFFIX_BYTES = len("-abcdefgh")
_OWNER = "mesh.pid"
_TIMEOUT_SECONDS = 2.0


class BadName(LocalMeshError):  # noqa: N818 - a property of the text
    """The name is invalid for a mesh."""


class MeshRunning(LocalMeshError):  # noqa: N818 - a state of the machine
    """A mesh of this name is running."""


class NoMesh(LocalMeshError):  # noqa: N818 - a state of the machine
    """No mesh of this name is running."""


class RunDirRefused(LocalMeshError):  # noqa: N818 - the name is an event
    """The folder is not private to this user, or the paths of its sockets would be too long."""


@dataclass(frozen=True, slots=True)
class RunDir:
    """The folder of one mesh. `lock` is the descriptor of the lock; -1 for a client, which has none."""

    name: str
    path: Path
    lock: int = -1

    @classmethod
    @contextlib.contextmanager
    def acquire(cls, name: str = DEFAULT_NAME) -> Iterator[RunDir]:
        """Create an empty folder for a mesh of this name, until the block ends."""
        _check_name(name)
        base = _own(_base(name))
        _sweep(base)
        if (running := _running_in(name, [other for other in _bases(name) if other != base])) is not None:
            raise _running(running)
        rundir = _acquire_folder(base / name, name)
        try:
            yield rundir
        finally:
            rundir.remove()

    @property
    def owner(self) -> int | None:
        """Return the pid of the mesh; None before it is written."""
        try:
            return int((self.path / _OWNER).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def socket(self, label: str) -> str:
        """Return the path of a socket. A label that is long or has odd characters is replaced by its digest."""
        if not _LABEL.fullmatch(label):
            label = hashlib.sha256(label.encode()).hexdigest()[:24]
        return str(self.path / f"{label}.sock")

    def remove(self) -> None:
        """Remove the folder and release the lock, in this order, so that no process sees an incomplete folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self.lock)


def find(name: str = DEFAULT_NAME) -> RunDir:
    """Return the folder of a running mesh, for its clients."""
    _check_name(name)
    if (running := _running_in(name, _bases(name))) is not None:
        return running
    which = "no mesh" if name == DEFAULT_NAME else f"no mesh named `{name}`"
    option = "" if name == DEFAULT_NAME else f" --name {name}"
    raise NoMesh(f"{which} is running", help=f"start one with `eastgate up -f DIR{option}`")


def _running_in(name: str, bases: Iterable[Path]) -> RunDir | None:
    """Return the folder of the running mesh of this name in one of these base folders."""
    for base in bases:
        with contextlib.suppress(FileNotFoundError):
            os.close(_open_private(base))
            descriptor = _open_private(base / name)
            try:
                if not _lock(descriptor, fcntl.LOCK_SH):
                    return RunDir(name, base / name)
            finally:
                os.close(descriptor)
    return None


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadName(f"`{name}` cannot be the name of a mesh", help="use up to 32 of a-z, 0-9 and, inside, `-`")


def _base(name: str) -> Path:
    """Return the first folder that belongs to this user and has room for names of sockets."""
    own = f"eastgate-{os.geteuid()}"
    candidates = [Path(tempfile.gettempdir()).absolute() / own, Path("/tmp") / own]  # noqa: S108 - checked before its use
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        with contextlib.suppress(OSError):
            status = os.stat(runtime)
            # after `su` it is the folder of the earlier user
            if status.st_uid == os.geteuid() and not status.st_mode & 0o022:
                candidates.insert(0, Path(runtime) / "eastgate")
    for base in candidates:
        if len(
            os.fsencode(base / name)
        ) + _SPARE_SUFFIX_BYTES + _SOCKET_NAME_BYTES <= _MAX_SOCKET_PATH_BYTES and os.access(base.parent, os.W_OK):
            return base
    raise RunDirRefused("no folder has a name short enough for sockets", help="set XDG_RUNTIME_DIR to a shorter one")


def _bases(name: str) -> list[Path]:
    """Return the folders in which a mesh of this user may run.

    These are the usual one, unless it belongs to another user, and spare ones.
    """
    base = _base(name)
    return [*([] if _is_taken(base) else [base]), *_spares(base)]


def _own(base: Path) -> Path:
    """Return the usual folder, created if needed; a spare one if another user has taken its name."""
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    if not _is_taken(base):
        os.close(_open_private(base))
        return base
    return next(iter(_spares(base)), None) or Path(tempfile.mkdtemp(prefix=f"{base.name}-", dir=base.parent))


def _is_taken(base: Path) -> bool:
    """Return whether another user may have created the folder, or can write beside it."""
    try:
        status, above = os.lstat(base), os.stat(base.parent)
    except FileNotFoundError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return not ours and (above.st_uid != os.geteuid() or bool(above.st_mode & 0o022))


def _spares(base: Path) -> list[Path]:
    """Return the spare folders that only this user can use."""
    private = []
    for path in sorted(base.parent.glob(f"{base.name}-*")):
        with contextlib.suppress(OSError, RunDirRefused):
            _check_private(path, os.lstat(path))
            private.append(path)
    return private


def _open_private(path: Path) -> int:
    """Open a folder after a check that only this user can use it."""
    _check_private(path, os.lstat(path))
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunDirRefused(f"`{path}` cannot be opened: {error.strerror}") from None


def _check_private(folder: Path, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "no folder"
        raise RunDirRefused(f"`{folder}` is {kind}", help="remove it")
    if status.st_uid != os.geteuid():
        raise RunDirRefused(f"`{folder}` belongs to another user", help="remove it")
    if status.st_mode & 0o077:
        raise RunDirRefused(f"`{folder}` is open to other users", help=f"`chmod 700 {folder}`, or remove it")


def _lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same(descriptor: int, path: Path) -> bool:
    """Return whether the opened folder is still the one of this name: it may have been removed since."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _acquire_folder(path: Path, name: str) -> RunDir:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            descriptor = _open_private(path)
            if _lock(descriptor) and _is_same(descriptor, path):
                for left in path.iterdir():  # by a mesh that ended since the sweep
                    _delete(left)
                (path / _OWNER).write_text(str(os.getpid()), encoding="ascii")
                return RunDir(name, path, descriptor)
            os.close(descriptor)
        rundir = RunDir(name, path)
        _raise_if_running(rundir)
        if time.monotonic() > deadline:
            raise _running(rundir)
        time.sleep(0.02)  # a reaper cleans up, or a client has opened it


def _raise_if_running(rundir: RunDir) -> None:
    owner = rundir.owner
    if owner is not None and procfs.start_time(owner) is not None:
        raise _running(rundir)


def _running(rundir: RunDir) -> MeshRunning:
    by = "" if rundir.owner is None else f" (process {rundir.owner})"
    return MeshRunning(
        f"a mesh named `{rundir.name}` is already running{by}", help="stop it, or give this one another --name"
    )


def _sweep(base: Path) -> None:
    """Remove the folders of killed meshes. A process that has opened one meanwhile notices by `_same`."""
    for path in sorted(base.iterdir()):
        with contextlib.suppress(OSError, RunDirRefused):
            descriptor = _open_private(path)
            try:
                if _lock(descriptor) and _is_same(descriptor, path):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


# Controls the reaper: starts it first, gives it the processes to watch, dismisses it last.


_REAPER = Path(__file__).with_name("reaper.py")


class Guard:
    """A reaper that waits beside this process. Use it as a context manager, around all code that starts processes."""

    def __init__(self, rundir: RunDir) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", str(_REAPER), str(os.getpid()), str(rundir.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            bufsize=0,
            start_new_session=True,
            pass_fds=(rundir.lock,),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch(self, pid: int) -> None:
        """Make the reaper kill this process if the mesh is killed."""
        start = procfs.start_time(pid)
        if start is not None:
            self._send(f"watch {pid} {start}")

    def forget(self, pid: int) -> None:
        self._send(f"forget {pid}")

    def done(self) -> None:
        """Dismiss the reaper: the mesh has stopped everything itself."""
        self._send("done")
        stdin = self._process.stdin
        if stdin is not None:
            with contextlib.suppress(OSError):
                stdin.close()
        try:
            self._process.wait(_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, line: str) -> None:
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return
        with contextlib.suppress(OSError):  # the reaper was killed
            stdin.write(line.encode() + b"\n")
            stdin.flush()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.done()
