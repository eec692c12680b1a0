"""Programs that build manifests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.missing import give_up
from tests.programs import find
from tests.programs.building import are_missing


@pytest.fixture(scope="session")
def helm() -> str:
    """Return the path of `helm`."""
    if are_missing("helm"):
        give_up("helm", "install it, or Go to build it")
    return str(find("helm"))


@pytest.fixture(scope="session")
def _kubectl() -> Path | None:
    """Return the folder of a `kubectl` that is not on the PATH."""
    if any(map(shutil.which, ("kustomize", "kubectl"))):
        return None
    if are_missing("kubectl"):
        give_up("kustomize and kubectl", "install one of them, or Go to build kubectl")
    return find("kubectl").parent


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty checkout, which is the working directory."""
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def kustomize(here: Path, _kubectl: Path | None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty checkout, with a program that builds kustomizations."""
    if _kubectl is not None:
        monkeypatch.setenv("PATH", f"{_kubectl}{os.pathsep}{os.environ['PATH']}")
    return here
