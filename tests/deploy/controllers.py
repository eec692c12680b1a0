"""The controller as a process, as its pod would run it."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.programs import Processes, free_port

_PORTS = ("xds", "authorizer", "tools", "peers", "webhook", "http")


class Controller(Processes):
    """A replica with the rights of an account. `arguments` are those of its pod."""

    is_bound = True

    def __init__(self, folder: Path, kubeconfig: Path, replica: str, *arguments: str) -> None:
        super().__init__(folder)
        self.folder.mkdir()
        self.ports = {name: free_port() for name in _PORTS}
        listening = [f"--{name}-port={port}" for name, port in self.ports.items()]
        self._command: list[str] = [
            *(sys.executable, "-m", "eastgate", *arguments, "--kubeconfig", str(kubeconfig)),
            *("--replica", replica, "--host", "127.0.0.1", "--log-format", "text", *listening),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the replica, and wait until it is ready."""
        self._process = self.run(self._command)
        self.wait_until(self.is_ready)

    def finish(self) -> None:
        """Terminate the replica, and wait until it has ended."""
        assert self._process is not None
        self.end(self._process)
        assert self._process.returncode == 0, self.log

    @property
    def log(self) -> str:
        return "".join(file.read_text() for file in self.folder.glob("*.log"))

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}/readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def arguments_of(deployment: dict[str, Any]) -> list[str]:
    """Return the arguments of the container of a Deployment."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [str(each) for each in container["args"]]
