"""An object that selects neither end of a question does not matter for it. One that may select an end does."""

from __future__ import annotations

import pytest

from tests.cluster.unread.conftest import BANK_TO_CART, TO_GATEWAY, WEB_TO_CART, Run


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


def calico(spec: str, kind: str = "NetworkPolicy", group: str = "projectcalico.org/v3") -> str:
    namespace = "" if kind.startswith("Global") else ", namespace: shop"
    return f"apiVersion: {group}\nkind: {kind}\nmetadata: {{name: one{namespace}}}\nspec: {spec}\n"


def ovn(spec: str, kind: str = "UserDefinedNetwork", namespace: str = "shop") -> str:
    return f"apiVersion: k8s.ovn.org/v1\nkind: {kind}\nmetadata: {{name: one, namespace: {namespace}}}\nspec: {spec}\n"


def maistra(spec: str, kind: str = "ServiceMeshMemberRoll", namespace: str = "istio-system") -> str:
    head = f"apiVersion: maistra.io/v1\nkind: {kind}\n"
    return f"{head}metadata: {{name: default, namespace: {namespace}}}\nspec: {spec}\n"


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
    calico("{selector: all()}"),
    calico("{tier: security, order: 10}"),
    calico("{selector: app == 'cart' && has(tier), types: [Ingress]}"),
    calico("{selector: \"app in {'web', 'other'} && !has(tier)\", egress: [{action: Allow}]}"),
    calico("{selector: \"tier not in {'front'} && app != 'x'\"}"),
    calico("{selector: (app == 'bank') || has(x)}"),
    calico("{selector: app starts with 'ba'}"),
    calico("{selector: projectcalico.org/orchestrator == 'k8s' && app == 'cart'}"),
    calico("{selector: app == 'cart'}", "GlobalNetworkPolicy", "crd.projectcalico.org/v1"),
    calico("{namespaceSelector: projectcalico.org/name == 'shop'}", "GlobalNetworkPolicy"),
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
    calico("{selector: app == 'bank'}"),
    calico("{selector: app == 'web', types: [Ingress]}"),
    calico("{selector: app == 'cart', types: [Egress]}"),
    calico("{selector: all(), namespaceSelector: kubernetes.io/metadata.name == 'pay'}", "GlobalNetworkPolicy"),
    ovn("{topology: Layer2, layer2: {role: Primary}}"),
    ovn("{topology: Layer3, layer3: {role: Secondary}}"),
    ovn("{network: {layer3: {role: Primary}}, namespaceSelector: {}}", "ClusterUserDefinedNetwork"),
    maistra("{members: [shop]}"),
    maistra("{}", "ServiceMeshMember", "shop"),
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


NAME = "kubernetes.io/metadata.name"
CUTS_OFF = [
    ovn("{topology: Layer2, layer2: {role: Primary}}"),
    ovn("{topology: Layer2, layer2: {role: Primary}}", namespace="pay"),
    ovn(
        f"{{network: {{layer2: {{role: Primary}}}}, namespaceSelector: {{matchLabels: {{{NAME}: shop}}}}}}",
        "ClusterUserDefinedNetwork",
    ),
    maistra("{members: [shop, other]}"),
    maistra(f"{{memberSelectors: [{{matchLabels: {{{NAME}: pay}}}}]}}"),
    maistra("{}", "ServiceMeshMember", "pay"),
]
DOES_NOT_CUT = [
    ovn("{topology: Layer2, layer2: {role: Secondary}}"),
    ovn("{topology: Layer2, layer2: {role: Primary}}", namespace="other"),
    ovn("{network: {layer2: {role: Primary}}, namespaceSelector: {}}", "ClusterUserDefinedNetwork"),
    ovn(
        "{network: {topology: Localnet, localnet: {role: Secondary}}, namespaceSelector: {}}",
        "ClusterUserDefinedNetwork",
    ),
    maistra("{members: [shop, pay]}"),
    maistra("{members: []}"),
]


@pytest.mark.parametrize("manifest", CUTS_OFF)
def test_one_end_in_a_group_and_the_other_outside_are_cut_off(manifest: str, run: Run) -> None:
    result = run(manifest, "check", *BANK_TO_CART)
    assert result.exit_code == 3, result.output
    assert "not considered: 1 " in result.stdout


@pytest.mark.parametrize("manifest", DOES_NOT_CUT)
def test_two_ends_in_one_group_and_two_outside_are_not(manifest: str, run: Run) -> None:
    result = run(manifest, "check", *BANK_TO_CART)
    assert (result.exit_code, result.stdout) == (0, "ALLOW  no policy targets shop/cart\n")


def test_callers_from_elsewhere_are_outside_of_every_group(run: Run) -> None:
    network = ovn("{topology: Layer2, layer2: {role: Primary}}")
    assert run(network, "check", "--from", "anonymous", "--to", "pod:shop/cart", "--port", "80").exit_code == 3


def test_a_group_that_cannot_be_read_may_be_any(run: Run) -> None:
    for manifest in (
        ovn("{network: {layer2: {role: Primary}}}", "ClusterUserDefinedNetwork"),
        ovn("{topology: Layer2}"),
        maistra("{members: shop}"),
        calico("{selector: [all()]}"),
    ):
        assert run(manifest, "check", *BANK_TO_CART).exit_code == 2


def test_the_pods_of_a_gateway_are_any_of_its_namespace(run: Run) -> None:
    assert run(network_policy("{podSelector: {matchLabels: {app: any}}}"), "check", *TO_GATEWAY).exit_code == 3
    assert run(network_policy("{podSelector: {matchLabels: {app: any}}}", "pay"), "check", *TO_GATEWAY).exit_code == 0
