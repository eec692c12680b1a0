"""Every way to change a manifest is noticed, and changes of other files are not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eastgate.reading.manifests.watching import changes as watching
from eastgate.reading.manifests.watching.changes import _take_snapshot, watch_changes
from tests.patience import PATIENCE

_SETTLED = 0.35


def _rename_save(folder: Path) -> None:
    (folder / "4913").touch()
    (folder / "4913").unlink()
    (folder / "a.yaml").rename(folder / "a.yaml~")
    (folder / ".a.yaml.swp").write_text("new")
    (folder / ".a.yaml.swp").rename(folder / "a.yaml")
    (folder / "a.yaml~").unlink()


def _append(folder: Path) -> None:
    with (folder / "a.yaml").open("a") as file:
        file.write("more")


def _same_size(folder: Path) -> None:
    status = (folder / "a.yaml").stat()
    (folder / "a.yaml").write_text("OLD")
    os.utime(folder / "a.yaml", ns=(status.st_atime_ns, status.st_mtime_ns))


def _create(folder: Path) -> None:
    (folder / "new.json").write_text("{}")


def _delete(folder: Path) -> None:
    (folder / "a.yaml").unlink()


def _create_deep(folder: Path) -> None:
    (folder / "x" / "y").mkdir(parents=True)
    (folder / "x" / "y" / "new.yml").write_text("new")


def _move_folder_away(folder: Path) -> None:
    (folder / "sub").rename(folder / "sub.gone")


def _swap_configmap(folder: Path) -> None:
    (folder / "..new").mkdir()
    (folder / "..new" / "c.yaml").write_text("new")
    (folder / "..data_tmp").symlink_to("..new")
    (folder / "..data_tmp").rename(folder / "..data")


def _edit_behind_link(folder: Path) -> None:
    (folder.parent / "elsewhere" / "l.yaml").write_text("new!")


def _edit_in_linked_folder(folder: Path) -> None:
    (folder.parent / "elsewhere" / "deep" / "d.yaml").write_text("new!")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, a folder, a mounted ConfigMap, a link to a file and a link to a folder."""
    folder, elsewhere = tmp_path / "manifests", tmp_path / "elsewhere"
    (folder / "sub").mkdir(parents=True)
    (folder / "..old").mkdir()
    (elsewhere / "deep").mkdir(parents=True)
    for path in (folder / "a.yaml", folder / "sub" / "s.yaml", folder / "..old" / "c.yaml"):
        path.write_text("old")
    for path in (elsewhere / "l.yaml", elsewhere / "deep" / "d.yaml"):
        path.write_text("old")
    (folder / "..data").symlink_to("..old")
    (folder / "c.yaml").symlink_to("..data/c.yaml")
    (folder / "l.yaml").symlink_to("../elsewhere/l.yaml")
    (folder / "linked").symlink_to(elsewhere / "deep")
    (folder / "loop").symlink_to(folder)
    return folder


@pytest.fixture
def only_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files read only after a notification of the kernel, and not periodically."""
    monkeypatch.setattr(watching, "_RESCAN_SECONDS", 10 * PATIENCE)


async def _noticed(paths: list[Path], act: Callable[[], None], seconds: float = PATIENCE) -> set[str]:
    """Return the names of the files that are reported after an act; none after a timeout."""
    stream = watch_changes(paths)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(_SETTLED)
    assert not first.done()
    act()
    try:
        return {os.path.basename(path) for path in await asyncio.wait_for(first, seconds)}
    except TimeoutError:
        return set()
    finally:
        await stream.aclose()


@pytest.mark.usefixtures("only_notified")
@pytest.mark.parametrize(
    ("act", "name"),
    [
        (_rename_save, "a.yaml"),
        (_append, "a.yaml"),
        (_same_size, "a.yaml"),
        (_create, "new.json"),
        (_delete, "a.yaml"),
        (_create_deep, "new.yml"),
        (_move_folder_away, "s.yaml"),
        (_swap_configmap, "c.yaml"),
        (_edit_behind_link, "l.yaml"),
        (_edit_in_linked_folder, "d.yaml"),
    ],
)
def test_every_way_to_change_a_manifest_is_noticed_soon(act: Callable[[Path], None], name: str, folder: Path) -> None:
    noticed = asyncio.run(_noticed([folder], lambda: act(folder)))
    assert name in noticed


def test_a_file_named_by_the_user_is_watched_through_all_its_lives(tmp_path: Path) -> None:
    file = tmp_path / "policy.txt"
    file.write_text("old")

    async def scene() -> None:
        stream = watch_changes([file])
        for act in (
            lambda: file.write_text("new"),
            lambda: file.unlink(),
            lambda: file.write_text("again"),
            lambda: (tmp_path / ".tmp").write_text("other") and (tmp_path / ".tmp").rename(file),
        ):
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(_SETTLED)
            assert not waiting.done()
            act()
            assert await asyncio.wait_for(waiting, PATIENCE) == {str(file)}
        await stream.aclose()

    asyncio.run(scene())


@pytest.mark.usefixtures("only_notified")
def test_a_folder_that_is_a_link_may_be_put_elsewhere(tmp_path: Path) -> None:
    for release in ("v1", "v2"):
        (tmp_path / "releases" / release / "manifests").mkdir(parents=True)
        (tmp_path / "releases" / release / "manifests" / "a.yaml").write_text(release)
    (tmp_path / "current").symlink_to("releases/v1")

    def relink() -> None:
        (tmp_path / "next").symlink_to("releases/v2")
        (tmp_path / "next").rename(tmp_path / "current")

    noticed = asyncio.run(_noticed([tmp_path / "current" / "manifests"], relink))
    assert noticed == {"a.yaml"}


def test_a_folder_may_go_and_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "a.yaml").write_text("old")

    async def scene() -> None:
        stream = watch_changes([folder])
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(_SETTLED)
        folder.rename(tmp_path / "away")
        assert await asyncio.wait_for(waiting, PATIENCE) == {str(folder / "a.yaml")}
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(_SETTLED)
        (tmp_path / "away").rename(folder)
        assert await asyncio.wait_for(waiting, PATIENCE) == {str(folder / "a.yaml")}
        await stream.aclose()

    asyncio.run(scene())


def test_files_that_are_no_manifests_are_not_reported(folder: Path) -> None:
    def act() -> None:
        for name in (".hidden.yaml", "a.yaml~", ".a.yaml.swp", "#a.yaml#", "4913", "a.yaml.tmp", "README.md", ".git"):
            (folder / name).write_text("x")
        (folder.parent / "neighbour.yaml").write_text("x")
        (folder / "a.yaml").read_text()

    noticed = asyncio.run(_noticed([folder], act, seconds=2))
    assert noticed == set()


def test_files_are_looked_at_now_and_then_when_the_kernel_refuses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("OS file watch limit reached.")

    monkeypatch.setattr(watching, "awatch", refuse)
    reasons: list[str] = []

    async def scene() -> None:
        stream = watch_changes([folder], on_poll=reasons.append, poll_every=0.05)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.2)
        _rename_save(folder)
        assert await asyncio.wait_for(waiting, PATIENCE) == {str(folder / "a.yaml")}
        await stream.aclose()

    asyncio.run(scene())
    assert reasons == ["OS file watch limit reached."]


def test_a_burst_of_saves_is_few_batches(folder: Path) -> None:
    async def scene() -> int:
        stream = watch_changes([folder])
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(_SETTLED)
        for number in range(200):
            (folder / f"{number}.yaml").write_text("x")
        noticed = set(await asyncio.wait_for(waiting, PATIENCE))
        words = 1
        while len(noticed) < 200:
            noticed |= await asyncio.wait_for(anext(stream), PATIENCE)
            words += 1
        await stream.aclose()
        return words

    assert asyncio.run(scene()) < 20


def test_a_file_that_came_and_went_between_two_readings_is_reported(tmp_path: Path) -> None:
    before, after = (_take_snapshot([str(tmp_path)]) for _ in range(2))
    events = {str(tmp_path / name) for name in ("policy.yaml", ".policy.yaml.swp", "notes")} | {"/elsewhere/p.yaml"}
    assert after.changed(before, events) == {str(tmp_path / "policy.yaml")}
