"""The workflow that publishes a release. The tests run its steps that need no external service, unchanged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from eastgate._version import __version__
from tests.deploy.charts import ROOT, helm, helm_program

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
IMAGE, DIGEST = "registry.example/org/eastgate", f"sha256:{'0123456789abcdef' * 4}"
TAG = f"v{__version__}"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the files that the steps read."""
    folder = tmp_path / "checkout"
    for name in ("deploy", "src/eastgate/_version.py", "CHANGELOG.md", "LICENSE"):
        copied = folder / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copied)
    return folder


def run(job: dict[str, Any], step: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does, with other values for its variables."""
    (found,) = (each for each in job["steps"] if each.get("name") == step)
    assert set(found.get("env", {})) == variables.keys()
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
    path = f"{Path(sys.executable).parent}:{helm_program().parent}:/usr/local/bin:/usr/bin:/bin"
    return subprocess.run(command, cwd=folder, env={"PATH": path, **variables}, capture_output=True, text=True)


def test_a_tag_of_another_version_publishes_nothing(jobs: dict[str, Any], checkout: Path) -> None:
    assert run(jobs["test"], "The tag is the version", checkout, TAG=TAG).returncode == 0
    refused = run(jobs["test"], "The tag is the version", checkout, TAG="v9.9.9")
    assert (refused.returncode, f"the tag v9.9.9 is not {TAG}" in refused.stdout) == (1, True)


def test_every_job_waits_for_the_tests(jobs: dict[str, Any]) -> None:
    def waits_for(name: str) -> set[str]:
        needs = jobs[name].get("needs", [])
        named = {needs} if isinstance(needs, str) else set(needs)
        return named.union(*(waits_for(each) for each in named))

    assert all("test" in waits_for(name) for name in jobs if name != "test")
    assert waits_for("pypi") == jobs.keys() - {"pypi", "release"}  # a publication there is permanent


def test_the_chart_runs_the_image_of_the_release(jobs: dict[str, Any], checkout: Path) -> None:
    step = "Package the chart with the image of this release"
    done = run(jobs["chart"], step, checkout, IMAGE=IMAGE, DIGEST=DIGEST)
    assert done.returncode == 0, done.stderr
    rendered = helm("template", "eastgate", checkout / "chart" / f"eastgate-{__version__}.tgz")
    assert f'image: "{IMAGE}@{DIGEST}"' in rendered
    assert run(jobs["chart"], step, checkout, IMAGE=IMAGE, DIGEST=DIGEST.upper()).returncode != 0


def test_the_files_of_a_release_are_put_together(jobs: dict[str, Any], checkout: Path) -> None:
    packages = (f"eastgate-{__version__}-py3-none-any.whl", f"eastgate-{__version__}.tar.gz")
    for python in ("3.11", "3.12"):
        part = checkout / "parts" / f"dist-{python}-ubuntu-22.04"
        part.mkdir(parents=True)
        for name in (*packages, f"eastgate-py{python}.pyz", f"eastgate-py{python}.pyz.cdx.json"):
            (part / name).write_text(f"{python} {name}")
        made = sorted(part.iterdir())
        sums = "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
        (part / "SHA256SUMS").write_text(sums)
    (checkout / "files").mkdir()
    pinned = f"{IMAGE}@{DIGEST}"
    variables = {"IMAGE": pinned, "REPOSITORY": "org/eastgate", "TAG": TAG}
    done = run(jobs["release"], "Put the files together", checkout, **variables)
    assert done.returncode == 0, done.stderr
    files = checkout / "files"
    assert (files / packages[0]).read_text().startswith("3.12")
    assert f'image: "{pinned}"' in (files / "install.yaml").read_text()
    assert f"org/eastgate/releases/download/{TAG}/" in (files / "eastgate.yaml").read_text()
    listed = {line.split()[1] for line in (files / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in files.iterdir()} - {"SHA256SUMS"}
    assert {f"eastgate-py{python}.pyz" for python in ("3.11", "3.12")} <= listed
    assert (checkout / "notes.md").read_text().strip().startswith("### Added")
    (checkout / "parts" / "dist-3.11-ubuntu-22.04" / packages[0]).write_text("another")
    assert run(jobs["release"], "Put the files together", checkout, **variables).returncode != 0
