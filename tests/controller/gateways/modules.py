"""Gateway API's own conformance tests, from the Go module that carries them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.missing import give_up

_MODULE = "sigs.k8s.io/gateway-api/conformance"
_VERSION = "v1.5.1"
_SUM = "h1:5eruSMKcwKnkX42PFek8oO6BgPNBD5FbWbTcRV76KIw="
_SECONDS = 300


@cache
def conformance() -> Path:
    """Return the folder of the module. Download it if needed."""
    if shutil.which("go") is None:
        give_up("Gateway API's conformance tests", "install Go")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    command = ["go", "mod", "download", "-json", f"{_MODULE}@{_VERSION}"]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode != 0:
        pytest.fail(f"{_MODULE} cannot be downloaded here: {done.stdout[-400:]}{done.stderr[-400:]}")
    module = json.loads(done.stdout)
    assert module["Sum"] == _SUM, f"{_MODULE} is not what it was"
    return Path(module["Dir"])
