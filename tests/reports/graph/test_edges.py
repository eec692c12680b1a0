"""Edges of the examples: callers, destinations, ports and conditions."""

from __future__ import annotations

import json

import pytest

from eastgate import Question, Settings
from eastgate.reports.graph import GraphSelection, render
from tests.reports.graph.world import authority_from, edges, example, graph_of, pod, policy


def test_edges_have_the_fields_of_the_contract() -> None:
    data = json.loads(json.dumps(graph_of(example("shop")).to_json()))
    assert set(data) == {"nodes", "edges"}
    assert all({"id", "kind"} <= set(node) for node in data["nodes"])
    names = [node["id"] for node in data["nodes"]]
    assert len(names) == len(set(names))
    for edge in data["edges"]:
        assert list(edge)[:9] == ["from", "to", "port", "verdict", "condition", "policy", "rule", "file", "line"]
        assert {edge["from"], edge["to"]} <= set(names)
        assert edge["verdict"] in ("allow", "depends")
        assert (edge["condition"] is None) == (edge["verdict"] == "allow")
    (edge,) = [edge for edge in data["edges"] if (edge["to"], edge["port"]) == ("pod:shop/cart", 8080)]
    assert (edge["from"], edge["policy"], edge["rule"]) == ("sa:shop/web", "AuthorizationPolicy/shop/cart-from-web", 0)
    assert edge["file"].endswith("policies.yaml")
    assert edge["line"] == 11


def test_the_condition_of_an_edge_is_shown() -> None:
    shown = edges(graph_of(example("shop")))
    assert shown["sa:shop/cart", "pod:shop/payments", 8443] == ("depends", "POST /v1/charges or GET /v1/charges/*")
    assert shown["sa:shop/web", "pod:shop/cart", 8080] == ("allow", None)
    assert ("sa:shop/web", "pod:shop/payments", 8443) not in shown


def test_other_accounts_of_a_namespace_are_left_out_where_they_are_like_all_others() -> None:
    names = graph_of(example("shop")).nodes
    assert "others:sandbox" in names  # a policy closes its workloads to the namespace
    assert "others:shop" not in names
    assert {"others", "outside", "anonymous", "spiffe://partner.example/ns/shop/sa/settlement"} <= set(names)


def test_messages_of_sessions_are_named_together() -> None:
    graph = graph_of(example("agents"))
    shown = edges(graph)
    support = shown["sa:agents/support", "gateway:agents/tools", 8080]
    tickets = "/mcp and host tickets.example: tools answer, list, MCP sessions"
    ledger = "/mcp and host ledger.example: tool refund, MCP sessions if limits.agents:9000 allows"
    assert support == ("depends", f"{tickets}; or {ledger}")
    (edge,) = [
        edge for edge in graph.edges if edge.source == "sa:agents/support" and edge.target == "gateway:agents/tools"
    ]
    data = edge.to_json()
    assert data["leadsTo"] == ["backend:agents/tickets", "backend:agents/ledger"]
    assert [way["leadsTo"] for way in data["ways"]] == [["backend:agents/tickets"], ["backend:agents/ledger"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("message", "is_session"),
    [
        ({"mcp_method": "initialize"}, True),
        ({"mcp_method": "ping"}, True),
        ({"mcp_method": "tools/list"}, True),
        ({"mcp_method": "server/discover"}, True),
        ({"mcp_method": "notifications/cancelled"}, True),
        ({"method": "GET", "headers": {}}, True),
        ({"method": "DELETE", "headers": {"mcp-session-id": "1"}}, True),
        ({"method": "DELETE", "headers": {}}, False),
        ({"method": "HEAD", "headers": {}}, False),
        ({"mcp_method": "prompts/list"}, False),
        ({"mcp_method": "completion/complete"}, False),
    ],
)
def test_mcp_sessions_are_exactly_these_messages(message: dict[str, object], is_session: bool) -> None:
    http = {"method": "POST", "path": "/", "host": "tickets.example", "headers": {}} | message
    asked = Question.of("sa:agents/support", "backend:agents/tickets", port=80, **http)  # type: ignore[arg-type]
    assert example("agents").decide(asked).allowed is is_session


def test_denials_before_a_rule_are_part_of_its_condition() -> None:
    shown = edges(graph_of(example("agents")))
    assert shown["sa:agents/analyst", "backend:agents/ledger", 80] == (
        "depends",
        "tool list, MCP sessions",
    )  # without export


def test_denied_pairs_are_edges_only_on_request() -> None:
    authority = example("shop")
    assert all(verdict != "deny" for verdict, _ in edges(graph_of(authority)).values())
    shown = edges(graph_of(authority, GraphSelection(denied=True)))
    assert shown["sa:sandbox/default", "pod:shop/cart", 8080] == ("deny", None)
    by = {
        edge.to_json()["policy"]
        for edge in graph_of(authority, GraphSelection(denied=True)).edges
        if (edge.source, edge.target, edge.port) == ("sa:sandbox/default", "pod:shop/cart", 8080)
    }
    assert by == {"AuthorizationPolicy/shop/no-sandbox"}


def test_without_reasons_fewer_bundles_say_the_same() -> None:
    authority = example("shop")
    with_reasons, without = graph_of(authority), graph_of(authority, why=False)
    assert edges(with_reasons) == edges(without)
    assert len(without.bundles) < len(with_reasons.bundles)


SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: front, namespace: here}
spec: {selector: {app: web}, ports: [{port: 8080}]}
---
"""


def test_requests_to_a_service_have_their_own_edge_if_a_policy_distinguishes_them() -> None:
    target = "targetRefs: [{kind: Service, name: front}]"
    rules = '[{authorizationSource: {serviceAccounts: ["here/job"]}}]'
    guard = policy("p", "web", rules).replace("targetRefs: [{kind: Pod, selector: {matchLabels: {app: web}}}]", target)
    settings = Settings.from_mapping({"meshMode": "ambient", "serviceTarget": "traffic"})
    graph = graph_of(authority_from(pod("web") + pod("job") + SERVICE + guard, settings))
    by_service = {(edge.source, edge.to_json().get("service")) for edge in graph.edges if edge.target == "pod:here/web"}
    assert {name for name, service in by_service if service == "service:here/front"} == {"sa:here/job"}
    assert "anonymous" in {name for name, service in by_service if service is None}
    assert "by service:here/front" in render(graph, "text")


def test_pods_that_decide_alike_share_a_bundle() -> None:
    world = "".join(pod(f"web-{number}", app="web", account="web") for number in range(5)) + pod("job")
    world += policy(
        "p", "web", '[{authorizationSource: {serviceAccounts: ["here/job"]}, networkAttributes: {ports: [8080]}}]'
    )
    graph = graph_of(authority_from(world))
    (bundle,) = [bundle for bundle in graph.bundles if bundle.sources == ("sa:here/job",) and bundle.ports == (8080,)]
    assert bundle.targets == tuple(f"pod:here/web-{number}" for number in range(5))


def test_an_edge_on_which_only_refused_paths_are_denied_is_allowed() -> None:
    rules = (
        """[{from: [{source: {notPrincipals: ["cluster.local/ns/here/sa/web"]}}], to: [{operation: {paths: [/a]}}]}]"""
    )
    istio = f"""
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: api, namespace: here}}
spec: {{action: DENY, rules: {rules}}}
"""
    text = "---".join((pod("api"), pod("web", account="web"), istio))
    shown = edges(graph_of(authority_from(text, Settings.from_mapping({"istioDataPlane": "sidecar"}))))
    assert {value for (source, _, _), value in shown.items() if source == "sa:here/web"} == {("allow", None)}
    assert {value for (source, _, _), value in shown.items() if source == "others"} == {("depends", "paths except /a")}
