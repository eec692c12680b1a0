"""OpenShift Templates: their objects are read, with the parameters that have a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from eastgate.authority.reading import read_manifests
from eastgate.cluster import ConfigMap, Service
from eastgate.cluster.pods import Controller

TEMPLATE = """\
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: t}
parameters:
- {name: NAME, value: web}
- {name: PORT, value: "8080"}
- {name: NUMBER, value: 80}
- {name: SECRET, generate: expression, from: "[a-z]{8}"}
- {name: DOMAIN, required: true}
objects:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "${NAME}", namespace: shop}
  spec:
    template:
      metadata: {labels: {app: "${NAME}-${NAME}"}}
      spec:
        serviceAccountName: ${NAME}
        containers: [{name: c, ports: [{containerPort: "${{PORT}}"}], env: [{name: S, value: "${SECRET}"}]}]
- apiVersion: v1
  kind: Service
  metadata: {name: "${NAME}", namespace: shop}
  spec: {selector: {app: "${NAME}-${NAME}"}, ports: [{port: "${{NUMBER}}", targetPort: "${{PORT}}"}]}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: "${NAME}", namespace: shop}
  spec: {podSelector: {matchLabels: {app: "${NAME}-${NAME}"}}, ingress: [{ports: [{port: "${{PORT}}"}]}]}
"""
ROUTE = """\
- apiVersion: gateway.networking.k8s.io/v1
  kind: HTTPRoute
  metadata: {name: r, namespace: shop}
  spec: {parentRefs: [{name: g}], hostnames: ["a.${DOMAIN}"]}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.yaml", TEMPLATE),
        ("t.yaml", TEMPLATE.replace("template.openshift.io/v1", "v1")),
        ("t.json", json.dumps(yaml.safe_load(TEMPLATE))),
        ("list.yaml", "apiVersion: v1\nkind: List\nitems:\n- " + TEMPLATE.replace("\n", "\n  ")),
    ],
)
def test_its_objects_are_read_with_the_values_of_its_parameters(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    manifests = read_manifests([tmp_path])
    assert manifests.reporter.diagnostics == []
    deployment = next(each for each in manifests.objects if isinstance(each, Controller))
    service = next(each for each in manifests.objects if isinstance(each, Service))
    assert (deployment.name, deployment.template.labels) == ("web", {"app": "web-web"})
    assert (deployment.template.service_account, deployment.template.ports[0].number) == ("web", 8080)
    assert (service.ports[0].port, service.ports[0].target) == (80, 8080)
    assert [str(policy.ref) for policy in manifests.policies] == ["NetworkPolicy/shop/web"]
    assert not manifests.unbuilt


def test_a_parameter_without_a_value_is_a_placeholder(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE + ROUTE)
    manifests = read_manifests([tmp_path])
    (finding,) = manifests.reporter.diagnostics
    message = "the host `a.${DOMAIN}` of HTTPRoute shop/r depends on DOMAIN"
    assert (finding.code.id, finding.message) == ("EG1052", message)
    assert [unread.hosts for unread in manifests.unread.objects] == [("a.${DOMAIN}",)]


def test_a_finding_in_a_template_has_the_line_of_the_template(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE.replace('value: "8080"', 'value: "808080"'))
    assert {error.span.line for error in read_manifests([tmp_path]).reporter.errors if error.span} <= {19, 23, 27}


def test_a_template_of_someone_else_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE.replace("template.openshift.io/v1", "templates.example/v1"))
    manifests = read_manifests([tmp_path])
    assert (manifests.objects, manifests.policies, manifests.unused) == ([], [], 1)
    assert not any(isinstance(each, ConfigMap) for each in manifests.objects)
