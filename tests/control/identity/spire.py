"""A real SPIRE server and agent, on loopback for a test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.programs import Processes, find, free_port

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


class Spire(Processes):
    """A server and an agent in a folder with a short name: the path of a Unix socket is limited."""

    def __init__(self, folder: Path, trust_domain: str) -> None:
        super().__init__(folder)
        self.socket = f"unix:{folder}/agent.sock"
        self._programs = {name: find(name) for name in ("spire-server", "spire-agent")}
        self._trust_domain = trust_domain

    def register(self, identity: str, *options: str) -> None:
        """Register this identity for every process of this user, and wait until the agent supplies it."""
        selector = f"unix:uid:{os.getuid()}"
        node = f"spiffe://{self._trust_domain}/node"
        self.ask("entry", "create", "-parentID", node, "-spiffeID", identity, "-selector", selector, *options)

    def ask(self, *arguments: str) -> str:
        """Run a command of the server."""
        command: list[str | Path] = [self._programs["spire-server"], *arguments]
        command += ["-socketPath", f"{self.folder}/server.sock"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self) -> None:
        """Start the server, and then the agent with a join token."""
        values = {"folder": self.folder, "port": free_port(), "trust_domain": self._trust_domain}
        (self.folder / "server").mkdir()
        self._run("spire-server", _SERVER.format(**values))
        self.wait_until(lambda: self._healthy("spire-server", "server.sock"))
        (self.folder / "bootstrap.pem").write_text(self.ask("bundle", "show"))
        node = f"spiffe://{self._trust_domain}/node"
        token = self.ask("token", "generate", "-spiffeID", node).split("Token:")[1].split()[0]
        self._run("spire-agent", _AGENT.format(**values, token=token))
        self.wait_until(lambda: self._healthy("spire-agent", "agent.sock"))

    def _run(self, program: str, configuration: str) -> None:
        path = self.folder / f"{program}.conf"
        path.write_text(configuration)
        self.run([self._programs[program], "run", "-config", path])

    def _healthy(self, program: str, name: str) -> bool:
        command: list[str | Path] = [self._programs[program], "healthcheck", "-socketPath", f"{self.folder}/{name}"]
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
