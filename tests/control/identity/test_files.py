"""Keys on disk: readable only by their owner from the first moment, and a CA that is restored from them."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eastgate.control.identity import (
    BadIdentityError,
    EmbeddedCa,
    StoredCaError,
    UnsafeFileError,
    stored_ca,
)
from eastgate.control.identity.storage import read_private, write_private

ME = "spiffe://cluster.local/ns/shop/sa/web"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folder_are_private_with_any_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        path = write_private(folder, "key.pem", b"one")
    finally:
        os.umask(before)
    assert (mode(folder), mode(path)) == (0o700, 0o600)


def test_the_mode_is_right_from_the_moment_the_file_exists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    write = os.fdopen

    def looking(descriptor: int, how: str) -> object:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return write(descriptor, how)

    monkeypatch.setattr(os, "fdopen", looking)
    before = os.umask(0)
    try:
        write_private(folder, "key.pem", b"one")
    finally:
        os.umask(before)
    assert seen == [0o600]


def test_a_file_is_replaced_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_private(folder, "key.pem", b"one")
    inode = path.stat().st_ino
    write_private(folder, "key.pem", b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_ino != inode

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(folder, "key.pem", b"three")
    assert path.read_bytes() == b"two"
    assert [one.name for one in folder.iterdir()] == ["key.pem"]


def test_a_symlink_is_replaced_and_not_followed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    (folder / "key.pem").symlink_to(elsewhere)
    with pytest.raises(UnsafeFileError, match="cannot be opened"):
        read_private(folder, "key.pem")
    write_private(folder, "key.pem", b"one")
    assert elsewhere.read_bytes() == b"precious"
    assert not (folder / "key.pem").is_symlink()


def test_a_file_that_others_can_read_is_refused_with_the_remedy(folder: Path) -> None:
    path = write_private(folder, "key.pem", b"one")
    for loose in (0o640, 0o604, 0o660, 0o644):
        path.chmod(loose)
        with pytest.raises(UnsafeFileError, match=f"mode {loose:o}.*run `chmod 600 .*make new keys"):
            read_private(folder, "key.pem")
    path.chmod(0o600)
    assert read_private(folder, "key.pem") == b"one"


def test_a_folder_that_others_can_enter_is_refused_for_reading_and_writing(folder: Path) -> None:
    write_private(folder, "key.pem", b"one")
    folder.chmod(0o755)
    with pytest.raises(UnsafeFileError, match="run `chmod 700 "):
        read_private(folder, "key.pem")
    with pytest.raises(UnsafeFileError, match="run `chmod 700 "):
        write_private(folder, "key.pem", b"two")


def test_a_fifo_is_refused_and_not_waited_for(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "key.pem", 0o600)
    with pytest.raises(UnsafeFileError, match="not a regular file"):
        read_private(folder, "key.pem")


def test_a_file_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_private(folder, "key.pem", b"one")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UnsafeFileError, match="belongs to another user"):
        read_private(folder, "key.pem")


def test_a_missing_file_is_none(folder: Path) -> None:
    assert read_private(folder, "key.pem") is None
    folder.mkdir(mode=0o700)
    assert read_private(folder, "key.pem") is None


def test_an_authority_writes_nothing_unless_it_is_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    EmbeddedCa("cluster.local").issue(ME)
    assert list(tmp_path.iterdir()) == []


def test_a_restart_keeps_every_root(folder: Path) -> None:
    first = stored_ca(folder, "cluster.local")
    first.prepare_root()
    first.activate_root()
    first.prepare_root()
    assert len(first.bundles.of_domain("cluster.local")) == 3
    again = stored_ca(folder, "cluster.local")
    assert again.bundles == first.bundles
    assert again._state.retired == first._state.retired
    assert again.issue(ME).chain.endswith(first._state.intermediate.pem)
    assert mode(folder / "authority.json") == 0o600


def test_a_new_intermediate_is_written_before_it_signs(folder: Path) -> None:
    time = datetime(2030, 1, 1, tzinfo=UTC)
    first = stored_ca(folder, "cluster.local", clock=lambda: time)
    time += timedelta(days=7)
    svid = first.issue(ME)
    assert svid.chain.endswith(stored_ca(folder, "cluster.local")._state.intermediate.pem)


def test_a_state_that_cannot_be_written_is_not_used(folder: Path) -> None:
    authority = stored_ca(folder, "cluster.local")
    before = authority.bundles
    folder.chmod(0o755)
    with pytest.raises(UnsafeFileError):
        authority.prepare_root()
    assert authority.bundles == before


def test_a_folder_is_of_one_trust_domain(folder: Path) -> None:
    stored_ca(folder, "cluster.local")
    with pytest.raises(BadIdentityError, match="start with an empty folder"):
        stored_ca(folder, "other.example")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 2'),
        ('"version": 1', '"version": "PRIVATE KEY"'),
        ("BEGIN PRIVATE KEY", "BEGIN PRIVATE"),
        ("BEGIN CERTIFICATE", "BEGIN"),
        ('"retired": []', '"retired": [{}]'),
        ("{", ""),
    ],
)
def test_a_damaged_ca_is_not_replaced_by_a_new_one(folder: Path, old: str, new: str) -> None:
    stored_ca(folder, "cluster.local")
    content = (folder / "authority.json").read_text()
    assert old in content
    write_private(folder, "authority.json", content.replace(old, new).encode())
    with pytest.raises(StoredCaError, match="restore it from a backup") as caught:
        stored_ca(folder, "cluster.local")
    assert caught.value.__cause__ is None


def test_keys_and_certificates_that_do_not_belong_together_are_noticed(folder: Path, tmp_path: Path) -> None:
    stored_ca(folder, "cluster.local")
    stored_ca(tmp_path / "other", "cluster.local")
    other = json.loads((tmp_path / "other" / "authority.json").read_text())
    for part, field in (("root", "key"), ("intermediate", "key"), ("intermediate", None), ("root", None)):
        mine = json.loads((folder / "authority.json").read_text())
        if field is None:
            mine[part] = other[part]
        else:
            mine[part][field] = other[part][field]
        write_private(tmp_path / "mixed", "authority.json", json.dumps(mine).encode())
        with pytest.raises(StoredCaError):
            stored_ca(tmp_path / "mixed", "cluster.local")
