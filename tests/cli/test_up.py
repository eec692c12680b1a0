"""`up`: the mesh as a process of its own, followed by its events, and each way to end it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate.local.machine.control import ControlClient
from tests.cli.conftest import SHOP, Cli
from tests.local.running import EASTGATE, Event, Up, remains, runtime_folder, up
from tests.patience import PATIENCE

WEB_TO_CART = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")
ON_A_SERVICE = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: to-the-service, namespace: shop}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{kind: Service, name: cart}]
  action: ALLOW
  rules:
  - authorizationSource: {serviceAccounts: [web]}
"""
NEW_WORKLOAD = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: search, namespace: shop}
spec:
  selector: {matchLabels: {app: search}}
  template:
    metadata: {labels: {app: search}}
    spec:
      containers: [{name: search, image: shop/search, ports: [{containerPort: 7000}]}]
"""


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return _free_port()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("up"), "--metrics", str(metrics_port), name="shop") as running:
        yield running


def called(cli: Cli, *words: str) -> Event:
    event: Event = json.loads(cli("call", "--name", "shop", "-o", "json", *words).stdout)
    return event


def ask(mesh: Up, what: str) -> Event:
    return asyncio.run(ControlClient(str(mesh.folder / "control.sock")).ask(what))


# While it runs


def test_it_lists_its_workloads(mesh: Up) -> None:
    started = json.loads(mesh.lines[0])
    assert started["event"] == "started"
    cart = next(one for one in started["workloads"] if one["workload"] == "shop/cart")
    assert cart["identity"] == "spiffe://cluster.local/ns/shop/sa/cart"
    assert cart["ports"].keys() == {"8080", "9090"}
    assert set(cart["applications"].values()) == {"built-in"}
    assert "AuthorizationPolicy/shop/cart-from-web" in cart["policies"]
    assert cart["proxy"]["accepted"] is True
    assert cart["proxy"]["rejected"] == []


def test_a_saved_policy_is_enforced_at_the_workloads_that_it_concerns(cli: Cli, mesh: Up) -> None:
    assert called(cli, *WEB_TO_CART)["verdict"] == "allow"
    mesh.edit("policies.yaml", "ports: [8080]", "ports: [8081]")
    enforced = mesh.until("enforced")
    assert enforced["changed"] == ["AuthorizationPolicy/shop/cart-from-web"]
    assert enforced["touched"] == ["shop/cart"]
    assert 0 < enforced["milliseconds"] < 5000
    assert called(cli, *WEB_TO_CART)["verdict"] == "deny"
    mesh.edit("policies.yaml", "ports: [8081]", "ports: [8080]")
    mesh.until("enforced")
    assert called(cli, *WEB_TO_CART)["verdict"] == "allow"


def test_a_broken_save_keeps_the_last_good_policy(cli: Cli, mesh: Up) -> None:
    mesh.edit("policies.yaml", "      serviceAccounts: [web]", "      serviceAccount: [web]")
    [wrong] = mesh.until("broken")["diagnostics"]
    assert wrong["underlined"] == "serviceAccount"
    assert wrong["line"] == 12
    assert called(cli, *WEB_TO_CART)["verdict"] == "allow"
    mesh.edit("policies.yaml", "      serviceAccount: [web]", "      serviceAccounts: [web]")
    assert mesh.until("enforced")["touched"] == []


def test_a_policy_that_moved_is_explained_where_it_is_now(cli: Cli, mesh: Up) -> None:
    path = mesh.manifests / "policies.yaml"
    text = path.read_text()
    path.write_text("# one more line\n" + text)
    enforced = mesh.until("enforced")
    assert (enforced["changed"], enforced["touched"]) == ([], [])
    assert called(cli, *WEB_TO_CART)["calls"][0]["proxy"]["line"] == 12
    path.write_text(text)
    mesh.until("enforced")


def test_a_policy_is_removed_and_added_with_its_file(cli: Cli, mesh: Up) -> None:
    request = ("--from", "pod:sandbox/experiments", "--to", "pod:shop/web", "--port", "8080")
    policies = mesh.manifests / "cluster.yaml"
    text = policies.read_text()
    policies.unlink()
    removed = mesh.until("enforced")
    assert "ClusterAuthorizationPolicy/metrics" in removed["changed"]
    assert removed["removed"] == removed["changed"]
    opened = {"before": "open-except", "now": "open"}
    assert removed["modes"] == {"monitoring/prometheus": opened, "shop/web": opened}
    assert called(cli, *request)["verdict"] == "allow"
    policies.write_text(text)
    added = mesh.until("enforced")
    assert added["added"] == removed["removed"]
    assert added["modes"]["shop/web"] == {"before": "open", "now": "open-except"}
    assert called(cli, *request)["calls"][0]["proxy"]["policy"] == "ClusterAuthorizationPolicy/closed-to-sandbox"


def test_a_new_workload_gets_a_proxy_and_a_removed_one_loses_it(cli: Cli, mesh: Up) -> None:
    world = mesh.manifests / "world.yaml"
    text = world.read_text()
    before = set(mesh.processes())
    world.write_text(text + NEW_WORKLOAD)
    enforced = mesh.until("enforced")
    assert enforced["changed"] == enforced["added"] == ["Deployment/shop/search"]
    assert enforced["modes"]["shop/search"] == {"before": None, "now": "open-except"}
    assert "shop/search" in enforced["touched"]
    new = set(mesh.processes()) - before
    assert len(new) == 1
    assert called(cli, "--from", "sa:shop/web", "--to", "pod:shop/search")["verdict"] == "allow"
    world.write_text(text)
    mesh.until("enforced")
    assert not new & set(mesh.processes())


def test_a_policy_that_names_another_trust_domain_is_enforced_for_its_callers(cli: Cli, mesh: Up) -> None:
    stranger = ("--from", "spiffe://other.example/ns/x/sa/y", "--to", "pod:shop/cart", "--port", "8080")
    assert called(cli, *stranger)["calls"][0]["proxy"]["level"] == "handshake"
    named = '      serviceAccounts: [web]\n      identities: ["spiffe://other.example/ns/x/sa/y"]'
    mesh.edit("policies.yaml", "      serviceAccounts: [web]", named)
    mesh.until("enforced")
    assert called(cli, *stranger)["verdict"] == "allow"
    mesh.edit("policies.yaml", named, "      serviceAccounts: [web]")
    mesh.until("enforced")


def test_every_decision_is_an_event(cli: Cli, mesh: Up) -> None:
    called(cli, "--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443", "/admin?secret=1")
    while (seen := mesh.until("decided"))["level"] != "request":
        pass
    assert (seen["from"], seen["to"], seen["port"]) == ("sa:shop/cart", "shop/payments", 8443)
    assert (seen["verdict"], seen["status"], seen["method"]) == ("deny", 403, "GET")
    assert seen["reason"] == "no rule of 2 policies allows it"
    assert "secret" not in json.dumps(seen)


def test_metrics_are_served(cli: Cli, mesh: Up, metrics_port: int) -> None:
    called(cli, *WEB_TO_CART)
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    assert 'eastgate_decisions_total{level="connection",policy="AuthorizationPolicy' in text
    assert "eastgate_broken_saves_total" in text
    assert ask(mesh, "metrics")["text"].splitlines()[0] == text.splitlines()[0]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/", timeout=PATIENCE)


def test_its_state_and_its_events_can_be_asked_for(cli: Cli, mesh: Up) -> None:
    async def first_event() -> Event:
        events = ControlClient(str(mesh.folder / "control.sock")).stream("events")
        soon = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(called, cli, *WEB_TO_CART)
        found = await soon
        await events.aclose()
        return found

    assert ask(mesh, "status")["name"] == "shop"
    assert asyncio.run(first_event())["event"] == "decided"


def test_a_name_is_for_one_mesh(cli: Cli, mesh: Up, shop: str) -> None:
    done = cli("up", "-f", shop, "--name", "shop")
    assert done.exit_code == 2
    assert "error[EG0111]: a mesh named `shop` is already running" in done.stderr


def test_a_policy_that_no_proxy_can_enforce_closes_its_port_and_is_loud(cli: Cli, tmp_path: Path) -> None:
    """A waypoint knows that a request was addressed to a Service, and a sidecar does not."""
    ambient = ("--set", "meshMode=ambient", "--set", "serviceTarget=traffic")
    with up(tmp_path, *ambient, name="closed", without=("policies.yaml", "cluster.yaml")) as running:
        (running.manifests / "traffic.yaml").write_text(ON_A_SERVICE)
        event = running.until("notEnforced")
        assert (event["workload"], event["port"]) == ("shop/cart", 8080)
        assert "shop/cart port 8080" in running.until("partlyEnforced")["closed"]
        done = cli("call", "--name", "closed", *WEB_TO_CART)
        assert "proxy:  deny: closed: a policy here cannot be enforced" in done.stdout
        assert "note:   shop/cart port 8080 is closed" in done.stdout
        closed = {(one["workload"], one["port"]): one["policies"] for one in ask(running, "status")["notEnforced"]}
        assert len(closed["shop/cart", 8080]) == 1
        (running.manifests / "traffic.yaml").unlink()
        running.until("enforced")
        assert cli("call", "--name", "closed", *WEB_TO_CART).exit_code == 0


# Errors at the start


def test_manifests_with_errors_start_nothing(cli: Cli, tmp_path: Path) -> None:
    text = (SHOP / "policies.yaml").read_text()
    (tmp_path / "policies.yaml").write_text(text.replace("action: DENY", "action: REFUSE"))
    with runtime_folder() as folder:
        done = cli("up", "--strict", "-f", "policies.yaml")
        assert done.exit_code == 2
        assert "action: REFUSE" in done.stderr
        assert "1 error: nothing was started" in done.stderr
        assert json.loads(cli("up", "--strict", "-f", "policies.yaml", "-o", "json").stdout)["event"] == "failed"
        (tmp_path / "world.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {a: 1}}\n")
        done = cli("up", "-f", "world.yaml")
        assert done.exit_code == 2
        assert "1 error: nothing was started" in done.stderr
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give files or folders with -f"),
        (("-f", "-"), "standard input cannot be watched"),
        (("-f", "{shop}", "--app", "web=127.0.0.1:1"), "write --app NS/NAME[:PORT]=HOST:PORT"),
        (("-f", "{shop}", "--app", "shop/web=here"), "`here` is not HOST:PORT"),
        (("-f", "{shop}", "--app", "shop/wob=127.0.0.1:1"), "did you mean shop/web?"),
        (("-f", "{shop}", "--app", "shop/web:1=127.0.0.1:1"), "it has 8080"),
        (("-f", "{shop}", "--metrics", "nowhere"), "`nowhere` is not HOST:PORT"),
        (("-f", "{shop}", "--federate", "Not A Domain"), "--federate"),
        (("-f", "{shop}", "--federate", "partner.example=missing.pem"), "missing.pem"),
        (("-f", "{shop}", "--network", "10.0.0.0/16"), "error[EG0111]"),
        (("-f", "{shop}", "--name", "Not/A/Name"), "cannot be the name of a mesh"),
    ],
)
def test_options_that_cannot_be(cli: Cli, shop: str, words: tuple[str, ...], message: str) -> None:
    done = cli("up", *(word.format(shop=shop) for word in words))
    assert done.exit_code == 2
    assert message in done.stderr


# The end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_remains(number: signal.Signals, tmp_path: Path) -> None:
    with up(tmp_path) as running:
        pids = running.processes()
        assert len(pids) == 6  # an Envoy for each workload, and the reaper
        assert running.folder.exists()
        running.process.send_signal(number)
        errors = running.end()
        ends = time.monotonic() + PATIENCE
        while (left := remains(pids, running.folder)) and time.monotonic() < ends:
            time.sleep(0.02)
        assert left == []
        assert running.process.returncode == (0 if number != signal.SIGKILL else -signal.SIGKILL)
        assert errors == ""


def test_a_command_can_stop_it(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        assert ask(running, "stop") == {"stopping": "test"}
        running.end()
        assert running.process.returncode == 0


def test_it_stops_when_its_reader_has_gone(tmp_path: Path, cli: Cli) -> None:
    with runtime_folder():
        command = [*EASTGATE, "up", "-f", str(SHOP), "--name", "pipe"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            while b"ready" not in process.stdout.readline():
                pass
            process.stdout.close()
            cli("call", "--name", "pipe", *WEB_TO_CART)
            assert process.wait(PATIENCE) == 0


# Output for people


def test_lines_of_text_where_there_is_no_terminal(cli: Cli, tmp_path: Path) -> None:
    with up(tmp_path, name="lines", output="text") as running:
        lines: list[str] = []
        while not (lines and lines[-1].startswith("ready: 5 workloads, 9 policies, in ")):
            lines.append(running.line())
        assert lines[0].split() == ["workload", "address", "application", "identity", "policies"]
        assert any(line.startswith("shop/cart ") and "built-in" in line for line in lines)
        [hint] = [line for line in lines if line.startswith("call it: eastgate call --name lines --from sa:")]
        done = cli(*hint.removeprefix("call it: eastgate ").split())
        assert done.exit_code == 0
        assert "  allow  sa:" in running.line()
        running.edit("policies.yaml", "ports: [8080]", "ports: [80800]")
        assert running.line() == "broken: kept the last good policy"
        assert "error[" in running.line()
        running.process.send_signal(signal.SIGINT)
        assert running.end() == "stopped lines: 5 proxies\n"


def test_a_display_that_follows_on_a_terminal(cli: Cli, tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    environment = {**os.environ, "COLUMNS": "150", "LINES": "30", "TERM": "xterm", "NO_COLOR": ""}
    with runtime_folder() as folder:
        process = subprocess.Popen(
            [*EASTGATE, "up", "-f", str(SHOP), "--name", "live"],
            env={**environment, "XDG_RUNTIME_DIR": str(folder)},
            stdin=other_end,
            stdout=other_end,
            stderr=other_end,
        )
        os.close(other_end)
        shown = _until(terminal, "", "Ctrl-C stops")
        assert "nothing has changed yet" in shown
        cli("call", "--name", "live", *WEB_TO_CART)
        shown = _until(terminal, shown, "1 allowed")
        assert "shop/cart-from-web rule 0" in shown
        assert "policies.yaml:11" in shown
        assert "\x1b[32mlet in" in shown
        assert "stopsready" not in shown
        process.send_signal(signal.SIGINT)
        shown = _until(terminal, shown, "stopped live: 5 proxies")
        assert process.wait(PATIENCE) == 0
        os.close(terminal)
        assert not (folder / "eastgate" / "live").exists()


def _until(terminal: int, shown: str, text: str, timeout: float = PATIENCE) -> str:
    ends = time.monotonic() + timeout
    while text not in shown and time.monotonic() < ends:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")
    assert text in shown
    return shown
