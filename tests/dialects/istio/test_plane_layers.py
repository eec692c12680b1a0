"""The effect of policies at each proxy, and its explanation: decisions on whole manifests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eastgate.authority.decisions import Decision
from eastgate.authority.enforcement import doubt_lines
from eastgate.authority.questions import Question
from eastgate.dialects.istio.planes import DroppedFields, NoIdentity, WaypointIdentity
from eastgate.ir import ProxyReading
from eastgate.settings import Settings
from tests.dialects.linkerd.reading import authority

OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: app, labels: {istio.io/dataplane-mode: ambient}}
---
apiVersion: v1
kind: Namespace
metadata: {name: side, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: app, labels: {app: web}}
spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: side, labels: {app: web}}
spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: outside}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: nowhere, labels: {app: web}}
spec: {serviceAccountName: out, containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: outside, labels: {app: web}}
spec: {serviceAccountName: out, containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: app, labels: {istio.io/use-waypoint: waypoint}}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: app, labels: {istio.io/use-waypoint: waypoint}}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: waypoint, namespace: app}
spec: {gatewayClassName: istio-waypoint, listeners: [{name: mesh, port: 15008, protocol: HBONE}]}
"""


def policy(kind: str, namespace: str, spec: str, name: str = "p") -> str:
    metadata = f"metadata: {{name: {name}, namespace: {namespace}}}"
    return f"---\napiVersion: security.istio.io/v1\nkind: {kind}\n{metadata}\nspec: {spec}\n"


def decide(
    policies: str,
    source: str,
    to: str,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    claims: Mapping[str, object] | None = None,
) -> Decision:
    method = None if path is None else "GET"
    asked = Question.of(source, to, port=80, method=method, path=path, headers=headers, claims=claims)
    return authority(OBJECTS + policies).decide(asked)


def decide_by_ours(policies: str, source: str, to: str, path: str | None = None) -> Decision:
    """Decide with the proxies of Eastgate."""
    settings = Settings.from_mapping({"dataPlane": "eastgate"})
    method = None if path is None else "GET"
    return authority(OBJECTS + policies, settings).decide(Question.of(source, to, port=80, method=method, path=path))


def readings(decision: Decision) -> list[object]:
    return [reading for layer in decision.trace().layers for reading in layer.readings]


NO_ADMIN = "{action: DENY, rules: [{to: [{operation: {paths: [/admin]}}]}]}"


def test_an_l7_deny_is_nothing_at_ztunnel_and_the_trace_says_so() -> None:
    decision = decide(policy("AuthorizationPolicy", "app", NO_ADMIN), "sa:a/x", "pod:app/web", "/admin")
    assert decision.allowed
    (reading,) = [each for each in readings(decision) if isinstance(each, DroppedFields)]
    assert (reading.fields, reading.index) == (("paths",), 0)
    assert str(reading).endswith("so that the rule denies nothing")


def test_the_same_is_enforced_by_a_sidecar() -> None:
    assert not decide(policy("AuthorizationPolicy", "side", NO_ADMIN), "sa:a/x", "pod:side/web", "/admin").allowed
    assert decide(policy("AuthorizationPolicy", "side", NO_ADMIN), "sa:a/x", "pod:side/web", "/").allowed


ONLY_A = "{rules: [{from: [{source: {namespaces: [a]}}]}]}"
ON_SERVICE = ONLY_A.replace("{rules", '{targetRefs: [{group: "", kind: Service, name: web}], rules', 1)


def test_behind_a_waypoint_ztunnel_sees_the_waypoint() -> None:
    decision = decide(policy("AuthorizationPolicy", "app", ONLY_A), "sa:a/x", "service:app/web")
    assert not decision.allowed
    (reading,) = [each for each in readings(decision) if isinstance(each, WaypointIdentity)]
    assert reading.identity == "spiffe://cluster.local/ns/app/sa/waypoint"
    assert decide(policy("AuthorizationPolicy", "app", ONLY_A), "sa:a/x", "pod:app/web").allowed


def test_the_waypoint_sees_the_caller_for_the_services_that_policies_name() -> None:
    on_service = policy("AuthorizationPolicy", "app", ON_SERVICE)
    assert decide(on_service, "sa:a/x", "service:app/web", "/").policy == "AuthorizationPolicy/app/p"
    assert not decide(on_service, "sa:b/x", "service:app/web", "/").allowed
    assert decide(on_service, "sa:b/x", "service:app/other", "/").allowed
    assert decide(on_service, "sa:b/x", "pod:app/web", "/").allowed


def test_callers_outside_of_the_mesh_go_round_the_waypoint() -> None:
    on_service = policy("AuthorizationPolicy", "app", ON_SERVICE)
    assert decide(on_service, "anonymous", "service:app/web", "/").allowed
    strict = on_service + policy("PeerAuthentication", "app", "{mtls: {mode: STRICT}}")
    denied = decide(strict, "anonymous", "service:app/web", "/")
    assert (denied.policy, denied.status) == ("PeerAuthentication/app/p", 0)


def test_a_pod_without_a_proxy_enforces_nothing_and_the_trace_says_so() -> None:
    decision = decide(policy("AuthorizationPolicy", "outside", "{}"), "sa:a/x", "pod:outside/web")
    assert decision.allowed
    assert [type(reading) for reading in readings(decision)] == [ProxyReading]


@pytest.mark.parametrize(("source", "allowed"), [("pod:outside/web", False), ("sa:outside/out", True)])
def test_a_pod_without_a_proxy_has_no_identity(source: str, allowed: bool) -> None:
    only = "{rules: [{from: [{source: {namespaces: [outside]}}]}]}"
    assert decide(policy("AuthorizationPolicy", "side", only), source, "pod:side/web").allowed is allowed
    strict = policy("PeerAuthentication", "side", "{mtls: {mode: STRICT}}")
    assert decide(strict, source, "pod:side/web").allowed is allowed


@pytest.mark.parametrize(("source", "allowed"), [("pod:nowhere/web", False), ("sa:nowhere/out", True)])
def test_a_pod_with_an_unknown_proxy_may_have_no_identity(source: str, allowed: bool) -> None:
    only = "{rules: [{from: [{source: {namespaces: [nowhere]}}]}]}"
    decision = decide(policy("AuthorizationPolicy", "side", only), source, "pod:side/web")
    assert decision.allowed is allowed
    assert any("caller has no identity" in line for line in doubt_lines(decision.enforcement)) is not allowed
    denying = "{action: DENY, rules: [{from: [{source: {namespaces: [nowhere]}}]}]}"
    assert not decide(policy("AuthorizationPolicy", "side", denying), source, "pod:side/web").allowed


def test_with_an_unknown_proxy_the_answer_names_policies_that_may_not_be_in_force() -> None:
    named = "{rules: [{from: [{source: {serviceAccounts: [a/x]}}]}]}"
    decision = decide(policy("AuthorizationPolicy", "nowhere", named), "sa:a/x", "pod:nowhere/web")
    assert decision.allowed
    (enforcement,) = decision.enforcement
    assert enforcement.to_json() == {
        "at": "pod nowhere/web",
        "policies": ["AuthorizationPolicy/nowhere/p"],
        "enforced": None,
        "by": "a sidecar of Istio",
        "reason": "no manifest says whether it has a proxy",
        "setting": "istioDataPlane",
        "choices": ["sidecar", "ambient", "none"],
    }


def test_on_a_port_without_mtls_no_caller_has_an_identity() -> None:
    ports = "{selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}, portLevelMtls: {80: {mode: DISABLE}}}"
    decision = decide(
        policy("PeerAuthentication", "side", ports) + policy("AuthorizationPolicy", "side", ONLY_A),
        "sa:a/x",
        "pod:side/web",
    )
    assert not decision.allowed
    assert NoIdentity in [type(reading) for reading in readings(decision)]


def test_proxies_of_eastgate_enforce_policies_that_no_proxy_of_istio_enforces() -> None:
    assert not decide_by_ours(policy("AuthorizationPolicy", "app", NO_ADMIN), "sa:a/x", "pod:app/web", "/admin").allowed
    assert decide_by_ours(policy("AuthorizationPolicy", "app", NO_ADMIN), "sa:a/x", "pod:app/web", "/").allowed
    assert not decide_by_ours(policy("AuthorizationPolicy", "outside", "{}"), "sa:a/x", "pod:outside/web").allowed
    on_service = policy("AuthorizationPolicy", "app", ON_SERVICE)
    assert not decide_by_ours(on_service, "anonymous", "service:app/web", "/").allowed
    strict = policy("PeerAuthentication", "app", "{mtls: {mode: STRICT}}")
    assert not decide_by_ours(strict, "anonymous", "pod:app/web", "/").allowed


TOKENS = "{targetRefs: [{group: '', kind: Service, name: %s}], jwtRules: [{issuer: %s}]}"


def test_each_service_behind_a_waypoint_has_its_own_tokens() -> None:
    both = policy("RequestAuthentication", "app", TOKENS % ("web", "i-web"), "a") + policy(
        "RequestAuthentication", "app", TOKENS % ("other", "i-other"), "b"
    )
    for service, issuer, status in [
        ("web", "i-web", 200),
        ("web", "i-other", 401),
        ("other", "i-other", 200),
        ("other", "i-web", 401),
    ]:
        decision = decide(both, "sa:a/x", f"service:app/{service}", "/", claims={"iss": issuer})
        assert decision.status == status, (service, issuer)


def test_a_request_without_headers_may_have_any_token() -> None:
    tokens = policy("RequestAuthentication", "side", "{jwtRules: [{issuer: i}]}")
    assert not decide(tokens, "sa:a/x", "pod:side/web", "/").allowed
    assert decide(tokens, "sa:a/x", "pod:side/web", "/", headers={}).allowed


def test_an_audited_authentication_decides_nothing() -> None:
    tokens = policy("RequestAuthentication", "side", "{jwtRules: [{issuer: i}]}")
    audited = tokens.replace("namespace: side}", "namespace: side, annotations: {eastgate.dev/mode: audit}}")
    assert not decide(tokens, "sa:a/x", "pod:side/web", "/", claims={"iss": "other"}).allowed
    assert decide(audited, "sa:a/x", "pod:side/web", "/", claims={"iss": "other"}).allowed


GATEWAY = """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: side}
spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: side}
spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: side}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


@pytest.mark.parametrize(("issuer", "status"), [("edge", 200), ("web", 401)])
def test_a_gateway_accepts_its_own_tokens(issuer: str, status: int) -> None:
    at_gateway = (
        "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}], jwtRules: [{issuer: edge}]}"
    )
    policies = GATEWAY + policy("RequestAuthentication", "side", at_gateway)
    decision = decide(policies, "anonymous", "gateway:side/edge", "/", claims={"iss": issuer})
    assert decision.status == status


@pytest.mark.parametrize(("groups", "allowed"), [("a", True), (["b", "a"], True), (["b", "c"], False), ("b", False)])
def test_a_gateway_sees_claims_and_lists_of_them(groups: object, allowed: bool) -> None:
    target = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]"
    condition = "{key: 'request.auth.claims[groups]', values: [a]}"
    policies = (
        GATEWAY
        + policy("RequestAuthentication", "side", f"{{{target}, jwtRules: [{{issuer: edge}}]}}")
        + policy("AuthorizationPolicy", "side", f"{{{target}, rules: [{{when: [{condition}]}}]}}")
    )
    claims = {"iss": "edge", "groups": groups}
    assert decide(policies, "anonymous", "gateway:side/edge", "/", claims=claims).allowed is allowed
