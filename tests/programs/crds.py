"""CustomResourceDefinitions: Eastgate's own, and those of other projects from their Go modules.

`crds.json` lists the modules and their hashes (as in a `go.sum`). Go keeps them in its module cache.
Linkerd's module cannot be downloaded, so its CRDs are in a file here.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from eastgate.reports.crds import definitions
from tests.missing import give_up

__all__ = ["NAMES", "crds"]

_FOLDER = Path(__file__).parent
_MODULES: dict[str, dict[str, Any]] = json.loads((_FOLDER / "crds.json").read_text(encoding="utf-8"))
_LINKERD = _FOLDER / "linkerd_crds.yaml"
_TIMEOUT_SECONDS = 600

NAMES = ("eastgate", "linkerd", *_MODULES)


def crds(name: str) -> list[dict[str, Any]]:
    """Return the CRDs that a project installs, as manifests."""
    if name == "eastgate":
        return copy.deepcopy(definitions())
    return copy.deepcopy(_of_files([_LINKERD] if name == "linkerd" else _downloaded(name)))


def _of_files(files: list[Path]) -> list[dict[str, Any]]:
    return [manifest for file in files for manifest in _definitions_of(file)]


@cache
def _definitions_of(file: Path) -> tuple[dict[str, Any], ...]:
    with file.open(encoding="utf-8") as text:
        manifests = list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    return tuple(made for made in manifests if made and made["kind"] == "CustomResourceDefinition")


@cache
def _downloaded(name: str) -> list[Path]:
    pinned = _MODULES[name]
    if shutil.which("go") is None:
        give_up(f"the definitions of {name}", "install Go")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    command = ["go", "mod", "download", "-json", f"{pinned['module']}@{pinned['version']}"]
    done = subprocess.run(
        command, cwd=_FOLDER, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
    )
    if done.returncode != 0:
        pytest.fail(f"the definitions of {name} cannot be downloaded here: {done.stdout[-400:]}{done.stderr[-400:]}")
    module = json.loads(done.stdout)
    assert module["Sum"] == pinned["sum"], f"{pinned['module']} is not what it was"
    files = sorted(Path(module["Dir"]).glob(pinned["files"]))
    assert files, f"{pinned['module']} has no {pinned['files']}"
    return files
