"""A real nginx, with the configuration of its guide, sends checks over HTTP and applies the decisions of the engine."""

from __future__ import annotations

import http.client
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks import paths
from tests.attacks.application import Arrived
from tests.control.authorizer.proxies import Application, free_port, running_application
from tests.control.authorizer.test_deceived_proxies import API_ONLY, SPELLINGS
from tests.control.authorizer.worlds import MANIFESTS
from tests.missing import give_up
from tests.patience import PATIENCE
from tests.programs import Processes

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "authorizer-proxies.md").read_text()
DOCUMENTED = PAGE.partition("```nginx\n")[2].partition("```")[0]
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  {temporary}
  map $http_x_test_peer $ssl_client_spiffe_id {{ default ""; ~. $http_x_test_peer; }}
  server {{ listen 127.0.0.1:{port}; {locations} }}
  server {{ listen 127.0.0.1:{port}; server_name other.example; return 404; }}
}}
"""


class Nginx(Processes):
    """An nginx in front of an application, and the authorizer of its checks."""

    def __init__(self, folder: Path, manifests: str, to: str, application: Application, passed: str = "") -> None:
        super().__init__(folder)
        self.port, self._authorizer, self.application = free_port(), free_port(), application
        self._manifests, self._to, self._passed = manifests, to, passed

    def start(self) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            give_up("nginx", "install it")
        policies = self.folder / "policies.yaml"
        policies.write_text(self._manifests)
        at = f"127.0.0.1:{self._authorizer}"
        options = ("--original", "--all-headers", "--trust-header", "x-verified-peer", "--to", self._to)
        self.run([sys.executable, "-m", "eastgate", "authorizer", "-f", str(policies), "--http", at, *options])
        locations = DOCUMENTED.replace("127.0.0.1:9193", at)
        locations = locations.replace("http://app;", f"http://127.0.0.1:{self.application.server_port}{self._passed};")
        temporary = " ".join(f"{name}_temp_path {self.folder}/{name};" for name in TEMPORARY)
        config = self.folder / "nginx.conf"
        config.write_text(
            CONFIGURATION.format(folder=self.folder, temporary=temporary, port=self.port, locations=locations)
        )
        self.run([program, "-c", config, "-p", self.folder])
        self.wait_until(lambda: _accepts(self.port) and _accepts(self._authorizer))

    def send(self, data: str) -> int:
        """Send a request; return the status."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data.encode("latin-1"))
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status

    def get(self, target: str, *headers: str, host: str = "reviews", method: str = "GET") -> int:
        lines = (f"{method} {target} HTTP/1.1", f"host: {host}", "connection: close", *headers)
        return self.send("\r\n".join((*lines, "", "")))


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module", params=["", "/"], ids=["as sent", "normalised"])
def nginx(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """Yield an nginx that forwards the path as it was sent (`proxy_pass http://app`) or read (`http://app/`)."""
    with (
        running_application() as application,
        Nginx(tmp_path_factory.mktemp("n"), API_ONLY, "pod:shop/reviews", application, request.param) as running,
    ):
        yield running


def test_an_application_gets_the_path_that_was_decided(nginx: Nginx) -> None:
    outside, wrong, passed = paths.outside("/api/"), [], 0
    for path in (*SPELLINGS, "/api/\xe9", "/api/x?y#z", "http://h/secret/../api/x"):
        if " " in path or any(ord(character) > 255 for character in path):
            continue
        before = nginx.application.requests
        status = nginx.get(path)
        if nginx.application.requests == before:
            assert status in (400, 403, 404, 414, 500), path
            continue
        passed += 1
        target = nginx.application.target
        problem = outside(Arrived("1.1", "GET", target, ()))
        if problem is not None or not target.startswith("/api/"):
            wrong.append((path, target, problem))
    assert not wrong
    assert passed > 10


@pytest.mark.parametrize(
    "path", ["/secret/../api/x", "/secret/%2e%2e/api/x", "/api//x", "/secret\\..\\api\\x", "/api/x#y"]
)
def test_a_path_that_normalisation_would_change_is_refused(nginx: Nginx, path: str) -> None:
    assert nginx.get(path) == 500  # nginx turns a 400 into it


def test_callers_and_messages(tmp_path: Path) -> None:
    agent = "x-test-peer: spiffe://cluster.local/ns/prod/sa/agent"
    with (
        running_application() as application,
        Nginx(tmp_path, MANIFESTS, "gateway:prod/agents", application) as nginx,
    ):
        for headers in ((), ("upgrade: websocket", "connection: upgrade"), ("content-length: 0",)):
            assert nginx.get("/mcp", agent, *headers, host="mcp.example") == 403  # unknown whether it has a body
            assert nginx.get("/mcp", agent, *headers, host="mcp.example", method="POST") == 403
        assert application.requests == 0


def test_the_host_of_the_target_counts(tmp_path: Path) -> None:
    """nginx selects the server by the host of the target, not by the header."""
    key = "authorization: APIKEY KEY-OF-ALICE"
    with (
        running_application() as application,
        Nginx(tmp_path, MANIFESTS, "gateway:toys/store", application) as nginx,
    ):
        assert nginx.get("/", key, host="toys.example") == 200
        assert nginx.get("http://toys.example/", key, host="nowhere.example") == 200
        assert nginx.get("http://nowhere.example/", key, host="toys.example") in (403, 500)
        assert application.requests == 2
