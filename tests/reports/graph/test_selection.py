"""Selected parts of graphs."""

from __future__ import annotations

import pytest

from eastgate import Question, QuestionError
from eastgate.reports.graph import Graph, GraphSelection
from tests.reports.graph.world import edges, example, graph_of


def _ends(graph: Graph) -> tuple[set[str], set[str]]:
    return {edge.source for edge in graph.edges}, {edge.target for edge in graph.edges}


@pytest.mark.parametrize(
    ("selection", "sources", "targets"),
    [
        (GraphSelection(sources=("sa:shop/web",), targets=("pod:shop/*",)), {"sa:shop/web"}, {"cart", "web"}),
        (
            GraphSelection(sources=("pod:shop/cart",), targets=("namespace:shop",)),
            {"sa:shop/cart"},
            {"payments", "web"},
        ),
        (GraphSelection(sources=("sa:shop/*",), targets=("service:shop/cart",)), {"sa:shop/web"}, {"cart"}),
    ],
)
def test_callers_and_destinations_are_chosen(selection: GraphSelection, sources: set[str], targets: set[str]) -> None:
    graph = graph_of(example("shop"), selection)
    assert _ends(graph) == (sources, {f"pod:shop/{name}" for name in targets})
    assert set(graph.nodes) == sources | {f"pod:shop/{name}" for name in targets}


def test_an_undeclared_account_is_a_caller_too() -> None:
    graph = graph_of(example("shop"), GraphSelection(sources=("sa:shop/new",)))
    assert _ends(graph)[0] == {"sa:shop/new"}
    assert "pod:shop/cart" not in _ends(graph)[1]


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("id:api.west.example.com", "id:*.west.example.com"),
        ("id:web.emojivoto.serviceaccount.identity.linkerd.cluster.local", "sa:emojivoto/web"),
        ("id:somebody.else.example", "id:*"),
    ],
)
def test_a_mesh_name_is_distinguished_like_names_in_rules(name: str, node: str) -> None:
    assert _ends(graph_of(example("linkerd"), GraphSelection(sources=(name,))))[0] == {node}


@pytest.mark.parametrize("selection", [GraphSelection(sources=("sa",)), GraphSelection(targets=("pod:shop/carts",))])
def test_an_unknown_name_is_an_error(selection: GraphSelection) -> None:
    with pytest.raises(QuestionError):
        graph_of(example("shop"), selection)


def test_a_port_that_nothing_names_is_one_of_the_others() -> None:
    shown = edges(graph_of(example("shop"), GraphSelection(sources=("anonymous",), port=4711)))
    assert {port for _, _, port in shown} == {4711}
    assert {target for _, target, _ in shown} == {
        "pod:monitoring/prometheus",
        "pod:sandbox/experiments",
        "pod:shop/web",
    }


def test_a_port_that_is_named_is_looked_at_alone() -> None:
    shown = edges(graph_of(example("shop"), GraphSelection(targets=("pod:shop/payments",), port=9090)))
    assert list(shown) == [("sa:monitoring/prometheus", "pod:shop/payments", 9090)]


def test_a_namespace_is_at_one_end_at_least() -> None:
    graph = graph_of(example("shop"), GraphSelection(namespace="monitoring"))
    assert graph.bundles
    for edge in graph.edges:
        assert "monitoring" in (graph.nodes[edge.source].namespace, graph.nodes[edge.target].namespace)
    whole = graph_of(example("shop"))
    everything = [
        edge
        for edge in whole.edges
        if "monitoring" in (whole.nodes[edge.source].namespace, whole.nodes[edge.target].namespace)
    ]
    assert len(list(graph.edges)) == len(everything)


def test_external_callers_have_no_identity_of_this_cluster() -> None:
    sources, _ = _ends(graph_of(example("shop"), GraphSelection(external=True)))
    assert sources == {"anonymous", "outside", "spiffe://partner.example/ns/shop/sa/settlement"}
    sources, _ = _ends(graph_of(example("linkerd"), GraphSelection(external=True)))
    assert {"id:*.west.example.com", "anonymous"} <= sources


@pytest.mark.parametrize("tool", ["refund", "list", "export", "unheard-of"])
def test_calls_of_a_tool_agree_with_check(tool: str) -> None:
    authority = example("agents")
    shown = edges(graph_of(authority, GraphSelection(tool=tool, denied=True)))
    for caller in ("support", "analyst", "tools"):
        for backend in ("tickets", "ledger"):
            verdict, condition = shown[f"sa:agents/{caller}", f"backend:agents/{backend}", 80]
            asked = Question.of(f"sa:agents/{caller}", f"backend:agents/{backend}", port=80, tool=tool)
            assert authority.decide(asked).allowed == (verdict == "allow")
            agreed = Question.of(**{**_fields(asked), "external_auth": {"limits.agents:9000": "allow"}})  # type: ignore[arg-type]
            assert authority.decide(agreed).allowed == (verdict != "deny"), condition


def _fields(question: Question) -> dict[str, object]:
    return {
        "source": question.source,
        "destination": question.destination,
        "port": question.port,
        "tool": question.tool,
    }
