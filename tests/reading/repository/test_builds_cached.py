"""A build does not run again unless its input has changed. A stand-in counts builds."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from eastgate.reading.manifests import rendering
from eastgate.reading.repository import ChartRender, KustomizeBuild, Part
from tests.reading.repository.building import POLICY, built, left_out, names, write

# A stand-in that writes each manifest in the given folder, and logs its run.
PROGRAM = f"""#!{sys.executable}
import os, sys, time
with open(os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "log"), "a") as log:
    log.write(os.path.basename(sys.argv[0]) + "\\n")
folder = next(word for word in sys.argv[1:] if os.path.isdir(word))
for top, _, files in sorted(os.walk(folder)):
    for name in sorted(files):
        text = open(os.path.join(top, name)).read()
        if name == "program":
            exec(text)
        elif text.startswith("apiVersion: networking"):
            sys.stdout.write("---\\n" + text)
"""

KUSTOMIZATION = {"prod/kustomization.yaml": "resources: [web.yaml, program]\n", "prod/web.yaml": POLICY}
CHART = {"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/templates/web.yaml": POLICY}
EITHER = pytest.mark.parametrize(
    ("part", "files"),
    [(KustomizeBuild("prod"), KUSTOMIZATION), (ChartRender("web", "my", "shop"), CHART)],
    ids=["kustomization", "chart"],
)


@pytest.fixture
def log(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which stand-ins log their runs."""
    programs = tmp_path / "bin"
    write(programs, {"kustomize": PROGRAM, "helm": PROGRAM, "log": ""})
    for name in ("kustomize", "helm"):
        os.chmod(programs / name, 0o755)  # noqa: S103
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EASTGATE_CACHE")
    return programs / "log"


def _builds(log: Path, *parts: Part) -> int:
    """Return the number of programs that ran for some parts."""
    before = len(log.read_text().splitlines())
    built(*parts, helm="helm")
    return len(log.read_text().splitlines()) - before


@EITHER
def test_the_second_time_nothing_is_built(part: Part, files: dict[str, str], log: Path, here: Path) -> None:
    write(here, files)
    first = built(part, helm="helm")
    assert (names(first), _builds(log, part)) == (names(built(part, helm="helm")), 0)
    assert len(names(first)) == 1
    assert log.read_text().count("\n") == 1


@EITHER
def test_a_change_of_any_file_builds_again(part: Part, files: dict[str, str], log: Path, here: Path) -> None:
    write(here, files)
    assert _builds(log, part) == 1
    for name, text in files.items():
        changed = "namePrefix: my-\n" if "kustomization" in name else "# changed\n"
        write(here, {name: text + changed})
        assert (name, _builds(log, part), _builds(log, part)) == (name, 1, 0)
    write(here, files)
    assert _builds(log, part) == 0  # as it was before


def test_files_that_appear_and_vanish_count(log: Path, here: Path) -> None:
    write(here, {**CHART, **KUSTOMIZATION})
    parts = (ChartRender("web", "my"), KustomizeBuild("prod"))
    assert _builds(log, *parts) == 2
    write(here, {"web/templates/new.txt": "", "prod/program": ""})
    assert (_builds(log, *parts), _builds(log, *parts)) == (2, 0)
    os.rename(here / "web/templates/new.txt", here / "web/templates/other.txt")
    assert _builds(log, *parts) == 1
    os.unlink(here / "prod/program")
    assert _builds(log, *parts) == 0


def test_everything_that_a_part_says_counts(log: Path, here: Path) -> None:
    write(here, {**CHART, **KUSTOMIZATION, "v.yaml": "a: 1\n"})
    parts: list[Part] = [
        ChartRender("web", "my", "shop"),
        ChartRender("web", "other", "shop"),
        ChartRender("web", "my", "other"),
        ChartRender("web", "my", "shop", ("v.yaml",)),
        ChartRender("web", "my", "shop", (), ({"a": 1},)),
        ChartRender("web", "my", "shop", (), ({"a": 2}, {"b": 1})),
        ChartRender("web", "my", "shop", (), ({"b": 1}, {"a": 2})),
        KustomizeBuild("prod"),
        KustomizeBuild("prod", "shop"),
        KustomizeBuild("prod", overlay={"namePrefix": "a-"}),
    ]
    assert [_builds(log, part) for part in parts] == [1] * len(parts)
    assert [_builds(log, part) for part in parts] == [0] * len(parts)
    write(here, {"v.yaml": "a: 2\n"})
    assert [_builds(log, part) for part in parts] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_variables_are_filled_in_afterwards(log: Path, here: Path) -> None:
    write(here, {**KUSTOMIZATION, "prod/web.yaml": POLICY.replace("name: web", "name: ${NAME}")})
    for name in ("a", "b"):
        assert names(built(KustomizeBuild("prod", variables={"NAME": name}, substitute=True))) == [f"default/{name}"]
    assert log.read_text().count("\n") == 1


def test_another_program_builds_again(log: Path, here: Path) -> None:
    write(here, KUSTOMIZATION)
    assert _builds(log, KustomizeBuild("prod")) == 1
    os.utime(log.parent / "kustomize", (1, 1))
    assert [_builds(log, KustomizeBuild("prod")) for _ in range(2)] == [1, 0]


def test_a_copy_of_the_repository_has_the_same_builds(log: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, KUSTOMIZATION)
    assert _builds(log, KustomizeBuild("prod")) == 1
    write(here / "copy", KUSTOMIZATION)
    (here / "copy/.git").mkdir()
    monkeypatch.chdir(here / "copy")
    assert _builds(log, KustomizeBuild("prod")) == 0


def test_failures_are_cached_too(log: Path, here: Path) -> None:
    write(here, {**KUSTOMIZATION, "prod/program": "sys.stderr.write('Error: no\\n'); sys.exit(1)"})
    said = [left_out(built(KustomizeBuild("prod"))) for _ in range(2)]
    assert (
        said[0]
        == said[1]
        == [("kustomization `prod`", "prod/kustomization.yaml:1", "`kustomize build prod` fails: no")]
    )
    assert log.read_text().count("\n") == 1


@pytest.mark.parametrize("program", ["time.sleep(60)", "os.kill(os.getpid(), 9)"])
def test_a_timeout_is_not_cached(program: str, log: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_TIMEOUT_SECONDS", 1)
    write(here, {**KUSTOMIZATION, "prod/program": program})
    assert [_builds(log, KustomizeBuild("prod")) for _ in range(2)] == [1, 1]
    assert len(left_out(built(KustomizeBuild("prod")))) == 1


def test_a_file_that_changes_meanwhile_is_not_part_of_the_build(log: Path, here: Path) -> None:
    change = f"open({str(here / 'prod/web.yaml')!r}, 'w').write({POLICY.replace('name: web', 'name: late')!r})"
    write(here, {**KUSTOMIZATION, "prod/program": change})
    assert names(built(KustomizeBuild("prod"))) == ["default/web"]
    assert names(built(KustomizeBuild("prod"))) == ["default/late"]
    assert log.read_text().count("\n") == 2


def test_builds_run_at_once(log: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    parts = []
    for name in "abcd":
        write(here, {f"{name}/kustomization.yaml": "resources: [program, x.yaml]\n", f"{name}/x.yaml": f"# {name}\n"})
        meet = f"open({str(here)!r} + '/at-{name}', 'w'); begun = time.time()\n"
        meet += f"while len([1 for n in os.listdir({str(here)!r}) if n.startswith('at-')]) < 4: time.sleep(0.01)\n"
        write(here, {f"{name}/program": meet})
        parts.append(KustomizeBuild(name))
    began = time.monotonic()
    assert _builds(log, *parts) == 4
    assert time.monotonic() - began < 60


def test_the_programs_get_nothing_of_the_environment(log: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "secret")
    seen = "os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), 'seen')"
    show = f"open({seen}, 'w').write(repr((dict(os.environ), sys.argv[1:])))"
    write(here, {**CHART, "web/program": show})
    built(ChartRender("web", "my", "shop", (), ({"a": 1},)), helm="helm")
    variables, words = eval((log.parent / "seen").read_text())  # noqa: S307 - the stand-in wrote it
    assert "SECRET" not in variables
    assert variables["HELM_PLUGINS"].startswith(variables["HOME"])
    assert not os.path.exists(variables["HOME"])
    assert words[:2] == ["template", "my"]
    assert words[3:6] == ["--namespace=shop", "--skip-tests", "--include-crds"]
    assert words[-2] == "--values"
