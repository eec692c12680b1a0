"""`call`, `why` and `up` with a gateway: HTTP and MCP through a mesh that runs as a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import Result

from eastgate.cli.call import ask
from tests.certificates import self_signed
from tests.cli.conftest import Cli
from tests.cli.test_other import complete
from tests.local.agents import AGENTS, ASKING, POLICIES, secure
from tests.local.running import Up, up
from tests.programs.mcp_server import LEGACY, MODERN, McpServer, mcp_server

GATEWAY = ("--to", "gateway:prod/gw", "--host", "maths.example")
AGENT = ("--from", "sa:prod/agent", *GATEWAY)
BY_BACKEND = "XAccessPolicy/prod/at-backend"


@pytest.fixture(scope="module")
def server() -> Iterator[McpServer]:
    with mcp_server() as running:
        yield running


class _Consent(BaseHTTPRequestHandler):
    """An external authorizer that allows while its flag is set."""

    consents = True

    def do_GET(self) -> None:
        self.send_response(200 if self.consents else 403)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def consent() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Consent)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, server: McpServer, consent: int) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("gateway")
    source = folder / "source"
    source.mkdir()
    (source / "agents.yaml").write_text(AGENTS)
    (source / "policies.yaml").write_text(POLICIES)
    (source / "asking.yaml").write_text(ASKING)
    (source / "secure.yaml").write_text(secure(*(part.decode() for part in self_signed("own.example"))))
    apps = (f"prod/maths:8000=127.0.0.1:{server.port}", f"prod/consent=127.0.0.1:{consent}")
    with up(folder, *(word for app in apps for word in ("--app", app)), name="agents", source=source) as running:
        yield running


@pytest.fixture(autouse=True)
def _forget(server: McpServer) -> None:
    server.received.clear()
    server.closed.clear()
    server.is_modern = server.sends_events = False


def call(cli: Cli, *words: str) -> Result:
    return cli("call", "--name", "agents", *words)


def call_json(cli: Cli, *words: str) -> dict[str, Any]:
    [made] = json.loads(call(cli, *words, "-o", "json").stdout)["calls"]
    result: dict[str, Any] = made
    return result


def test_a_tool_is_called_with_the_whole_protocol(cli: Cli, mesh: Up, server: McpServer) -> None:
    done = call(cli, *AGENT, "--tool", "add", "--arguments", '{"a": 1, "b": 2}')
    assert done.exit_code == 0
    assert done.stdout.startswith("ALLOW  200  gateway:prod/gw:8080  ")
    assert "  way:    HTTPRoute prod/maths rule 0 -> XBackend prod/maths\n" in done.stdout
    assert f"  proxy:  allow: {BY_BACKEND} rule 0  (manifests/policies.yaml:" in done.stdout
    assert f"  engine: allow: {BY_BACKEND} rule 0 allows it  (manifests/policies.yaml:" in done.stdout
    assert '  result: {"content": [{"type": "text", "text": "3"}]}\n' in done.stdout
    assert server.methods == ["initialize", "notifications/initialized", "tools/call"]
    assert not server.sessions
    assert len(server.closed) == 1


@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_versions_and_forms_of_answers(cli: Cli, mesh: Up, server: McpServer, version: str, events: bool) -> None:
    server.is_modern, server.sends_events = version == MODERN, events
    made = call_json(cli, *AGENT, "--tool", "add", "--arguments", '{"a": 40, "b": 2}')
    assert made["mcp"]["result"] == {"content": [{"type": "text", "text": "42"}]}
    assert made["mcp"]["version"] == version
    assert (made["verdict"], made["agrees"], made["answered"]) == ("allow", True, True)
    assert all(step["agrees"] for step in made["steps"])
    assert server.methods[-1] == "tools/call"
    assert ("initialize" in server.methods) == (version == LEGACY)


def test_a_denied_tool_never_reaches_the_server(cli: Cli, mesh: Up, server: McpServer) -> None:
    done = call(cli, *AGENT, "--tool", "remove")
    assert done.exit_code == 1
    assert done.stdout.startswith("DENY  ")
    assert "at gateway prod/gw -> XBackend prod/maths" in done.stdout
    assert "DISAGREE" not in done.stdout
    assert server.methods == []


@pytest.mark.parametrize(
    ("source", "tool", "verdict"),
    [("agent", "add", "allow"), ("agent", "echo", "deny"), ("other", "add", "deny"), ("nobody", "add", "deny")],
)
def test_both_levels_decide_as_the_engine_does(
    cli: Cli, mesh: Up, server: McpServer, source: str, tool: str, verdict: str
) -> None:
    made = call_json(cli, "--from", f"sa:prod/{source}", *GATEWAY, "--tool", tool)
    assert (made["verdict"], made["engine"]["verdict"], made["agrees"]) == (verdict, verdict, True)
    assert made["proxy"]["mcpMethod"] == "tools/call"
    assert made["proxy"]["tool"] == tool
    assert made["proxy"]["destination"].startswith("prod/maths#0~")
    assert ("tools/call" in server.methods) == (verdict == "allow")


def test_a_route_is_called_through_its_gateway(cli: Cli, mesh: Up) -> None:
    made = call_json(cli, "--from", "sa:prod/agent", "--to", "route:prod/maths", "--tool", "add")
    assert made["at"] == "gateway:prod/gw:8080"
    assert (made["verdict"], made["proxy"]["host"], made["proxy"]["path"]) == ("allow", "maths.example", "/mcp")


def test_a_backend_is_called_through_every_gateway_that_leads_to_it(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "sa:prod/agent", "--to", "backend:prod/maths", "--tool", "add", "-o", "json")
    calls = json.loads(done.stdout)["calls"]
    assert [made["at"] for made in calls] == ["gateway:prod/gw:8080", "gateway:prod/secure:8443"]
    assert [made["verdict"] for made in calls] == ["allow", "allow"]
    assert done.exit_code == 0


def test_other_requests_of_the_protocol(cli: Cli, mesh: Up, server: McpServer) -> None:
    made = call_json(cli, *AGENT, "--mcp-method", "tools/list", "--mcp-version", LEGACY)
    assert [tool["name"] for tool in made["mcp"]["result"]["tools"]] == ["add"]  # of those of the server
    assert [step["mcpMethod"] for step in made["steps"]] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        None,
    ]
    unknown = call_json(cli, *AGENT, "--mcp-method", "prompts/list")
    assert unknown["verdict"] == "deny"


def test_an_error_of_the_server_is_an_answer(cli: Cli, mesh: Up, server: McpServer) -> None:
    made = call_json(cli, *AGENT, "--mcp-method", "ping")
    assert (made["verdict"], made["answered"]) == ("allow", True)
    assert made["mcp"]["error"]["code"] == -32601


def test_http_shows_the_request_as_it_was_sent_also_where_the_route_rewrites_it(cli: Cli, mesh: Up) -> None:
    made = call_json(cli, "--from", "sa:prod/agent", "--to", "gateway:prod/gw", "--host", "a.web.example", "/api/x")
    assert (made["verdict"], made["agrees"]) == ("allow", True)
    assert (made["proxy"]["host"], made["proxy"]["path"]) == ("a.web.example", "/api/x")
    echoed = json.loads(made["body"])
    assert (echoed["path"], echoed["headers"]["host"]) == ("/v2/x", "inside.example")


def test_a_redirect_is_an_answer_of_the_gateway(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "sa:prod/agent", "--to", "gateway:prod/gw", "--host", "a.web.example", "/old/x")
    assert done.exit_code == 0
    assert done.stdout.startswith("ALLOW  301  gateway:prod/gw:8080")


def test_what_no_route_takes_is_not_found(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "sa:prod/agent", "--to", "gateway:prod/gw", "--host", "a.web.example", "/else")
    assert done.exit_code == 1
    assert done.stdout.startswith("DENY  404")
    assert "  proxy:  deny: no route takes it\n" in done.stdout


def test_a_route_that_the_gateway_cannot_do_is_closed_with_a_reason(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "sa:prod/agent", "--to", "gateway:prod/gw", "--host", "a.web.example", "/mirror")
    assert done.exit_code == 1
    assert "the gateway cannot do all that it says" in done.stdout
    assert "DISAGREE" not in done.stdout


def test_a_message_in_the_data_is_decided_as_one(cli: Cli, mesh: Up) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remove", "arguments": {}}}
    kinds = ("--header", "content-type=application/json", "--header", "accept=application/json, text/event-stream")
    made = call_json(cli, *AGENT, "/mcp", "--data", json.dumps(message), *kinds)
    assert (made["verdict"], made["engine"]["verdict"], made["proxy"]["tool"]) == ("deny", "deny", "remove")
    assert json.loads(made["body"])["id"] == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--to", "gateway:prod/none", "--tool", "add"), "Gateway prod/none"),
        (("--to", "gateway:prod/gw", "--port", "9999", "--tool", "add"), "it has 8080"),
        (("--to", "pod:prod/maths", "--tool", "add"), "MCP is spoken with gateway:"),
        (("--to", "gateway:prod/gw", "--tool", "add", "--arguments", "[1]"), "`[1]` is no JSON object"),
        (("--to", "gateway:prod/gw", "--arguments", "{}"), "there is no MCP request"),
        (("--to", "gateway:prod/gw", "--tool", "add", "--mcp-method", "ping"), "leave out --mcp-method"),
        (("--to", "gateway:prod/gw", "--tool", "add", "--data", "x"), "leave out --method, --data and --raw"),
        (("--to", "gateway:prod/gw", "--raw", "--data", "x"), "reads HTTP"),
    ],
)
def test_calls_that_cannot_be_made(cli: Cli, mesh: Up, words: tuple[str, ...], problem: str) -> None:
    done = call(cli, "--from", "sa:prod/agent", *words)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_a_line_of_a_gateway_is_explained_by_the_mesh_and_by_the_manifests(cli: Cli, mesh: Up) -> None:
    made = call_json(cli, *AGENT, "--tool", "add")
    line = json.dumps({"event": "decided", **made["proxy"]})
    by_mesh = cli("why", "--name", "agents", line)
    assert by_mesh.exit_code == 0
    assert "by gateway:prod/gw:8080: XAccessPolicy/prod/at-backend rule 0" in by_mesh.stdout
    assert (
        "  way:   HTTPRoute prod/maths rule 0 -> XBackend prod/maths\n  today: the manifests still say so\n"
        in by_mesh.stdout
    )
    by_files = cli("why", "-f", str(mesh.manifests), line)
    assert "  today: the manifests still say so\n" in by_files.stdout


def test_a_line_is_compared_with_the_manifests_of_today(cli: Cli, mesh: Up, tmp_path: Path) -> None:
    line = json.dumps({"event": "decided", **call_json(cli, *AGENT, "--tool", "add")["proxy"]})
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "policies.yaml").write_text(POLICIES.replace("[add, echo]", "[echo]"))
    changed = cli("why", "-f", str(tmp_path), line)
    assert changed.exit_code == 1
    assert "changed since: it was allowed, and is denied by the manifests of today" in changed.stdout
    (tmp_path / "policies.yaml").write_text(POLICIES)
    (tmp_path / "agents.yaml").write_text(AGENTS.replace("maths.example]", "maths.example, more.example]", 1))
    assert cli("why", "-f", str(tmp_path), line).exit_code == 0
    (tmp_path / "agents.yaml").write_text(AGENTS.replace("name: maths}]", "name: gone}]", 1))
    assert "today's routes do not lead the request there" in cli("why", "-f", str(tmp_path), line).stdout


def test_events_status_and_metrics_have_gateways(cli: Cli, mesh: Up) -> None:
    started = next(event for event in map(json.loads, mesh.lines) if event["event"] == "started")
    gateway, other = started["gateways"]
    assert (gateway["gateway"], other["gateway"]) == ("gateway:prod/gw", "gateway:prod/secure")
    assert gateway["identity"] == "spiffe://cluster.local/ns/prod/sa/gw"
    assert gateway["ports"] == {"8080": 8080}
    assert gateway["policies"] == ["XAccessPolicy/prod/asks-consent", BY_BACKEND, "XAccessPolicy/prod/at-gateway"]
    assert gateway["proxy"]["accepted"]
    ready = next(event for event in map(json.loads, mesh.lines) if event["event"] == "ready")
    assert (ready["workloads"], ready["gateways"]) == (3, 2)
    call(cli, *AGENT, "--tool", "add")
    metrics = ask("agents", "metrics")["text"]
    policy = "XAccessPolicy.agentic.prototype.x-k8s.io/prod/at-backend"
    labels = f'level="request",policy="{policy}",port="8080",rule="0",verdict="allow",workload="gateway:prod/gw"'
    assert f"eastgate_decisions_total{{{labels}}}" in metrics


def test_an_anonymous_caller_is_denied_at_the_gateway(cli: Cli, mesh: Up, server: McpServer) -> None:
    made = call_json(cli, "--from", "anonymous", *GATEWAY, "--tool", "add")
    assert (made["verdict"], made["agrees"], made["proxy"]["from"]) == ("deny", True, "anonymous")
    assert server.methods == []


ASKING_AGENT = ("--from", "sa:prod/agent", "--to", "gateway:prod/gw", "--host", "asking.example")


@pytest.mark.parametrize("consents", [True, False])
def test_the_log_has_what_an_authorizer_decided(
    cli: Cli, mesh: Up, server: McpServer, consents: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Consent, "consents", consents)
    made = call_json(cli, *ASKING_AGENT, "--tool", "add")
    assert (made["verdict"], made["agrees"], made["proxy"]["asked"]) == ("allow" if consents else "deny", True, True)
    assert made["proxy"]["policy"] == "XAccessPolicy/prod/asks-consent"
    assert made["proxy"]["file"] == "manifests/asking.yaml"
    assert ("tools/call" in server.methods) == consents
    line = json.dumps({"event": "decided", **made["proxy"]})
    assert "XAccessPolicy/prod/asks-consent" in cli("why", "--name", "agents", line).stdout


def test_no_authorizer_is_asked_about_what_the_gateway_denies(cli: Cli, mesh: Up) -> None:
    made = call_json(cli, *ASKING_AGENT, "--tool", "echo")
    assert (made["verdict"], made["agrees"], made["proxy"]["asked"]) == ("deny", True, False)


@pytest.mark.parametrize("host", ["own.example", "mesh.example"])
@pytest.mark.parametrize("source", ["sa:prod/agent", "anonymous"])
def test_https_with_the_name_of_the_host(cli: Cli, mesh: Up, host: str, source: str) -> None:
    made = call_json(cli, "--from", source, "--to", "gateway:prod/secure", "--host", host, "/web")
    assert (made["status"], made["verdict"], made["agrees"]) == (200, "allow", True)
    assert made["proxy"]["from"] == source


def test_tools_over_https(cli: Cli, mesh: Up) -> None:
    made = call_json(
        cli, "--from", "sa:prod/agent", "--to", "gateway:prod/secure", "--host", "own.example", "--tool", "add"
    )
    assert (made["verdict"], made["agrees"]) == ("allow", True)


def test_another_name_in_the_handshake_meets_no_listener(cli: Cli, mesh: Up) -> None:
    done = call(cli, "--from", "sa:prod/agent", "--to", "gateway:prod/secure", "--host", "else.example", "/web")
    assert done.exit_code in (1, 2)
    assert "DISAGREE" not in done.stdout


def test_the_ca_of_passed_through_tls_is_unknown(cli: Cli, mesh: Up) -> None:
    to = ("--to", "gateway:prod/secure", "--host", "through.example")
    done = call(cli, "--from", "sa:prod/agent", *to, "/web")
    assert done.exit_code == 2
    assert "passes TLS with through.example through to a server" in done.stderr


def test_gateways_are_completed(mesh: Up) -> None:
    names = ["gateway:prod/gw", "gateway:prod/secure"]
    assert complete("eastgate call --name agents --to gateway:") == names
