"""Suppressions: by the object that a finding is about, with a reason, and never silently useless."""

from __future__ import annotations

from eastgate.api.authority import Authority
from eastgate.api.reading import sort_documents
from eastgate.dialects import reads
from eastgate.manifests import read_text
from eastgate.reports.lint import lint
from eastgate.settings import Settings

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {WEB}}
spec: {containers: [{name: main, image: web, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}, annotations: {CART}}
spec: {containers: [{name: main, image: cart, ports: [{containerPort: 8080}]}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: closed, namespace: shop, annotations: {POLICY}}
spec:
  targetRefs: [{kind: Pod, selector: {}}]
  action: ALLOW
  rules: []
"""


def found(policy: str = "", web: str = "", cart: str = "") -> list[str]:
    text = PODS
    for name, value in (("POLICY", policy), ("WEB", web), ("CART", cart)):
        text = text.replace(name, f'eastgate.dev/lint-ignore: "{value}"' if value else "")
    reading = read_text("shop.yaml", text, positioned=reads)
    authority = Authority(sort_documents(reading.documents, Settings(), reading.reporter))
    return [finding.code.id for finding in lint(authority)]


def test_without_a_suppression_the_finding_is_there() -> None:
    assert found() == ["EG6040"]


def test_the_policy_suppresses_it() -> None:
    assert found(policy="EG6040: closed until the launch") == []


def test_several_suppressions_are_separated_by_semicolons_or_line_breaks() -> None:
    assert found(policy="EG6040: closed until the launch; EG6003: nothing") == ["EG6091"]
    assert found(policy="EG6003: nothing\\nEG6040: closed until the launch") == ["EG6091"]


def test_a_suppression_without_a_reason_suppresses_nothing_and_is_a_finding() -> None:
    for written in ("EG6040", "EG6040:", "EG6040: ", "closed until the launch", "all: of it"):
        assert sorted(found(policy=written)) == ["EG6040", "EG6090"], written


def test_a_suppression_of_another_code_is_a_finding_too() -> None:
    assert sorted(found(policy="EG6041: wrong")) == ["EG6040", "EG6091"]


def test_of_several_workloads_all_must_suppress() -> None:
    assert found(web="EG6040: closed", cart="EG6040: closed") == []
    assert "EG6040" in found(web="EG6040: closed")
