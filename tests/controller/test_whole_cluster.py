"""The whole: kubectl, an API server, webhooks, replicas of the controller, injected pods and a Gateway that run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.controller.whole_cluster import GROUP, SHOP, Plain, WholeCluster, named, run_whole_cluster, until
from tests.injection.network import what_is_missing

pytestmark = [pytest.mark.real, pytest.mark.apiserver]

POLICY = f"authorizationpolicy.{GROUP}"


@pytest.fixture(scope="module")
def running() -> Iterator[WholeCluster]:
    missing = what_is_missing()
    if missing is not None and not os.environ.get("CI"):
        pytest.skip(missing)
    with run_whole_cluster() as made:
        yield made


@pytest.fixture
def cluster(running: WholeCluster) -> Iterator[WholeCluster]:
    running.remove_policies()
    yield running


def policy(name: str, *accounts: str, action: str = "ALLOW", paths: tuple[str, ...] = ()) -> Plain:
    rule: Plain = {"authorizationSource": {"serviceAccounts": list(accounts)}}
    spec: Plain = {
        "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "cart"}}}],
        "action": action,
        "rules": [rule],
    }
    if paths:
        rule["applicationAttributes"] = {"paths": list(paths)}
        spec["enforcementLevel"] = "APPLICATION"
    return named("AuthorizationPolicy", name, SHOP, f"{GROUP}/v1alpha2", spec=spec)


def report(cluster: WholeCluster, what: str, name: str, is_enforced: object) -> None:
    """Wait until a policy is enforced and its status says so, and print how long that took."""
    assert callable(is_enforced)
    enforced = until(is_enforced, cluster.logs)
    programmed = until(lambda: cluster.is_condition(POLICY, name), lambda: cluster.conditions(POLICY, name))
    print(f"{what}: enforced after {enforced:.3f} s, and Programmed {programmed:.3f} s later")


def test_a_policy_that_kubectl_creates_is_enforced_and_programmed(cluster: WholeCluster) -> None:
    assert cluster.call("web") == "200"
    assert cluster.call("stranger") == "200"
    cluster.kubectl_apply(policy("cart", "web"))
    report(cluster, "created", "cart", lambda: cluster.call("stranger") == "closed")
    assert cluster.call("web") == "200"
    cluster.kubectl_apply(policy("cart", "stranger"))
    report(cluster, "changed", "cart", lambda: cluster.call("stranger") == "200")
    assert cluster.call("web") == "closed"
    cluster.kubectl_apply(policy("not", "stranger", action="DENY"))
    report(cluster, "contradicted", "not", lambda: cluster.call("stranger") == "closed")
    cluster.api.kubectl("delete", POLICY, "not", "-n", SHOP)
    until(lambda: cluster.call("stranger") == "200")
    assert cluster.call("web") == "closed"
    assert cluster.is_condition(POLICY, "cart")
