"""The output of `describe`, golden by golden; `pytest tests/reports --update` rewrites them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eastgate.authority.questions import QuestionError
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe import UnknownKind, describe, names_of
from tests.reports.world import DRAFT, ROOT, cluster_of, example

GOLDENS = Path(__file__).parent / "goldens"

CASES = [
    ("shop", "pods", "payments"),
    ("shop", "pod", "shop/web"),
    ("shop", "service", "cart"),
    ("shop", "namespace", "shop"),
    ("shop", "policy", "ClusterAuthorizationPolicy/closed-to-sandbox"),
    ("shop", "policy", "no-sandbox"),
    ("linkerd", "pod", "emoji"),
    ("linkerd", "Deployment", "web"),
    ("linkerd", "policy", "AuthorizationPolicy/admin"),
    ("linkerd", "servers", "prom"),
    ("linkerd", "meshTLSAuthentication", "web"),
    ("payment", "gateway", "prod-gateway"),
    ("payment", "HTTPRoutes", "payment-route"),
    ("payment", "backend", "payment-service"),
    ("payment", "xaccesspolicy", "gateway-policy-inline-tools-1"),
    ("kuadrant", "gateway", "external"),
    ("kuadrant", "route", "metrics"),
    ("kuadrant", "policy", "toystore"),
]


@pytest.fixture(autouse=True)
def _paths_start_at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def one(cluster: Cluster, kind: str, name: str, namespace: str | None = None) -> str:
    (found,) = describe(cluster, kind, name, namespace)
    return "\n".join(found.lines()) + "\n"


@pytest.mark.parametrize(("folder", "kind", "name"), CASES)
def test_a_description_is_that_of_its_golden(folder: str, kind: str, name: str, update: bool) -> None:
    (found,) = describe(example(folder), kind, name, None)
    stem = f"{folder}-{kind}-{name.replace('/', '-')}".lower()
    for suffix, said in ((".txt", "\n".join(found.lines())), (".json", json.dumps(found.to_json(), indent=1))):
        golden = GOLDENS / (stem + suffix)
        if update:
            golden.write_text(said + "\n", encoding="utf-8")
        assert golden.exists(), "there is no golden: run pytest tests/reports --update, and read what it wrote"
        assert said + "\n" == golden.read_text(encoding="utf-8")


def test_every_golden_has_its_case() -> None:
    stems = {f"{folder}-{kind}-{name.replace('/', '-')}".lower() for folder, kind, name in CASES}
    assert {path.stem for path in GOLDENS.iterdir()} == stems


def test_the_drafts_table_is_printed_in_the_drafts_form() -> None:
    said = one(cluster_of(DRAFT), "pods", "pod1")
    assert (
        """InheritedPolicies:
  Type                   Name                                 Target Kind   Target Name/Expression
  ----                   ----                                 -----------   -----------
  AuthorizationPolicy    demo-authz-policy-on-payment-pods    Pod           Selector={foo: a, bar: 2}
"""
        in said
    )


@pytest.mark.parametrize("words", [("POD", "pod1"), ("po", "default/pod1"), ("workloads", "pod1")])
def test_kinds_are_taken_as_kubectl_takes_them(words: tuple[str, str]) -> None:
    assert "Name:             pod1" in one(cluster_of(DRAFT), *words)


def test_the_terms_that_matched_are_named() -> None:
    said = one(cluster_of(DRAFT), "pod", "pod1")
    assert "  matched  bar: 2, foo: a" in said.replace("    matched", "  matched")


def test_a_policy_of_one_name_in_several_namespaces_is_described_in_each() -> None:
    twice = DRAFT + "---" + DRAFT.split("---")[1].replace("demo-authz-policy-on-payment-pods}", "demo}")
    thrice = twice + "---" + DRAFT.split("---")[1].replace("pods}", "pods, namespace: other}")
    name = "demo-authz-policy-on-payment-pods"
    assert len(describe(cluster_of(thrice), "policy", name, None)) == 2
    assert len(describe(cluster_of(thrice), "policy", name, "other")) == 1
    assert names_of(cluster_of(thrice), "authorizationpolicy", "default") == ["demo", name]


def test_an_unknown_object_is_an_error_with_help() -> None:
    with pytest.raises(QuestionError, match="did you mean pod1"):
        describe(cluster_of(DRAFT), "pod", "pod2", None)
    with pytest.raises(UnknownKind, match="did you mean pod"):
        describe(cluster_of(DRAFT), "podd", "pod1", None)


LINKERD = """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: 'n', labels: {app: a}}
spec: {containers: [{name: c, image: c, ports: [{name: http, containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: 'n', labels: {app: b}}
spec: {containers: [{name: c, image: c, ports: [{name: http, containerPort: 80}]}]}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: of-a, namespace: 'n', creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {podSelector: {matchLabels: {app: a}}, port: 80}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: late, namespace: 'n', creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {podSelector: {matchLabels: {app: a}}, port: http}
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: on-a, namespace: 'n'}
spec:
  targetRef: {group: policy.linkerd.io, kind: Server, name: of-a}
  requiredAuthenticationRefs: [{kind: ServiceAccount, name: x}]
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: on-late, namespace: 'n'}
spec:
  targetRef: {group: policy.linkerd.io, kind: Server, name: late}
  requiredAuthenticationRefs: [{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: missing}]
"""


@pytest.mark.parametrize(
    ("policy", "affects"),
    [("of-a", ["n/a"]), ("on-a", ["n/a"]), ("late", []), ("on-late", [])],
)
def test_a_policy_affects_only_the_pods_of_which_its_server_owns_a_port(policy: str, affects: list[str]) -> None:
    (found,) = describe(cluster_of(LINKERD), "policy", policy, None)
    told = found.to_json()["affects"]
    assert isinstance(told, dict)
    assert told["points"] == affects
    assert (told["why"] is None) == bool(affects)


def test_a_reference_that_leads_nowhere_shows_in_the_status() -> None:
    said = one(cluster_of(LINKERD), "policy", "on-late")
    assert "ResolvedRefs  False" in said
    assert "MeshTLSAuthentication/n/missing" in said


KUADRANT = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: 'n'}
spec: {gatewayClassName: c, listeners: [{name: l, port: 80, protocol: HTTP}]}
---
apiVersion: apim.kuadrant.io/v1alpha1
kind: AuthPolicy
metadata: {name: older, namespace: 'n', creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g}
  authSchemes: [{hosts: ["*"], identity: [{name: all, anonymous: {}}]}]
---
apiVersion: apim.kuadrant.io/v1alpha1
kind: AuthPolicy
metadata: {name: younger, namespace: 'n', creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g}
  authSchemes: [{hosts: ["*"], identity: [{name: all, anonymous: {}}]}]
"""


def test_of_two_auth_policies_on_a_gateway_the_younger_affects_nothing() -> None:
    cluster = cluster_of(KUADRANT)
    assert "Gateway n/g" in one(cluster, "authpolicy", "older")
    said = one(cluster, "authpolicy", "younger")
    affects = next(line for line in said.splitlines() if line.startswith("Affects:"))
    assert "nothing:" in affects
    assert "AuthPolicy/n/older" in affects
    assert "Available  False   Conflicted" in said


def test_different_pods_of_a_service_are_separate() -> None:
    pods = (
        LINKERD
        + """---
apiVersion: v1
kind: Service
metadata: {name: both, namespace: 'n'}
spec: {selector: {}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: 'n'}
spec: {selector: {shared: "yes"}, ports: [{port: 8080, targetPort: http}]}
"""
    )
    pods = pods.replace("labels: {app: a}}\nspec: {containers", 'labels: {app: a, shared: "yes"}}\nspec: {containers')
    pods = pods.replace("labels: {app: b}}\nspec: {containers", 'labels: {app: b, shared: "yes"}}\nspec: {containers')
    said = one(cluster_of(pods), "service", "s")
    assert "refused at n/a" in said
    assert "n/b: open" in said
    assert "no workload is behind it" in one(cluster_of(pods), "svc", "both")


def test_a_service_target_read_as_traffic_has_a_table_for_each_way_to_address_the_pod() -> None:
    manifests = (
        DRAFT
        + """---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: default}
spec: {selector: {foo: a}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: on-service}
spec: {targetRefs: [{group: "", kind: Service, name: s}], action: DENY, rules: [{}]}
"""
    )
    said = one(cluster_of(manifests, meshMode="ambient", serviceTarget="traffic"), "pod", "pod1")
    assert "addressed to the pod:" in said
    assert "addressed to Service default/s:" in said


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize(("where", "kind", "name"), CASES)
def test_a_description_fits_a_terminal_and_says_the_same(where: str, kind: str, name: str, width: int) -> None:
    [description] = describe(example(where), kind, name, None)
    lines = description.lines(width=width)
    assert max(map(len, lines)) <= width
    assert "".join("".join(lines).split()) != ""
    said, whole = (sorted("".join("".join(each).split()).replace(",", "")) for each in (lines, description.lines()))
    assert said == whole  # commas separate callers above their verdicts


def test_verdicts_and_actions_have_colors() -> None:
    [pod] = describe(example("shop"), "pod", "payments", None)
    shown = "\n".join(pod.lines(color=True, width=80))
    assert "\033[32mallow\033[0m if POST /v1/charges" in shown
    assert "\033[31mdeny\033[0m otherwise" in shown
    assert "no-sandbox  \033[31mDENY\033[0m, network" in shown
    [policy] = describe(example("shop"), "policy", "no-sandbox", None)
    assert "\033[31mDENY\033[0m" in "\n".join(policy.lines(color=True))
    assert "\033" not in "\n".join(policy.lines())
