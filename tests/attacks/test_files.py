"""Hostile files: commands read and show no file outside the folder, never block, and answer to every text."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import eastgate
from eastgate.authority.reading import read_manifests
from eastgate.basics.diagnostics import Reporter
from eastgate.cli import main
from eastgate.dialects.kuadrant.rego import NoAnswer, RegoProgram, StepBudget, UnsupportedModule, evaluate, program
from eastgate.reading.manifests import Bounds, around, limits, read_nodes
from eastgate.reading.manifests.files import load
from eastgate.reading.manifests.watching.changes import _take_snapshot, watch_changes
from tests.attacks.files import NOT_FILES, SHADOW, TEXTS, pod
from tests.patience import PATIENCE

_QUESTION = ["--from", "sa:shop/web", "--to", "pod:shop/good"]
_WORDS = {
    "authorizer": ["--grpc", "127.0.0.1:0"],
    "check": _QUESTION,
    "convert": ["--to", "istio"],
    "describe": ["pod"],
    "diff": ["--without", "Pod/shop/good"],
    "explain": _QUESTION,
    "get": ["pods"],
    "graph": [],
    "inject": [],
    "lint": [],
    "test": [],
    "up": ["--name", "test"],
    "why": ['{"eastgate":"request"}'],
}
"""The commands that read files with -f, and their other arguments."""

_PARTIAL = {"check", "describe", "diff", "explain", "get", "graph", "lint"}
"""The commands among them that answer from the readable files."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a manifest, and beside it a secret file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "good.yaml").write_text(pod("good"))
    (tmp_path / "secret.yaml").write_text(SHADOW)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.yaml").write_text(SHADOW)
    (tmp_path / "elsewhere" / "more.yaml").write_text(pod("more"))
    return tmp_path


def _run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def _codes(path: str | Path = "m") -> list[str]:
    return [one.code.id for one in read_manifests([path]).reporter.errors]


# Links


def test_every_command_that_reads_manifests_is_here() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    reading = {name for name, one in commands.items() if one and any(p.name == "files" for p in one.params)}
    assert set(_WORDS) == reading
    following = {name for name, one in commands.items() if one and any(p.name == "follow" for p in one.params)}
    assert following == reading


@pytest.mark.parametrize("target", ["../secret.yaml", "../elsewhere", "ABSOLUTE"])
@pytest.mark.parametrize("name", _WORDS)
def test_a_link_out_of_the_folder_is_not_followed(name: str, target: str, folder: Path) -> None:
    (folder / "m" / "link.yaml").symlink_to(str(folder / "secret.yaml") if target == "ABSOLUTE" else target)
    done = _run(name, "-f", "m", *_WORDS[name])
    assert done.exit_code == (3 if name in _PARTIAL else 2)
    assert "hash-that-nobody-may-see" not in done.output
    if name != "why":  # `why` first reads its line
        assert "leads out of the given folder" in done.output
        assert "--follow" in done.output


def test_with_follow_it_is(folder: Path) -> None:
    (folder / "elsewhere" / "secret.yaml").unlink()
    (folder / "m" / "link").symlink_to("../elsewhere")
    assert "more" in _run("get", "pods", "-f", "m", "--follow").stdout
    assert "leads out of the given folder" in _run("get", "pods", "-f", "m").stderr
    assert "shop/more" in eastgate.load("m", follow=True).world.workloads
    with pytest.raises(eastgate.ManifestError, match="leads out"):
        eastgate.load("m")


def test_links_inside_and_links_that_are_named_are_followed(folder: Path) -> None:
    (folder / "m" / "..data").mkdir()  # as in a mounted ConfigMap
    (folder / "m" / "..data" / "x.yaml").write_text(pod("x"))
    (folder / "m" / "x.yaml").symlink_to("..data/x.yaml")
    (folder / "named").symlink_to("m")
    assert _codes("named") == []
    assert set(eastgate.load("named").world.workloads) == {"shop/good", "shop/x"}


def test_what_two_paths_hold_together_may_link_to_each_other(folder: Path) -> None:
    (folder / "elsewhere" / "secret.yaml").unlink()
    (folder / "m" / "link.yaml").symlink_to("../elsewhere/more.yaml")
    assert _codes() == ["EG1023"]
    assert set(eastgate.load("m", "elsewhere").world.workloads) == {"shop/good", "shop/more"}


def test_watching_does_not_leave_the_folder_either(folder: Path) -> None:
    (folder / "m" / "all").symlink_to("/")
    (folder / "m" / "link.yaml").symlink_to("../secret.yaml")
    root = str(folder / "m")
    seen = _take_snapshot([root], Bounds.of([root]))
    assert seen.stamps.keys() == {f"{root}/all", f"{root}/link.yaml", f"{root}/good.yaml"}
    assert all(one.startswith(str(folder)) for one in seen.folders)


def test_settings_without_an_option_are_not_searched_in_other_folders(folder: Path) -> None:
    (folder / "eastgate.yaml").symlink_to("elsewhere/secret.yaml")
    within = _run("get", "pods", "-f", "m")
    assert within.exit_code == 2  # the link stays in the working directory: its errors may be shown
    (folder / "eastgate.yaml").unlink()
    os.chdir(folder / "m")
    (folder / "m" / "eastgate.yaml").symlink_to("../secret.yaml")
    done = _run("get", "pods", "-f", "good.yaml")
    assert done.exit_code == 2
    assert "EG1023" in done.stderr
    assert "nobody-may-see" not in done.output


# Tables


def _table(path: Path, manifests: str, more: str = "") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "apiVersion: eastgate.dev/v1alpha1\nkind: DecisionTest\nmetadata: {name: t}\nspec:\n"
        f"  manifests: [{manifests}]\n{more}"
        "  cases: [{from: sa:shop/web, to: pod:shop/good, expect: allow}]\n"
    )


def test_a_table_may_name_files_beside_it(folder: Path) -> None:
    _table(folder / "tests" / "t.yaml", "../m")
    assert _run("test", "tests").exit_code == 0
    _table(folder / "tests" / "t.yaml", str(folder / "m"))
    assert _run("test", str(folder / "tests")).exit_code == 0


@pytest.mark.parametrize("climbing", ["../../secret.yaml", "../../elsewhere", "ABSOLUTE", "/dev/fd/0", "../link.yaml"])
def test_a_table_cannot_leave_its_repository(folder: Path, climbing: str) -> None:
    repository = folder / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "link.yaml").symlink_to("../secret.yaml")
    _table(repository / "tests" / "t.yaml", str(folder / "secret.yaml") if climbing == "ABSOLUTE" else climbing)
    done = _run("test", str(repository))
    assert done.exit_code != 0
    assert "leads out" in done.output
    assert "nobody-may-see" not in done.output


def test_a_table_outside_of_a_repository_reaches_one_folder_up(folder: Path) -> None:
    assert around(folder / "a" / "b" / "t.yaml").hold(folder / "a" / "policies")
    assert around(folder / "a" / "b" / "t.yaml").hold(folder / "policies")  # the working directory
    os.chdir("/")
    assert not around(folder / "a" / "b" / "t.yaml").hold(folder / "policies")
    assert not around("/x/t.yaml").hold("/etc/shadow")


def test_a_table_may_name_files_outside_its_folder_with_an_option(folder: Path) -> None:
    (folder / "repository" / ".git").mkdir(parents=True)
    _table(folder / "repository" / "t.yaml", "../m")
    assert _run("test", "repository").exit_code != 0
    assert _run("test", "--follow", "repository").exit_code == 0


def test_keys_of_a_table_stay_inside_as_well(folder: Path) -> None:
    (folder / "repository" / ".git").mkdir(parents=True)
    (folder / "repository" / "m.yaml").write_text(pod("good"))
    _table(folder / "repository" / "t.yaml", "m.yaml", "  jwks: {https://issuer.example: ../secret.yaml}\n")
    done = _run("test", "repository/t.yaml")
    assert done.exit_code == 1
    assert "its keys can be read" in done.stdout
    assert "leads out" in done.stdout


# Not regular files


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_file_is_an_error_and_is_not_opened(folder: Path, kind: str) -> None:
    NOT_FILES[kind](folder / "m" / "x.yaml")
    assert set(_codes()) <= {"EG1023", "EG1024"}
    assert _codes() != []
    assert _codes(folder / "m" / "x.yaml") == ["EG1024"]
    roots = read_nodes(folder / "m" / "x.yaml")
    assert [one.code.id for one in roots.reporter] == ["EG1024"]


def test_a_pipe_that_comes_between_looking_and_opening_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "m" / "x.yaml")
    regular, really = os.stat("m/good.yaml"), os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: regular if path == "m/x.yaml" else really(path, **more))
    reporter = Reporter()
    assert load("m/x.yaml", None, reporter) is None
    assert [one.code.id for one in reporter] == ["EG1024"]


def test_what_the_shell_has_opened_is_read(folder: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, pod("piped").encode())
    os.close(writing)
    try:
        assert set(eastgate.load(f"/dev/fd/{reading}").world.workloads) == {"shop/piped"}
    finally:
        os.close(reading)


def test_settings_in_a_pipe_are_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "eastgate.yaml")
    done = _run("get", "pods", "-f", "m")
    assert done.exit_code == 2
    assert "EG1024" in done.stderr


# Texts


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_has_an_answer(folder: Path, name: str) -> None:
    content, code = TEXTS[name]
    (folder / "m" / "x.yaml").write_bytes(content)
    found = _codes(folder / "m" / "x.yaml")
    assert found == [] if code is None else found and found[0].startswith(code)
    assert _run("lint", "-f", "m/x.yaml").exit_code in ((0,) if code is None else (1, 2))  # 2: nothing can be read
    assert _run("lint", "-f", "m").exit_code in (0, 1, 2, 3)  # in a folder it may not be a manifest


def test_a_file_beyond_all_measure_is_refused_unread(folder: Path) -> None:
    with open(folder / "m" / "x.yaml", "wb") as file:
        file.truncate(limits.MAX_BYTES + 1)  # a sparse file
    assert _codes() == ["EG1002"]


def test_a_folder_with_the_name_of_a_manifest_is_a_folder(folder: Path) -> None:
    (folder / "m" / "x.yaml").mkdir()
    (folder / "m" / "x.yaml" / "y.yaml").write_text(pod("inner"))
    assert set(eastgate.load("m").world.workloads) == {"shop/good", "shop/inner"}
    assert [one.code.id for one in read_nodes(folder / "m" / "x.yaml").reporter] == ["EG1001"]


def test_a_file_that_goes_after_it_was_listed_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "m" / "x.yaml").write_text(pod("x"))
    really = os.open

    def opening(path: str, *more: int, dir_fd: int | None = None) -> int:
        if str(path) == "m/x.yaml":
            os.unlink(path)
        return really(path, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    assert _codes() == ["EG1001"]


def test_a_file_that_grows_while_it_is_read_is_read_once(folder: Path) -> None:
    path, stop = folder / "m" / "x.yaml", threading.Event()
    path.write_text(pod("x"))

    def grow() -> None:
        with open(path, "a") as file:
            while not stop.wait(0.0001) and file.tell() < 1 << 20:
                file.write("# more\n")
                file.flush()

    growing = threading.Thread(target=grow)
    growing.start()
    try:
        assert set(eastgate.load("m").world.workloads) == {"shop/good", "shop/x"}
    finally:
        stop.set()
        growing.join()


def test_a_file_that_may_not_be_read_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "m" / "good.yaml").chmod(stat.S_IWUSR)
    really = os.open
    if os.geteuid() == 0:  # root may read everything

        def refused(path: str, *more: int, dir_fd: int | None = None) -> int:
            if str(path).startswith("m/"):
                raise PermissionError(13, "Permission denied", path)
            return really(path, *more, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", refused)
    assert _codes() == ["EG1001"]


# Rego


_MUCH = 'm0 = "aaaaaaaaaa"\nmuch = m3\n' + "".join(f'm{n} = replace(m{n - 1}, "a", "{"a" * 32}")\n' for n in (1, 2, 3))
BOMBS = (
    "allow { count([1 | numbers.range(1, 3000)[_]; numbers.range(1, 3000)[_]; numbers.range(1, 3000)[_]]) > 0 }",
    "allow { count(numbers.range(1, 1000000000)) > 0 }",
    "\n".join(["a0 = [1]", *(f"a{n} = [a{n - 1}, a{n - 1}]" for n in range(1, 41)), "allow { a40 == a40 }"]),
    "\n".join(['a0 = "xxxxxxxx"', *(f'a{n} = concat("", [a{n - 1}, a{n - 1}])' for n in range(1, 41)), "allow = true"]),
    'allow { replace(input.text, "", input.text) != "" }',
    "f0(x) = x\n" + "\n".join(f"f{n}(x) = [f{n - 1}(x), f{n - 1}(x)]" for n in range(1, 31)) + "\nallow { f30(1) }",
    "allow { " + "; ".join(f"input.list[x{n}]" for n in range(20)) + "; false }",
    "big = numbers.range(1, 9000)\nshared[n] = big { numbers.range(1, 9000)[n] }\nallow { shared[0] }",
    _MUCH + 'allow { count([1 | numbers.range(1, 900)[_]; indexof_n(much, "b") == []]) > 0 }',
    _MUCH + 'allow { count([1 | numbers.range(1, 900)[_]; strings.replace_n({"b": "c"}, much) != ""]) > 0 }',
    "allow { count([n | numbers.range(1, 3000)[_]; n := 123456789.123 * 987654321.987]) > 0 }",
    "zeros = [0 | numbers.range(1, 9000)[_]]\n"
    "allow { object.subset(zeros, array.concat(array.slice(zeros, 0, 4000), [1])) }",
    'allow { sprintf("%.999999999f", [1.5]) != "" }',
)
UNREADABLE = (
    "allow { " + "; ".join(f"x{n} = x{n + 1}" for n in range(1500)) + "; x1500 = 1 }",
    "allow { 1e999999999 > 1 }",
    "allow { 1e-999999999 < 1 }",
    'allow { "\\ud800" != "" }',
)


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_has_no_answer(bomb: str) -> None:
    found = program(bomb)
    assert isinstance(found, RegoProgram)
    with pytest.raises(NoAnswer):
        evaluate(found, {"text": "x" * 4000, "list": list(range(50))}, 0)


@pytest.mark.parametrize("module", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_module_beyond_all_measure_is_a_problem(module: str) -> None:
    assert isinstance(program(module), UnsupportedModule)


def _nested(depth: int) -> object:
    return [_nested(depth - 1)] if depth else 1


@pytest.mark.parametrize("value", [10**400, _nested(700), float("inf")], ids=["large", "deep", "infinite"])
def test_an_input_beyond_all_measure_has_no_answer(value: object) -> None:
    found = program("allow { input.value == input.value }")
    assert isinstance(found, RegoProgram)
    with pytest.raises(NoAnswer):
        evaluate(found, {"value": value}, 0)


def test_all_rego_of_a_policy_has_one_budget_together() -> None:
    found, budget = program("allow = true"), StepBudget()
    assert isinstance(found, RegoProgram)
    before = budget.left
    assert evaluate(found, {}, 0, budget) == {"allow": True}
    assert budget.left < before
    budget.left = 0
    with pytest.raises(NoAnswer):
        evaluate(found, {}, 0, budget)


# Names


_NAME = os.fsdecode(b"odd\xff.yaml")


@pytest.mark.parametrize(
    ("name", "output"),
    [
        *((name, "text") for name in _WORDS if name not in ("test", "why")),  # they read tables, or the line, first
        *((name, "json") for name in ("check", "describe", "diff", "explain", "get", "graph", "lint", "up")),
        ("lint", "sarif"),
    ],
)
def test_a_name_that_is_not_utf_8_is_shown_escaped(name: str, output: str, folder: Path) -> None:
    (folder / "m" / _NAME).write_text("kind: [")
    done = _run(name, "-f", "m", *_WORDS[name], *(() if output == "text" else ("-o", output)))
    assert done.exit_code == (1 if name == "lint" else 3 if name in _PARTIAL else 2)
    assert "bug in Eastgate" not in done.stderr
    assert any(spelled in done.output for spelled in (r"odd\udcff.yaml", r"odd\\udcff.yaml", "odd%FF.yaml"))


@pytest.mark.parametrize("output", ["text", "json", "sarif"])
def test_a_finding_in_a_file_whose_name_is_no_utf_8(output: str, folder: Path) -> None:
    policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: odd, namespace: shop}\n"
    (folder / "m" / _NAME).write_text(f"{policy}spec: {{podSelector: {{matchLabels: {{app: none}}}}}}\n")
    done = _run("lint", "-f", "m", "-o", output)
    assert done.exit_code == 1
    assert any(spelled in done.stdout for spelled in (r"odd\udcff.yaml", r"odd\\udcff.yaml", "odd%FF.yaml"))


def test_a_file_whose_name_is_no_utf_8_does_not_end_the_watch(folder: Path) -> None:
    reasons: list[str] = []

    async def watch() -> set[str]:
        changed: set[str] = set()
        async with contextlib.aclosing(watch_changes([folder / "m"], on_poll=reasons.append)) as batches:
            first = asyncio.ensure_future(anext(batches))
            while not first.done():
                (folder / "m" / _NAME).write_text(pod("odd"))
                await asyncio.wait([first], timeout=0.2)
            changed |= first.result()
            (folder / "m" / "later.yaml").write_text(pod("later"))
            while str(folder / "m" / "later.yaml") not in changed:
                changed |= await asyncio.wait_for(anext(batches), PATIENCE)
        return changed

    assert str(folder / "m" / _NAME) in asyncio.run(watch())
