"""A real API server sends changes beside policies, and deletions that finalizers delay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from eastgate.controller.admission.configuration import webhook_configurations
from eastgate.reports.crds import Webhook
from tests.authority.sources.objects import CART, policy
from tests.controller.judged import Cluster, never, policies_of, run_judged
from tests.controller.replicas import SYSTEM
from tests.programs import ApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.real]

Plain = dict[str, Any]
_HOLD = "example.com/hold"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with run_judged(tmp_path_factory.mktemp("semantic")) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.server.kubectl("delete", "clusterinvariants.eastgate.dev", "--all")


@pytest.fixture
def shop(cluster: Cluster) -> str:
    """Return a namespace with two pods; a policy guards one of them."""
    name = cluster.server.namespace("shop", {"trusted": "yes"})
    for app in ("cart", "open"):
        labels = {"app": app} | ({"data": "cards"} if app == "cart" else {})
        pod = CART | {"metadata": {"name": app, "labels": labels}}
        cluster.server.create(f"/api/v1/namespaces/{name}/pods", pod)
    cluster.server.create(policies_of(name), policy(name, "a", ["web"]))
    return name


def test_the_last_finalizer_is_judged_as_the_deletion(cluster: Cluster, shop: str) -> None:
    one = f"{policies_of(shop)}/a"
    cluster.server.create(policies_of(shop), policy(shop, "b", ["web"]))
    assert cluster.patch(one, {"metadata": {"finalizers": [_HOLD, "example.com/other"]}})[0] == 200
    cluster.state(never(shop, {"pods": {"matchLabels": {"app": "cart"}}}))
    assert cluster.server.request("DELETE", one)[0] == 200  # the other one guards it
    assert cluster.server.request("DELETE", f"{policies_of(shop)}/b")[0] == 200  # the first one still counts
    assert cluster.patch(one, {"metadata": {"finalizers": [_HOLD]}})[0] == 200

    def is_refused() -> bool:
        status, message = cluster.patch(f"{one}?dryRun=All", {"metadata": {"finalizers": []}})
        return status == 403 and "must never be allowed" in message

    cluster.replicas.wait_until(is_refused)  # the replica has to see that the other one is gone
    status, _ = cluster.patch(one, {"metadata": {"finalizers": []}})
    assert status == 403
    assert cluster.server.request("GET", one)[1]["metadata"]["finalizers"] == [_HOLD]
    cluster.server.create(policies_of(shop), policy(shop, "c", ["web"]))
    cluster.replicas.wait_until(lambda: cluster.patch(one, {"metadata": {"finalizers": []}})[0] in (200, 404))
    assert cluster.server.request("GET", one)[0] == 404


def test_a_service_may_not_lead_to_pods_that_break_an_invariant(cluster: Cluster, shop: str) -> None:
    services = f"/api/v1/namespaces/{shop}/services"
    spec = {"selector": {"app": "cart"}, "ports": [{"port": 80, "targetPort": 8080}]}
    cluster.server.create(services, {"metadata": {"name": "cart"}, "spec": spec})
    cluster.state(never(shop, {"services": [f"{shop}/cart"]}))
    status, message = cluster.patch(f"{services}/cart", {"spec": {"selector": {"app": "open"}}})
    assert status == 403
    assert "breaks ClusterInvariant" in message
    assert cluster.patch(f"{services}/cart", {"metadata": {"labels": {"team": "cards"}}})[0] == 200


@pytest.mark.parametrize("subresource", ["", "/status", "/finalize"])
def test_a_label_of_a_namespace_may_not_break_an_invariant(cluster: Cluster, shop: str, subresource: str) -> None:
    callers = {"except": {"namespaces": {"matchLabels": {"trusted": "yes"}}}}
    stated = never(shop, {"pods": {"matchLabels": {"app": "cart"}}})
    cluster.state(stated | {"never": stated["never"] | {"from": callers}})
    path = f"/api/v1/namespaces/{shop}"

    def label(labels: Plain) -> tuple[int, str]:
        if subresource != "/finalize":
            return cluster.patch(f"{path}{subresource}", {"metadata": {"labels": labels}})
        stored = cluster.server.request("GET", path)[1]
        kept = {key: value for key, value in (stored["metadata"]["labels"] | labels).items() if value is not None}
        changed = stored | {"metadata": stored["metadata"] | {"labels": kept}}
        status, answer = cluster.server.request("PUT", f"{path}{subresource}", changed)
        return status, str(answer.get("message", ""))

    status, message = label({"trusted": None})
    assert status == 403
    assert "breaks ClusterInvariant" in message
    assert label({"team": "cards"})[0] == 200


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_a_label_of_a_pod_may_not_break_an_invariant(cluster: Cluster, shop: str, subresource: str) -> None:
    cluster.state(never(shop, {"pods": {"matchLabels": {"data": "cards"}}}))
    pods = f"/api/v1/namespaces/{shop}/pods"
    labelled = {"metadata": {"labels": {"data": "cards"}}}
    status, message = cluster.patch(f"{pods}/open{subresource}", labelled)
    assert status == 403
    assert "breaks ClusterInvariant" in message
    assert cluster.patch(f"{pods}/open{subresource}", {"metadata": {"labels": {"team": "cards"}}})[0] == 200


def test_a_binding_may_not_give_a_pod_labels_that_break_an_invariant(cluster: Cluster, shop: str) -> None:
    cluster.state(never(shop, {"pods": {"matchLabels": {"data": "cards"}}}))
    target = {"apiVersion": "v1", "kind": "Node", "name": "node"}

    def bind(path: str, labels: dict[str, str]) -> tuple[int, Any]:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "open", "labels": labels}}
        return cluster.server.request("POST", f"/api/v1/namespaces/{shop}/{path}", binding | {"target": target})

    for path in ("pods/open/binding", "bindings"):
        status, answer = bind(path, {"data": "cards"})
        assert status == 403, answer
        assert "breaks ClusterInvariant" in answer["message"]
    before = cluster.reviews()
    assert bind("pods/open/binding", {"topology.kubernetes.io/zone": "a"})[0] == 201
    assert cluster.reviews() == before


def test_the_template_of_a_workload_may_not_break_an_invariant(cluster: Cluster, shop: str) -> None:
    sets = f"/apis/apps/v1/namespaces/{shop}/statefulsets"
    template = {"metadata": {"labels": {"app": "s"}}, "spec": CART["spec"]}
    spec = {"serviceName": "s", "selector": {"matchLabels": {"app": "s"}}, "template": template}
    made = cluster.server.create(sets, {"metadata": {"name": "s"}, "spec": spec})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": made["metadata"]["uid"]}
    metadata = {"name": "s-0", "labels": {"app": "s"}, "ownerReferences": [owner | {"controller": True}]}
    cluster.server.create(f"/api/v1/namespaces/{shop}/pods", CART | {"metadata": metadata})
    cluster.state(never(shop, {"pods": {"matchLabels": {"data": "cards"}}}))
    relabelled = {"spec": {"template": {"metadata": {"labels": {"data": "cards"}}}}}
    cluster.replicas.wait_until(lambda: cluster.patch(f"{sets}/s?dryRun=All", relabelled)[0] == 403)
    assert "breaks ClusterInvariant" in cluster.patch(f"{sets}/s", relabelled)[1]
    assert cluster.patch(f"{sets}/s", {"spec": {"replicas": 2}})[0] == 200


def test_the_invariants_of_a_namespace_are_bounded_together(cluster: Cluster, shop: str) -> None:
    """Every judgement considers all Invariants, and an owner of a namespace can add many."""
    path = f"/apis/eastgate.dev/v1alpha1/namespaces/{shop}/invariants"

    def state(name: str, accounts: int) -> tuple[int, Any]:
        callers = {"serviceAccounts": [f"{shop}/account-{number}" for number in range(accounts)]}
        spec = {"never": {"from": callers, "to": {"pods": {"matchLabels": {"app": "cart"}}}}, "existingOnly": True}
        made = {"apiVersion": "eastgate.dev/v1alpha1", "kind": "Invariant", "metadata": {"name": name}, "spec": spec}
        return cluster.server.request("POST", f"{path}?dryRun=All" if name == "dry" else path, made)

    status, answer = state("large", 2000)
    assert status == 403
    assert "too large together" in answer["message"]
    assert state("small", 400)[0] == 201
    cluster.replicas.wait_until(lambda: state("dry", 700)[0] == 403)  # the replica has to see the first one
    assert state("another", 10)[0] == 201


def test_changes_without_effect_on_verdicts_are_not_sent(cluster: Cluster, shop: str) -> None:
    home = f"/api/v1/namespaces/{shop}"
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}}
    cluster.server.create(f"{home}/services", service)
    before = cluster.reviews()
    pod = CART | {"metadata": {"name": "new", "labels": {"app": "cart"}}}
    cluster.server.create(f"{home}/pods", pod)
    noted = {"metadata": {"annotations": {"cni.example.com/status": "ready"}}}
    assert cluster.patch(f"{home}/pods/new", noted)[0] == 200
    assert cluster.patch(f"{home}/pods/new/status", {"status": {"phase": "Running", "podIP": "10.0.0.9"}})[0] == 200
    assert cluster.patch(f"{home}/services/s", noted)[0] == 200
    assert cluster.server.request("DELETE", f"{home}/pods/new?gracePeriodSeconds=0")[0] == 200
    cluster.server.create("/api/v1/namespaces", {"metadata": {"name": f"{shop}-bare"}})
    cluster.server.create(f"{home}/serviceaccounts", {"metadata": {"name": "more", "labels": {"a": "b"}}})
    assert cluster.reviews() == before
    asked = {"metadata": {"annotations": {"config.linkerd.io/default-inbound-policy": "deny"}}}
    assert cluster.patch(f"{home}/pods/cart", asked)[0] == 200
    _wait_until_cached(cluster, f"{home}/pods/cart")
    assert cluster.patch(f"{home}/pods/cart", {"metadata": {"labels": {"new": "label"}}})[0] == 200
    assert cluster.reviews() == before + 2


def _wait_until_cached(cluster: Cluster, path: str) -> None:
    """Wait until the cache of the API server has the current object: a patch of an older copy is reviewed twice."""
    version = cluster.server.request("GET", path)[1]["metadata"]["resourceVersion"]
    assert cluster.server.request("GET", f"{path}?resourceVersion={version}")[0] == 200


def test_without_the_controller_nothing_but_policies_waits_for_it(own_api_server: ApiServer) -> None:
    server = own_api_server
    server.install("eastgate")
    shop = server.namespace("shop")
    home = f"/api/v1/namespaces/{shop}"
    server.create(f"{home}/pods", CART)
    server.create(f"{home}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    server.apply(*webhook_configurations(Webhook(SYSTEM, "eastgate", "", "https://localhost:1")))
    refused = f"{policies_of(shop)}?dryRun=All"
    server.wait_until(lambda: server.request("POST", refused, policy(shop, "a", ["web"]))[0] == 500)
    labelled = {"metadata": {"labels": {"data": "cards"}}}
    for path in (home, f"{home}/pods/cart", f"{home}/services/s"):
        assert server.request("PATCH", path, labelled)[0] == 200
    server.create(f"{home}/pods", CART | {"metadata": {"name": "new"}})
    assert server.request("DELETE", f"{home}/services/s")[0] == 200
