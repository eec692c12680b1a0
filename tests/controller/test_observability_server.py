"""A replica with a real API server, and its observability."""

from __future__ import annotations

import base64
import http.client
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.authority.sources.objects import CART, GROUP, policy
from tests.controller.replicas import SYSTEM, Replicas
from tests.programs import ApiServer, free_port

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "eastgate.json"
_SECRETS = ("BEGIN CERTIFICATE", "PRIVATE KEY", "Bearer", "eyJ")


def queries(dashboard: Any) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def queried(query: str) -> set[str]:
    return set(re.findall(r"\beastgate_\w+", query))


def exposed(metrics: str) -> set[str]:
    """Return the names of all possible series: a histogram has several."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", metrics, re.MULTILINE):
        names |= {f"{name}_{end}" for end in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names


def test_the_panels_have_titles_and_queries_of_our_metrics() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len(titles) == len(set(titles))
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(titles)
    assert all(queried(query) for query in queries(dashboard))


@pytest.mark.apiserver
@pytest.mark.real
def test_a_replica_shows_its_state_and_no_secret(own_api_server: ApiServer, tmp_path: Path) -> None:
    server, debug = own_api_server, free_port()
    server.install("eastgate")
    namespace = server.namespace("shop")
    policies = f"/apis/{GROUP}/v1alpha2/namespaces/{namespace}/authorizationpolicies"
    server.create(f"/api/v1/namespaces/{namespace}/pods", CART)

    with Replicas(server, tmp_path, ["--debug-port", str(debug)]) as replicas:
        replicas.start_all("a")
        server.create(policies, policy(namespace, "cart", ["web"]))

        def snapshot() -> Any:
            return json.loads(fetch(debug, "/debug"))

        replicas.wait_until(lambda: snapshot()["statusWrites"].get("written", 0) > 0)
        assert [name for name in snapshot()["states"] if name.endswith("/cart")] != []
        assert replicas.fetch("a", "/healthz") == b"ok\n"

        metrics = (replicas.fetch("a", "/metrics") or b"").decode()
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        assert set().union(*map(queried, queries(dashboard))) <= exposed(metrics)
        assert "eastgate_leader 1.0" in metrics
        assert f'eastgate_objects{{group="{GROUP}",kind="AuthorizationPolicy"}} 1.0' in metrics
        assert re.search(r'^eastgate_status_writes_total\{result="written"\} [1-9]', metrics, re.MULTILINE)
        assert re.search(r"^eastgate_change_to_applied_seconds_count [1-9]", metrics, re.MULTILINE)
        assert re.search(r'^eastgate_certificate_end_timestamp_seconds\{certificate="root"\}', metrics, re.MULTILINE)

        shown = snapshot()
        assert shown["leader"] == {"leads": True, "holder": "a"}
        assert shown["kinds"]["pods"]["objects"] == 1
        assert shown["ready"] is True
        text = fetch(debug, "/debug").decode()
        assert [secret for secret in (*_SECRETS, *keys(server)) if secret in text or secret in metrics] == []
        assert ask(debug, "/debug", "attacker.example")[0] == 403
        assert replicas.fetch("a", "/debug") is None

        server.request("DELETE", f"{policies}/cart")
        replicas.wait_until(lambda: not snapshot()["states"])
        assert f"{namespace}/cart" not in (replicas.fetch("a", "/metrics") or b"").decode()

        def messages() -> list[str]:
            return [line["message"] for line in replicas.lines() if line["level"] != "debug"]

        server.kill()
        replicas.wait_until(lambda: any(each.startswith("the API server does not answer") for each in messages()))
        server.start_again()
        replicas.wait_until(lambda: "the API server answers again" in messages())
        replicas.lose("a", is_asked=True)
        away = [each for each in messages() if each.startswith("the API server does not answer")]
        assert len(away) <= 4  # and not one line for each kind and try
        assert [messages().count(each) for each in ("a is ready", "a stops")] == [1, 1]
        assert messages().count("the API server answers again") == 1
        assert [line for line in replicas.lines() if "exception" in line] == []  # an outage is not unexpected
        ready = next(line for line in replicas.lines() if line["message"] == "a is ready")
        assert (ready["level"], ready["replica"]) == ("info", "a")


def keys(server: ApiServer) -> list[str]:
    """Return the secrets of the CA, in their stored form and decoded."""
    _, secret = server.request("GET", f"/api/v1/namespaces/{SYSTEM}/secrets/eastgate-ca")
    values = [value for name, value in secret["data"].items() if not name.endswith(".crt")]
    lines = [line for value in values for line in base64.b64decode(value).decode().splitlines() if len(line) > 30]
    assert lines
    return [*values, *lines]


def fetch(port: int, path: str) -> bytes:
    status, content = ask(port, path, "localhost")
    assert status == 200
    return content


def ask(port: int, path: str, host: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
