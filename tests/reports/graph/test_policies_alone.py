"""The graph of policies without workloads: the callers that they admit to the pods that they select."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import eastgate
from eastgate.cli import main

PREFACE = "no workload is declared: destinations are the pods that policies select"
NETWORK = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: pci}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: cards, namespace: pci}
spec:
  podSelector: {matchLabels: {app: cards}}
  policyTypes: [Ingress]
  ingress:
  - from:
    - podSelector: {matchLabels: {app: checkout}}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
    ports: [{port: 8443}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: checkout, namespace: pci}
spec:
  podSelector: {matchLabels: {app: checkout}}
  policyTypes: [Egress]
  egress: [{to: [{podSelector: {matchLabels: {app: cards}}}], ports: [{port: 8443}]}]
"""
ISTIO = """\
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: cards, namespace: pci}
spec:
  selector: {matchLabels: {app: cards}}
  rules:
  - from: [{source: {principals: [cluster.local/ns/pci/sa/checkout]}}]
    to: [{operation: {methods: [GET], ports: ["8443"]}}]
"""
LINKERD = """\
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: web, namespace: shop}
spec: {podSelector: {matchLabels: {app: web}}, port: http}
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  targetRef: {group: policy.linkerd.io, kind: Server, name: web}
  requiredAuthenticationRefs: [{kind: ServiceAccount, name: cart}]
"""


def graph(folder: Path, text: str, *words: str) -> Result:
    (folder / "all.yaml").write_text(text)
    return CliRunner().invoke(main, ["graph", "-f", str(folder / "all.yaml"), *words], catch_exceptions=False)


def rows(result: Result) -> list[list[str]]:
    lines = result.stdout.splitlines()
    assert lines[0] == PREFACE
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[2:]]


def test_network_policies_admit_pods_by_labels(tmp_path: Path) -> None:
    result = graph(tmp_path, NETWORK)
    assert result.exit_code == 0
    assert rows(result) == [
        ["monitoring/[all pods]", "pci/[pods with app=cards]", "8443", "allow"],
        ["pci/[pods with app=checkout]", "pci/[pods with app=cards]", "8443", "allow"],
    ]


def test_the_deciding_rules_are_rules_of_the_policies(tmp_path: Path) -> None:
    result = graph(tmp_path, NETWORK, "--why")
    assert result.stdout.count("NetworkPolicy/pci/cards rule 0") == 2
    assert "itself" not in result.stdout


def test_identities_are_admitted_on_conditions(tmp_path: Path) -> None:
    result = graph(tmp_path, ISTIO, "--set", "istioDataPlane=sidecar")
    [row] = rows(result)
    assert row == ["sa:pci/checkout", "pci/[pods with app=cards]", "8443", "depends", "GET"]


def test_a_port_by_name_has_a_number_that_a_note_explains(tmp_path: Path) -> None:
    result = graph(tmp_path, LINKERD)
    assert ["sa:shop/cart", "shop/[pods with app=web]", "64001", "allow"] in rows(result)
    assert result.stdout.endswith("note: port 64001 is the number for the port name http\n")


def test_json_says_it_among_the_notes_and_names_no_invented_account(tmp_path: Path) -> None:
    told = json.loads(graph(tmp_path, NETWORK, "-o", "json").stdout)
    assert told["notes"] == [PREFACE]
    assert {"id": "pci/[pods with app=cards]", "kind": "futurePods", "namespace": "pci"} in told["nodes"]
    assert not [node for node in told["nodes"] if "invented" in node["id"]]
    assert not [edge for edge in told["edges"] if "invented" in edge["from"] + edge["to"]]


@pytest.mark.parametrize("form", ["csv", "dot", "mermaid", "svg", "html", "matrix"])
def test_every_form_has_the_pods(form: str, tmp_path: Path) -> None:
    result = graph(tmp_path, NETWORK, "-o", form)
    if form == "matrix" and result.exit_code == 2:
        return  # there is no such format
    assert result.exit_code == 0
    assert "app=cards" in result.stdout
    assert PREFACE in result.stderr


@pytest.mark.parametrize("by", ["namespace", "app"])
def test_groups_follow_the_labels(by: str, tmp_path: Path) -> None:
    result = graph(tmp_path, NETWORK, "--by", by)
    assert rows(result)[0][1] == ("namespace:pci" if by == "namespace" else "app:pci/cards")


def test_egress_is_that_of_the_selected_pods(tmp_path: Path) -> None:
    text = NETWORK.replace(
        "egress: [{to: [{podSelector: {matchLabels: {app: cards}}}], ports: [{port: 8443}]}]", "egress: [{}]"
    )
    assert "egress to any address outside the cluster: pci/[pods with app=checkout]" in graph(tmp_path, text).stdout


def test_a_policy_for_every_pod_of_a_namespace_has_all_of_them_as_one(tmp_path: Path) -> None:
    text = NETWORK.partition("---")[0].replace(", Egress", "").replace("{}, policy", "{}, ingress: [{}], policy")
    assert rows(graph(tmp_path, text))[0] == ["anyone", "pci/[all pods]", "any", "allow"]


def test_unread_objects_qualify_the_graph(tmp_path: Path) -> None:
    cilium = (
        "---\napiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: one, namespace: pci}\n"
        "spec: {endpointSelector: {}}\n"
    )
    result = graph(tmp_path, NETWORK + cilium)
    assert result.exit_code == 3
    assert "allow?" in result.stdout
    assert "not considered: 1 CiliumNetworkPolicy" in result.stdout


def test_an_unreadable_policy_closes_its_pods(tmp_path: Path) -> None:
    result = graph(tmp_path, NETWORK.replace("policyTypes: [Ingress]", "policyType: [Ingress]"))
    assert result.exit_code == 2
    assert "NetworkPolicy/pci/cards cannot be read: its targets are shown as closed" in result.stdout
    assert "[pods with app=cards]" not in result.stdout


def test_without_policies_nothing_is_invented(tmp_path: Path) -> None:
    result = graph(tmp_path, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}\n")
    assert (result.exit_code, result.stdout) == (0, "no selected caller can reach a selected destination\n")


def test_one_workload_is_enough_for_none_to_be_invented(tmp_path: Path) -> None:
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: cards, namespace: pci, labels: {app: cards}}\n"
    result = graph(tmp_path, NETWORK + pod)
    assert PREFACE not in result.stdout
    assert "pod:pci/cards" in result.stdout


def test_the_python_api_draws_it_too_and_leaves_the_authority_as_it_was() -> None:
    authority = eastgate.from_text(NETWORK)
    drawn = authority.graph()
    assert "pci/[pods with app=cards]" in drawn.nodes
    notes = drawn.to_json()["notes"]
    assert isinstance(notes, list)
    assert PREFACE in notes
    assert not authority.world.workloads
