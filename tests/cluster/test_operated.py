"""Workloads that operators make, and Services with endpoints from other sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate import Question, Settings, load
from eastgate.authority.questions import QuestionError
from eastgate.cluster import World
from eastgate.manifests import read_manifests

TEMPLATE = "template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: runner, containers: [{name: c}]}}"
KNATIVE = """\
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: hello, namespace: shop}
spec:
  template:
    metadata: {labels: {tier: front}}
    spec: {serviceAccountName: runner, containers: [{image: x, readinessProbe: {httpGet: {path: /}}}]}
"""
PROMETHEUS = """\
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: k8s, namespace: monitoring}
spec: {serviceAccountName: prometheus-k8s, version: v3.1.0, podMetadata: {labels: {team: ops}}, thanos: {}}
"""


def _world(tmp_path: Path, text: str) -> World:
    (tmp_path / "m.yaml").write_text(text)
    manifests = read_manifests([tmp_path / "m.yaml"])
    assert manifests.reporter.diagnostics == []
    return World.of(manifests.objects)


@pytest.mark.parametrize(
    ("api_version", "kind"), [("argoproj.io/v1alpha1", "Rollout"), ("v1", "ReplicationController")]
)
def test_what_has_a_template_makes_pods(api_version: str, kind: str, tmp_path: Path) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: web, namespace: shop}}\nspec: {{{TEMPLATE}}}\n"
    workload = _world(tmp_path, text).workloads["shop/web"]
    assert (workload.labels, workload.service_account) == ({"app": "web"}, "runner")
    assert [owner.kind for owner in workload.owners] == [kind]


def test_a_rollout_of_a_deployment_leaves_the_pods_to_it(tmp_path: Path) -> None:
    rollout = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {workloadRef: {name: web}}\n"
    )
    deployment = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{{TEMPLATE}}}\n"
    world = _world(tmp_path, f"{rollout}---\n{deployment}")
    assert [one.kind for one in world.workloads["default/web"].owners] == ["Deployment"]


def test_a_knative_service_makes_pods_of_its_revision(tmp_path: Path) -> None:
    world = _world(tmp_path, KNATIVE)
    workload = world.workloads["shop/hello"]
    assert workload.labels == {
        "app": "hello-00001",
        "tier": "front",
        "serving.knative.dev/service": "hello",
        "serving.knative.dev/configuration": "hello",
        "serving.knative.dev/revision": "hello-00001",
    }
    assert (workload.service_account, workload.ports_named("user-port")) == ("runner", frozenset({8080}))
    assert workload.ports_named("queue-port") == {8012}
    assert world.services == {}


def test_a_knative_service_with_its_pods_stands_for_no_other(tmp_path: Path) -> None:
    pod = """\
apiVersion: v1
kind: Pod
metadata:
  name: hello-00001-deployment-abc-1
  namespace: shop
  labels: {pod-template-hash: abc}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: hello-00001-deployment-abc, controller: true}]
"""
    world = _world(tmp_path, f"{KNATIVE}---\n{pod}")
    (workload,) = world.workloads.values()
    assert [owner.kind for owner in workload.owners] == ["ReplicaSet", "Deployment", "KnativeService"]


def test_prometheus_and_alertmanager_have_the_labels_of_their_operator(tmp_path: Path) -> None:
    alertmanager = PROMETHEUS.replace("Prometheus", "Alertmanager").replace("name: k8s", "name: main")
    world = _world(tmp_path, f"{PROMETHEUS}---\n{alertmanager}")
    prometheus, other = world.workloads["monitoring/k8s"], world.workloads["monitoring/main"]
    assert prometheus.labels == {
        "app.kubernetes.io/instance": "k8s",
        "app.kubernetes.io/managed-by": "prometheus-operator",
        "app.kubernetes.io/name": "prometheus",
        "app.kubernetes.io/version": "3.1.0",
        "operator.prometheus.io/name": "k8s",
        "operator.prometheus.io/shard": "0",
        "prometheus": "k8s",
        "team": "ops",
    }
    assert (prometheus.service_account, prometheus.port_named("web")) == ("prometheus-k8s", 9090)
    assert prometheus.port_named("grpc") == 10901
    assert (other.labels["alertmanager"], other.port_named("web")) == ("main", 9093)


PODS = "".join(
    f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nstatus: {{podIP: {address}}}\n---\n"
    for name, address in (("one", "10.0.0.1"), ("two", "10.0.0.2"))
)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {ports: [{port: 80, name: sql}]}\n---\n"
SLICE = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: sql, port: 5432}]
endpoints: [ENDPOINTS]
"""


@pytest.mark.parametrize(
    ("endpoints", "behind"),
    [
        ("{addresses: [10.0.0.1]}", ("default/one",)),
        ("{addresses: [10.9.9.9], targetRef: {kind: Pod, name: two}}", ("default/two",)),
        ("{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}", ("default/one", "default/two")),
        ("{addresses: [10.0.0.1], targetRef: {kind: Pod, name: gone}}", ()),
        ("{addresses: [10.9.9.9]}", ()),
        ("", ()),
    ],
)
def test_endpoints_stand_behind_a_service_that_selects_nothing(
    endpoints: str, behind: tuple[str, ...], tmp_path: Path
) -> None:
    world = _world(tmp_path, PODS + SERVICE + SLICE.replace("ENDPOINTS", endpoints))
    service = world.services["default/db"]
    assert tuple(sorted(world.pods_of("default/db"))) == behind
    for pod in behind:
        assert world.target_ports(service, 80, world.workloads[pod]) == (5432,)


def test_endpoints_do_not_count_where_the_service_selects_pods(tmp_path: Path) -> None:
    service = SERVICE.replace("spec: {", "spec: {selector: {app: none}, ")
    world = _world(tmp_path, PODS + service + SLICE.replace("ENDPOINTS", "{addresses: [10.0.0.1]}"))
    assert tuple(world.pods_of("default/db")) == ()


def test_a_service_that_leads_to_something_unknown_cannot_be_decided(tmp_path: Path) -> None:
    text = PODS + SERVICE + SLICE.replace("ENDPOINTS", "{addresses: [10.0.0.1]}, {addresses: [10.9.9.9]}")
    (tmp_path / "m.yaml").write_text(text)
    authority = load(tmp_path / "m.yaml", settings=Settings())
    with pytest.raises(QuestionError, match=r"leads to 10\.9\.9\.9, which is no pod"):
        authority.decide(Question.of("anonymous", "service:db", port=80))
    (tmp_path / "m.yaml").write_text(text.replace(", {addresses: [10.9.9.9]}", ""))
    authority = load(tmp_path / "m.yaml", settings=Settings())
    assert authority.decide(Question.of("anonymous", "service:db", port=80)).allowed
