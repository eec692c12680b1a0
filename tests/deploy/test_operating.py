"""The chart as an operator runs it, with the Kubernetes controllers: its conditions, and its removal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.charts import NAMESPACE, Object, of_kind, render
from tests.deploy.controllers import Controller
from tests.deploy.test_permissions import Installation
from tests.programs import ApiServer, ControllerManager

pytestmark = pytest.mark.apiserver

GEP = "authorizationpolicies.gateway.networking.x-k8s.io"
ISTIO = "authorizationpolicies.security.istio.io"
WEB = {"authorizationSource": {"serviceAccounts": ["web"]}, "networkAttributes": {"ports": [8080]}}
CART = {"matchLabels": {"app": "cart"}}
NOT_WEB = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}


@dataclass(frozen=True)
class Cluster:
    """A cluster with the CRDs of Istio, and the chart with `native: istio` in force."""

    server: ApiServer
    controller: Controller

    def condition(self, namespace: str, name: str) -> dict[str, str]:
        """Return the last condition of a policy: `Programmed` for an accepted policy."""
        ancestors = (self.server.get(GEP, name, "-n", namespace).get("status") or {}).get("ancestors")
        conditions: list[dict[str, str]] = ancestors[0]["conditions"] if ancestors else [{}]
        return conditions[-1]

    def wait_for(self, namespace: str, name: str, reason: str, text: str) -> None:
        def is_shown() -> bool:
            condition = self.condition(namespace, name)
            return condition.get("reason") == reason and text in condition["message"]

        self.controller.wait_until(is_shown)

    def apply(self, *manifests: Object) -> str:
        """Apply manifests, and return the warnings."""
        listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
        done = self.server.try_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))
        assert done.returncode == 0, done.stderr
        return done.stderr

    def natives(self, namespace: str) -> list[Object]:
        return [item["spec"] for item in self.server.get(ISTIO, "-n", namespace)["items"]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("operating")
    with ApiServer(folder) as server, ControllerManager(server):
        for name in (NAMESPACE, "istio-system"):
            server.create("/api/v1/namespaces", {"metadata": {"name": name}})
        server.install("istio", "eastgate")
        installation = Installation(server, folder, server.namespace("home"))
        with installation.run(installation.install("istio", settings={})) as controller:
            pem = "{.webhooks[0].clientConfig.caBundle}"
            controller.wait_until(
                lambda: bool(server.kubectl("get", "validatingwebhookconfiguration/eastgate", "-o", f"jsonpath={pem}"))
            )
            yield Cluster(server, controller)


def policy(namespace: str, name: str, action: str = "ALLOW", selector: Any = CART, **more: Any) -> Object:
    spec = {"targetRefs": [{"kind": "Pod", "selector": selector}], "action": action, "rules": [WEB], **more}
    metadata = {"name": name, "namespace": namespace}
    version = "gateway.networking.x-k8s.io/v1alpha2"
    return {"apiVersion": version, "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


def pod(namespace: str, name: str, *containers: str) -> Object:
    spec = {"containers": [{"name": each, "image": each} for each in ("main", *containers)]}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_a_policy_is_programmed_only_where_the_mesh_is_there_to_enforce_it(cluster: Cluster) -> None:
    server = cluster.server
    home = server.namespace("meshless")
    server.apply(pod(home, "cart"), policy(home, "cart"))
    cluster.wait_for(home, "cart", "NotEnforced", "no control plane of Istio serves it")
    assert "1 without a proxy of Istio" in cluster.condition(home, "cart")["message"]
    assert [each["action"] for each in cluster.natives(home)] == ["ALLOW"]  # the controller writes it nevertheless
    reasons = [each["reason"] for each in server.get("events.events.k8s.io", "-n", home)["items"]]
    assert "NotEnforced" in reasons

    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]
    metadata = {"name": "istiod-1", "namespace": "istio-system", "labels": {"kubernetes.io/service-name": "istiod"}}
    slices = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata}
    server.apply({**slices, "addressType": "IPv4", "endpoints": endpoints, "ports": []})
    cluster.controller.wait_until(lambda: "control plane" not in cluster.condition(home, "cart")["message"])
    cluster.wait_for(home, "cart", "NotEnforced", "1 without a proxy of Istio")
    server.kubectl("delete", "pod", "cart", "-n", home, "--now")
    cluster.wait_for(home, "cart", "Reconciling", "it selects nothing that runs now")
    server.apply(pod(home, "cart", "istio-proxy"))
    cluster.wait_for(home, "cart", "Programmed", "written for Istio")
    assert cluster.condition(home, "cart")["status"] == "True"


def test_what_cannot_be_written_closes_nothing_unless_the_policy_asks_for_it(cluster: Cluster) -> None:
    home = cluster.server.namespace("open")
    cluster.server.apply(pod(home, "cart"), pod(home, "web"))
    hard = policy(home, "hard", "DENY", NOT_WEB)
    warnings = cluster.apply(hard)
    assert "Warning: it cannot be written for Istio, so that it is not in force: EG7101" in warnings
    cluster.wait_for(home, "hard", "NotEnforced", "it cannot be written for Istio")
    assert cluster.natives(home) == []

    asking = {**hard, "metadata": {**hard["metadata"], "annotations": {"eastgate.dev/native-unwritable": "close"}}}
    warnings = cluster.apply(asking)
    assert "Warning: Istio cannot select exactly its pods: other pods are closed too" in warnings
    cluster.wait_for(home, "hard", "NotEnforced", f"other pods are closed too: {home}/web")
    assert cluster.natives(home) == [{"action": "DENY", "rules": [{}]}]
    cluster.server.kubectl("annotate", GEP, "hard", "-n", home, "eastgate.dev/native-unwritable-")
    cluster.controller.wait_until(lambda: cluster.natives(home) == [])


def test_an_invariant_keeps_policies_and_does_not_block_the_deletion_of_namespaces(cluster: Cluster) -> None:
    server = cluster.server
    home = server.namespace("ending")
    names = {"matchLabels": {"kubernetes.io/metadata.name": home}}
    never = {"from": {"any": True}, "to": {"pods": CART, "namespaces": names}}
    invariant = {"apiVersion": "eastgate.dev/v1alpha1", "kind": "ClusterInvariant", "metadata": {"name": "closed"}}
    server.apply(pod(home, "cart"), policy(home, "closed", "DENY", NOT_WEB, rules=[{}]))
    server.apply({**invariant, "spec": {"never": never}})

    def refusal() -> str:
        return server.try_kubectl("delete", GEP, "closed", "-n", home, "--dry-run=server").stderr

    try:
        cluster.controller.wait_until(lambda: "breaks ClusterInvariant/closed" in refusal())
        server.kubectl("delete", "namespace", home, "--wait=false")
        path = f"/api/v1/namespaces/{home}"
        cluster.controller.wait_until(lambda: server.request("GET", path)[0] == 404)
    finally:
        server.kubectl("delete", "clusterinvariant", "closed")


def test_users_of_a_namespace_have_the_rights_of_their_role_on_policies(cluster: Cluster) -> None:
    server = cluster.server
    home = server.namespace("users")
    accounts = {}
    for role in ("view", "edit", "admin"):
        accounts[role] = server.kubeconfig_for(f"{home}/{role}")
        server.kubectl(
            "create", "rolebinding", role, "-n", home, f"--clusterrole={role}", f"--serviceaccount={home}:{role}"
        )

    def may(role: str, verb: str, resource: str) -> bool:
        asked = server.try_kubectl("auth", "can-i", verb, resource, "-n", home, kubeconfig=accounts[role])
        return asked.stdout.strip() == "yes"

    cluster.controller.wait_until(lambda: may("admin", "create", "invariants.eastgate.dev"))
    for role, policies, invariants in (("view", False, False), ("edit", True, False), ("admin", True, True)):
        assert may(role, "list", GEP), role
        assert may(role, "list", "invariants.eastgate.dev"), role
        assert may(role, "create", GEP) is policies, role
        assert may(role, "delete", "invariants.eastgate.dev") is invariants, role
        assert not may(role, "create", "clusterauthorizationpolicies.eastgate.dev"), role


def test_the_network_policy_of_the_chart_is_not_complained_about(cluster: Cluster) -> None:
    (own,) = of_kind(render(), "NetworkPolicy")
    assert "Warning" not in cluster.apply({**own, "metadata": {"name": "again", "namespace": NAMESPACE}})
    command = [sys.executable, "-m", "eastgate", "lint", "--cluster", "--kubeconfig", str(cluster.server.kubeconfig)]
    done = subprocess.run([*command, "--fail-on", "never"], capture_output=True, text=True, timeout=120)
    assert "NetworkPolicy" not in done.stdout
    lines = [line for line in cluster.controller.log.splitlines() if "NetworkPolicy" in line]
    assert [line for line in lines if "Invariant" not in line] == []  # it names every policy that allows a request


def test_the_class_is_made_when_gateway_api_comes_later(cluster: Cluster) -> None:
    server = cluster.server
    assert "gatewayclass" not in server.kubectl("api-resources", "-o", "name")
    server.install("gateway-api")
    path = "/apis/gateway.networking.k8s.io/v1/gatewayclasses/eastgate"
    cluster.controller.wait_until(lambda: server.request("GET", path)[0] == 200)

    def is_accepted() -> bool:
        conditions = server.request("GET", path)[1].get("status", {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Accepted", "True") for each in conditions)

    cluster.controller.wait_until(is_accepted)
