"""Graphs of groups: an edge is open only if every pair in it is allowed on everything."""

from __future__ import annotations

import itertools

import pytest

from eastgate.reports.graph import Graph, Grouping, ReachVerdict, make_graph, survey
from tests.reports.graph.world import authority_from, example, graph_of, pod, policy


def _by_pair(graph: Graph) -> dict[tuple[str, str], tuple[str, str | None]]:
    return {(e.source, e.target): (str(e.bundle.verdict), e.bundle.condition) for e in graph.edges}


def test_pairs_are_counted() -> None:
    grouped = _by_pair(graph_of(example("shop"), by=Grouping.NAMESPACE))
    assert grouped["namespace:monitoring", "namespace:shop"] == ("depends", "4 of 6 pairs")
    assert grouped["anonymous", "namespace:shop"] == ("depends", "1 of 3 pairs")
    assert grouped["namespace:shop", "namespace:monitoring"] == ("allow", None)
    assert ("namespace:sandbox", "namespace:shop") not in grouped


def test_an_undeclared_account_keeps_an_edge_from_being_open() -> None:
    world = pod("a") + pod("b", "there")
    world += policy("p", "b", '[{authorizationSource: {serviceAccounts: ["here/a"]}}]', "there")
    assert _by_pair(graph_of(authority_from(world), by=Grouping.SERVICE_ACCOUNT))["sa:here/a", "sa:there/b"] == (
        "allow",
        None,
    )
    grouped = _by_pair(graph_of(authority_from(world), by=Grouping.NAMESPACE))
    assert grouped["namespace:here", "namespace:there"] == ("depends", "1 of 2 pairs")


def test_the_condition_of_all_pairs_is_shown() -> None:
    grouped = _by_pair(graph_of(example("shop"), by=Grouping.APP))
    assert grouped["app:shop/cart", "app:shop/payments"] == ("depends", "POST /v1/charges or GET /v1/charges/*")
    assert grouped["app:shop/web", "app:shop/cart"] == ("depends", "on port 8080")


def test_an_account_of_several_applications_is_the_caller_in_each() -> None:
    world = pod("a", account="shared") + pod("b", account="shared") + pod("c")
    world += policy("p", "c", '[{authorizationSource: {serviceAccounts: ["here/shared"]}}]')
    grouped = _by_pair(graph_of(authority_from(world), by=Grouping.APP))
    assert grouped["app:here/a", "app:here/c"] == grouped["app:here/b", "app:here/c"] == ("allow", None)


@pytest.mark.parametrize("by", list(Grouping)[1:])
@pytest.mark.parametrize("name", ["shop", "agents", "linkerd", "payment", "toystore"])
def test_groups_agree_with_their_pairs(name: str, by: Grouping) -> None:
    surveyed = survey(example(name))
    grouped = make_graph(surveyed, by)
    single = make_graph(surveyed, Grouping.WORKLOAD)
    reached = {(edge.source, edge.target) for edge in single.edges}
    for bundle in grouped.bundles:
        assert bundle.pairs is not None
        assert 0 <= bundle.pairs.open <= bundle.pairs.reached <= bundle.pairs.all
        assert (bundle.verdict is ReachVerdict.ALLOW) == (bundle.pairs.open == bundle.pairs.all)
    if by is Grouping.SERVICE_ACCOUNT:
        accounts = {node.id: node.account or node.id for node in single.nodes.values()}
        expected = {(source, accounts[target]) for source, target in reached}
        assert {(edge.source, edge.target) for edge in grouped.edges} == expected


def test_too_many_nodes_for_a_picture_are_grouped_with_a_note() -> None:
    letters = [f"{first}{second}" for first, second in itertools.product("abcdefgh", "ijklmnopqrstuvwx")]
    world = "".join(pod(name, f"team-{name[0]}") for name in letters)
    graph = make_graph(survey(authority_from(world)), most=120)
    assert {str(node.kind) for node in graph.nodes.values()} >= {"namespace"}
    assert "too many for a picture: they are grouped by namespace" in graph.notes[0]
    assert len(make_graph(survey(authority_from(world)), Grouping.WORKLOAD, most=120).nodes) > 120  # as requested
    assert not make_graph(survey(authority_from(world))).notes
