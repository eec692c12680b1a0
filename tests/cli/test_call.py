"""`call`: real calls through a mesh that runs as a process of its own."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import Result

from eastgate.cli import call as call_command
from tests.cli.conftest import Cli
from tests.cli.test_other import complete
from tests.local.running import Up, up

CART = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")


_HURRY = Event()


class _Application(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/closes":
            self.close_connection = True
            return
        if self.path == "/hesitates":
            _HURRY.wait(20)
        body = b"my own application"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def application() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Application)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    _HURRY.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, application: int) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("call")
    down = ("--app", f"shop/cart:9090=127.0.0.1:{_closed_port()}")
    with up(folder, "--app", f"shop/web:8080=127.0.0.1:{application}", *down, name="calls") as running:
        yield running


def _closed_port() -> int:
    """A port without a listener, for as long as this process keeps it."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    _TAKEN.append(taken)
    return int(taken.getsockname()[1])


_TAKEN: list[socket.socket] = []


def call(cli: Cli, *words: str) -> Result:
    return cli("call", "--name", "calls", *words)


def test_an_allowed_call_names_the_rule_and_the_reason(cli: Cli, mesh: Up) -> None:
    done = call(cli, *CART, "/api/1")
    assert done.exit_code == 0
    assert done.stdout.startswith("ALLOW  200  shop/cart:8080  ")
    by = "AuthorizationPolicy/shop/cart-from-web rule 0"
    assert f"  proxy:  allow: {by}  (manifests/policies.yaml:11)\n" in done.stdout
    assert f"  engine: allow: {by} allows it  (manifests/policies.yaml:11)\n" in done.stdout
    assert "14 |       ports: [8080]\n   |              ^^^^^^ port" in done.stdout
    assert "port 8080 GET /api/1\n" in done.stdout


def test_a_denied_call_shows_an_allowed_one(cli: Cli, mesh: Up) -> None:
    request = ("--port", "8443", "--method", "DELETE", "--path", "/v1/charges/7")
    done = call(cli, "--from", "sa:shop/cart", "--to", "pod:shop/payments", *request)
    assert done.exit_code == 1
    assert done.stdout.startswith("DENY  403  shop/payments:8443")
    assert "proxy:  deny: no rule of 2 policies allows it" in done.stdout
    assert "payments-api rule 1 missed it: method is DELETE" in done.stdout


def test_json_has_both_verdicts_and_the_body(cli: Cli, mesh: Up) -> None:
    data = json.loads(call(cli, *CART, "-o", "json", "/api/1").stdout)
    assert data["verdict"] == "allow"
    [one] = data["calls"]
    assert (one["status"], one["agrees"], one["made"]) == (200, True, True)
    assert one["proxy"]["policy"] == one["engine"]["policy"] == "AuthorizationPolicy/shop/cart-from-web"
    assert one["proxy"]["peer"] == "spiffe://cluster.local/ns/shop/sa/web"
    assert "/api/1" in one["body"]
    assert one["explanation"].startswith("ALLOW")


def test_an_untrusted_identity_fails_in_the_handshake(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "spiffe://evil.example/ns/shop/sa/web", "--to", "pod:shop/web")
    assert done.exit_code == 1
    assert "TLS handshake: its certificate is from a trust domain that the mesh does not trust" in done.stdout
    assert "the handshake failed, so that no policy was asked" in done.stdout
    assert "DISAGREE" not in done.stdout


def test_bytes_are_sent_as_they_are(cli: Cli, mesh: Up) -> None:
    [one] = json.loads(call(cli, *CART, "--raw", "--data", "hello", "-o", "json").stdout)["calls"]
    assert (one["body"], one["verdict"]) == ("hello", "allow")
    assert call(cli, *CART, "--raw", "--data", "hello", "/path").exit_code == 2


def test_a_service_is_called_at_its_pods_and_repeated_calls_are_summed_up(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "pod:sandbox/experiments", "--to", "service:shop/cart", "--port", "80", "--repeat", "3")
    assert done.exit_code == 1
    assert done.stdout.count("DENY  closed before any byte  shop/cart:8080") == 3
    assert done.stdout.count("no-sandbox rule 0 denies:") == 1  # the reason is printed once
    assert "\n3 calls: 0 allowed, 3 denied; " in done.stdout


_SHOPS = ("--header", "x-shop=1", "--header", "x-shop=2")


def test_headers_method_and_body_arrive(cli: Cli, mesh: Up, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text('{"amount": 7}')
    charge = ("--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443", "/v1/charges")
    done = call(cli, *charge, "--data", "@body.json", *_SHOPS, "--host", "pay.example", "-o", "json")
    [one] = json.loads(done.stdout)["calls"]
    echoed = json.loads(one["body"])
    assert (echoed["method"], echoed["path"]) == ("POST", "/v1/charges")
    assert echoed["headers"]["x-shop"] == "1, 2"
    assert one["proxy"]["host"] == "pay.example"


def test_the_users_own_application_answers_behind_its_proxy(cli: Cli, mesh: Up) -> None:
    [one] = json.loads(call(cli, "--from", "anonymous", "--to", "pod:shop/web", "-o", "json").stdout)["calls"]
    assert one["body"] == "my own application"


@pytest.mark.parametrize(("path", "came"), [("/closes", "closed before any byte"), ("/hesitates", "timeout")])
def test_a_call_that_is_let_through_and_not_answered_is_no_success(cli: Cli, mesh: Up, path: str, came: str) -> None:
    asked = ("--from", "anonymous", "--to", "pod:shop/web", "--timeout", "2", path)
    done = call(cli, *asked)
    assert done.exit_code == 4, done.stdout
    assert done.stdout.startswith("NO ANSWER  ")
    assert "  proxy:  allow: " in done.stdout
    assert came in done.stdout
    data = json.loads(call(cli, *asked, "-o", "json").stdout)
    [one] = data["calls"]
    assert (data["verdict"], one["verdict"], one["answered"], one["agrees"]) == ("allow", "allow", False, True)


METRICS = ("--from", "sa:monitoring/prometheus", "--to", "pod:shop/cart", "--port", "9090")


@pytest.mark.parametrize("words", [("--raw", "--data", "hello"), ("--raw",), ("/metrics",)])
def test_an_application_that_is_down_behind_a_port_is_no_denial(cli: Cli, mesh: Up, words: tuple[str, ...]) -> None:
    """The port is not read as HTTP: the proxy can only close, which looks like a denial to the caller."""
    done = call(cli, *METRICS, *words)
    assert done.exit_code == 4, done.stdout
    assert done.stdout.startswith("NO ANSWER  ")
    assert "  proxy:  allow: it was allowed, but the application cannot be reached\n" in done.stdout
    assert "  engine: allow: ClusterAuthorizationPolicy/metrics rule 0 allows it" in done.stdout
    assert "DISAGREE" not in done.stdout
    denied = call(cli, "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "9090", *words)
    assert denied.exit_code == 1
    assert denied.stdout.startswith("DENY  ")


def test_an_application_that_is_down_is_reported_once(cli: Cli, mesh: Up) -> None:
    [one] = json.loads(call(cli, *METRICS, "/metrics", "-o", "json").stdout)["calls"]
    [last] = json.loads(call(cli, *CART, "-o", "json").stdout)["calls"]
    events = []
    while (event := mesh.until("decided"))["source"] != last["proxy"]["source"]:
        events += [event] if event["source"] == one["proxy"]["source"] else []
    *before, down = events  # a busy proxy may log the end of the connection before it logs the reason, never after it
    assert len(before) <= 1
    assert (down["verdict"], down["detail"]) == ("allow", "UF,URX")
    assert down["reason"] == "it was allowed, but the application cannot be reached"
    why = json.loads(cli("why", "--name", "calls", "-o", "json", json.dumps(down)).stdout)["lines"]
    assert why[0]["standing"] == "the manifests still say so"


def test_a_silent_call_without_a_verdict_is_not_reported_as_allowed(cli: Cli, mesh: Up) -> None:
    """Without TLS and without a byte, the proxy waits: the caller may still begin a handshake."""
    done = call(cli, "--from", "anonymous", "--to", "pod:shop/cart", "--port", "8080", "--raw", "--timeout", "1")
    assert done.exit_code == 2
    assert done.stdout.startswith("NOT MADE  timeout")


@pytest.mark.parametrize(
    ("words", "code", "help_"),
    [
        (("--from", "sa:shop/web", "--to", "pod:shop/cart"), "EG0105", "--port, of 8080, 9090"),
        (("--from", "sa:shop/web", "--to", "pod:shop/carts", "--port", "1"), "EG0103", "did you mean shop/cart?"),
        (("--from", "shop/web", "--to", "pod:shop/cart", "--port", "8080"), "EG0101", "write sa:"),
        ((*CART, "--data", "@missing"), "EG0002", ""),
        ((*CART, "--source-ip", "10.1.2.3"), "EG0105", "use an address in 127.0.0.0/8"),
    ],
)
def test_a_call_that_cannot_be_made_has_a_reason(
    cli: Cli, mesh: Up, words: tuple[str, ...], code: str, help_: str
) -> None:
    done = call(cli, *words)
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr
    assert help_ in done.stderr
    assert json.loads(call(cli, *words, "-o", "json").stdout)["diagnostics"][0]["code"] == code


def test_without_a_mesh_it_says_how_to_start_one(cli: Cli) -> None:
    done = cli("call", "--name", "nobody", *CART)
    assert done.exit_code == 2
    assert "error[EG0110]: no mesh named `nobody` is running" in done.stderr
    assert "help: start one with `eastgate up -f DIR --name nobody`" in done.stderr


def test_a_disagreement_is_loud(cli: Cli, mesh: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = call_command.ask("calls", "call", source="sa:shop/web", to="pod:shop/cart", port=8080)
    answer["calls"][0]["agrees"] = False
    monkeypatch.setattr("eastgate.cli.call.ask", lambda *_, **__: answer)
    done = call(cli, *CART)
    assert done.exit_code == 3
    assert "PROXY AND ENGINE DISAGREE" in done.stdout


def test_words_are_completed_from_the_running_mesh(mesh: Up) -> None:
    assert complete("eastgate call --name calls --from sa:shop/w") == ["sa:shop/web"]
    assert complete("eastgate call --name calls --to pod:shop/p") == ["pod:shop/payments"]
    assert not any(complete("eastgate call --name nobody --to pod:shop/p"))
