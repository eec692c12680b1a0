"""The conditions of the status of policies of each API."""

from __future__ import annotations

import pytest

from eastgate.reports.describe.policy import conditions_of
from tests.reports.world import cluster_of

POD = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: 'n', labels: {app: a}}}"
GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: 'n'}
spec: {gatewayClassName: c, listeners: [{name: l, port: 80, protocol: HTTP}]}
"""
SERVER = """
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: s, namespace: 'n', labels: {role: front}}
spec: {podSelector: {matchLabels: {app: a}}, port: 80}
"""


def gep(target: str) -> str:
    return f"""
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: q, namespace: 'n'}}
spec: {{targetRefs: [{target}], action: ALLOW, rules: []}}
"""


def access(gateway: str, namespace: str) -> str:
    return f"""
apiVersion: agentic.networking.x-k8s.io/v1alpha1
kind: XAccessPolicy
metadata: {{name: q, namespace: 'n'}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: {gateway}}}]
  action: ExternalAuth
  externalAuth: {{protocol: GRPC, grpc: {{}}, backendRef: {{name: authz, namespace: '{namespace}', port: 9000}}}}
"""


def linkerd(kind: str, name: str, group: str = "policy.linkerd.io", refs: str = "") -> str:
    return f"""
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {{name: q, namespace: 'n'}}
spec:
  targetRef: {{group: "{group}", kind: {kind}, name: '{name}'}}
  requiredAuthenticationRefs: [{refs}]
"""


MESH_TLS = "{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: m}"

CASES = {
    "selects a pod": ([POD, gep("{kind: Pod, selector: {}}")], ["Accepted=True Accepted"]),
    "selects none now": ([gep("{kind: Pod, selector: {}}")], ["Accepted=True Accepted"]),
    "no such Service": ([POD, gep('{group: "", kind: Service, name: s}')], ["Accepted=False TargetNotFound"]),
    "a gateway": ([GATEWAY, access("g", "n")], ["Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs"]),
    "no such gateway": ([access("h", "n")], ["Accepted=False TargetNotFound", "ResolvedRefs=True ResolvedRefs"]),
    "not granted": ([GATEWAY, access("g", "o")], ["Accepted=True Accepted", "ResolvedRefs=False RefNotPermitted"]),
    "a Server": ([POD, SERVER, linkerd("Server", "s")], ["Accepted=True Accepted"]),
    "no such Server": ([POD, linkerd("Server", "s")], ["Accepted=False TargetNotFound"]),
    "no such route": ([POD, SERVER, linkerd("HTTPRoute", "r")], ["Accepted=False TargetNotFound"]),
    "its namespace": ([POD, linkerd("Namespace", "n", "core")], ["Accepted=True Accepted"]),
    "a service account": ([POD, linkerd("ServiceAccount", "default", "core")], ["Accepted=True Accepted"]),
    "no authentication": (
        [POD, SERVER, linkerd("Server", "s", refs=MESH_TLS)],
        ["Accepted=True Accepted", "ResolvedRefs=False RefNotFound"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_policy_shows_whether_it_can_work(case: str) -> None:
    manifests, expected = CASES[case]
    cluster = cluster_of("\n---\n".join(manifests))
    (policy,) = [one for one in cluster.policies if one.ref.name == "q"]
    assert [f"{one.type}={one.status} {one.reason}" for one in conditions_of(cluster, policy)] == expected


def test_a_decision_tells_the_conditions_of_the_policies_on_its_way() -> None:
    from eastgate import Question

    cluster = cluster_of("\n---\n".join([POD, gep("{kind: Pod, selector: {}}")]))
    decision = cluster.authority.decide(Question.of("sa:n/x", "pod:n/p", port=80))
    assert [(name, one.type) for name, one in decision.conditions] == [("AuthorizationPolicy/n/q", "Accepted")]
