"""Commands about a cluster know which pods have a proxy: an unenforced policy is not reported as a denial."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eastgate import Handling, connect
from eastgate.cli import main
from eastgate.controller.injection import InjectionOptions, inject
from tests.authority.sources.objects import CART, GROUP, policy
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver

POLICIES = f"/apis/{GROUP}/v1alpha2/namespaces/{{}}/authorizationpolicies"


def eastgate(server: ApiServer, *words: str) -> Result:
    command, *rest = words
    cluster = ["--cluster", "--kubeconfig", str(server.kubeconfig)]
    return CliRunner().invoke(main, [command, *rest, *cluster], catch_exceptions=False)


def pod(name: str, *, injected: bool, app: str = "cart", account: str = "default") -> dict[str, Any]:
    """A pod, with a sidecar as injection makes it, or without."""
    spec = {**CART["spec"], "serviceAccountName": account}
    bare = {**CART, "metadata": {"name": name, "labels": {"app": app}}, "spec": spec}
    made = inject(bare, InjectionOptions()) if injected else bare
    assert made is not None
    return made


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    api_server.install("eastgate")
    return api_server


@pytest.fixture(scope="module")
def shop(server: ApiServer) -> str:
    """A namespace with a policy for two pods, one of them with a proxy, and callers with and without a proxy."""
    namespace = server.namespace("proxies")
    server.token_of(f"{namespace}/web")
    server.token_of(f"{namespace}/default")
    pods = [
        pod("guarded", injected=True),
        pod("bare", injected=False),
        pod("web-guarded", injected=True, app="web", account="web"),
        pod("web-bare", injected=False, app="web", account="web"),
    ]
    for number, each in enumerate(pods):
        server.create(f"/api/v1/namespaces/{namespace}/pods", each)
        server.run_pod(namespace, each["metadata"]["name"], f"10.9.0.{number + 1}")
    selector = {"selector": {"app": "cart"}, "ports": [{"port": 80, "targetPort": 8080}]}
    server.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "cart"}, "spec": selector})
    server.create(POLICIES.format(namespace), policy(namespace, "cart", ["web"]))
    return namespace


def check(server: ApiServer, shop: str, source: str, to: str, *more: str) -> Result:
    kind, name = to.split(":")
    port = "80" if kind == "service" else "8080"
    return eastgate(server, "check", "--from", source, "--to", f"{kind}:{shop}/{name}", "--port", port, *more)


def test_a_call_to_a_pod_without_a_proxy_is_not_reported_as_denied(server: ApiServer, shop: str) -> None:
    done = check(server, shop, f"sa:{shop}/stranger", "pod:bare")
    assert done.exit_code == 0, done.output
    first = done.output.splitlines()[0]
    assert first == (
        f"ALLOW  nothing enforces AuthorizationPolicy/{shop}/cart at pod {shop}/bare: "
        "it has no Eastgate proxy (NotEnforced)"
    )
    answer = json.loads(check(server, shop, f"sa:{shop}/stranger", "pod:bare", "-o", "json").stdout)
    assert answer["verdict"] == "allow"
    assert answer["enforcement"] == [
        {
            "at": f"pod {shop}/bare",
            "policies": [f"AuthorizationPolicy/{shop}/cart"],
            "enforced": False,
            "by": None,
            "reason": "it has no Eastgate proxy",
        }
    ]


def test_the_answer_names_the_enforcing_proxy(server: ApiServer, shop: str) -> None:
    done = check(server, shop, f"sa:{shop}/stranger", "pod:guarded")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        f"DENY  no rule allows it at {shop}/guarded",
        f"  enforced at pod {shop}/guarded by its eastgate proxy",
    ]
    assert check(server, shop, f"sa:{shop}/web", "pod:guarded").exit_code == 0


def test_behind_a_service_the_pod_that_is_open_is_named_beside_the_one_that_refuses(
    server: ApiServer, shop: str
) -> None:
    done = check(server, shop, f"sa:{shop}/stranger", "service:cart")
    assert done.exit_code == 1
    first = done.output.splitlines()[0]
    assert f"nothing enforces AuthorizationPolicy/{shop}/cart at pod {shop}/bare" in first
    assert f"denied at 1 of 2: {shop}/guarded" in first


def test_a_caller_without_a_proxy_cannot_prove_its_account(server: ApiServer, shop: str) -> None:
    assert check(server, shop, f"pod:{shop}/web-guarded", "pod:guarded").exit_code == 0
    assert check(server, shop, f"pod:{shop}/web-bare", "pod:guarded").exit_code == 1


@pytest.mark.parametrize("label", ["sidecar", "bound"])
def test_a_label_without_a_proxy_yields_no_verdict_without_a_word(server: ApiServer, shop: str, label: str) -> None:
    claiming = pod("claiming", injected=False)
    claiming["metadata"]["labels"]["eastgate.dev/proxy"] = label
    server.create(f"/api/v1/namespaces/{shop}/pods", claiming)
    try:
        done = check(server, shop, f"sa:{shop}/stranger", "pod:claiming")
        assert done.exit_code == 1
        assert f"it is not certain that its eastgate proxy enforces AuthorizationPolicy/{shop}/cart" in done.output
    finally:
        server.kubectl("delete", "pod", "claiming", "-n", shop, "--force", "--grace-period=0")


def test_the_policies_and_pods_of_a_cluster_show_who_enforces(server: ApiServer, shop: str) -> None:
    titles, row = eastgate(server, "get", "policies", "-n", shop).output.splitlines()[:2]
    assert row[titles.index("ENFORCED") :].startswith("1 of 2 ")
    described = eastgate(server, "describe", "policy", "cart", "-n", shop).output
    assert f"pod {shop}/bare: it has no Eastgate proxy" in described
    assert f"pod {shop}/guarded" not in described
    assert "it is in force" not in described
    assert "nothing  it has no Eastgate proxy" in eastgate(server, "describe", "pod", "bare", "-n", shop).output
    assert "its eastgate proxy" in eastgate(server, "describe", "pod", "guarded", "-n", shop).output
    linted = eastgate(server, "lint", "-n", shop, "--select", "EG6008").output
    assert f"nothing enforces AuthorizationPolicy/{shop}/cart on {shop}/bare: it has no Eastgate proxy" in linted
    assert "guarded" not in linted


def test_manifests_before_injection_are_taken_to_get_proxies(shop: str, tmp_path: Path) -> None:
    bare = {**pod("bare", injected=False), "metadata": {"name": "bare", "namespace": shop, "labels": {"app": "cart"}}}
    items = [bare, policy(shop, "cart", ["web"])]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    words = ["check", "-f", str(tmp_path), "--from", f"sa:{shop}/stranger", "--to", f"pod:{shop}/bare", "--port", "1"]
    assert CliRunner().invoke(main, words).exit_code == 1


def native(shop: str, uid: str) -> dict[str, Any]:
    """The native policy for Istio that the controller writes."""
    owner = {"apiVersion": f"{GROUP}/v1alpha2", "kind": "AuthorizationPolicy", "name": "cart", "uid": uid}
    principal = f"cluster.local/ns/{shop}/sa/web"
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "cart-native", "namespace": shop, "ownerReferences": [owner]},
        "spec": {
            "selector": {"matchLabels": {"app": "cart"}},
            "rules": [{"from": [{"source": {"principals": [principal]}}]}],
        },
    }


def test_a_mesh_enforces_what_is_written_for_it(own_api_server: ApiServer) -> None:
    server = own_api_server
    server.install("eastgate", "istio")
    shop = server.namespace("natively", {"istio-injection": "enabled"})
    server.create(f"/api/v1/namespaces/{shop}/pods", pod("bare", injected=False))
    stored = server.create(POLICIES.format(shop), policy(shop, "cart", ["web"]))
    istio = f"/apis/security.istio.io/v1/namespaces/{shop}/authorizationpolicies"
    server.create(istio, native(shop, stored["metadata"]["uid"]))
    done = check(server, shop, f"sa:{shop}/stranger", "pod:bare")
    assert done.exit_code == 1, done.output
    assert "nothing enforces" not in done.output
    assert f"  enforced at pod {shop}/bare by Istio" in done.output.splitlines()
    assert check(server, shop, f"sa:{shop}/web", "pod:bare").exit_code == 0


def test_tables_and_invariants_are_asked_of_a_cluster(server: ApiServer, shop: str, tmp_path: Path) -> None:
    end = {"from": f"sa:{shop}/stranger", "port": 8080}
    cases = [
        {"name": "guarded", **end, "to": f"pod:{shop}/guarded", "expect": "deny"},
        {"name": "bare", **end, "to": f"pod:{shop}/bare", "expect": "deny"},
    ]
    table = {"kind": "DecisionTest", "metadata": {"name": "cart"}, "spec": {"manifests": ["gone"], "cases": cases}}
    never = {
        "from": {"serviceAccounts": [f"{shop}/stranger"]},
        "to": {"pods": {"matchLabels": {"app": "cart"}}},
    }
    spec = {"never": never, "existingOnly": True}
    invariant = {"kind": "Invariant", "metadata": {"name": "strangers", "namespace": shop}, "spec": spec}
    for name, each in {"table": table, "invariant": invariant}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"apiVersion": "eastgate.dev/v1alpha1", **each}))
    done = eastgate(server, "test", str(tmp_path))
    assert done.exit_code == 1
    assert "1 passed, 2 failed" in done.output, done.output
    command = next(line.strip() for line in done.output.splitlines() if "eastgate explain --cluster" in line)
    again = CliRunner().invoke(main, shlex.split(command)[1:], catch_exceptions=False)
    assert again.exit_code == 0, again.output
    assert f"at pod {shop}/bare" in again.output


def test_examples_of_commands_about_a_cluster_can_be_pasted(server: ApiServer, tmp_path: Path) -> None:
    shop = server.namespace("examples")
    server.create(f"/api/v1/namespaces/{shop}/pods", pod("guarded", injected=True))
    closed = policy(shop, "closed", ["web"])
    closed["spec"]["rules"] = []
    server.create(POLICIES.format(shop), closed)
    linted = eastgate(server, "lint", "--select", "EG6040")
    lines = [line.partition("example: ")[2] for line in linted.output.splitlines() if "example: " in line]
    (example,) = [line for line in lines if shop in line]
    assert example.startswith(f"eastgate check --cluster --kubeconfig {server.kubeconfig} ")
    assert CliRunner().invoke(main, shlex.split(example)[1:]).exit_code == 1
    file = tmp_path / "opened.json"
    file.write_text(json.dumps(policy(shop, "closed", ["web"])))
    compared = eastgate(server, "diff", "-f", str(file))
    (example,) = [line.partition("example: ")[2] for line in compared.output.splitlines() if "example: " in line]
    assert example.startswith(f"eastgate check --cluster --kubeconfig {server.kubeconfig} ")
    assert CliRunner().invoke(main, shlex.split(example)[1:]).exit_code == 1


def test_the_python_api_reads_a_cluster_as_the_commands_do(server: ApiServer, shop: str) -> None:
    ends = f"sa:{shop}/stranger", f"pod:{shop}/bare"
    authority = connect(kubeconfig=server.kubeconfig, unread=Handling.BY_KIND)
    data = json.loads(check(server, shop, ends[0], "pod:bare", "-o", "json").stdout)
    decision = authority.check(*ends, port=8080)
    assert decision.to_json() == {key: data[key] for key in decision.to_json()}
    assert not authority.check(ends[0], f"pod:{shop}/guarded", port=8080)

    async def in_a_notebook() -> None:
        assert len(connect(kubeconfig=server.kubeconfig, unread=Handling.BY_KIND).policies) == len(authority.policies)

    asyncio.run(in_a_notebook())
