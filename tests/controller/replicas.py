"""Replicas of the controller as processes, beside a real API server."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.programs import ApiServer, Processes, free_port

SYSTEM = "eastgate-system"
_PORTS = ("xds", "authorizer", "tools", "peers", "webhook", "http")


class Replicas(Processes):
    """Replicas of the controller on loopback, each with its own ports; or at `hosts`, each with the default ports."""

    is_bound = True

    def __init__(
        self,
        server: ApiServer,
        folder: Path,
        options: Sequence[str] = (),
        kubeconfig: Path | None = None,
        hosts: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder)
        self._server = server
        self._options = options
        self._kubeconfig = kubeconfig or server.kubeconfig
        self._hosts = hosts or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports: dict[str, dict[str, int]] = {}
        self.program = ["-m", "eastgate"]
        """Set the Python arguments that start the command."""
        server.create("/api/v1/namespaces", {"metadata": {"name": SYSTEM}})

    def launch(self, name: str) -> None:
        """Start a replica without waiting for it."""
        own = {} if name in self._hosts else {port: free_port() for port in _PORTS}
        self.ports[name] = own or {"http": 8080}
        chosen = [f"--{port}-port={number}" for port, number in own.items()]
        command = [sys.executable, *self.program, "controller", "--kubeconfig", str(self._kubeconfig)]
        command += [
            "--replica",
            name,
            "--host",
            self.host(name),
            "--lease-duration",
            "3",
            "-v",
            *chosen,
            *self._options,
        ]
        self.processes[name] = self.run(command)

    def host(self, name: str) -> str:
        """Return the address of a replica."""
        return self._hosts.get(name, "127.0.0.1")

    def start_all(self, *names: str) -> None:
        """Start replicas, and wait until all are ready."""
        for name in names:
            self.launch(name)
        self.wait_until(lambda: all(self.is_ready(name) for name in names))

    def is_ready(self, name: str) -> bool:
        return self.fetch(name, "/readyz") == b"ready\n"

    def fetch(self, name: str, path: str) -> bytes | None:
        """Return the HTTP response of a replica, or None without a status 200."""
        try:
            with urllib.request.urlopen(
                f"http://{self.host(name)}:{self.ports[name]['http']}{path}", timeout=10
            ) as answer:
                content: bytes = answer.read()
                return content
        except (OSError, urllib.error.URLError):
            return None

    def lines(self) -> list[dict[str, Any]]:
        """Return all log lines of the replicas. The last one may be incomplete."""
        texts = (path.read_text(encoding="utf-8").splitlines(keepends=True) for path in self.folder.glob("*.log"))
        return [json.loads(line) for lines in texts for line in lines if line.startswith("{") and line.endswith("\n")]

    @property
    def leader(self) -> str:
        """Return the replica that holds the Lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/eastgate"
        _, lease = self._server.request("GET", path)
        return str((lease.get("spec") or {}).get("holderIdentity") or "")

    def lose(self, name: str, *, is_asked: bool) -> None:
        """Stop a replica, or kill it."""
        self.end(self.processes.pop(name), is_asked=is_asked)
