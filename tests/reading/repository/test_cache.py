"""The cache of builds answers only for the content that it was filled with, and only if no other user can
write to it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eastgate.reading.repository import cache
from eastgate.reading.repository.cache import BuildCache, key_of

KEY = key_of([b"a"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an existing cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("EASTGATE_CACHE")
    BuildCache.of_user().put(KEY, b"built")
    return tmp_path / "eastgate" / "builds"


def test_an_entry_is_there_for_its_key(folder: Path) -> None:
    assert BuildCache.of_user().get(KEY) == b"built"
    assert BuildCache.of_user().get(key_of([b"b"])) is None
    modes = [entry.stat().st_mode & 0o777 for entry in (folder.parent, folder, folder / KEY)]
    assert modes == [0o700, 0o700, 0o600]


def test_no_two_sequences_have_one_key() -> None:
    sequences = [[b"ab", b"c"], [b"a", b"bc"], [b"abc"], [b"abc", b""], [b"", b"abc"], []]
    assert len({key_of(parts) for parts in sequences}) == len(sequences)


@pytest.mark.parametrize("value", ["off", "OFF"])
def test_it_can_be_switched_off(value: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASTGATE_CACHE", value)
    assert BuildCache.of_user().get(KEY) is None
    BuildCache.of_user().put(key_of([b"b"]), b"built")
    assert len(list(folder.iterdir())) == 1


def test_a_damaged_entry_is_none(folder: Path) -> None:
    for content in (b"", b"built", (folder / KEY).read_bytes()[:-1], (folder / KEY).read_bytes() + b"x"):
        (folder / KEY).write_bytes(content)
        assert BuildCache.of_user().get(KEY) is None


def test_an_entry_of_another_key_is_none(folder: Path) -> None:
    other = key_of([b"b"])
    (folder / other).write_bytes((folder / KEY).read_bytes())
    os.chmod(folder / other, 0o600)
    assert BuildCache.of_user().get(other) is None


def test_an_entry_that_others_may_write_is_none(folder: Path) -> None:
    os.chmod(folder / KEY, 0o620)
    assert BuildCache.of_user().get(KEY) is None


def test_an_entry_that_is_a_link_is_none(folder: Path, tmp_path: Path) -> None:
    (folder / KEY).rename(tmp_path / "entry")
    os.symlink(tmp_path / "entry", folder / KEY)
    assert BuildCache.of_user().get(KEY) is None


def test_an_entry_that_is_a_pipe_is_none(folder: Path) -> None:
    (folder / KEY).unlink()
    os.mkfifo(folder / KEY, 0o600)
    assert BuildCache.of_user().get(KEY) is None


def test_an_entry_of_another_user_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.exists()
    trusted = BuildCache.of_user()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert trusted.get(KEY) is None
    assert BuildCache.of_user().get(KEY) is None


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
@pytest.mark.parametrize("name", ["builds", "."])
def test_a_folder_that_others_may_write_to_is_not_used(name: str, mode: int, folder: Path) -> None:
    os.chmod(folder.parent / name, mode)
    assert BuildCache.of_user().get(KEY) is None


@pytest.mark.parametrize("name", ["builds", ""])
def test_a_folder_that_is_a_link_is_not_used(name: str, folder: Path, tmp_path: Path) -> None:
    link = (folder.parent / name) if name else folder.parent
    link.rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", link)
    assert BuildCache.of_user().get(KEY) is None


def test_without_a_folder_nothing_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EASTGATE_CACHE")
    (tmp_path / "file").write_text("")
    for base in (str(tmp_path / "file"), "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        built = BuildCache.of_user()
        built.put(KEY, b"built")
        built.trim()
        assert built.get(KEY) is None
    assert not (tmp_path / "relative").exists()


def test_a_folder_that_cannot_be_written_to_is_none(folder: Path) -> None:
    built = BuildCache.of_user()
    (folder / KEY).unlink()
    folder.rmdir()
    built.put(KEY, b"built")
    assert built.get(KEY) is None


def test_the_least_recently_used_entry_is_removed_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = BuildCache.of_user()
    keys = [key_of([bytes([number])]) for number in range(3)]
    for age, key in enumerate(keys):
        built.put(key, b"x" * 100)
        os.utime(folder / key, (1000 - age, 1000 - age))
    assert built.get(keys[2]) is not None  # which makes it the newest
    monkeypatch.setattr(cache, "_MAX_BYTES", 300)
    built.trim()
    assert [built.get(key) is not None for key in (*keys, KEY)] == [False, False, True, True]


def test_a_large_entry_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_ENTRY_BYTES", 100)
    built = BuildCache.of_user()
    built.put(key_of([b"b"]), b"x" * 101)
    assert built.get(key_of([b"b"])) is None
    assert len(list(folder.iterdir())) == 1


def test_nothing_half_written_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "replace", fail)
    BuildCache.of_user().put(key_of([b"b"]), b"built")
    assert [entry.name for entry in folder.iterdir()] == [KEY]
