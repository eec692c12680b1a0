"""`eastgate diff --git`: revisions of a repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eastgate.cli import main
from tests.reports.diff.test_command import BOTH, WEB, WORLD, policy


class Repository:
    """A repository with manifests in deploy/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@example")

    def git(self, *words: str) -> str:
        ran = subprocess.run(["git", *words], cwd=self.folder, text=True, capture_output=True, check=True)
        return ran.stdout.strip()

    def write(self, *documents: str, name: str = "deploy/all.yaml") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n---\n".join([WORLD, *documents]), encoding="utf-8")

    def commit(self, *documents: str) -> str:
        self.write(*documents)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def diff(self, *words: str) -> Result:
        return CliRunner().invoke(main, ["diff", *words], catch_exceptions=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path)


def test_two_revisions(repository: Repository) -> None:
    old = repository.commit(policy(WEB))
    repository.commit(policy(BOTH))
    result = repository.diff("--git", f"{old}..HEAD", "deploy", "-o", "json")
    assert result.exit_code == 1
    (change,) = json.loads(result.stdout)["changes"]
    assert (change["now"], change["new"]["file"]) == ("allow", "deploy/all.yaml")
    assert repository.diff("--git", "HEAD..HEAD", "deploy").exit_code == 0
    assert repository.diff("--git", f"HEAD..{old}", "deploy", "--fail-on", "wider").exit_code == 0


def test_a_revision_and_the_files_as_they_are(repository: Repository) -> None:
    repository.commit(policy(WEB))
    assert repository.diff("--git", "HEAD", "deploy").exit_code == 0
    repository.write(policy(BOTH))
    assert repository.diff("--git", "HEAD", "deploy").exit_code == 1


def test_since_a_branch_was_left(repository: Repository) -> None:
    repository.commit(policy(WEB))
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write(policy(WEB), name="deploy-2/other.yaml")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "elsewhere")
    repository.git("switch", "--quiet", "main")
    repository.commit(policy(BOTH))
    assert repository.diff("--git", "main..topic", "deploy").exit_code == 1
    assert repository.diff("--git", "main...topic", "deploy").exit_code == 0


def test_folders_with_export_ignore_are_compared_too(repository: Repository) -> None:
    (repository.folder / ".gitattributes").write_text("deploy/ export-ignore\n")
    old = repository.commit(policy(WEB))
    repository.commit(policy(BOTH))
    assert repository.diff("--git", f"{old}..HEAD", "deploy").exit_code == 1


def test_from_a_folder_of_the_repository(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    old = repository.commit(policy(WEB))
    repository.commit(policy(BOTH))
    monkeypatch.chdir(repository.folder / "deploy")
    result = repository.diff("--git", f"{old}..HEAD", "all.yaml", "-o", "json")
    assert json.loads(result.stdout)["changes"][0]["new"]["file"] == "all.yaml"


def test_a_path_that_one_side_has_not(repository: Repository) -> None:
    old = repository.commit(policy(WEB))
    repository.write(policy(WEB), name="more/all.yaml")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "more")
    result = repository.diff("--git", f"{old}..HEAD", "more", "-o", "json")
    assert result.exit_code == 3  # there is nothing to compare
    assert json.loads(result.stdout)["addedWorkloads"] == ["pod:shop/payments", "pod:shop/web"]
    assert repository.diff("--git", f"{old}..HEAD", "nowhere").exit_code == 2


@pytest.mark.parametrize("words", ["nothing..HEAD", "..HEAD", "HEAD..nothing", "--upload-pack=x..HEAD"])
def test_a_revision_that_does_not_exist(repository: Repository, words: str) -> None:
    repository.commit(policy(WEB))
    result = repository.diff(f"--git={words}", "deploy")
    assert result.exit_code == 2
    assert "EG0401" in result.stderr


def test_where_there_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    result = CliRunner().invoke(main, ["diff", "--git", "main..HEAD", "deploy"])
    assert result.exit_code == 2
    assert "not a git repository" in result.stderr
