"""The whole system: kubectl, an API server, webhooks, replicas of the controller, injected pods and a Gateway."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controller.injection.network import need_namespaces
from tests.controller.whole_cluster import (
    AGENTIC_GROUP,
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
    pod_of,
    run_whole_cluster,
    until,
)

pytestmark = [pytest.mark.real, pytest.mark.apiserver]

KEY = {"authorization": "APIKEY opens-the-shop", "host": "shop.example"}
POLICY = f"authorizationpolicy.{GROUP}"
NEXT_VERSION = [str(Path(__file__).with_name("next_version.py"))]


@pytest.fixture(scope="module")
def running() -> Iterator[WholeCluster]:
    need_namespaces()
    with run_whole_cluster() as made:
        yield made


@pytest.fixture
def cluster(running: WholeCluster) -> Iterator[WholeCluster]:
    running.remove_policies()
    yield running
    assert running.refusals() == []


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
    """Wait until a policy is enforced and its status reports it; print the time that this took."""
    enforced = until(is_enforced, cluster.logs)
    programmed = until(lambda: cluster.is_condition(POLICY, name), lambda: cluster.conditions(POLICY, name))
    print(f"{what}: enforced {enforced:.3f} s after kubectl returned, and Programmed {programmed:.3f} s later")


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
    older = cluster.api.get(f"authorizationpolicies.v1alpha1.{GROUP}", "-n", SHOP)["items"]  # through the webhook
    assert [(each["apiVersion"], each["metadata"]["name"]) for each in older] == [(f"{GROUP}/v1alpha1", "cart")]


def test_kubectl_prints_errors_openings_and_broken_invariants(cluster: WholeCluster) -> None:
    before = len(cluster.replicas.lines())
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
    refused = [line for line in cluster.replicas.lines()[before:] if " is refused: " in line["message"]]
    assert [(line["level"], line["operation"], line["namespace"], line["object"]) for line in refused] == [
        ("info", "CREATE", SHOP, "wrong"),
        ("info", "UPDATE", SHOP, "cart"),
    ]
    assert all(line["user"] and line["user"] in line["message"] for line in refused)
    assert "no-strangers" in refused[1]["message"]


def test_an_invariant_that_breaks_is_in_the_log_the_metrics_and_the_events(cluster: WholeCluster) -> None:
    before, kind, name = len(cluster.replicas.lines()), "invariant.eastgate.dev", "no-strangers-at-all"
    never = {"from": {"serviceAccounts": ["shop/stranger"]}, "to": {"pods": {"matchLabels": {"app": "cart"}}}}
    printed = cluster.kubectl_apply(named("Invariant", name, SHOP, "eastgate.dev/v1alpha1", spec={"never": never}))
    assert "it does not hold now" in printed

    def metrics() -> str:
        return (cluster.replicas.fetch(cluster.replicas.leader, "/metrics") or b"").decode()

    def reasons() -> list[str]:
        events = cluster.api.get("events.events.k8s.io", "-n", SHOP)["items"]
        return [each["reason"] for each in events if each["regarding"]["name"] == name]

    until(lambda: reasons() == ["InvariantBroken"], cluster.logs)
    assert cluster.conditions(kind, name)["Holds"]["reason"] == "Broken"
    assert 'eastgate_invariants{state="Broken"} 1.0' in metrics()
    cluster.kubectl_apply(policy("cart", "web"))
    until(lambda: sorted(reasons()) == ["InvariantBroken", "InvariantHolds"], cluster.logs)
    assert cluster.is_condition(kind, name, "Holds")
    assert 'eastgate_invariants{state="Proven"} 1.0' in metrics()
    lines = [line for line in cluster.replicas.lines()[before:] if name in line.get("invariant", "")]
    assert [(line["level"], line["message"].partition(":")[0]) for line in lines] == [
        ("error", f"Invariant/{SHOP}/{name} is broken"),
        ("info", f"Invariant/{SHOP}/{name} holds again"),
    ]
    assert all(line["namespace"] == SHOP for line in lines)


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
    made = cluster.api.get("deployment,service,serviceaccount", "-n", EDGE, "-l", "eastgate.dev/gateway=entry")["items"]
    assert {each["kind"] for each in made} == {"Deployment", "Service", "ServiceAccount"}
    assert {owner["kind"] for each in made for owner in each["metadata"]["ownerReferences"]} == {"Gateway"}
    cluster.kubectl_apply(policy("cart", "web"))
    report(cluster, "closed to the gateway", "cart", lambda: call_gateway(cluster) != "200")
    cluster.kubectl_apply(policy("cart", "web", "edge/entry"))
    report(cluster, "open to the gateway", "cart", lambda: call_gateway(cluster) == "200")
    cluster.kubectl_apply(*keys())
    until(lambda: call_gateway(cluster) == "401", cluster.logs)
    until(lambda: call_gateway(cluster, KEY) == "200", cluster.logs)
    assert call_gateway(cluster, KEY | {"authorization": "APIKEY wrong"}) == "401"


def test_agents_call_the_tools_of_their_policy_through_the_gateway(cluster: WholeCluster) -> None:
    cluster.open_gateway()
    api, name = f"{AGENTIC_GROUP}/v0alpha0", "tools"
    rule = {"backendRefs": [{"group": AGENTIC_GROUP, "kind": "XBackend", "name": name}]}
    spec = {"parentRefs": [{"name": "entry", "namespace": EDGE}], "hostnames": ["tools.example"], "rules": [rule]}
    source = {"type": "ServiceAccount", "serviceAccount": {"name": "web"}}
    allowed = {"name": "web", "source": source, "authorization": {"type": "InlineTools", "tools": ["echo"]}}
    target = {"group": AGENTIC_GROUP, "kind": "XBackend", "name": name}
    cluster.kubectl_apply(
        named("XBackend", name, SHOP, api, spec={"mcp": {"serviceName": "cart", "port": 80, "path": "/mcp"}}),
        named("HTTPRoute", name, SHOP, f"{GATEWAY_GROUP}/v1", spec=spec),
        named("XAccessPolicy", name, SHOP, api, spec={"targetRefs": [target], "rules": [allowed]}),
    )
    until(lambda: is_tool_called(cluster, "web", "echo"), cluster.logs)
    until(lambda: not is_tool_called(cluster, "stranger", "echo"), cluster.logs)
    assert not is_tool_called(cluster, "web", "remove")
    kind = f"xaccesspolicy.{AGENTIC_GROUP}"
    until(lambda: cluster.is_condition(kind, name), lambda: cluster.conditions(kind, name))


def is_tool_called(cluster: WholeCluster, caller: str, tool: str) -> bool:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    options = ("--host", "tools.example", "--message", json.dumps(message))
    answer = cluster.call_for_answer(caller, "/mcp", GATEWAY, *options)
    return answer.startswith("200 ") and "result" in json.loads(answer[4:])


def test_the_objects_of_a_gateway_are_deleted_with_it(cluster: WholeCluster) -> None:
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    spec = {"gatewayClassName": "eastgate", "listeners": [listener]}
    cluster.kubectl_apply(named("Gateway", "brief", SHOP, f"{GATEWAY_GROUP}/v1", spec=spec))
    made = ("deployment,service,serviceaccount", "-n", SHOP, "-l", "eastgate.dev/gateway=brief")
    until(lambda: len(cluster.api.get(*made)["items"]) == 3, cluster.logs)
    cluster.api.kubectl("delete", "gateway", "brief", "-n", SHOP)
    until(lambda: not cluster.api.get(*made)["items"], cluster.logs)


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
    """Return an API key, and a policy that requires it, which an Envoy cannot decide alone."""
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


def test_diff_prints_the_openings_of_a_file(cluster: WholeCluster, tmp_path: Path) -> None:
    cluster.kubectl_apply(policy("cart", "web"))
    report(cluster, "created", "cart", lambda: cluster.call("stranger") == "closed")
    file = tmp_path / "change.json"
    file.write_text(json.dumps(policy("cart", "web", "stranger")))
    command = [sys.executable, "-m", "eastgate", "diff", "--cluster", "--kubeconfig", str(cluster.api.kubeconfig)]
    done = subprocess.run([*command, "-f", str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"spiffe://cluster.local/ns/{SHOP}/sa/stranger" in done.stdout or f"{SHOP}/stranger" in done.stdout
    assert cluster.call("stranger") == "closed"  # nothing was applied


def check(cluster: WholeCluster, *asked: str) -> int:
    command = [sys.executable, "-m", "eastgate", "check", "--cluster", "--kubeconfig", str(cluster.api.kubeconfig)]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode


def test_a_proxy_of_another_replica_counts_and_a_lost_leader_is_replaced(cluster: WholeCluster) -> None:
    first = cluster.replicas.leader
    [other] = {*REPLICAS} - {first}
    cluster.balance(other)
    before = len(cluster.replicas.lines())
    for role in ("cart", "web", "stranger"):
        cluster.restart_proxy(role)
    lines = [line for line in cluster.replicas.lines()[before:] if line.get("proxy") == f"{SHOP}/cart"]
    assert sorted(line["message"] for line in lines if line["level"] == "info") == [
        "the proxy shop/cart is connected",
        "the proxy shop/cart is lost",
    ]
    assert {(line["workload"], line["namespace"]) for line in lines} == {(f"{SHOP}/cart", SHOP)}
    until(lambda: cluster.connected(first) <= 1 and cluster.connected(other) >= 3)  # a gateway may be elsewhere
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

    def about_first() -> list[str]:
        lines = cluster.replicas.lines()[before:]
        return [line["message"] for line in lines if line.get("address") == REPLICAS[first]]

    again = f"the replica at {REPLICAS[first]} reports its proxies again"
    until(lambda: again in about_first(), cluster.logs)
    assert about_first().count(again) == 1
    assert 1 <= len([each for each in about_first() if "does not report its proxies" in each]) <= 5


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


def test_an_upgrade_to_a_version_that_writes_other_bytes_drops_nothing(cluster: WholeCluster) -> None:
    """The test also goes back. The policy changes while some proxies have moved: no port closes, and none stays old."""
    cluster.open_gateway()
    cluster.kubectl_apply(policy("cart", "web", "edge/entry"), route(), *keys())
    until(lambda: call_gateway(cluster, KEY) == "200" and call_gateway(cluster) == "401", cluster.logs)
    until(lambda: cluster.call("stranger") == "closed")
    first, other = REPLICAS
    older = cluster.replicas.program
    headers = [f"{name}={value}" for name, value in KEY.items()]
    with cluster.load("web", CART, "80"), cluster.load(None, GATEWAY, "80", *headers):
        for program, guests, answer in ((NEXT_VERSION, ["stranger"], "200"), (older, [], "closed")):
            cluster.replicas.program = program
            cluster.restart_replica(first)
            cluster.kubectl_apply(policy("cart", "web", "edge/entry", *guests))
            cluster.restart_replica(other)
            assert call_gateway(cluster) == "401"
            report(cluster, "while upgrading", "cart", lambda answer=answer: cluster.call("stranger") == answer)  # type: ignore[misc]


def test_without_any_replica_nothing_opens(cluster: WholeCluster) -> None:
    cluster.open_gateway()
    cluster.kubectl_apply(policy("cart", "web", "edge/entry"), route(), *keys())
    until(lambda: call_gateway(cluster, KEY) == "200" and call_gateway(cluster) == "401", cluster.logs)
    until(lambda: cluster.call("stranger") == "closed")
    with cluster.load("web", CART, "80"):
        for name in REPLICAS:
            cluster.replicas.lose(name, is_asked=False)
        assert cluster.call("stranger") == "closed"
        assert call_gateway(cluster, KEY) in ("403", "503")  # no authorizer runs to check the key
        assert "failed calling webhook" in cluster.kubectl_refuses(policy("cart", "web", "stranger"))
        another = pod_of("web")
        another["metadata"]["name"] = "unguarded"
        assert "failed calling webhook" in cluster.kubectl_refuses(another)
        for name in REPLICAS:
            cluster.bring_back(name)
    until(lambda: call_gateway(cluster, KEY) == "200", cluster.logs)
    cluster.kubectl_apply(policy("cart", "web", "stranger"))
    report(cluster, "after the outage", "cart", lambda: cluster.call("stranger") == "200")
