"""A port that is closed to all callers has no edge, and is not one of the other ports of an edge either."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate import Authority, Settings
from eastgate.reports.graph import GraphSelection, make_graph, render, survey
from tests.worlds.test_generated_clusters import authority_of

Manifest = dict[str, Any]


def _world(source: Manifest) -> Authority:
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]
    manifests: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "p"}},
            "spec": {"serviceAccountName": "p", "containers": containers},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "shop"}},
        {
            "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": "closed", "namespace": "shop"},
            "spec": {
                "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "p"}}}],
                "action": "DENY",
                "rules": [{**source, "networkAttributes": {"ports": [8080]}}],
            },
        },
    ]
    return authority_of(manifests, Settings.from_mapping({"denyOnly": "allow"}))


_OF_A: Manifest = {"authorizationSource": {"serviceAccounts": ["shop/a"]}}
_ONLY_A = GraphSelection(sources=("sa:shop/a",))


@pytest.mark.parametrize(("source", "selection"), [({}, None), ({}, _ONLY_A), (_OF_A, _ONLY_A)])
def test_no_edge_includes_a_port_that_is_closed_to_all_selected_callers(
    source: Manifest, selection: GraphSelection | None
) -> None:
    graph = make_graph(survey(_world(source), selection))
    others = [edge.to_json() for edge in graph.edges if edge.port is None]
    assert others
    assert all(edge["exceptPorts"] == [8080] for edge in others)
    assert "80, any other but 8080" in render(graph, "text")
    assert render(graph, "csv").splitlines()[0].endswith(",exceptPorts,unread")


def test_a_port_that_some_edge_names_is_not_repeated() -> None:
    graph = make_graph(survey(_world(_OF_A)))
    assert not any("exceptPorts" in edge.to_json() for edge in graph.edges)
    assert "but 8080" not in render(graph, "text")


def test_a_refusal_that_is_shown_names_its_port() -> None:
    graph = make_graph(survey(_world({}), GraphSelection(denied=True)))
    assert not any("exceptPorts" in edge.to_json() for edge in graph.edges)
