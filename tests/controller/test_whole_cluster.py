"""The whole: kubectl, an API server, webhooks, replicas of the controller, injected pods and a Gateway that run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.controller.whole_cluster import (
    CART,
    EDGE,
    GATEWAY,
    GATEWAY_GROUP,
    GROUP,
    PORT,
    REPLICAS,
    SHOP,
    Plain,
    WholeCluster,
    named,
    run_whole_cluster,
    until,
)
from tests.injection.network import what_is_missing

pytestmark = [pytest.mark.real, pytest.mark.apiserver]

KEY = {"authorization": "APIKEY opens-the-shop", "host": "shop.example"}
POLICY = f"authorizationpolicy.{GROUP}"


@pytest.fixture(scope="module")
def running() -> Iterator[WholeCluster]:
    missing = what_is_missing()
    if missing is not None and not os.environ.get("CI"):
        pytest.skip(missing)
    with run_whole_cluster() as made:
        yield made


@pytest.fixture
def cluster(running: WholeCluster) -> WholeCluster:
    running.remove_policies()
    return running


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


def report(cluster: WholeCluster, what: str, name: str, is_enforced: Callable[[], bool]) -> None:
    """Wait until a policy is enforced and its status says so, and print how long that took."""
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


def test_kubectl_is_told_what_is_wrong_what_opens_and_what_breaks_an_invariant(cluster: WholeCluster) -> None:
    wrong = policy("wrong", "web")
    wrong["spec"]["rules"][0]["ports"] = [PORT]
    assert "spec.rules[0].ports: EG1201 unknown field `ports`" in cluster.kubectl_refuses(wrong)
    cluster.kubectl_apply(policy("cart", "web"))
    report(cluster, "created", "cart", lambda: cluster.call("stranger") == "closed")
    printed = cluster.kubectl_apply(policy("cart", "web", "stranger"))
    assert "Warning: shop/stranger can now reach shop/cart\n" in printed
    until(lambda: cluster.call("stranger") == "200")
    cluster.kubectl_apply(policy("cart", "web"))
    until(lambda: cluster.call("stranger") == "closed")
    never = {"from": {"serviceAccounts": ["shop/stranger"]}, "to": {"pods": {"matchLabels": {"app": "cart"}}}}
    cluster.kubectl_apply(named("Invariant", "no-strangers", SHOP, "eastgate.dev/v1alpha1", spec={"never": never}))
    until(lambda: cluster.conditions("invariant.eastgate.dev", "no-strangers"), cluster.logs)
    assert "no-strangers" in cluster.kubectl_refuses(policy("cart", "web", "stranger"))
    assert cluster.call("stranger") == "closed"


def test_a_gateway_and_its_route_work_and_ask_the_authorizer(cluster: WholeCluster) -> None:
    cluster.open_gateway()
    assert call_gateway(cluster) == "404"
    cluster.kubectl_apply(route())
    until(lambda: call_gateway(cluster) == "200", cluster.logs)
    for condition in ("Accepted", "Programmed"):
        until(lambda condition=condition: cluster.is_condition("gateway", "entry", condition, EDGE))  # type: ignore[misc]
    until(lambda: cluster.is_condition("httproute", "cart", "Accepted"))
    [listener] = cluster.api.get("gateway", "entry", "-n", EDGE)["status"]["listeners"]
    assert {each["type"]: each["status"] for each in listener["conditions"]}["Programmed"] == "True"
    assert listener["attachedRoutes"] == 1
    cluster.kubectl_apply(policy("cart", "web"))
    report(cluster, "closed to the gateway", "cart", lambda: call_gateway(cluster) != "200")
    cluster.kubectl_apply(policy("cart", "web", "edge/entry"))
    report(cluster, "open to the gateway", "cart", lambda: call_gateway(cluster) == "200")
    cluster.kubectl_apply(*keys())
    until(lambda: call_gateway(cluster) == "401", cluster.logs)
    until(lambda: call_gateway(cluster, KEY) == "200", cluster.logs)
    assert call_gateway(cluster, KEY | {"authorization": "APIKEY wrong"}) == "401"


def call_gateway(cluster: WholeCluster, headers: Plain | None = None) -> str:
    return cluster.call_from_node(GATEWAY, 80, headers=headers or {"host": "shop.example"})


def route() -> Plain:
    spec = {
        "parentRefs": [{"name": "entry", "namespace": EDGE}],
        "hostnames": ["shop.example"],
        "rules": [{"backendRefs": [{"name": "cart", "port": 80}]}],
    }
    return named("HTTPRoute", "cart", SHOP, f"{GATEWAY_GROUP}/v1", spec=spec)


def keys() -> tuple[Plain, Plain]:
    """A key, and a policy that demands one, which an Envoy cannot decide alone."""
    labels = {"app": "keys", "authorino.kuadrant.io/managed-by": "authorino"}
    secret = named("Secret", "key", SHOP, metadata={"labels": labels}, stringData={"api_key": "opens-the-shop"})
    authentication = {
        "keys": {
            "apiKey": {"selector": {"matchLabels": {"app": "keys"}}, "allNamespaces": True},
            "credentials": {"authorizationHeader": {"prefix": "APIKEY"}},
        }
    }
    target = {"group": GATEWAY_GROUP, "kind": "HTTPRoute", "name": "cart"}
    spec = {"targetRef": target, "rules": {"authentication": authentication}}
    return secret, named("AuthPolicy", "keys", SHOP, "kuadrant.io/v1", spec=spec)


def test_commands_about_the_cluster_agree_with_the_proxies(cluster: WholeCluster) -> None:
    cluster.kubectl_apply(policy("cart", "web", paths=("/", "/open")), policy("open", "stranger", paths=("/open",)))
    report(cluster, "two policies", "open", lambda: cluster.call("stranger", "/open") == "200")
    report(cluster, "two policies", "cart", lambda: cluster.call("stranger") == "403")
    for caller in ("web", "stranger", "cart"):
        for path in ("/", "/open", "/open/more"):
            asked = ["--from", f"sa:{SHOP}/{caller}", "--to", f"service:{SHOP}/cart", "--port", "80"]
            asked += ["--method", "GET", "--path", path, "--host", CART]
            is_allowed = cluster.call(caller, path) == "200"
            assert check(cluster, *asked) == (0 if is_allowed else 1), (caller, path)


def check(cluster: WholeCluster, *asked: str) -> int:
    command = [sys.executable, "-m", "eastgate", "check", "--cluster", "--kubeconfig", str(cluster.api.kubeconfig)]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode


def test_a_proxy_of_another_replica_counts_and_a_lost_leader_is_replaced(cluster: WholeCluster) -> None:
    first = cluster.replicas.leader
    [other] = {*REPLICAS} - {first}
    cluster.balance(other)
    cluster.restart_proxy("cart")
    cluster.kubectl_apply(policy("cart", "web"))
    report(cluster, "by the replica that does not lead", "cart", lambda: cluster.call("stranger") == "closed")
    cluster.balance(*REPLICAS)
    cluster.restart_proxy("web")
    with cluster.load("web", CART, "80"):
        cluster.replicas.lose(first, is_asked=False)
        assert cluster.call("stranger") == "closed"
        cluster.balance(other)
        took = until(lambda: cluster.replicas.leader == other, cluster.logs)
        print(f"{other} leads {took:.3f} s after {first} was killed")
        cluster.kubectl_apply(policy("cart", "web", "stranger"))
        report(cluster, "by the replica that took over", "cart", lambda: cluster.call("stranger") == "200")
    cluster.bring_back(first)


def test_a_rolling_restart_drops_nothing(cluster: WholeCluster) -> None:
    cluster.open_gateway()
    cluster.kubectl_apply(policy("cart", "web", "edge/entry"), route(), *keys())
    until(lambda: call_gateway(cluster) == "401", cluster.logs)
    until(lambda: call_gateway(cluster, KEY) == "200", cluster.logs)
    headers = [f"{name}={value}" for name, value in KEY.items()]
    with cluster.load("web", CART, "80"), cluster.load(None, GATEWAY, "80", *headers):
        for name in REPLICAS:
            cluster.restart_replica(name)
            assert call_gateway(cluster) == "401"
        cluster.kubectl_apply(policy("cart", "web", "edge/entry", "stranger"))
        report(cluster, "after the restart", "cart", lambda: cluster.call("stranger") == "200")
