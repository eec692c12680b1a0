"""Rows by pod: one row for each allowed pair, pods that do not exist yet, egress, and workloads without a policy."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings

from eastgate import Authority, Question, QuestionError, Settings
from eastgate.authority.reading import read_plain
from eastgate.reports.graph import Graph, GraphSelection, Grouping, ReachVerdict, make_graph, render, survey
from eastgate.reports.graph.model import GraphNode, NodeKind
from eastgate.reports.graph.selection import port_set_of
from eastgate.reports.graph.text import natural, to_text
from tests.reports.graph.world import authority_from, pod, policy
from tests.worlds import network_generate as generate
from tests.worlds.network_oracle import Manifest

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: c, image: x, ports: [{{containerPort: {port}}}]}}]}}
---
"""
NETWORK_POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec: {spec}
---
"""


def deployment(name: str, port: int, namespace: str = "books") -> str:
    return DEPLOYMENT.format(name=name, namespace=namespace, port=port)


def network_policy(name: str, spec: str, namespace: str = "books") -> str:
    return NETWORK_POLICY.format(name=name, namespace=namespace, spec=spec)


def accepts(name: str, port: int, *callers: str) -> str:
    peers = ", ".join(f"{{podSelector: {{matchLabels: {{app: {caller}}}}}}}" for caller in callers)
    selector = f"podSelector: {{matchLabels: {{app: {name}}}}}"
    return network_policy(name, f"{{{selector}, ingress: [{{from: [{peers}], ports: [{{port: {port}}}]}}]}}")


CLOSED = network_policy("closed", "{podSelector: {}, policyTypes: [Ingress]}")
BOOKS = (
    deployment("site", 8080)
    + deployment("search", 9200)
    + deployment("basket", 7000)
    + deployment("basket-db", 5432)
    + CLOSED
    + network_policy("site", "{podSelector: {matchLabels: {app: site}}, ingress: [{ports: [{port: 8080}]}]}")
    + accepts("search", 9200, "site")
    + accepts("basket", 7000, "site")
    + accepts("basket-db", 5432, "basket", "backup")
)
"""A shop whose workloads all run as one account: only their labels tell them apart."""


def graph_of(text: str, selection: GraphSelection | None = None, *, why: bool = False) -> Graph:
    return make_graph(survey(authority_from(text), selection), why=why, pods=True)


def rows(text: str, selection: GraphSelection | None = None) -> list[str]:
    """Return the lines of a table, each with single blanks."""
    table = render(graph_of(text, selection), "text").splitlines()
    return [" ".join(line.split()) for line in table]


def test_each_allowed_pair_is_one_row() -> None:
    assert rows(BOOKS) == [
        "FROM TO PORT VERDICT",
        "pod:books/site pod:books/basket 7000 allow",
        "pod:books/basket pod:books/basket-db 5432 allow",
        "books/[pods with app=backup] pod:books/basket-db 5432 allow",
        "pod:books/site pod:books/search 9200 allow",
        "anyone pod:books/site 8080 allow",
        "egress to any address outside the cluster: books/basket, books/basket-db, books/search, books/site",
    ]


def test_access_of_a_pod_to_itself_is_shown_only_on_request() -> None:
    near = rows(BOOKS, GraphSelection(near=True))
    assert any(line.startswith("pod:books/search pod:books/search any depends") for line in near)
    assert not any(line.startswith("pod:books/search pod:books/search") for line in rows(BOOKS))


def test_a_single_pod_has_no_row_of_its_own_access_beside_pods_like_it() -> None:
    text = pod("a") + pod("b") + network_policy("out", "{podSelector: {}, policyTypes: [Egress]}", "elsewhere")
    found = rows(text, GraphSelection(sources=("pod:here/a",)))
    assert found[1] == "pod:here/a pod:here/b any allow"
    assert not any("replica" in line or line.startswith("pod:here/a pod:here/a") for line in found)
    grouped = make_graph(survey(authority_from(deployment("a", 80) + CLOSED + accepts("a", 80, "a"))), Grouping.APP)
    assert "replica" not in render(grouped, "text")


def test_a_selected_pod_is_not_its_whole_account() -> None:
    assert rows(BOOKS, GraphSelection(sources=("pod:books/basket",)))[1:] == [
        "pod:books/basket pod:books/basket-db 5432 allow",
        "pod:books/basket pod:books/site 8080 allow",
        "egress to any address outside the cluster: books/basket",
    ]


def test_anyone_but_names_the_denied_callers() -> None:
    text = deployment("web", 80) + deployment("job", 80) + "".join(deployment(f"w{n}", 80) for n in range(3))
    text += network_policy("job", "{podSelector: {matchLabels: {app: job}}, policyTypes: [Egress]}")
    graph = graph_of(text)
    assert {bundle.sources for bundle in graph.bundles if bundle.targets[0].startswith("pod:")} == {
        ("anyone but pod:books/job",)
    }
    assert "not protected by any policy: books/job, books/w0" in render(graph, "text")


def test_a_denied_namespace_is_named_as_a_whole() -> None:
    text = deployment("web", 80, "front") + deployment("job", 80) + deployment("api", 80) + deployment("db", 80, "data")
    text += network_policy("all", "{podSelector: {}, policyTypes: [Egress]}")
    assert {bundle.sources for bundle in graph_of(text).bundles if "pod:data/db" in bundle.targets} == {
        ("anyone but books/*",)
    }


def test_the_allowed_pods_of_a_mostly_denied_namespace_are_named_separately() -> None:
    """A new row for each namespace would hide the callers outside the cluster."""
    homes = "".join(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: n{n}}}\n---\n" for n in range(8))
    text = homes + "".join(deployment(f"w{n}", 80) for n in range(5)) + deployment("cache", 6379)
    text += "".join(
        network_policy(f"w{n}", f"{{podSelector: {{matchLabels: {{app: w{n}}}}}, policyTypes: [Ingress, Egress]}}")
        for n in range(5)
    )
    assert [line for line in rows(text) if "pod:books/cache any" in line] == [
        "pod:books/cache (another replica) pod:books/cache any allow",
        "anyone but books/* pod:books/cache any allow",
    ]


def test_a_selected_namespace_has_the_rows_of_anyone() -> None:
    named = [line for line in rows(BOOKS, GraphSelection(namespace="books")) if " pod:books/site" in line]
    assert named == ["anyone pod:books/site 8080 allow"]
    peer = "{namespaceSelector: {matchLabels: {team: ops}}}"
    text = deployment("web", 80) + network_policy("web", f"{{podSelector: {{}}, ingress: [{{from: [{peer}]}}]}}")
    future = "[namespaces with team=ops]/[all pods] pod:books/web any allow"
    assert future in rows(text, GraphSelection(namespace="books"))
    assert future not in rows(text + deployment("job", 80, "jobs"), GraphSelection(namespace="jobs"))


def test_rows_to_all_workloads_of_a_namespace_name_it() -> None:
    probes = network_policy("probes", "{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: p}}}]}]}")
    many = "".join(deployment(f"w{n}", 80) for n in range(8)) + probes
    assert "books/[pods with app=p] pod:books/* any allow" in rows(many)
    assert not any("pod:books/*" in line for line in rows(many, GraphSelection(targets=("pod:books/w*",))))


def test_a_shortened_cell_names_external_callers_first() -> None:
    text = "".join(deployment(f"w{n}", 80) for n in range(12)) + deployment("web", 80)
    graph = graph_of(text + CLOSED + accepts("web", 80, *(f"w{n}" for n in range(12))), GraphSelection(sources=("*",)))
    (bundle,) = (each for each in graph.bundles if each.targets == ("pod:books/web",))
    wide = replace(bundle, sources=(*bundle.sources, "anonymous"), targets=("pod:books/web", "pod:books/w1"))
    anonymous = GraphNode("anonymous", NodeKind.ANONYMOUS)
    graph = replace(graph, bundles=(wide,), nodes={**graph.nodes, "anonymous": anonymous})
    lines = to_text(graph).splitlines()
    assert lines[1].split()[0] == "anonymous"
    assert "... and 7 more (-v)" in "\n".join(lines)
    assert "more" not in to_text(graph, full=True)


def test_pods_of_a_future_namespace_are_named_by_its_labels() -> None:
    peer = "{namespaceSelector: {matchLabels: {team: ops}}, podSelector: {matchLabels: {app: probe}}}"
    text = deployment("web", 80) + network_policy("web", f"{{podSelector: {{}}, ingress: [{{from: [{peer}]}}]}}")
    assert "[namespaces with team=ops]/[pods with app=probe] pod:books/web any allow" in rows(text)
    ops = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ops, labels: {team: ops}}\n---\n"
    assert "ops/[pods with app=probe] pod:books/web any allow" in rows(ops + text)


@pytest.mark.parametrize(
    ("peers", "shown"),
    [
        ("[{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]", "ip:10.0.0.0/9, 10.128.0.0/9 443"),
        ("[{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]", "ip:0.0.0.0/0 except 10.0.0.0/8 443"),
        ("[{ipBlock: {cidr: 192.0.2.7/32}}]", "ip:192.0.2.7/32 443"),
        ("[]", "ip:any 443"),
        ("[{podSelector: {}}]", None),
    ],
)
def test_egress_is_a_row_with_the_addresses(peers: str, shown: str | None) -> None:
    rule = f"{{podSelector: {{}}, policyTypes: [Egress], egress: [{{to: {peers}, ports: [{{port: 443}}]}}]}}"
    found = [line for line in rows(deployment("web", 80) + network_policy("out", rule)) if " ip:" in line]
    if shown is not None and "/9" in shown:
        assert _networks(found[0]) == _networks("10.0.0.0/8") - _networks("10.1.0.0/16")
    else:
        assert found == ([f"pod:books/web {shown} allow"] if shown else [])


def _networks(line: str) -> set[int]:
    """Return the second bytes of the networks of 10.0.0.0/8 in a text."""
    words = line.replace(",", " ").replace("ip:", " ").split()
    networks = [ipaddress.ip_network(word) for word in words if "/" in word and word[0].isdigit()]
    return {n for n in range(256) if any(ipaddress.ip_address(f"10.{n}.3.4") in network for network in networks)}


def test_rules_of_identities_begin_at_accounts() -> None:
    text = pod("web") + pod("db") + pod("job") + CLOSED
    text += policy("db", "db", "[{authorizationSource: {serviceAccounts: [here/web]}}]")
    assert "sa:here/web pod:here/db any allow" in rows(text)


def test_json_has_edges_of_pods_and_of_accounts() -> None:
    graph = make_graph(survey(authority_from(BOOKS)))
    edges = {(edge.source, edge.target, edge.port): edge.bundle.verdict for edge in graph.edges}
    assert edges["sa:books/default", "pod:books/search", 9200] is ReachVerdict.DEPENDS
    assert edges["pod:books/site", "pod:books/search", 9200] is ReachVerdict.ALLOW
    assert ("pod:books/basket", "pod:books/search", 9200) not in edges
    assert edges["sa:books/default", "pod:books/site", 8080] is ReachVerdict.ALLOW
    assert set(graph.nodes) >= {name for edge in graph.edges for name in (edge.source, edge.target)}


def test_names_are_sorted_as_people_sort_them() -> None:
    names = ["pod:ns10/a", "pod:ns2/b10", "pod:ns2/b9", "pod:ns1/z"]
    assert sorted(names, key=natural) == ["pod:ns1/z", "pod:ns2/b9", "pod:ns2/b10", "pod:ns10/a"]


@pytest.mark.parametrize(
    ("peers", "callers"),
    [
        ("[{ipBlock: {cidr: 203.0.113.0/24}}]", ["anyone"]),
        (
            "[{ipBlock: {cidr: 203.0.113.0/24}}, {podSelector: {matchLabels: {app: job}}}]",
            ["anyone but", "pod:books/job"],
        ),
    ],
)
def test_a_block_of_addresses_is_one_row_of_anyone(peers: str, callers: list[str]) -> None:
    text = deployment("web", 80) + deployment("job", 80) + deployment("db", 5432) + deployment("w", 80)
    text += network_policy("db", f"{{podSelector: {{matchLabels: {{app: db}}}}, ingress: [{{from: {peers}}}]}}")
    found = [line for line in rows(text) if " pod:books/db " in line]
    assert [line.startswith(name) for line, name in zip(found, callers, strict=True)] == [True] * len(callers)
    assert found[0].endswith("any depends addresses in 203.0.113.0/24")


# Groups


def groups(text: str, by: Grouping) -> list[str]:
    table = render(make_graph(survey(authority_from(text)), by), "text").splitlines()
    return [" ".join(line.split()) for line in table]


def test_groups_of_workloads_begin_at_pods() -> None:
    """All run as one account. By accounts, the graph would show that every application calls every other."""
    assert groups(BOOKS, Grouping.APP)[1:-1] == [
        "app:books/site app:books/basket 7000 allow",
        "app:books/basket app:books/basket-db 5432 allow",
        "books/[pods with app=backup]",
        "app:books/site app:books/search 9200 allow",
        "anyone app:books/site 8080 allow",
    ]
    other = deployment("shop", 80, "front") + network_policy(
        "shop", "{podSelector: {}, policyTypes: [Egress]}", "front"
    )
    assert [line for line in groups(BOOKS + other, Grouping.NAMESPACE) if "pairs" in line] == [
        "namespace:books namespace:books 5432, 7000, 8080, 9200 depends 6 of 12 pairs",
        "books/[pods with app=backup] namespace:books 5432 depends 1 of 4 pairs",
        "anyone but front/* namespace:books 8080 depends 1 of 4 pairs",
    ]


def test_a_picture_of_many_workloads_is_put_together_by_pods() -> None:
    names = [f"w{n}" for n in range(130)]
    text = CLOSED + "".join(deployment(name, 80) for name in names) + accepts("w1", 80, "w0")
    graph = make_graph(survey(authority_from(text)), most=120, pods=True)
    assert {(edge.source, edge.target) for edge in graph.edges if edge.target != "ip:any"} == {
        ("namespace:books", "namespace:books")
    }
    (edge,) = (edge for edge in graph.edges if edge.target == "namespace:books")
    assert edge.bundle.condition == f"1 of {130 * 129} pairs"


# Generated clusters


@settings(max_examples=30, deadline=None)
@given(generate.situations())
def test_pairs_of_groups_agree_with_check(situation: tuple[list[Manifest], object]) -> None:
    authority = Authority(read_plain(situation[0], Settings()))
    surveyed = survey(authority)
    pods = [workload for workload in authority.world.workloads.values() if workload.is_pod]
    homes = {f"pod:{pod.key}": f"namespace:{pod.namespace}" for pod in pods}
    graph = make_graph(surveyed, Grouping.NAMESPACE, pods=True)
    ports = {port for edge in graph.edges for port in edge.bundle.ports} | {4711}
    for caller, called in itertools.permutations(pods, 2):
        source, target = f"pod:{caller.key}", f"pod:{called.key}"
        for port in ports:
            try:
                decision = authority.decide(Question.of(source, target, port=port))
            except QuestionError:
                continue
            found = {
                bundle.verdict
                for bundle in graph.bundles
                if homes[target] in bundle.targets
                and any(_means(name, source, homes[source]) for name in bundle.sources)
                if any(first <= port <= last for first, last in port_set_of(bundle))
            }
            assert found if decision.allowed else ReachVerdict.ALLOW not in found


@settings(max_examples=40, deadline=None)
@given(generate.situations())
def test_rows_agree_with_check_for_each_pair(situation: tuple[list[Manifest], object]) -> None:
    authority = Authority(read_plain(situation[0], Settings()))
    surveyed = survey(authority)
    tables = (make_graph(surveyed, pods=True), make_graph(surveyed))
    pods = [workload for workload in authority.world.workloads.values() if workload.is_pod]
    ports = {edge.port for graph in tables for edge in graph.edges if edge.port is not None} | {4711}
    for caller, called in itertools.permutations(pods, 2):
        for port in ports:
            try:
                decision = authority.decide(Question.of(f"pod:{caller.key}", f"pod:{called.key}", port=port))
            except QuestionError:
                continue
            account = f"sa:{caller.namespace}/{caller.service_account}"
            for graph in tables:
                found = set(_verdicts(graph, (f"pod:{caller.key}", account), f"pod:{called.key}", port))
                if decision.allowed:
                    assert found
                else:
                    assert ReachVerdict.ALLOW not in found


def _verdicts(graph: Graph, callers: Iterable[str], called: str, port: int) -> Iterator[ReachVerdict]:
    """Yield the verdicts of the rows for a pair."""
    for bundle in graph.bundles:
        named = {number for each in graph.bundles if called in each.targets for number in each.ports}
        ranges = bundle.port_ranges or ((1, 65535),)
        is_other = bundle.other_ports and port not in bundle.closed_ports and (graph.by_pod or port not in named)
        is_other = is_other and any(first <= port <= last for first, last in ranges)
        is_caller = any(_means(name, caller) for name in bundle.sources for caller in callers)
        if is_caller and called in bundle.targets and (port in bundle.ports or is_other):
            yield bundle.verdict


def _means(name: str, caller: str, *groups: str) -> bool:
    if not name.startswith("anyone"):
        return name in (caller, *groups)
    missing = name.partition(" but ")[2].split(", ")
    home = caller.removeprefix("pod:").partition("/")[0]
    return caller.startswith("pod:") and caller not in missing and f"{home}/*" not in missing


def test_an_identity_that_is_no_account_is_no_pod_of_another_namespace() -> None:
    name = "{key: kubernetes.io/metadata.name, operator: NotIn, values: [a]}"
    peers = f"[{{namespaceSelector: {{matchExpressions: [{name}]}}}}]"
    text = deployment("site", 8080) + network_policy("site", f"{{podSelector: {{}}, ingress: [{{from: {peers}}}]}}")
    assert not any("outside" in line for line in rows(text)[:-1])
    authority = authority_from(text)
    for identity, allowed in {"ns/b/sa/c": True, "ns/b": False, "ns/b/sa/c/d": False}.items():
        question = Question.of(f"spiffe://cluster.local/{identity}", "pod:books/site", port=8080)
        assert authority.decide(question).allowed is allowed
