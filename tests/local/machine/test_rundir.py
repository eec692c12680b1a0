"""The folder of a mesh is private, one per name, and found by clients only while the mesh runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eastgate.local.machine.rundir import BadName, MeshRunning, NoMesh, RunDir, RunDirRefused, find
from tests.missing import lacks


def test_the_folder_is_there_for_the_block_and_private(runtime: Path) -> None:
    with RunDir.acquire() as rundir:
        assert rundir.path == runtime / "eastgate" / "default"
        assert stat.S_IMODE(rundir.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(rundir.path.parent.stat().st_mode) == 0o700
        assert find().path == rundir.path
        assert find().owner == os.getpid()
    assert not rundir.path.exists()


def test_two_meshes_of_one_name_cannot_run(runtime: Path) -> None:
    with RunDir.acquire("shop"), RunDir.acquire("other"):
        with pytest.raises(MeshRunning, match=f"`shop` is already running .process {os.getpid()}.: stop it"):
            RunDir.acquire("shop").__enter__()
        assert find("shop").name == "shop"


def test_without_a_mesh_clients_get_the_command_that_starts_one(runtime: Path) -> None:
    with pytest.raises(NoMesh) as caught:
        find()
    assert str(caught.value) == "no mesh is running: start one with `eastgate up -f DIR`"
    with pytest.raises(NoMesh, match=r"no mesh named `shop` is running: .* --name shop`"):
        find("shop")


def test_what_a_killed_mesh_left_is_no_mesh_and_is_swept(runtime: Path) -> None:
    base = runtime / "eastgate"
    for name in ("default", "old"):
        (base / name / "deep").mkdir(parents=True, mode=0o700)
        (base / name).chmod(0o700)
        (base / name / "mesh.pid").write_text(str(os.getpid()))
    base.chmod(0o700)
    with pytest.raises(NoMesh):
        find()
    with RunDir.acquire() as rundir:
        assert [path.name for path in rundir.path.iterdir()] == ["mesh.pid"]
        assert [path.name for path in base.iterdir()] == ["default"]


def test_a_link_is_refused_at_each_level(runtime: Path, tmp_path: Path) -> None:
    base = runtime / "eastgate"
    base.symlink_to(tmp_path)
    with pytest.raises(RunDirRefused, match="is a link: remove it"):
        RunDir.acquire().__enter__()
    base.unlink()
    base.mkdir(mode=0o700)
    (base / "default").symlink_to(tmp_path)
    with pytest.raises(RunDirRefused, match="default` is a link"):
        RunDir.acquire().__enter__()
    assert tmp_path.exists()


def test_a_folder_that_others_can_use_is_refused(runtime: Path) -> None:
    base = runtime / "eastgate"
    base.mkdir()
    base.chmod(0o755)
    with pytest.raises(RunDirRefused, match="is open to other users: `chmod 700"):
        RunDir.acquire().__enter__()


@pytest.mark.skipif(os.geteuid() != 0, reason=lacks("folders of other users", "run as root"))
def test_a_folder_of_another_user_is_refused(runtime: Path) -> None:
    base = runtime / "eastgate"
    base.mkdir(mode=0o700)
    os.chown(base, 65534, 65534)
    with pytest.raises(RunDirRefused, match="belongs to another user"):
        RunDir.acquire().__enter__()
    os.chown(base, 0, 0)
    os.chown(runtime, 65534, 65534)
    with RunDir.acquire("test-after-su") as rundir:
        assert not rundir.path.is_relative_to(runtime)


def test_a_long_runtime_folder_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    name = f"test-{os.getpid()}"
    with RunDir.acquire(name) as rundir:
        assert rundir.path == Path(tempfile.gettempdir(), f"eastgate-{os.geteuid()}", name)
        assert find(name).path == rundir.path


def test_every_socket_has_a_name_that_fits(runtime: Path) -> None:
    with RunDir.acquire("n" * 32) as rundir:
        labels = ("control", "shop/cart:8080", "x" * 300, "../../etc", ".", "ä")
        paths = [rundir.socket(label) for label in labels]
        assert len(set(paths)) == len(labels)
        assert all(len(os.fsencode(path)) <= 107 and Path(path).parent == rundir.path for path in paths)
        assert rundir.socket("control") == str(rundir.path / "control.sock")


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "a" * 33, "a\n", "."])
def test_a_name_is_one_short_word(name: str, runtime: Path) -> None:
    with pytest.raises(BadName):
        find(name)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A world-writable temporary folder, with a name short enough for sockets."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    folder = Path(tempfile.mkdtemp(prefix="egs-"))
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


def _another_users(path: Path) -> None:
    path.mkdir(mode=0o777)
    os.chown(path, 65534, 65534)


def _a_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def _a_file(path: Path) -> None:
    path.write_text("")


TAKEN = [_a_link, _a_file, *([_another_users] if os.geteuid() == 0 else [])]  # only root can give a folder away


@pytest.mark.parametrize("taken", TAKEN)
def test_a_name_that_another_user_took_first_does_not_stop_a_mesh(shared: Path, taken: Callable[[Path], None]) -> None:
    usual = shared / f"eastgate-{os.geteuid()}"
    taken(usual)
    with pytest.raises(NoMesh):
        find()
    with RunDir.acquire() as rundir:
        assert rundir.path.parent.parent == shared
        assert rundir.path.parent.name.startswith(f"{usual.name}-")
        assert stat.S_IMODE(rundir.path.parent.stat().st_mode) == 0o700
        assert find().path == rundir.path
        with pytest.raises(MeshRunning):
            RunDir.acquire().__enter__()
        with RunDir.acquire("second") as second:
            assert second.path.parent == rundir.path.parent
    with pytest.raises(NoMesh):
        find()


@pytest.mark.skipif(os.geteuid() != 0, reason=lacks("folders of other users", "run as root"))
def test_a_mesh_of_another_user_is_not_found(shared: Path) -> None:
    theirs = shared / f"eastgate-{os.geteuid()}-aaaaaaaa"
    (theirs / "default").mkdir(parents=True)
    for path in (theirs, theirs / "default"):
        path.chmod(0o700)
        os.chown(path, 65534, 65534)
    descriptor = os.open(theirs / "default", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(NoMesh):
            find()
        with RunDir.acquire() as rundir:
            assert not rundir.path.is_relative_to(theirs)
    finally:
        os.close(descriptor)


def test_a_mesh_that_began_in_a_spare_folder_is_found_when_the_name_is_free_again(shared: Path) -> None:
    usual = shared / f"eastgate-{os.geteuid()}"
    _a_file(usual)
    with RunDir.acquire() as rundir:
        usual.unlink()
        assert find().path == rundir.path
        with pytest.raises(MeshRunning):
            RunDir.acquire().__enter__()
