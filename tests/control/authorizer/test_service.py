"""The authorizer as a process: it denies checks that it cannot answer, follows saves, and shuts down in order."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from eastgate.control.identity import client_context
from eastgate.envoy.authz.server import NOT_SERVING, SERVING
from tests.control.authorizer.proxies import CA, Application, Authorizer, Envoy, kill_hard, running_application
from tests.control.authorizer.test_deciding import message
from tests.control.authorizer.worlds import MANIFESTS
from tests.patience import PATIENCE
from tests.programs import free_port

WEB = "spiffe://cluster.local/ns/shop/sa/web"


@pytest.fixture
def application() -> Iterator[Application]:
    with running_application() as running:
        yield running


def ask(authorizer: Authorizer, path: str, host: str = "reviews", **headers: str) -> http.client.HTTPResponse:
    """Send a check over HTTP, as a proxy does."""
    connection = http.client.HTTPConnection("127.0.0.1", authorizer.http, timeout=PATIENCE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", f"/check{path}", headers={"host": host, **named})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def reviews(authorizer: Authorizer, path: str = "/reviews/1", source: str = WEB) -> int:
    return ask(authorizer, path, x_verified_peer=source, x_authz_to="pod:shop/reviews").status


def health(authorizer: Authorizer, service: str = "") -> bytes:
    request = b"" if not service else b"\x0a" + bytes([len(service)]) + service.encode()
    with grpc.insecure_channel(f"127.0.0.1:{authorizer.grpc}") as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        answer: bytes = check(request, timeout=PATIENCE)
    return answer


def test_no_authorizer_is_no_consent(tmp_path: Path, application: Application) -> None:
    authorizer = Authorizer(tmp_path, MANIFESTS)
    with Envoy(tmp_path, authorizer, application) as envoy:
        for listener in ("grpc", "grpc-unix", "http-to"):
            status = envoy.call(listener, "shop/web", "/reviews/1", host="chosen.example").status
            assert status in (403, 503), listener
        with authorizer:
            for listener in ("grpc", "grpc-unix", "http-to"):
                authorizer.wait_until(
                    lambda listener=listener: (
                        envoy.call(listener, "shop/web", "/reviews/1", host="chosen.example").status == 200
                    )
                )
            assert authorizer.process is not None
            kill_hard(authorizer.process)
            before = application.requests
            for listener in ("grpc", "grpc-unix", "http-to"):
                assert envoy.call(listener, "shop/web", "/reviews/1", host="chosen.example").status in (403, 503)
            assert application.requests == before


@contextmanager
def silent_service(taken: list[socket.socket] | None = None) -> Iterator[int]:
    """Yield a service that accepts every connection and never answers."""
    taken = [] if taken is None else taken
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            while True:
                try:
                    taken.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        connection.close()


@pytest.mark.parametrize("listener", ["grpc", "http"])
def test_a_slow_external_authorizer_denies(tmp_path: Path, application: Application, listener: str) -> None:
    with (
        silent_service() as port,
        Authorizer(
            tmp_path, MANIFESTS, "--timeout", "0.3", "--external", f"front.prod:9000=127.0.0.1:{port}"
        ) as authorizer,
        Envoy(tmp_path, authorizer, application) as envoy,
    ):
        response = envoy.call(
            listener,
            "prod/auditor",
            "/mcp",
            host="mcp.example",
            method="POST",
            headers=(("content-type", "application/json"),),
            body=message("tools/call", "read"),
        )
        assert response.status in (403, 503)
        assert application.requests == 0


def test_saves(tmp_path: Path) -> None:
    with Authorizer(tmp_path, MANIFESTS) as authorizer:
        assert (reviews(authorizer), reviews(authorizer, "/ratings")) == (200, 403)
        authorizer.manifests.write_text(MANIFESTS.replace("paths: [/reviews/*]", "paths: [/ratings]"))
        authorizer.wait_until(lambda: reviews(authorizer, "/ratings") == 200)
        assert reviews(authorizer) == 403
        authorizer.manifests.write_text(MANIFESTS.replace("action: ALLOW", "action: PERMIT"))
        authorizer.wait_until(lambda: any("PERMIT" in str(record.get("problems")) for record in authorizer.log))
        assert (reviews(authorizer), reviews(authorizer, "/ratings")) == (403, 200)
        metrics = authorizer.fetch("/metrics")[1]
        assert "eastgate_policy_reload_failures_total " in metrics
        assert "eastgate_policy_reload_failures_total 0.0" not in metrics
        authorizer.manifests.write_text(MANIFESTS)
        authorizer.wait_until(lambda: reviews(authorizer) == 200)


def test_an_emptied_file_opens_nothing(tmp_path: Path) -> None:
    with Authorizer(tmp_path, MANIFESTS) as authorizer:
        authorizer.manifests.write_text("")
        authorizer.wait_until(lambda: any(record.get("event") == "reload failed" for record in authorizer.log))
        assert (reviews(authorizer), reviews(authorizer, "/ratings")) == (200, 403)


def test_an_end_in_order(tmp_path: Path) -> None:
    authorizer = Authorizer(tmp_path, MANIFESTS, "--drain", "0.5").start()
    assert (health(authorizer), health(authorizer, "envoy.service.auth.v3.Authorization")) == (SERVING, SERVING)
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        health(authorizer, "another")
    assert authorizer.process is not None
    authorizer.process.send_signal(signal.SIGTERM)
    authorizer.wait_until(lambda: authorizer.get("/readyz") == 503)
    assert health(authorizer) == NOT_SERVING
    assert reviews(authorizer) == 200  # it still answers proxies that do not know of the shutdown
    assert authorizer.process.wait(PATIENCE) == 0
    assert not authorizer.http_socket.exists()
    assert [record["event"] for record in authorizer.log if "event" in record][-2:] == ["draining", "stopped"]


def test_open_checks_are_finished(tmp_path: Path) -> None:
    asked: list[socket.socket] = []
    with silent_service(asked) as port:
        authorizer = Authorizer(
            tmp_path, MANIFESTS, "--timeout", "1.5", "--external", f"front.prod:9000=127.0.0.1:{port}"
        ).start()
        statuses: list[int] = []

        def wait_for_answer() -> None:
            source = "spiffe://cluster.local/ns/prod/sa/auditor"
            statuses.append(ask(authorizer, "/mcp", "mcp.example", x_verified_peer=source).status)

        waiting = threading.Thread(target=wait_for_answer)
        waiting.start()
        authorizer.wait_until(lambda: asked or statuses)
        assert authorizer.stop() == 0
        waiting.join(PATIENCE)
        assert statuses
        assert statuses[0] in (403, 503)


def test_too_many_at_a_time_are_refused(tmp_path: Path) -> None:
    with (
        silent_service() as port,
        Authorizer(
            tmp_path,
            MANIFESTS,
            *("--timeout", "2", "--threads", "1", "--max-open", "1"),
            *("--external", f"front.prod:9000=127.0.0.1:{port}"),
        ) as authorizer,
    ):
        statuses: list[int] = []

        def wait_for_answer() -> None:
            source = "spiffe://cluster.local/ns/prod/sa/auditor"
            statuses.append(ask(authorizer, "/mcp", "mcp.example", x_verified_peer=source).status)

        threads = [threading.Thread(target=wait_for_answer) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(statuses) == 16
        assert set(statuses) <= {403, 503}
        assert any(record.get("why") == "overload" for record in authorizer.log)


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with Authorizer(tmp_path, MANIFESTS, "--max-body", "1000") as authorizer:
        connection = http.client.HTTPConnection("127.0.0.1", authorizer.http, timeout=PATIENCE)
        connection.request("POST", "/check/mcp", body=b"x" * 2000, headers={"host": "mcp.example"})
        assert connection.getresponse().status == 413
        connection.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET /check/reviews/1 HTTP/1.1\r\nhost: a\r\nx-authz-to: pod:shop/reviews\r\n"
        b"x-verified-peer: " + WEB.encode() + b"\r\nx-verified-peer: other\r\n\r\n",
        b"GET /other HTTP/1.1\r\nhost: toys.example\r\n\r\n",
        b"POST /check/ HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /check/ HTTP/1.1\r\nhost: a\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n",
    ],
    ids=["two-hosts", "two-identities", "no-prefix", "two-lengths", "upgrade", "nonsense", "long"],
)
def test_an_unreadable_check_is_refused(authorizer: Authorizer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", authorizer.http), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        answer = connection.recv(65536)
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")) or answer == b""


@pytest.fixture(scope="module")
def authorizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authorizer]:
    with Authorizer(tmp_path_factory.mktemp("a"), MANIFESTS) as running:
        yield running


def test_requests_of_one_connection_are_answered_in_order(authorizer: Authorizer) -> None:
    pod = "host: reviews\r\nx-authz-to: pod:shop/reviews\r\nx-verified-peer: " + WEB
    store = "host: toys.example\r\nauthorization: APIKEY KEY-OF-ALICE\r\nx-verified-peer: -"
    sent = [("reviews/1", pod), ("", store), ("admin", pod), ("", store), ("reviews/2", pod)]
    received = b""
    with socket.create_connection(("127.0.0.1", authorizer.http), timeout=PATIENCE) as connection:
        connection.sendall("".join(f"GET /check/{path} HTTP/1.1\r\n{head}\r\n\r\n" for path, head in sent).encode())
        while received.count(b"\r\n\r\n") < len(sent):
            received += connection.recv(65536)
    assert [int(head.split(b" ")[1]) for head in received.split(b"\r\n\r\n")[:-1]] == [200, 200, 403, 200, 200]


def test_lists_of_tools(authorizer: Authorizer) -> None:
    def filtered(**headers: str) -> tuple[int, bytes]:
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "read"}, {"name": "write"}]}}
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(authorizer.tools_socket))
        named = {f"x-eastgate-{name}": value for name, value in headers.items()}
        connection.request("POST", "/tools", json.dumps(answer), {"content-type": "application/json", **named})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    agent = "spiffe://cluster.local/ns/prod/sa/agent"
    status, body = filtered(source=agent, host="mcp.example", to="gateway:prod/agents", path="/mcp")
    assert status == 200
    assert [tool["name"] for tool in json.loads(body)["result"]["tools"]] == ["read"]
    status, body = filtered(source="", host="mcp.example", to="gateway:prod/agents", path="/mcp")
    assert (status, json.loads(body)["result"]["tools"]) == (200, [])
    assert filtered(host="mcp.example")[0] == 400
    assert filtered(source=agent, target="unheard-of")[0] == 404


def test_lists_of_tools_are_not_filtered_on_ports(authorizer: Authorizer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", authorizer.admin, timeout=PATIENCE)
    connection.request("POST", "/tools", b"{}", {"content-type": "application/json", "x-eastgate-source": ""})
    assert connection.getresponse().status == 404
    connection.close()


def test_several_processes(tmp_path: Path) -> None:
    with Authorizer(tmp_path, MANIFESTS, workers=2) as authorizer:
        for _ in range(20):
            assert reviews(authorizer) == 200
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE)
                connection.connect(str(authorizer.http_socket))
                connection.sendall(b"GET /check/ HTTP/1.1\r\nhost: toys.example\r\n\r\n")
                assert connection.recv(100).startswith(b"HTTP/1.1 401")
        authorizer.wait_until(lambda: all(Path(f"{authorizer.grpc_socket}.{n}").exists() for n in (0, 1)))
        assert (
            'eastgate_checks_total{protocol="http",status="200",verdict="allow"} 20.0'
            in authorizer.fetch("/metrics")[1]
        )
        authorizer.manifests.write_text(MANIFESTS.replace("paths: [/reviews/*]", "paths: [/ratings]"))
        authorizer.wait_until(lambda: {reviews(authorizer) for _ in range(20)} == {403})
        assert authorizer.process is not None
        children = Path(f"/proc/{authorizer.process.pid}/task/{authorizer.process.pid}/children")
        before = children.read_text().split()
        os.kill(int(before[0]), signal.SIGKILL)
        authorizer.wait_until(lambda: any(record.get("event") == "process ended" for record in authorizer.log))
        authorizer.wait_until(lambda: len({*children.read_text().split()} - {before[0]}) == 2)
        authorizer.wait_until(lambda: sum(record.get("event") == "listening" for record in authorizer.log) == 3)
        assert {reviews(authorizer) for _ in range(20)} == {403}
        assert authorizer.stop() == 0
    assert not authorizer.http_socket.exists()


def test_tls_with_certificates_of_proxies(tmp_path: Path) -> None:
    server, proxy = (CA.issue(f"spiffe://cluster.local/ns/edge/sa/{name}") for name in ("server", "proxy"))
    pem, roots = tmp_path / "server.pem", tmp_path / "roots.pem"
    pem.write_text(server.chain + server.private_key)
    roots.write_text(CA.bundles.pem("cluster.local"))
    files = ("--tls-certificate", str(pem), "--tls-key", str(pem), "--tls-client-ca", str(roots))
    with Authorizer(tmp_path, MANIFESTS, *files) as authorizer:
        headers = {"host": "reviews", "x-verified-peer": WEB, "x-authz-to": "pod:shop/reviews"}
        context = client_context(proxy, CA.bundles)
        connection = http.client.HTTPSConnection("127.0.0.1", authorizer.http, timeout=PATIENCE, context=context)
        connection.request("HEAD", "/check/admin", headers=headers)
        refused = connection.getresponse()
        assert (refused.status, refused.read()) == (403, b"")
        connection.request("GET", "/check/reviews/1", headers=headers)
        assert connection.getresponse().status == 200
        connection.close()
        stranger = ssl.create_default_context(cadata=roots.read_text())
        stranger.check_hostname = False
        stranger.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        without = http.client.HTTPSConnection("127.0.0.1", authorizer.http, timeout=PATIENCE, context=stranger)
        try:
            without.request("GET", "/check/reviews/1", headers=headers)
            status = without.getresponse().status
        except OSError:
            status = 0
        without.close()
        assert status == 0
        pair = grpc.ssl_channel_credentials(roots.read_bytes(), proxy.private_key.encode(), proxy.chain.encode())
        with grpc.secure_channel(f"127.0.0.1:{authorizer.grpc}", pair) as channel:
            check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
            with pytest.raises(grpc.RpcError):  # its certificate has no host name, and gRPC requires one
                check(b"", timeout=2)


def test_nginx_asks_with_headers(tmp_path: Path) -> None:
    """The request of `auth_request`, if the configuration of nginx sets these headers."""
    port = free_port()
    manifests = tmp_path / "policies.yaml"
    manifests.write_text(MANIFESTS)
    command = [
        *(sys.executable, "-m", "eastgate", "authorizer", "-f", str(manifests), "--http", f"127.0.0.1:{port}"),
        *("--original", "--all-headers", "--to", "pod:shop/reviews", "--trust-header", "x-verified-peer"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert b"listening" in process.stdout.readline()

        def status(method: str | None, uri: str | None) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            headers = {"x-original-method": method, "x-original-uri": uri, "x-verified-peer": WEB}
            connection.request("GET", "/auth", headers={name: value for name, value in headers.items() if value})
            response = connection.getresponse()
            response.read()
            connection.close()
            return response.status

        assert status("GET", "/reviews/1?page=2") == 200
        assert status("POST", "/reviews/1") == 403
        assert status("GET", "/admin") == 403
        assert status(None, "/reviews/1") == 403
        assert status("GET", None) == 403
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0
        process.stdout.close()


def test_why_explains_a_decision_by_its_id(authorizer: Authorizer) -> None:
    response = ask(authorizer, "/admin", x_verified_peer=WEB, x_authz_to="pod:shop/reviews")
    decision = response.headers["x-eastgate-decision"]
    log = "\n".join(map(json.dumps, authorizer.log))
    command = [sys.executable, "-m", "eastgate", "why", "-f", str(authorizer.manifests), "--decision", decision, "-"]
    explained = subprocess.run(command, input=log.encode(), capture_output=True, check=False)
    assert explained.returncode == 0
    assert decision in explained.stdout.decode()
    assert "the manifests still say so" in explained.stdout.decode()
    unknown = subprocess.run([*command[:-2], "0" * 16, "-"], input=log.encode(), capture_output=True, check=False)
    assert unknown.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--http", "nowhere"], "neither HOST:PORT nor unix:PATH"),
        (["--tls-key", __file__], "TLS needs"),
        (["--tools", "127.0.0.1:1"], "unix socket only"),
        (["--path-prefix", "check"], "no prefix"),
        (["--all-headers", "--shown-header", "x-a"], "contradict"),
        (["--workers", "2", "--http", "127.0.0.1:0"], "cannot share"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, arguments: list[str], problem: str) -> None:
    manifests = tmp_path / "policies.yaml"
    manifests.write_text(MANIFESTS)
    command = [sys.executable, "-m", "eastgate", "authorizer", "-f", str(manifests), *arguments]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == 2
    assert problem in ended.stderr.decode()
