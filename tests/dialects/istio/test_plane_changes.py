"""A change of an input of proxies affects exactly the workloads that depend on it."""

from __future__ import annotations

from typing import cast

import pytest

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.questions import Question
from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Manifest, WorldObject, interpret
from eastgate.reading.manifests import read_text
from tests.dialects.linkerd.reading import authority

NAMESPACE = """---
apiVersion: v1
kind: Namespace
metadata: {name: app, labels: {istio.io/dataplane-mode: ambient}}
"""
ELSEWHERE = """---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere, labels: {istio-injection: enabled}}
"""
PLAIN_NAMESPACE = """---
apiVersion: v1
kind: Namespace
metadata: {name: app}
"""
SERVICE = """---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: app}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""
BOUND = SERVICE.replace("namespace: app", "namespace: app, labels: {istio.io/use-waypoint: waypoint}")
WAYPOINT = """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: waypoint, namespace: app}
spec: {gatewayClassName: istio-waypoint, listeners: [{name: mesh, port: 15008, protocol: HBONE}]}
"""
WAYPOINT_POD = """---
apiVersion: v1
kind: Pod
metadata: {name: w, namespace: app, labels: {gateway.networking.k8s.io/gateway-name: waypoint}}
spec: {serviceAccountName: other, containers: [{name: c}]}
"""
CLUSTER = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: app, labels: {app: web}}
spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: from-waypoint, namespace: app}
spec: {selector: {matchLabels: {app: web}}, rules: [{from: [{source: {serviceAccounts: [app/waypoint]}}]}]}
"""


def object_of(text: str) -> WorldObject:
    (document,) = read_text("change.yaml", text, positioned=dialects.reads).documents
    declared = interpret(cast("Manifest", document), Reporter())
    assert declared is not None
    return declared


def is_allowed(of: Authority) -> bool:
    return of.decide(Question.of("sa:a/x", "service:app/web", port=80)).allowed


GATEWAY_POD = """---
apiVersion: v1
kind: Pod
metadata: {name: g, namespace: edge, labels: {run: ingress}}
spec: {serviceAccountName: g, containers: [{name: c}]}
"""
INJECTED_POD = """---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: b, annotations: {sidecar.istio.io/inject: "true"}}
spec: {containers: [{name: c}]}
"""
MESH_GATEWAY = """---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: g, namespace: edge}
spec: {selector: {run: ingress}}
"""


def test_a_pod_of_a_waypoint_that_is_gone_is_felt() -> None:
    changing = authority(CLUSTER + NAMESPACE + BOUND + WAYPOINT + WAYPOINT_POD)
    assert not is_allowed(changing)
    changing.update(remove=[object_of(WAYPOINT_POD).id])
    assert is_allowed(changing)


def test_pods_of_a_gateway_of_istio_are_felt_as_they_come_and_go() -> None:
    changing = authority(CLUSTER + NAMESPACE + BOUND + WAYPOINT + MESH_GATEWAY)
    question = Question.of("sa:edge/g", "service:app/web", port=80)
    assert changing.decide(question).allowed  # the request comes through the waypoint
    changing.update(put=[object_of(GATEWAY_POD)])
    assert not changing.decide(question).allowed
    changing.update(remove=[object_of(GATEWAY_POD).id])
    assert changing.decide(question).allowed


CHANGES = [
    ("the first label of all", SERVICE + PLAIN_NAMESPACE, ELSEWHERE, False, True),
    ("the first label of a pod", SERVICE + PLAIN_NAMESPACE, INJECTED_POD, False, True),
    ("the mode of the namespace", SERVICE + PLAIN_NAMESPACE + ELSEWHERE, NAMESPACE, True, False),
    ("a namespace of which nothing was known", SERVICE + ELSEWHERE, PLAIN_NAMESPACE, False, True),
    ("a waypoint", NAMESPACE + BOUND, WAYPOINT, False, True),
    ("the label of a Service", NAMESPACE + SERVICE + WAYPOINT, BOUND, False, True),
    ("the account of a waypoint", NAMESPACE + BOUND + WAYPOINT, WAYPOINT_POD, True, False),
]


@pytest.mark.parametrize(
    ("given", "change", "before", "after"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_a_change_is_felt(given: str, change: str, before: bool, after: bool) -> None:
    changing = authority(CLUSTER + given)
    assert is_allowed(changing) is before
    changing.update(put=[object_of(change)])
    assert is_allowed(changing) is after


def test_the_removal_of_the_last_pod_with_a_label_has_an_effect() -> None:
    changing = authority(CLUSTER + SERVICE + PLAIN_NAMESPACE + INJECTED_POD)
    assert is_allowed(changing)  # labels decide which pods have a proxy, and this pod has none
    changing.update(remove=[object_of(INJECTED_POD).id])
    assert not is_allowed(changing)  # the pod may have a proxy


def test_another_namespace_changes_nothing_for_a_pod_with_an_undeclared_namespace() -> None:
    changing = authority(CLUSTER + SERVICE)
    assert not is_allowed(changing)
    for elsewhere in (ELSEWHERE, ELSEWHERE.replace("enabled", "disabled"), NAMESPACE.replace("app", "b")):
        changing.update(put=[object_of(elsewhere)])
        assert not is_allowed(changing)
