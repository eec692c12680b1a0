"""Decisions beyond the conformance tables: readings, errors, audit, names, groups of other projects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eastgate import Authority, Question, Settings
from eastgate.authority.authority import programs_of
from eastgate.authority.reading import sort_documents
from eastgate.cli import main
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.dialects import reads
from eastgate.dialects.network.settings import NetworkEnforcement, NetworkSettings
from eastgate.reading.manifests.reader import read_text

PODS = """
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web, labels: {app: web}}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: db, labels: {app: db}}
spec:
  containers:
  - {name: a, image: a, ports: [{name: postgres, containerPort: 5432}]}
  - {name: b, image: b, ports: [{name: sql, containerPort: 5432}]}
---
"""
POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {namespace: shop, name: db}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: sql}]}]
"""
TO_DB = ("--from", "pod:shop/web", "--to", "pod:shop/db", "--port")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)

    def eastgate(manifests: str, verb: str, *words: str) -> Result:
        Path("all.yaml").write_text(manifests, encoding="utf-8")
        return CliRunner().invoke(main, [verb, "-f", "all.yaml", *words], catch_exceptions=False)

    return eastgate


Run = Callable[..., Result]


def authority(manifests: str, settings: Settings | None = None) -> Authority:
    reading = read_text("all.yaml", manifests, positioned=reads)
    chosen = settings or Settings()
    return Authority(sort_documents(reading.documents, chosen, reading.reporter), chosen)


def test_a_port_may_have_several_names() -> None:
    for name in ("sql", "postgres"):
        decider = authority(PODS + POLICY.replace("sql", name))
        assert decider.decide(Question.of("pod:shop/web", "pod:shop/db", port=5432)).allowed
        assert not decider.decide(Question.of("pod:shop/web", "pod:shop/db", port=5433)).allowed
    assert (
        not authority(PODS + POLICY.replace("sql", "other"))
        .decide(Question.of("pod:shop/web", "pod:shop/db", port=5432))
        .allowed
    )


def test_every_verbose_trace_says_whether_the_network_enforces_them(run: Run) -> None:
    enforced = run(PODS + POLICY, "explain", "-v", *TO_DB, "80")
    assert (enforced.exit_code, "networkPolicies: enforce" in enforced.output) == (1, True)
    ignored = run(PODS + POLICY, "explain", "-v", *TO_DB, "80", "--set", "networkPolicies=ignore")
    assert (ignored.exit_code, "networkPolicies: ignore" in ignored.output) == (0, True)


def test_the_setting_has_two_values() -> None:
    ignoring = Settings(sections=(NetworkSettings(NetworkEnforcement.IGNORE),))
    assert Settings.from_mapping({"networkPolicies": "ignore"}) == ignoring
    layers = programs_of(authority(PODS + POLICY, ignoring)).program(NetworkEnd("shop/db", Direction.INGRESS)).layers
    assert [layer.otherwise.stages for layer in layers] == [()]


def test_an_audited_policy_isolates_nothing_and_is_observed(run: Run) -> None:
    audited = POLICY.replace("name: db}", "name: db, annotations: {eastgate.dev/mode: audit}}", 1)
    explained = run(PODS + audited, "explain", "-v", "--from", "ip:1.2.3.4", "--to", "pod:shop/db", "--port", "5432")
    assert explained.exit_code == 0
    assert "audit" in explained.output


GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: gw-0, labels: {gateway.networking.k8s.io/gateway-name: gw}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: db, namespace: shop}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: db, port: 80}]}]}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: db}
spec: {selector: {app: db}, ports: [{port: 80, targetPort: 80}]}
---
"""


@pytest.mark.parametrize(
    ("service", "is_unseen"),
    [
        (SERVICE, False),
        ("", True),
        (SERVICE.replace("app: db", "app: nothing"), True),
        (SERVICE.replace("targetPort: 80", "targetPort: http"), True),
    ],
    ids=["known", "no Service", "no pods", "no port"],
)
def test_a_trace_says_that_the_pods_of_a_gateway_are_unknown(service: str, is_unseen: bool, run: Run) -> None:
    words = ("--from", "ip:192.0.2.1", "--to", "gateway:shop/gw", "--port", "80", "--method", "GET", "--path", "/")
    explained = run(PODS + GATEWAY + service + POLICY, "explain", *words, "--host", "db.example.com")
    assert explained.exit_code == (0 if is_unseen else 1)
    assert ("from shop/gw-0 to Service shop/db: no manifest has these pods" in explained.output) == is_unseen


@pytest.mark.parametrize(
    ("manifest", "closed"),
    [
        (POLICY.replace("port: sql", 'port: "80"'), {"db"}),
        (POLICY.replace("matchLabels: {app: db}", "matchLabel: {app: db}"), {"db", "web"}),
        (
            "apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {name: a}\n"
            "spec:\n  subject: {pods: {podSelector: {matchLabels: {app: db}}}}\n  tier: Admin\n  priority: 5000\n",
            {"db"},
        ),
        (
            "apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: a}\n"
            "spec:\n  subject: {namespaces: {matchLabels: {team: none}}}\n  priority: 5000\n",
            set(),
        ),
        (
            "apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: a}\n"
            "spec: {priority: 1, subject: {namespaces: {namespaceSelector: {}}}}\n",
            {"db", "web"},
        ),
    ],
    ids=["ports", "selector", "subject", "elsewhere", "old subject"],
)
def test_a_policy_with_errors_closes_exactly_its_targets(manifest: str, closed: set[str], run: Run) -> None:
    for pod in ("web", "db"):
        result = run(PODS + manifest, "check", "--from", "ip:1.2.3.4", "--to", f"pod:shop/{pod}", "--port", "80")
        assert (pod, result.exit_code) == (pod, 2 if pod in closed else 0)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("crd.projectcalico.org/v1", "NetworkPolicy"),
        ("projectcalico.org/v3", "NetworkPolicy"),
        ("crd.antrea.io/v1beta1", "NetworkPolicy"),
        ("crd.antrea.io/v1beta1", "ClusterNetworkPolicy"),
        ("extensions/v1beta1", "NetworkPolicy"),
    ],
)
def test_kinds_of_these_names_in_other_groups_are_not_read(api_version: str, kind: str, run: Run) -> None:
    assert not reads(api_version, kind)
    other = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a, namespace: shop}}\nspec: {{}}\n"
    result = run(PODS + other, "check", *TO_DB, "80")
    assert result.exit_code == 3
    assert "not considered" in result.output


def test_other_kinds_of_the_group_are_no_policies(run: Run) -> None:
    for kind in ("Ingress", "IngressClass", "ServiceCIDR", "IPAddress"):
        other = f"apiVersion: networking.k8s.io/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{}}\n"
        assert run(PODS + other, "check", *TO_DB, "80").exit_code == 0


def test_nulls_are_fields_left_out(run: Run) -> None:
    spec = "spec: {podSelector: null, policyTypes: null, ingress: null, egress: null}\n"
    closed = POLICY.partition("spec:")[0] + spec
    assert run(PODS + closed, "check", *TO_DB, "80").exit_code == 1
    nobody = POLICY.partition("spec:")[0] + "spec: {ingress: [{from: null, ports: null}]}\n"
    assert run(PODS + nobody, "check", *TO_DB, "80").exit_code == 0
    refused = POLICY.partition("spec:")[0] + "spec: {ingress: [null]}\n"
    assert run(PODS + refused, "check", *TO_DB, "80").exit_code == 2


def test_the_spec_may_be_missing(run: Run) -> None:
    assert run(PODS + POLICY.partition("spec:")[0], "check", *TO_DB, "80").exit_code == 1


def test_describe_and_get_know_them(run: Run) -> None:
    manifests = PODS + POLICY
    assert "1 workload" in run(manifests, "describe", "netpol", "db", "-n", "shop").output
    pod = run(manifests, "describe", "pod", "db", "-n", "shop").output
    assert "NetworkPolicy/shop/db" in pod
    assert "network/ingress" in pod
    row = run(manifests, "get", "netpol", "-n", "shop", "-o", "wide").output.splitlines()[1].split()
    assert row[:3] == ["shop", "db", "NetworkPolicy"]
    assert "ingress" in row
