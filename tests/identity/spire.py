"""A real SPIRE, server and agent, built once from its pinned source and run on loopback for a test.

The programs are kept in the user's cache, outside of the checkout. The module list of SPIRE itself (go.sum) pins what
they are built from, so that every download is checked against what its authors used.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

VERSION = "v1.13.3"
SUM = "h1:wDTK8tj8ShO5izjue/OFanVaehmjUxSxHtSWxBY+FJQ="
MODULE = "github.com/spiffe/spire"
PROGRAMS = ("spire-server", "spire-agent")
BUILD_SECONDS = 1500

_GO_MOD = """\
module spire.test

go 1.25

require {module} {version}
"""

_SERVER = """\
server {{
  bind_address = "127.0.0.1"
  bind_port = "{port}"
  socket_path = "{folder}/server.sock"
  trust_domain = "{trust_domain}"
  data_dir = "{folder}/server"
  log_level = "WARN"
}}
plugins {{
  DataStore "sql" {{ plugin_data {{ database_type = "sqlite3", connection_string = "{folder}/server/data.db" }} }}
  KeyManager "memory" {{ plugin_data {{}} }}
  NodeAttestor "join_token" {{ plugin_data {{}} }}
}}
"""

_AGENT = """\
agent {{
  server_address = "127.0.0.1"
  server_port = "{port}"
  socket_path = "{folder}/agent.sock"
  trust_domain = "{trust_domain}"
  trust_bundle_path = "{folder}/bootstrap.pem"
  join_token = "{token}"
  data_dir = "{folder}/agent"
  log_level = "WARN"
}}
plugins {{
  KeyManager "memory" {{ plugin_data {{}} }}
  NodeAttestor "join_token" {{ plugin_data {{}} }}
  WorkloadAttestor "unix" {{ plugin_data {{}} }}
}}
"""


def programs() -> Path:
    """The folder with the programs. Skips the test where they cannot be built, and says why."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eastgate" / "spire" / VERSION
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((cache / name).exists() for name in PROGRAMS):
            if shutil.which("go") is None or shutil.which("gcc") is None:
                pytest.fail("building SPIRE needs go and gcc")
            _build(cache)
    return cache


def _build(cache: Path) -> None:
    source = cache / "src"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    module = json.loads(_go(source, "mod", "download", "-json", f"{MODULE}@{VERSION}"))
    assert module["Sum"] == SUM, "this is not the source that was pinned"
    (source / "go.mod").write_text(_GO_MOD.format(module=MODULE, version=VERSION))
    own = f"{MODULE} {VERSION} {SUM}\n{MODULE} {VERSION}/go.mod {module['GoModSum']}\n"
    (source / "go.sum").write_text(Path(module["Dir"], "go.sum").read_text() + own)
    _go(source, "build", "-mod=mod", "-o", "built/", *(f"{MODULE}/cmd/{name}" for name in PROGRAMS))
    for name in PROGRAMS:
        (source / "built" / name).rename(cache / name)


def _go(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            ["nice", "-n", "19", "go", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=BUILD_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        pytest.fail(f"SPIRE cannot be built here: {error.stderr[-400:]}")
    except subprocess.TimeoutExpired:
        pytest.fail(f"SPIRE cannot be built here in {BUILD_SECONDS} seconds")
    return done.stdout


class Spire:
    """A server and an agent in a folder, which must have a short name: the path of a Unix socket is limited."""

    def __init__(self, programs: Path, folder: Path, trust_domain: str) -> None:
        self.folder = folder
        self.socket = f"unix:{folder}/agent.sock"
        self._programs = programs
        self._trust_domain = trust_domain
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Spire:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def register(self, identity: str, *options: str) -> None:
        """Have the agent give this identity to every process of our user, and wait until it knows."""
        selector = f"unix:uid:{os.getuid()}"
        node = f"spiffe://{self._trust_domain}/node"
        self.ask("entry", "create", "-parentID", node, "-spiffeID", identity, "-selector", selector, *options)

    def ask(self, *arguments: str) -> str:
        """Give a command to the server."""
        command = [str(self._programs / "spire-server"), *arguments, "-socketPath", f"{self.folder}/server.sock"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        values = {"folder": self.folder, "port": port, "trust_domain": self._trust_domain}
        (self.folder / "server").mkdir()
        self._run("spire-server", _SERVER.format(**values))
        self._wait_for(lambda: self._healthy("spire-server", "server.sock"))
        (self.folder / "bootstrap.pem").write_text(self.ask("bundle", "show"))
        node = f"spiffe://{self._trust_domain}/node"
        token = self.ask("token", "generate", "-spiffeID", node).split("Token:")[1].split()[0]
        self._run("spire-agent", _AGENT.format(**values, token=token))
        self._wait_for(lambda: self._healthy("spire-agent", "agent.sock"))

    def _run(self, program: str, configuration: str) -> None:
        path = self.folder / f"{program}.conf"
        path.write_text(configuration)
        with (self.folder / f"{program}.log").open("wb") as log:
            command = [str(self._programs / program), "run", "-config", str(path)]
            self._running.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _healthy(self, program: str, name: str) -> bool:
        command = [str(self._programs / program), "healthcheck", "-socketPath", f"{self.folder}/{name}"]
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0

    def _wait_for(self, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not ready():
            dead = any(process.poll() is not None for process in self._running)
            logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log")) if dead else ""
            assert not dead, logs
            assert time.monotonic() < end, "SPIRE did not start within a minute"
            time.sleep(0.2)

    def _stop(self) -> None:
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
