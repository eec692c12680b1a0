"""`eastgate graph`: its arguments, and its output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_table_is_what_comes_without_more_words(cli: Cli, shop: str) -> None:
    shown = cli("graph", "-f", shop)
    assert shown.exit_code == 0
    assert "sa:shop/web                                     pod:shop/cart              8080  allow" in shown.stdout
    assert cli("graph", shop).stdout == shown.stdout


def test_nothing_to_read_is_an_error(cli: Cli) -> None:
    assert "no manifests" in cli("graph").stderr


def test_words_choose_a_part(cli: Cli, shop: str) -> None:
    words = ("--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443", "-o", "json")
    data = json.loads(cli("graph", shop, *words).stdout)
    (edge,) = data["edges"]
    assert (edge["verdict"], edge["condition"]) == ("depends", "POST /v1/charges or GET /v1/charges/*")
    assert (edge["policy"], edge["rule"]) == ("AuthorizationPolicy/shop/payments-api", 0)
    assert [by["rule"] for way in edge["ways"] for by in way["by"]] == [0, 1]


def test_verbose_shows_the_exact_condition(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: cart, namespace: shop}, spec: {containers: [{name: c}]}}\n"
        "---\n"
        "apiVersion: security.istio.io/v1\n"
        "kind: AuthorizationPolicy\n"
        "metadata: {name: cart, namespace: shop}\n"
        'spec: {rules: [{to: [{operation: {paths: ["/cart*"]}}]}]}\n'
    )
    words = ("graph", str(tmp_path), "--to", "pod:shop/cart")
    assert "/cart* and no path that is refused" not in cli(*words).stdout
    assert "/cart* and no path that is refused" in cli(*words, "-v").stdout


def test_a_destination_that_is_not_there_is_an_error(cli: Cli, shop: str) -> None:
    shown = cli("graph", shop, "--to", "pod:shop/payment")
    assert shown.exit_code == 2
    assert "did you mean pod:shop/payments?" in shown.stderr
    data = json.loads(cli("graph", shop, "--to", "pod:shop/payment", "-o", "json").stdout)
    assert data["error"] == "there is no destination `pod:shop/payment`"


def test_groups_say_how_many_pairs_they_are(cli: Cli, shop: str) -> None:
    data = json.loads(cli("graph", shop, "--by", "namespace", "-o", "json").stdout)
    (edge,) = [e for e in data["edges"] if (e["from"], e["to"]) == ("namespace:monitoring", "namespace:shop")]
    assert edge["pairs"] == {"open": 2, "reached": 4, "all": 6}
    assert edge["ports"] == [8080, 9090, "other"]


def test_unused_rules_are_a_list_of_their_own(cli: Cli, shop: str) -> None:
    shown = cli("graph", shop, "--unused")
    assert "AuthorizationPolicy/shop/no-sandbox is not needed at all" in shown.stdout
    data = json.loads(cli("graph", shop, "--unused", "-o", "json").stdout)
    assert data["policies"] == ["AuthorizationPolicy/shop/no-sandbox", "ClusterAuthorizationPolicy/cards-stay-here"]
    assert "--unused is a list" in cli("graph", shop, "--unused", "-o", "svg").stderr


UNREAD = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: odd, namespace: shop}
spec: {workloadSelector: {labels: {app: cart}}}
"""


@pytest.mark.parametrize("form", ["text", "json", "csv", "dot", "mermaid", "svg", "html"])
def test_unread_objects_are_reported(cli: Cli, shop: str, tmp_path: Path, form: str) -> None:
    (tmp_path / "unread.yaml").write_text(UNREAD, "utf-8")
    shown = cli("graph", shop, str(tmp_path), "-o", form)
    assert shown.exit_code == 3
    assert "EnvoyFilter" in (shown.stderr if form == "csv" else shown.stdout)
    assert cli("graph", shop, str(tmp_path), "-o", form, "--unread", "ignore").exit_code == 0


CILIUM = """
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: cart, namespace: shop}
spec: {endpointSelector: {matchLabels: {app: cart}}}
"""


def test_edges_that_an_unread_policy_could_change_have_a_question_mark(cli: Cli, shop: str, tmp_path: Path) -> None:
    (tmp_path / "unread.yaml").write_text(CILIUM, "utf-8")
    shown = cli("graph", shop, str(tmp_path))
    assert shown.exit_code == 3
    verdicts = {tuple(line.split()[:4]) for line in shown.stdout.splitlines()}
    assert ("sa:shop/web", "pod:shop/cart", "8080", "allow?") in verdicts
    listed = cli("graph", shop, str(tmp_path), "-o", "csv").stdout
    assert {line.rpartition(",")[2] for line in listed.splitlines() if ",pod:shop/cart," in line} == {
        "CiliumNetworkPolicy/shop/cart"
    }
    assert ("sa:monitoring/prometheus", "pod:shop/payments", "9090", "allow") in verdicts
    assert "CiliumNetworkPolicy/shop/cart could deny edges that are marked allow? or depends?" in shown.stdout
    assert "it is about shop/cart" in shown.stdout
    assert f"not considered: 1 CiliumNetworkPolicy: {tmp_path}/unread.yaml:2\n" in shown.stdout
    assert "of which" not in shown.stdout
    asked = cli("graph", shop, str(tmp_path), "--by", "app", "--from", "pod:monitoring/prometheus").stdout
    assert any("app:shop/cart" in line and "depends?" in line for line in asked.splitlines())
    edges = json.loads(cli("graph", shop, str(tmp_path), "-o", "json").stdout)["edges"]
    doubted = {(edge["from"], edge["to"]) for edge in edges if "unread" in edge}
    assert ("sa:shop/web", "pod:shop/cart") in doubted
    assert ("sa:monitoring/prometheus", "pod:shop/payments") not in doubted
    assert {edge["verdict"] for edge in edges} <= {"allow", "depends"}


def test_a_policy_with_errors_closes_its_targets_and_is_reported(cli: Cli, shop: str, tmp_path: Path) -> None:
    broken = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: broken, namespace: shop}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]
  action: PERHAPS
"""
    (tmp_path / "broken.yaml").write_text(broken, "utf-8")
    shown = cli("graph", shop, str(tmp_path))
    assert shown.exit_code == 2
    assert "AuthorizationPolicy/shop/broken cannot be read: its targets are shown as closed" in shown.stdout
    data = json.loads(cli("graph", shop, str(tmp_path), "-o", "json").stdout)
    assert not [edge for edge in data["edges"] if edge["to"] == "pod:shop/cart"]
    assert "cannot be read" in data["notes"][0]


@pytest.mark.parametrize(
    ("kubectl", "plain"),
    [
        ("--from sa/shop/web --to pod/shop/cart", "--from sa:shop/web --to pod:shop/cart"),
        ("--from serviceaccount:shop/web --to deploy/shop/cart", "--from sa:shop/web --to pod:shop/cart"),
        ("--to svc/shop/cart", "--to service:shop/cart"),
        ("-n shop --from sa:web --to svc/cart", "-n shop --from sa:shop/web --to service:shop/cart"),
        ("--to po/shop/*", "--to pod:shop/*"),
        ("--to deploy/shop/payments --port http", "--to pod:shop/payments --port 8443"),
        ("--to svc/shop/cart --port http", "--to service:shop/cart --port 8080"),
    ],
)
def test_callers_destinations_and_ports_may_be_written_as_kubectl_writes_them(
    cli: Cli, shop: str, kubectl: str, plain: str
) -> None:
    shown, expected = cli("graph", "-f", shop, *kubectl.split()), cli("graph", "-f", shop, *plain.split())
    assert expected.exit_code == 0
    assert (shown.exit_code, shown.output) == (0, expected.output)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--port htps --to pod:shop/payments", "they have http (8443), metrics (9090)"),
        ("--port http", "several ports have the name `http`"),
        ("--port 0", "write a number from 1 to 65535"),
        ("--port 65536", "write a number from 1 to 65535"),
    ],
)
def test_a_port_that_is_none_is_an_error_that_helps(cli: Cli, shop: str, words: str, message: str) -> None:
    result = cli("graph", "-f", shop, *words.split())
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_graph_names_the_policy_that_a_pod_of_the_node_is_not_subject_to(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: agent, namespace: shop, labels: {app: agent}}\n"
        "spec: {hostNetwork: true, containers: [{name: c, image: i}]}\n---\n"
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: all, namespace: shop}\n"
        "spec: {podSelector: {}, policyTypes: [Ingress, Egress]}\n"
    )
    shown = cli("graph", "-f", str(tmp_path)).stdout
    assert "pod:shop/agent  any   allow" in shown
    why = "it uses the node's network (hostNetwork: true)"
    assert f"note: NetworkPolicy/shop/all does not apply to pod shop/agent: {why}" in shown
