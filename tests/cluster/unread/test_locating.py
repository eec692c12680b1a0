"""What does not select either end of a question does not matter for it, and what may select one does."""

from __future__ import annotations

import pytest

from tests.cluster.unread.conftest import TO_GATEWAY, WEB_TO_CART, Run


def network_policy(spec: str, namespace: str = "shop") -> str:
    head = "apiVersion: k8s.cni.cncf.io/v1beta1\nkind: MultiNetworkPolicy\n"
    return f"{head}metadata: {{name: one, namespace: {namespace}}}\nspec: {spec}\n"


def istio(kind: str, spec: str, namespace: str = "shop", group: str = "extensions.istio.io") -> str:
    return f"apiVersion: {group}/v1\nkind: {kind}\nmetadata: {{name: one, namespace: {namespace}}}\nspec: {spec}\n"


def cilium(spec: str, kind: str = "CiliumNetworkPolicy") -> str:
    return f"apiVersion: cilium.io/v2\nkind: {kind}\nmetadata: {{name: one, namespace: shop}}\n{spec}\n"


def admin(subject: str) -> str:
    head = "apiVersion: networking.k8s.aws/v1alpha1\nkind: ClusterNetworkPolicy\nmetadata: {name: one}\n"
    return f"{head}spec: {{priority: 1, subject: {subject}}}\n"


def kgateway(target: str) -> str:
    head = "apiVersion: gateway.kgateway.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: one, namespace: shop}\n"
    return f"{head}spec: {{targetRefs: [{target}]}}\n"


ROUTE = """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mesh, namespace: shop}
spec: {parentRefs: [{group: '', kind: Service, name: cart, port: 80}], rules: [{backendRefs: [{name: cart, port: 80}]}]}
"""
MATTERS = [
    network_policy("{podSelector: {}}"),
    network_policy("{}"),
    network_policy("{podSelector: null}"),
    network_policy("{podSelector: {matchLabels: {app: cart}}}"),
    network_policy("{podSelector: {matchExpressions: [{key: app, operator: In, values: [cart, x]}]}}"),
    network_policy("{podSelector: {matchExpressions: [{key: other, operator: DoesNotExist}]}}"),
    network_policy("{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress]}"),
    network_policy("{podSelector: {matchLabels: {app: web}}, egress: [{}]}"),
    network_policy("{podSelector: {matchLabels: {app: cart, pod-template-hash: abc}}}"),
    network_policy("{podSelector: {matchExpressions: [{key: job-name, operator: Exists}]}}"),
    network_policy("{podSelector: {matchLabels: {statefulset.kubernetes.io/pod-name: cart-0}}}"),
    istio("WasmPlugin", "{}"),
    istio("WasmPlugin", "{selector: {matchLabels: {controller-revision-hash: abc}}}"),
    istio("WasmPlugin", "{selector: {matchLabels: {service.istio.io/canonical-name: cart}}}"),
    network_policy("{podSelector: {matchExpressions: [{key: linkerd.io/control-plane-ns, operator: Exists}]}}"),
    cilium("spec: {endpointSelector: {matchLabels: {k8s.v1.cni.cncf.io/role: cart}}}"),
    istio("WasmPlugin", "{selector: {matchLabels: {app: cart}}}"),
    istio("WasmPlugin", "{selector: {matchLabels: {app: cart}}}", "istio-system"),
    istio("WasmPlugin", "{url: file}", "istio-system"),
    istio("WasmPlugin", "{targetRefs: [{kind: Service, name: cart, group: ''}]}"),
    istio("WasmPlugin", "{targetRefs: [{kind: Gateway, name: waypoint}]}", "pay"),
    istio("EnvoyFilter", "{workloadSelector: {labels: {app: web}}}", group="networking.istio.io"),
    cilium("spec: {endpointSelector: {matchLabels: {k8s:app: cart}}}"),
    cilium("spec: {endpointSelector: {matchLabels: {'k8s:io.kubernetes.pod.namespace': shop}}}"),
    cilium("specs: [{endpointSelector: {matchLabels: {app: none}}}, {endpointSelector: {matchLabels: {app: web}}}]"),
    cilium("spec: {endpointSelector: {matchLabels: {app: cart}}}", "CiliumClusterwideNetworkPolicy"),
    cilium("spec: {nodeSelector: {}}", "CiliumClusterwideNetworkPolicy"),
    kgateway("{kind: Service, name: cart, group: ''}"),
    kgateway("{kind: HTTPRoute, name: mesh, group: gateway.networking.k8s.io}") + ROUTE,
    admin("{namespaces: {matchLabels: {kubernetes.io/metadata.name: shop}}}"),
    admin("{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: cart}}}}"),
]
DOES_NOT = [
    network_policy("{podSelector: {}}", "pay"),
    network_policy("{podSelector: {matchLabels: {app: bank}}}"),
    network_policy("{podSelector: {matchLabels: {app: web}}}"),
    network_policy("{podSelector: {matchLabels: {app: web}}, egress: []}"),
    network_policy("{podSelector: {matchLabels: {app: cart}}, policyTypes: [Egress], ingress: [{}]}"),
    network_policy("{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [cart]}]}}"),
    istio("WasmPlugin", "{}", "pay"),
    istio("WasmPlugin", "{selector: {matchLabels: {app: web}}}"),
    istio("WasmPlugin", "{selector: {matchLabels: {app: bank}}}", "istio-system"),
    istio("WasmPlugin", "{targetRefs: [{kind: Service, name: other, group: ''}]}"),
    cilium("spec: {endpointSelector: {matchLabels: {app: bank}}}"),
    admin("{namespaces: {matchLabels: {kubernetes.io/metadata.name: pay}}}"),
    "apiVersion: extensions.kuadrant.io/v1alpha1\nkind: OIDCPolicy\nmetadata: {name: one, namespace: shop}\n"
    "spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: front}}\n",
    "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata: {name: one, namespace: shop}\n",
]


@pytest.mark.parametrize("manifest", MATTERS)
def test_what_selects_an_end_of_the_question_qualifies_the_answer(manifest: str, run: Run) -> None:
    result = run(manifest, "check", *WEB_TO_CART)
    assert result.exit_code == 3, result.output
    assert result.stdout.startswith(("ALLOW (identity policies only)  ", "ALLOW (by what was read)  "))
    assert "not considered: 1 " in result.stdout


@pytest.mark.parametrize("manifest", DOES_NOT)
def test_what_selects_neither_end_does_not(manifest: str, run: Run) -> None:
    result = run(manifest, "check", *WEB_TO_CART)
    assert (result.exit_code, result.stdout) == (0, "ALLOW  no policy targets shop/cart\n")


@pytest.mark.parametrize(
    "spec",
    [
        "{podSelector: {matchLabel: {app: bank}}}",
        "{podSelector: {matchLabels: {app: null}}}",
        "{podSelector: {matchExpressions: [{key: app, operator: Is, values: [bank]}]}}",
        "{podSelector: [bank]}",
        "{podSelector: {}, policyTypes: Ingress}",
    ],
)
def test_a_selector_that_cannot_be_read_may_mean_all_of_its_namespace_and_no_other(spec: str, run: Run) -> None:
    assert run(network_policy(spec), "check", *WEB_TO_CART).exit_code == 2
    assert run(network_policy(spec, "pay"), "check", *WEB_TO_CART).exit_code == 0


@pytest.mark.parametrize(
    "source", ["sa:shop/web", "pod:shop/web", "spiffe://cluster.local/ns/shop/sa/web", "sa:shop/nobody"]
)
def test_egress_is_a_matter_of_the_caller_however_it_is_called(source: str, run: Run) -> None:
    manifest = network_policy("{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress]}")
    result = run(manifest, "check", "--from", source, "--to", "pod:shop/cart", "--port", "80")
    assert result.exit_code == 3
    assert "1 selects the caller: more.yaml:1" in result.stdout


@pytest.mark.parametrize(
    "source", ["anonymous", "ip:192.0.2.1", "sa:pay/bank", "spiffe://other.example/ns/shop/sa/web"]
)
def test_callers_elsewhere_have_no_egress_here(source: str, run: Run) -> None:
    manifest = network_policy("{podSelector: {}, policyTypes: [Egress]}")
    assert run(manifest, "check", "--from", source, "--to", "pod:shop/cart", "--port", "80").exit_code == 0


def test_the_pods_of_a_gateway_are_any_of_its_namespace(run: Run) -> None:
    assert run(network_policy("{podSelector: {matchLabels: {app: any}}}"), "check", *TO_GATEWAY).exit_code == 3
    assert run(network_policy("{podSelector: {matchLabels: {app: any}}}", "pay"), "check", *TO_GATEWAY).exit_code == 0
