"""Go modules whose files tests read: the definitions and the conformance tests of Gateway API."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

VERSION = "v1.5.1"


@cache
def module_folder(module: str, version: str = VERSION) -> Path:
    """Return the folder of a module, which is downloaded if need be. Fails the test where that is not possible."""
    if shutil.which("go") is None:
        pytest.fail(f"{module} needs go")
    command = ["go", "mod", "download", "-json", f"{module}@{version}"]
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.fail(f"{module} cannot be downloaded here: {done.stdout[-400:]}{done.stderr[-400:]}")
    return Path(json.loads(done.stdout)["Dir"])


def definitions() -> Path:
    """Return the folder of Gateway API's CustomResourceDefinitions, of the experimental channel."""
    return module_folder("sigs.k8s.io/gateway-api") / "config" / "crd" / "experimental"


def conformance() -> Path:
    """Return the folder of Gateway API's conformance tests."""
    return module_folder("sigs.k8s.io/gateway-api/conformance")
