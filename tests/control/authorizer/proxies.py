"""A third-party Envoy, configured in plain YAML; the authorizer as a command; an application behind both."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from eastgate.control.identity import EmbeddedCa, client_context
from eastgate.local.machine.envoy import find_envoy
from tests.attacks import frames
from tests.control.authorizer.worlds import POD_ADDRESS
from tests.patience import PATIENCE
from tests.programs import Processes

__all__ = ["Application", "Authorizer", "Envoy", "Response", "running_application"]

CA = EmbeddedCa("cluster.local")


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 10
_PORTS = range(15_000 + 1_500 * _WORKER, 16_500 + 1_500 * _WORKER)  # so that two workers never choose the same port
_DRAW = random.SystemRandom()
_LEFT: list[int] = []


def free_port() -> int:
    """Return a free port outside of the range for outgoing connections. No port is returned twice until all were."""
    while True:
        if not _LEFT:
            _LEFT.extend(_DRAW.sample(_PORTS, len(_PORTS)))
        port = _LEFT.pop()
        with socket.socket() as trial, suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def seen(self) -> dict[str, str]:
        """Return the headers that the application saw, in lower case."""
        return {name.lower(): value for name, value in json.loads(self.body)["headers"].items()}


class Application(ThreadingHTTPServer):
    """An application that answers with the headers that it received, and counts requests."""

    daemon_threads = True
    requests = 0
    target = ""  # of the last request


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        assert isinstance(self.server, Application)
        self.server.requests += 1
        self.server.target = self.path
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.dumps({"path": self.path, "headers": dict(self.headers.items())}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names of the library

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def running_application() -> Iterator[Application]:
    with Application(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Authorizer:
    """`eastgate authorizer`, on ports and sockets of a folder."""

    def __init__(
        self,
        folder: Path,
        manifests: str,
        *more: str,
        workers: int = 1,
        proxies: tuple[str, ...] = ("--all-headers", "--whole-bodies"),
        trusted: str = "x-verified-peer",
    ) -> None:
        self.folder = folder
        self.manifests = folder / "policies.yaml"
        self.manifests.write_text(manifests)
        self.grpc, self.http, self.admin = free_port(), free_port(), free_port()
        self.grpc_socket, self.http_socket, self.tools_socket = (folder / f"{name}.sock" for name in "ght")
        self._log = folder / "authorizer.log"
        self._command = [
            *(sys.executable, "-m", "eastgate", "authorizer", "-f", str(self.manifests)),
            *("--grpc", f"127.0.0.1:{self.grpc}", "--grpc", f"unix:{self.grpc_socket}"),
            *("--http", f"127.0.0.1:{self.http}", "--http", f"unix:{self.http_socket}"),
            *("--tools", f"unix:{self.tools_socket}", "--admin", f"127.0.0.1:{self.admin}"),
            *("--path-prefix", "/check", "--trust-header", trusted, "--to-header", "x-authz-to"),
            *proxies,
            *("--workers", str(workers)),
            *more,
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Authorizer:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        self.wait_until(lambda: self.get("/readyz") == 200)
        return self

    def __enter__(self) -> Authorizer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        return process.wait(PATIENCE)

    def get(self, path: str) -> int:
        try:
            return self.fetch(path)[0]
        except OSError:
            return 0

    def fetch(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def wait_until(self, is_so: object) -> None:
        assert callable(is_so)
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert self.process is None or self.process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < end, self._log.read_text()[-3000:]
            time.sleep(0.02)

    @property
    def log(self) -> list[dict[str, object]]:
        """Return the records that the authorizer wrote."""
        lines = self._log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def record(self, decision: str) -> dict[str, object]:
        """Return the record of a decision."""
        return next(record for record in self.log if record.get("id") == decision)


_LISTENER = """
  - name: {name}
    address: {{socket_address: {{address: {host}, port_value: {port}}}}}
    filter_chains:
    - transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [h2, http/1.1]
            tls_certificates: [{{certificate_chain: {{filename: {pem}}}, private_key: {{filename: {pem}}}}}]
            validation_context: {{trusted_ca: {{filename: {roots}}}}}
      filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: {name}
          upgrade_configs: [{{upgrade_type: websocket}}]
{manager}
          route_config:
            virtual_hosts:
            - name: chosen
              domains: [chosen.example]
              routes: [{{match: {{prefix: /}}, route: {{cluster: app}}}}]
              typed_per_filter_config:
                envoy.filters.http.ext_authz:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                  check_settings: {{context_extensions: {{to: "pod:shop/reviews", port: "9080"}}}}
            - name: read
              domains: [read.example]
              routes: [{{match: {{prefix: /}}, route: {{cluster: app}}}}]
              typed_per_filter_config:
                envoy.filters.http.ext_authz:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                  check_settings: {{context_extensions: {{to: "backend:prod/files", mcp: metadata}}}}
            - name: named
              domains: [named.example]
              routes: [{{match: {{prefix: /}}, route: {{cluster: app}}}}]
              typed_per_filter_config:
                envoy.filters.http.ext_authz:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                  check_settings: {{context_extensions: {{host: talker-api.example}}}}
            - name: others
              domains: ["*"]
              routes: [{{match: {{prefix: /}}, route: {{cluster: app}}}}]
          http_filters:
          - name: identity
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
              mutations:
                request_mutations:
                - remove: x-verified-peer
                - remove: x-authz-to
                - append:
                    header: {{key: x-verified-peer, value: "%DOWNSTREAM_PEER_URI_SAN%"}}
                    append_action: OVERWRITE_IF_EXISTS_OR_ADD
          - name: envoy.filters.http.mcp
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.mcp.v3.Mcp
              traffic_mode: PASS_THROUGH
          - name: envoy.filters.http.ext_authz
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz
              transport_api_version: V3
              failure_mode_allow: false
              metadata_context_namespaces: [envoy.filters.http.mcp]
              with_request_body: {{max_request_bytes: 4096, allow_partial_message: {cuts}, pack_as_bytes: true}}
{service}
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
"""

_GRPC = """
              encode_raw_headers: {raw}
{allowed}
              include_peer_certificate: true
              include_tls_session: true
              grpc_service: {{envoy_grpc: {{cluster_name: {cluster}}}, timeout: {timeout}}}
"""

_HTTP = """
              allowed_headers: {{patterns: [{{safe_regex: {{regex: ".*"}}}}]}}
              http_service:
                server_uri: {{uri: "http://authorizer", cluster: {cluster}, timeout: {timeout}}}
                path_prefix: /check
                authorization_request: {{headers_to_add: [{added}]}}
                authorization_response: {{allowed_upstream_headers: {{patterns: [{{prefix: x-}}]}}}}
"""

_CLUSTER = """
  - name: {name}
    connect_timeout: 1s
{http2}
    load_assignment:
      cluster_name: {name}
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {address}}}}}]}}]
"""

_HTTP2 = """
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
"""


class Envoy(Processes):
    """Listeners that send checks to an authorizer by each protocol, over ports and unix sockets."""

    def __init__(
        self,
        folder: Path,
        authorizer: Authorizer,
        application: Application,
        timeout: str = "20s",
        *,
        cuts: bool = False,
        manager: str = "",
        allowed: str = "",
    ) -> None:
        """`cuts`: Envoy cuts bodies that are too large. `manager` and `allowed` are additional configuration: of
        the connection manager, and of checks over gRPC.
        """
        super().__init__(folder)
        self._cuts, self._manager, self._allowed = cuts, manager, allowed
        self.ports = {
            name: free_port() for name in ("grpc", "grpc-joined", "grpc-unix", "http", "http-unix", "http-to")
        }
        self.pod = free_port()
        self._authorizer = authorizer
        self._application = application
        self._timeout = timeout
        self._contexts: dict[tuple[str | None, bool], ssl.SSLContext] = {}

    def start(self) -> None:
        pem, roots, config = (self.folder / name for name in ("envoy.pem", "roots.pem", "envoy.yaml"))
        svid = CA.issue("spiffe://cluster.local/ns/edge/sa/proxy")
        pem.write_text(svid.chain + svid.private_key)
        roots.write_text(CA.bundles.pem("cluster.local"))
        files = {"pem": pem, "roots": roots, "manager": self._manager, "cuts": str(self._cuts).lower()}
        listeners = [
            _LISTENER.format(name=name, host="127.0.0.1", port=port, service=self._service(name), **files)
            for name, port in self.ports.items()
        ]
        listeners.append(
            _LISTENER.format(name="pod", host=POD_ADDRESS, port=self.pod, service=self._service("grpc"), **files)
        )
        config.write_text("static_resources:\n  listeners:" + "".join(listeners) + "  clusters:" + self._clusters())
        self.run([find_envoy(), "-c", config, "--disable-hot-restart", "--concurrency", "1", "-l", "warn"])
        self.wait_until(lambda: all(map(_accepts, [*self.ports.values()])) and _accepts(self.pod, POD_ADDRESS))

    def _service(self, name: str) -> str:
        if name.startswith("grpc"):
            cluster = "authz-grpc-unix" if name == "grpc-unix" else "authz-grpc"
            raw = str(name != "grpc-joined").lower()
            return _GRPC.format(cluster=cluster, timeout=self._timeout, raw=raw, allowed=self._allowed)
        cluster = "authz-http-unix" if name == "http-unix" else "authz-http"
        added = '{key: x-authz-to, value: "pod:shop/reviews"}' if name == "http-to" else ""
        return _HTTP.format(cluster=cluster, timeout=self._timeout, added=added)

    def _clusters(self) -> str:
        authorizer = self._authorizer
        sockets = {
            "app": (_tcp(self._application.server_port), ""),
            "authz-grpc": (_tcp(authorizer.grpc), _HTTP2),
            "authz-grpc-unix": (_pipe(authorizer.grpc_socket), _HTTP2),
            "authz-http": (_tcp(authorizer.http), ""),
            "authz-http-unix": (_pipe(authorizer.http_socket), ""),
        }
        return "".join(
            _CLUSTER.format(name=name, address=address, http2=http2) for name, (address, http2) in sockets.items()
        )

    def call(
        self,
        listener: str,
        account: str | None,
        path: str,
        *,
        host: str,
        method: str = "GET",
        headers: tuple[tuple[str, str], ...] = (),
        body: bytes | None = None,
        http2: bool = False,
    ) -> Response:
        """Call through a listener, as an account or without a certificate."""
        address = (POD_ADDRESS, self.pod) if listener == "pod" else ("127.0.0.1", self.ports[listener])
        with (
            socket.create_connection(address, timeout=PATIENCE) as plain,
            self._context(account, http2).wrap_socket(plain) as connection,
        ):
            send = _send2 if http2 else _send1
            return send(connection, method, path, host, headers, body)

    @contextmanager
    def connection(self, listener: str, account: str | None) -> Iterator[ssl.SSLSocket]:
        """Open a connection for HTTP/1.1 to a listener."""
        address = (POD_ADDRESS, self.pod) if listener == "pod" else ("127.0.0.1", self.ports[listener])
        with (
            socket.create_connection(address, timeout=PATIENCE) as plain,
            self._context(account, False).wrap_socket(plain) as connection,
        ):
            yield connection

    def _context(self, account: str | None, http2: bool) -> ssl.SSLContext:
        key = (account, http2)
        if key not in self._contexts:
            if account is None:
                context = ssl.create_default_context(cadata=CA.bundles.pem("cluster.local"))
                context.check_hostname = False
                context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            else:
                namespace, name = account.split("/")
                context = client_context(CA.issue(f"spiffe://cluster.local/ns/{namespace}/sa/{name}"), CA.bundles)
            context.set_alpn_protocols(["h2" if http2 else "http/1.1"])
            self._contexts[key] = context
        return self._contexts[key]


def _tcp(port: int) -> str:
    return f"{{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}"


def _pipe(path: Path) -> str:
    return f"{{pipe: {{path: {path}}}}}"


def _accepts(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def _send1(
    connection: ssl.SSLSocket,
    method: str,
    path: str,
    host: str,
    headers: tuple[tuple[str, str], ...],
    body: bytes | None,
) -> Response:
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + (body or b""))
    response = http.client.HTTPResponse(connection)
    response.begin()
    return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def _send2(
    connection: ssl.SSLSocket,
    method: str,
    path: str,
    host: str,
    headers: tuple[tuple[str, str], ...],
    body: bytes | None,
) -> Response:
    fields = [(":method", method), (":scheme", "https"), (":authority", host), (":path", path), *headers]
    encoded = [(name.encode(), value.encode()) for name, value in fields]
    connection.sendall(frames.opening() + frames.request(*encoded, data=body))
    answers, content, buffer = frames.Answers(), b"", bytearray()
    while 1 not in answers.ended:
        data = connection.recv(65536)
        assert data, "the connection was closed"
        buffer += data
        content += b"".join(each.fragment for each in frames.frames(buffer) if each.kind == frames.DATA)
        answers.hear(data)
    read = {name.decode(): value.decode() for name, value in answers.headers[1].items()}
    return Response(answers.status(1), read, content)


def kill_hard(process: subprocess.Popen[bytes]) -> None:
    """Kill a process."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
