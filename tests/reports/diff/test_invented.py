"""Policies alone are compared on invented workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import eastgate
from eastgate.cli import main
from eastgate.reports.invented import has_no_workloads, invent

NETWORK = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {app: CALLER}}}], ports: [{port: PORT}]}]
"""
ISTIO = """\
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: cards, namespace: pci}
spec:
  selector: {matchLabels: {app: cards}}
  rules: [{from: [{source: {principals: [cluster.local/ns/pci/sa/CALLER]}}], to: [{operation: {methods: [GET]}}]}]
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
  requiredAuthenticationRefs: [{kind: ServiceAccount, name: CALLER}]
"""
EMPTY = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\n"
NAME = "kubernetes.io/metadata.name"


def admin(name: str, priority: int, labels: str, action: str) -> str:
    return (
        f"apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {{name: {name}}}\n"
        f"spec: {{priority: {priority}, subject: {{pods: {{namespaceSelector: {{matchLabels: {{{NAME}: shop}}}}, "
        f"podSelector: {{matchLabels: {{{labels}}}}}}}}}, "
        f"ingress: [{{action: {action}, from: [{{namespaces: {{}}}}]}}]}}\n---\n"
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def diff(folder: Path, old: str, new: str, *words: str) -> Result:
    for side, text in (("old", old), ("new", new)):
        (folder / side).mkdir(exist_ok=True)
        (folder / side / "all.yaml").write_text(text)
    return CliRunner().invoke(main, ["diff", "old", "new", *words], catch_exceptions=False)


def report(folder: Path, old: str, new: str) -> tuple[int, dict[str, Any]]:
    result = diff(folder, old, new, "-o", "json")
    told: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, told


def network(caller: str = "client", port: int | str = 8080) -> str:
    return NETWORK.replace("CALLER", caller).replace("PORT", str(port))


def test_changes_of_network_policies_are_named_by_labels(folder: Path) -> None:
    result = diff(folder, network(), network("other"))
    assert result.exit_code == 1
    assert result.stdout == (
        "now allowed: pods with app=other in shop (invented) to pods with app=web in shop (invented) port 8080\n"
        "  by NetworkPolicy/shop/web rule 0 (new/all.yaml:7)\n"
        "  before: no rule allows it at pods with app=web in shop (invented)\n\n"
        "now denied: pods with app=client in shop (invented) to pods with app=web in shop (invented) port 8080\n"
        "  no rule allows it at pods with app=web in shop (invented)\n"
        "  before: NetworkPolicy/shop/web rule 0 (old/all.yaml:7)\n\n"
        "no workload is declared: compared on invented ones: other pods in shop, pods with app=web in shop, "
        "all pods in any other namespace, pods with app=client in shop, pods with app=other in shop\n"
        "2 changes: 1 wider, 1 narrower\n"
    )


def test_policies_that_mean_the_same_are_proven_to(folder: Path) -> None:
    result = diff(folder, network(), "# moved\n" + network())
    assert result.exit_code == 0
    assert result.stdout.endswith(
        "no request changes its verdict: proven for every caller and every request to 4 invented workloads\n"
    )


@pytest.mark.parametrize(("policy", "home", "target"), [(ISTIO, "pci", "cards"), (LINKERD, "shop", "web")])
def test_policies_on_identities_are_compared_likewise(policy: str, home: str, target: str, folder: Path) -> None:
    status, told = report(folder, policy.replace("CALLER", "front"), policy.replace("CALLER", "back"))
    assert (status, told["proven"]) == (1, True)
    assert [(change["now"], change["from"], change["to"]) for change in told["changes"]] == [
        ("allow", f"sa:{home}/back", f"pods with app={target} in {home} (invented)"),
        ("deny", f"sa:{home}/front", f"pods with app={target} in {home} (invented)"),
    ]


def test_a_port_by_name_has_a_number_that_stands_for_it(folder: Path) -> None:
    result = diff(folder, network(port="http"), network("other", port="http"))
    assert "to pods with app=web in shop (invented) port 64001\n" in result.stdout
    assert "port 64001 is the number for the port name http\n" in result.stdout


def test_the_example_of_a_change_is_a_question_about_the_objects_beside_it(folder: Path) -> None:
    _, told = report(folder, network(), network("other"))
    (folder / "invented.json").write_text(json.dumps(told["invented"]))
    (change, *_) = told["changes"]
    for side, status in (("old", 1), ("new", 0)):
        words = ["check", "-f", side, "-f", "invented.json", *change["example"]]
        assert CliRunner().invoke(main, words).exit_code == status


def test_pods_that_several_policies_select_are_invented(folder: Path) -> None:
    """Pods of only one of the two selectors do not change: only pods of both do."""
    old = admin("a", 1, "app: web", "Deny") + admin("b", 2, "tier: front", "Allow")
    new = admin("a", 2, "app: web", "Deny") + admin("b", 1, "tier: front", "Allow")
    status, told = report(folder, old, new)
    assert status == 1
    assert {change["to"] for change in told["changes"]} == {"pods with app=web, tier=front in shop (invented)"}


def test_a_newly_protected_pod_is_a_change(folder: Path) -> None:
    status, told = report(folder, EMPTY, network())
    assert status == 1
    assert {change["now"] for change in told["changes"]} == {"deny"}


@pytest.mark.parametrize(
    ("old", "new"), [(EMPTY, EMPTY), (EMPTY, "apiVersion: cilium.io/v2\nkind: CiliumNode\nmetadata: {name: x}\n")]
)
def test_nothing_to_compare_is_not_proven(old: str, new: str, folder: Path) -> None:
    result = diff(folder, old, new)
    assert result.exit_code == 3
    assert "there is nothing to compare" in result.stdout
    status, told = report(folder, old, new)
    assert (status, told["equal"], told["proven"], told["compared"]) == (3, False, False, 0)
    assert "invented" not in told


def test_a_changed_policy_for_something_that_is_not_there_is_a_doubt(folder: Path) -> None:
    policy = ISTIO.replace("selector: {matchLabels: {app: cards}}", "targetRefs: [{kind: Service, group: '', name: x}]")
    status, told = report(folder, policy.replace("CALLER", "a"), policy.replace("CALLER", "b"))
    assert (status, told["changes"], told["proven"]) == (3, [], False)
    assert [(each["reason"], each["subject"]) for each in told["unproven"]] == [
        ("targetMissing", "AuthorizationPolicy/pci/cards")
    ]


def test_a_policy_that_is_not_read_is_a_doubt_as_ever(folder: Path) -> None:
    cilium = (
        "---\napiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: one, namespace: shop}\n"
        "spec: {endpointSelector: {}}\n"
    )
    status, told = report(folder, network(), network() + cilium)
    assert (status, told["proven"]) == (3, False)
    assert [each["reason"] for each in told["unproven"]] == ["notRead"]


def test_one_workload_is_enough_for_none_to_be_invented(folder: Path) -> None:
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, labels: {app: web}}\n"
    _, told = report(folder, network() + pod, network("other") + pod)
    assert "invented" not in told
    assert told["compared"] == 1


@pytest.mark.parametrize("form", ["markdown", "sarif", "github"])
def test_every_format_names_the_invented_pods(form: str, folder: Path) -> None:
    result = diff(folder, network(), network("other"), "-o", form)
    assert result.exit_code == 1
    assert "in shop (invented)" in result.stdout
    assert "eastgate check" not in result.stdout


def test_so_many_selectors_that_not_all_pods_can_be_invented_prove_nothing(folder: Path) -> None:
    labels = [f"key{number}: x" for number in range(12)]
    policies = "---\n".join(
        network().replace("app: web", pair).replace("name: web", f"name: web{number}")
        for number, pair in enumerate(labels)
    )
    status, told = report(folder, policies, policies + "---\n" + network("any").replace("name: web", "name: more"))
    assert status == 1
    assert "tooMany" in [each["reason"] for each in told["unproven"]]


def test_authorities_are_as_they_were() -> None:
    old, new = eastgate.from_text(network()), eastgate.from_text(network("other"))
    assert has_no_workloads(old, new)
    before = dict(old.world.objects), dict(new.world.objects)
    assert old.diff(new).changes
    assert (dict(old.world.objects), dict(new.world.objects)) == before


def test_namespaces_that_cannot_exist_together_are_compared_one_after_the_other(folder: Path) -> None:
    def across(name: str, priority: int, label: str) -> str:
        return (
            f"apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {{name: {name}}}\n"
            f"spec: {{priority: {priority}, subject: {{namespaces: {{matchLabels: {{{label}}}}}}}, "
            "ingress: [{action: Deny, from: [{namespaces: {}}]}]}\n---\n"
        )

    old = across("a", 1, "team: pay")
    inventions = invent(eastgate.from_text(old + network()))
    assert len(inventions) == 2
    status, told = report(folder, old + network(), network())
    assert status == 1
    assert {each["reason"] for each in told["unproven"]} == {"networkChanged"}  # over UDP
    text = " ".join(change["to"] for change in told["changes"])
    assert "all pods in a namespace with team=pay (invented)" in text
    assert "other pods in shop with team=pay (invented)" in text
