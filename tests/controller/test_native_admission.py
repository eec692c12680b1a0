"""Changes of policies with copies in an installed mesh: Invariants are about the policies of users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.authority.sources.objects import CART, policy
from tests.controller.judged import Cluster, Plain, never, policies_of, run_judged

pytestmark = [pytest.mark.apiserver, pytest.mark.real]

_GROUP = "security.istio.io"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("native")
    with run_judged(folder, ("eastgate", "istio"), ("--native", "istio")) as running:
        yield running


@pytest.fixture
def shop(cluster: Cluster) -> Iterator[str]:
    """Yield a namespace with a pod that only `web` may call, by a copy in Istio."""
    name = cluster.server.namespace("shop")
    cluster.server.create(f"/api/v1/namespaces/{name}/pods", CART)
    cluster.server.create(policies_of(name), policy(name, "a", ["web"]))
    cluster.replicas.wait_until(lambda: len(copies(cluster, name)) == 1)
    cluster.state(never(name, {"pods": {"matchLabels": {"app": "cart"}}}))
    yield name
    cluster.server.kubectl("delete", "clusterinvariants.eastgate.dev", "--all")


def of_istio(namespace: str) -> str:
    return f"/apis/{_GROUP}/v1/namespaces/{namespace}/authorizationpolicies"


def copies(cluster: Cluster, namespace: str) -> list[Plain]:
    items: list[Plain] = cluster.server.request("GET", of_istio(namespace))[1]["items"]
    return items


def test_a_copy_does_not_stand_in_for_the_policy_that_is_deleted(cluster: Cluster, shop: str) -> None:
    status, answer = cluster.server.request("DELETE", f"{policies_of(shop)}/a")
    assert status == 403, answer
    assert "breaks ClusterInvariant" in answer["message"]


def test_a_copy_does_not_replace_the_old_policy_in_a_judgement(cluster: Cluster, shop: str) -> None:
    opened = {"spec": {"rules": [{"authorizationSource": {"serviceAccounts": ["stranger"]}}]}}
    status, message = cluster.patch(f"{policies_of(shop)}/a", opened)
    assert status == 403
    assert "breaks ClusterInvariant" in message


def test_a_forged_copy_cannot_make_eastgate_remove_a_needed_policy(cluster: Cluster) -> None:
    """An object with the labels of a copy counts as a copy, and is removed if no policy needs it."""
    shop = cluster.server.namespace("shop")
    cluster.server.create(f"/api/v1/namespaces/{shop}/pods", CART)
    spec = {"selector": {"matchLabels": {"app": "cart"}}, "action": "DENY", "rules": [{}]}
    by_hand = {"apiVersion": f"{_GROUP}/v1", "kind": "AuthorizationPolicy", "metadata": {"name": "by-hand"}}
    cluster.server.create(of_istio(shop), by_hand | {"spec": spec})
    cluster.state(never(shop, {"pods": {"matchLabels": {"app": "cart"}}}))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "cart", "uid": "some-uid"}
    labels = {"app.kubernetes.io/managed-by": "eastgate", "eastgate.dev/source-uid": "some-uid"}
    marks = {"metadata": {"labels": labels, "ownerReferences": [owner]}}
    status, message = cluster.patch(f"{of_istio(shop)}/by-hand", marks)
    assert status == 403, message
    assert "breaks ClusterInvariant" in message
    assert cluster.patch(f"{of_istio(shop)}/by-hand", {"metadata": {"labels": labels}})[0] == 200


def test_a_change_of_a_copy_by_another_user_is_judged_and_reverted(cluster: Cluster, shop: str) -> None:
    (copy,) = copies(cluster, shop)
    others = {"spec": {"rules": [{"from": [{"source": {"namespaces": ["nobody"]}}]}]}}
    assert cluster.patch(f"{of_istio(shop)}/{copy['metadata']['name']}", others)[0] == 200
    cluster.replicas.wait_until(lambda: copies(cluster, shop)[0]["spec"] == copy["spec"])  # it is put back


def test_a_policy_for_istio_itself_may_not_open_what_an_invariant_closes(cluster: Cluster, shop: str) -> None:
    """Istio combines it with the copy, and Eastgate can write no other copy for it."""
    spec = {"selector": {"matchLabels": {"app": "cart"}}, "action": "ALLOW", "rules": [{}]}
    wide = {"apiVersion": f"{_GROUP}/v1", "kind": "AuthorizationPolicy", "metadata": {"name": "wide"}, "spec": spec}
    status, answer = cluster.server.request("POST", of_istio(shop), wide)
    assert status == 403, answer
    assert "breaks ClusterInvariant" in answer["message"]
    (copy,) = copies(cluster, shop)
    status, answer = cluster.server.request("DELETE", f"{of_istio(shop)}/{copy['metadata']['name']}")
    assert status == 403, answer


def test_an_invariant_is_about_written_policies(cluster: Cluster, shop: str) -> None:
    """A policy that cannot be written closes nothing, and the status of the Invariant reports that."""
    selector = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}
    target = {"targetRefs": [{"kind": "Pod", "selector": selector}]}
    cluster.server.create(policies_of(shop), policy(shop, "b", ["web"]))
    cluster.replicas.wait_until(lambda: cluster.patch(f"{policies_of(shop)}/a", {"spec": target})[0] == 200)
    path = "/apis/eastgate.dev/v1alpha1/clusterinvariants"

    def reasons() -> set[str]:
        items = cluster.server.request("GET", path)[1]["items"]
        return {each["reason"] for item in items for each in (item.get("status") or {}).get("conditions") or ()}

    assert cluster.server.request("DELETE", f"{policies_of(shop)}/b")[0] == 200  # the other one says the same
    cluster.replicas.wait_until(lambda: reasons() == {"Broken"})
