"""Files, folders and standard input."""

from __future__ import annotations

import gc
import io
import os
from itertools import product
from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import ReadResult, files_of, limits, read, read_nodes
from eastgate.reading.manifests import text as text_module
from eastgate.reading.manifests.files import RealPaths

from .reading import POD, never


def _pod(name: str) -> str:
    return POD.replace("name: a", f"name: {name}")


def _names(reading: ReadResult) -> list[str]:
    return [document.name for document in reading.documents]


def _told(reading: ReadResult) -> list[tuple[str, str, str | None]]:
    return [(finding.code.id, finding.message, finding.help) for finding in reading.reporter]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ["b.yaml", "a.yml", "sub/c.YAML", "sub/deeper/d.yaml", ".hidden.yaml", ".git/e.yaml", "notes.txt"]:
        path = tmp_path / "m" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_pod(Path(name).stem.strip(".")))
    (tmp_path / "m" / "z.json").write_text('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"z"}}')
    return tmp_path


def test_a_folder_is_read_in_order_without_hidden_files(folder: Path) -> None:
    reading = read(["m"], positioned=never)
    assert _names(reading) == ["a", "b", "c", "d", "z"]
    assert reading.reporter.diagnostics == []
    assert [document.span.file for document in reading.documents][-2:] == ["m/sub/deeper/d.yaml", "m/z.json"]


def test_a_file_that_is_named_is_read_whatever_its_name(folder: Path) -> None:
    assert _names(read([folder / "m/notes.txt", "m/.hidden.yaml"], positioned=never)) == ["notes", "hidden"]


def test_a_file_is_read_once_however_often_it_is_given(folder: Path) -> None:
    os.symlink(folder / "m/b.yaml", folder / "m/link.yaml")
    os.link(folder / "m/b.yaml", folder / "m/hard.yaml")
    reading = read(["m/b.yaml", "m", folder / "m/b.yaml", "m/../m"], positioned=never)
    assert _names(reading) == ["b", "a", "c", "d", "z"]
    assert reading.reporter.diagnostics == []


def test_links_that_lead_back_up_end_the_way(folder: Path) -> None:
    os.symlink(folder / "m", folder / "m/sub/up")
    os.symlink(".", folder / "m/self")
    assert _names(read(["m"], positioned=never)) == ["a", "b", "c", "d", "z"]


def test_standard_input_is_read_once_and_reports_progress(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    reading = read(
        ["-", "m/a.yml", "-"],
        positioned=never,
        stdin=io.BytesIO(_pod("piped").encode()),
        on_file=lambda done, total: seen.append((done, total)),
    )
    assert _names(reading) == ["piped", "a"]
    assert str(reading.documents[0].span) == "<stdin>:1:1"
    assert seen == [(1, 2), (2, 2)]


def test_the_real_standard_input_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    assert _names(read(["-"], positioned=never)) == ["a"]


def test_an_unreadable_file_is_reported_and_the_rest_is_read(folder: Path) -> None:
    os.symlink("nowhere", folder / "m/broken.yaml")
    os.mkdir(folder / "empty")
    (folder / "m/a.yml").chmod(0)
    reading = read(["m/b.yml", "gone/x.yaml", "m", "empty", "a\x00b", "m/\x1b[31m"], positioned=never)
    told = _told(reading)
    if os.geteuid() == 0:  # root may read every file
        assert _names(reading) == ["a", "b", "c", "d", "z"]
    else:
        assert _names(reading) == ["b", "c", "d", "z"]
        told.remove(("EG1001", "`m/a.yml` cannot be read: permission denied", "make it readable for this user"))
    assert told == [
        ("EG1001", "`m/b.yml` cannot be read: there is no such file or folder", "did you mean `m/b.yaml`?"),
        ("EG1001", "`gone/x.yaml` cannot be read: there is no such file or folder", None),
        ("EG1001", "`m/broken.yaml` cannot be read: it is a link to `nowhere`, which does not exist", None),
        (
            "EG1003",
            "the folder `empty` has no manifests in it",
            "manifests end in `.yaml`, `.yml` or `.json`; hidden ones are not read",
        ),
        ("EG1001", "`a\\x00b` cannot be read: embedded null byte", None),
        ("EG1001", "`m/\\x1b[31m` cannot be read: there is no such file or folder", None),
    ]


def test_an_error_while_reading_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    reading = read(["-"], positioned=never, stdin=Broken())
    assert _told(reading) == [("EG1001", "`-` cannot be read: input/output error", None)]


def test_a_pipe_in_a_folder_is_a_finding_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "m/pipe.yaml")
    reading = read(["m"], positioned=never)
    assert _names(reading) == ["a", "b", "c", "d", "z"]
    assert [told[:2] for told in _told(reading)] == [("EG1024", "`m/pipe.yaml` is a pipe, not a manifest")]


def test_a_text_beyond_all_measure_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.MAX_BYTES == 512 * 1024 * 1024
    monkeypatch.setattr(text_module, "MAX_BYTES", 50)
    (folder / "m/b.yaml").write_text(_pod("b") + "#" * 50)
    reading = read(["m"], positioned=never)
    assert _names(reading) == ["a", "c", "d"]
    assert _told(reading)[0][:2] == ("EG1002", "`m/b.yaml` is larger than 0 MiB")


def test_a_folder_that_cannot_be_listed_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listdir = os.listdir

    def forbidding(path: str) -> list[str]:
        if path == os.path.join("m", "sub"):
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr("os.listdir", forbidding)
    reading = read(["m"], positioned=never)
    assert _names(reading) == ["a", "b", "z"]
    assert [told[:2] for told in _told(reading)] == [("EG1001", "`m/sub` cannot be read: permission denied")]


def test_the_files_that_paths_mean(folder: Path) -> None:
    reporter = Reporter()
    assert files_of(["m/sub", "-", "m/a.yml", "m/sub/c.YAML", "gone"], reporter) == [
        *("m/sub/c.YAML", "m/sub/deeper/d.yaml"),
        *("-", "m/a.yml"),
    ]
    assert [finding.code.id for finding in reporter] == ["EG1001"]


def test_a_broken_file_does_not_hide_the_findings_in_others(folder: Path) -> None:
    (folder / "m/a.yml").write_text("kind: [")
    (folder / "m/b.yaml").write_bytes(b"kind: \xff")
    (folder / "m/z.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "z"}, "a": 1, "a": 2}')
    reading = read(["m"], positioned=never)
    assert [code for code, _, _ in _told(reading)] == ["EG1009", "EG1004", "EG1015"]
    assert _names(reading) == ["c", "d", "z"]


def test_objects_in_different_files_must_differ_too(folder: Path) -> None:
    (folder / "m/b.yaml").write_text(_pod("a"))
    (finding,) = read(["m"], positioned=never).reporter.diagnostics
    assert (str(finding.span), finding.help) == ("m/b.yaml:4:9", "the first one is at m/a.yml:1:1; keep one of them")


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_left_as_it_was(folder: Path, enabled: bool) -> None:
    states: list[bool] = []
    (gc.enable if enabled else gc.disable)()
    try:
        read(["m"], positioned=never, on_file=lambda _done, _total: states.append(gc.isenabled()))
        assert states == [False] * 5
        assert gc.isenabled() == enabled
        with pytest.raises(ZeroDivisionError):
            read(["m"], positioned=lambda _version, _kind: bool(1 / 0))
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


def test_a_file_of_anything_is_read_as_nodes(folder: Path) -> None:
    (folder / "any.yaml").write_text("- 1\n---\n---\nx: [y\n---\na: b\n")
    roots = read_nodes(folder / "any.yaml")
    assert [root.plain() for root in roots.nodes] == [[1], {"a": "b"}]
    assert [finding.code.id for finding in roots.reporter] == ["EG1009"]
    assert read_nodes("-", stdin=io.BytesIO(b"5")).nodes[0].span.file == "<stdin>"
    assert [finding.code.id for finding in read_nodes("nothing.yaml").reporter] == ["EG1001"]
    assert [finding.code.id for finding in read_nodes("-", stdin=io.BytesIO(b"\xff\xfea")).reporter] == ["EG1004"]


def test_real_paths_equal_those_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/file").touch()
    for link, target in {"l": "a/b", "a/up": "..", "a/b/own": ".", "a/abs": str(tmp_path / "a/b/c")}.items():
        os.symlink(target, tmp_path / link)
    monkeypatch.chdir(tmp_path / "a")
    steps = ["b", "c", "..", ".", "", "up", "l", "own", "abs", "file", "none"]
    real = RealPaths()
    for one, two, three in product(steps, repeat=3):
        for path in (f"{one}/{two}/{three}", f"{tmp_path}/{one}/{two}/{three}", f"../{one}//{two}"):
            assert (path, real.of(path)) == (path, os.path.realpath(path))
    assert real.of("a\0b") == os.path.abspath("a\0b")
