"""The authorizers as processes, each on the core under test: Eastgate, Authorino, and OPA with its Envoy plugin."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.programs import Processes, find, free_port

from bench.authorizers.schemes import CACHED, NAMESPACE, Credentials, auth_configs, manifests, rego_modules, secrets
from bench.enforcement.envoys import OTHERS, UNDER_TEST, on_cores

__all__ = ["AUTHORINO", "EASTGATE", "GRPC", "HTTP", "OPA", "PROGRAMS", "Engine", "engine"]

GRPC, HTTP = "gRPC", "HTTP"
EASTGATE, AUTHORINO, OPA = "Eastgate", "Authorino", "OPA"
PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    EASTGATE: (),
    AUTHORINO: ("authorino", "etcd", "kube-apiserver", "kubectl"),
    OPA: ("opa-envoy",),
}


class Engine(ABC):
    """An authorizer that runs until the `with` block ends. `ports` has the port of each protocol that it speaks."""

    name: str
    ports: Mapping[str, int]
    lacks: frozenset[str] = frozenset()  # schemes that it cannot express

    def __init__(self, folder: Path, credentials: Credentials) -> None:
        self.folder = folder / self.name
        self.folder.mkdir()
        self.credentials = credentials
        self._stack = ExitStack()

    def __enter__(self) -> Engine:
        with self._stack:
            self.start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @abstractmethod
    def start(self) -> None:
        """Start the authorizer, and wait until it has read its policies."""

    @abstractmethod
    def pids(self) -> list[int]:
        """Return the process IDs of the authorizer itself."""

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads of these processes, to the nanosecond."""
        tasks = (path for pid in self.pids() for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))
        return sum(int(path.read_text(encoding="ascii").split()[0]) for path in tasks) / 1e9

    def _run(self, processes: Processes, command: list[str], variables: Mapping[str, str] | None = None) -> None:
        with on_cores(UNDER_TEST):
            processes.run(command, {"GOMAXPROCS": str(len(UNDER_TEST)), **(variables or {})})


class Eastgate(Engine):
    """`eastgate authorizer`, one process, without a log of decisions."""

    name = EASTGATE

    def start(self) -> None:
        (self.folder / "all.yaml").write_text(manifests(self.credentials), encoding="utf-8")
        self.ports = {GRPC: free_port(), HTTP: free_port()}
        admin = free_port()
        self._processes = self._stack.enter_context(Processes(self.folder))
        self._run(
            self._processes,
            [
                *(sys.executable, "-m", "eastgate", "authorizer", "-f", str(self.folder)),
                *("--grpc", f"127.0.0.1:{self.ports[GRPC]}", "--http", f"127.0.0.1:{self.ports[HTTP]}"),
                *("--admin", f"127.0.0.1:{admin}", "--to", f"gateway:{NAMESPACE}/edge", "--log", "none"),
                *("--all-headers", "--trust-header", "x-verified-peer"),
            ],
        )
        self._processes.wait_until(lambda: _accepts(admin))

    def pids(self) -> list[int]:
        return self._processes.pids


class Authorino(Engine):
    """A real Authorino, with its own API server on the other cores."""

    name = AUTHORINO

    def start(self) -> None:
        from tests.authorino.running import Authorino as Running

        engine = self

        class Pinned(Running):
            def _run_authorino(self) -> None:
                with on_cores(UNDER_TEST):
                    before = set(self.pids)
                    super()._run_authorino()
                    engine._pids = [pid for pid in self.pids if pid not in before]

        self.ports = {GRPC: 50051, HTTP: 5001}
        with on_cores(OTHERS):
            running = self._stack.enter_context(Pinned(self.folder))
        stripped = [{**each, "metadata": _without_namespace(each["metadata"])} for each in secrets()]
        running.create_namespace(NAMESPACE, stripped)
        for name, spec in auth_configs(self.credentials).items():
            problem = running.create_config(NAMESPACE, name, spec)
            assert problem is None, problem
        problems = running.wait_for_configs()
        assert not problems, problems

    def pids(self) -> list[int]:
        return self._pids

    _pids: list[int]


def _without_namespace(metadata: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name != "namespace"}


class Opa(Engine):
    """OPA with its Envoy plugin, which speaks gRPC only and has no CEL."""

    name = OPA
    lacks = frozenset({"CEL", CACHED})

    def start(self) -> None:
        (self.folder / "bench.rego").write_text(rego_modules(self.credentials), encoding="utf-8")
        port = free_port()
        plugin = {"addr": f"127.0.0.1:{port}", "path": "bench/allow", "skip-request-body-parse": True}
        (self.folder / "config.yaml").write_text(json.dumps({"plugins": {"envoy_ext_authz_grpc": plugin}}))
        self.ports = {GRPC: port}
        self._processes = self._stack.enter_context(Processes(self.folder))
        command = [str(find("opa-envoy")), "run", "--server", "--skip-version-check", "--log-level", "error"]
        command += ["--addr", f"127.0.0.1:{free_port()}", "--config-file", str(self.folder / "config.yaml")]
        self._run(self._processes, [*command, str(self.folder / "bench.rego")], {"HOME": os.environ.get("HOME", "/")})
        self._processes.wait_until(lambda: _accepts(port))

    def pids(self) -> list[int]:
        return self._processes.pids


def _accepts(port: int) -> bool:
    import socket

    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def engine(name: str, folder: Path, credentials: Credentials) -> Engine:
    """Return the authorizer with this name."""
    kinds: dict[str, type[Engine]] = {EASTGATE: Eastgate, AUTHORINO: Authorino, OPA: Opa}
    return kinds[name](folder, credentials)
