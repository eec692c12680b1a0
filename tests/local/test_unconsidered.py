"""A running mesh with unreadable policies and unread objects: its enforcement, and its reports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.local.running import EASTGATE, SHOP, Event, Up, up
from tests.patience import PATIENCE

BAD = """\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: from-prometheus, namespace: shop}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]

  action: ALOW
  rules: [{authorizationSource: {serviceAccounts: [monitoring/prometheus]}}]
"""
UNREAD = """\
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: one, namespace: shop}
spec: {endpointSelector: {matchLabels: {app: payments}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: two, namespace: shop}
spec: {podSelector: {matchLabels: {app: payments}}, ingress: [{from: [{podSelector: {}}]}]}
---
apiVersion: authorino.kuadrant.io/v1beta3
kind: AuthConfig
metadata: {name: three, namespace: shop}
spec: {hosts: [cart], authorization: {nobody: {patternMatching: {patterns: [{predicate: "false"}]}}}}
"""
KYVERNO = "---\napiVersion: envoy.kyverno.io/v1alpha1\nkind: AuthorizationPolicy\nmetadata: {name: one}\n"
WEB_TO_CART = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")
CART_TO_PAYMENTS = (
    "--from",
    "sa:shop/cart",
    "--to",
    "pod:shop/payments",
    "--port",
    "8443",
    "--method",
    "POST",
    "/v1/charges",
)


def called(mesh: Up, *words: str) -> Event:
    done = subprocess.run(
        [*EASTGATE, "call", "--name", mesh.name, "-o", "json", *words], capture_output=True, text=True, check=False
    )
    result: Event = json.loads(done.stdout)
    assert all(one["agrees"] for one in result["calls"])
    return result


def events(mesh: Up) -> list[Event]:
    return [json.loads(line) for line in mesh.lines]


def test_a_policy_that_never_was_good_closes_what_it_targets_until_it_is(tmp_path: Path) -> None:
    with up(tmp_path, name="closing", more=BAD + UNREAD) as mesh:
        closed = [one for one in events(mesh) if one["event"] == "notEnforced"]
        assert {one["workload"] for one in closed} == {"shop/cart"}
        assert {one["port"] for one in closed} == {8080, 9090}
        assert all(one["policies"] == ["AuthorizationPolicy/shop/from-prometheus"] for one in closed)
        messages = [one["message"] for one in events(mesh) if one["event"] == "noted"]
        assert "not considered: 1 CiliumNetworkPolicy: manifests/more.yaml:10" in messages
        assert not [message for message in messages if "NetworkPolicy/shop/two" in message], "the mesh enforces it"
        authorino = "an AuthConfig is for the proxies that ask Authorino, and not enforced by these: "
        assert f"{authorino}AuthConfig/shop/three" in messages

        assert called(mesh, *WEB_TO_CART)["verdict"] == "deny"
        paid = called(mesh, *CART_TO_PAYMENTS)
        assert paid["verdict"] == "allow"
        assert [one["kind"] for one in paid["calls"][0]["engine"]["unconsidered"]] == ["CiliumNetworkPolicy"]

        mesh.edit("more.yaml", "ALOW", "ALLOW")
        mesh.until("enforced")
        assert called(mesh, *WEB_TO_CART)["verdict"] == "allow"

        # now there is a valid version: it stays, and other saved changes are enforced
        mesh.edit("more.yaml", "ALLOW", "DNY")
        mesh.until("broken")
        mesh.edit("policies.yaml", "ports: [8443]", "ports: [8444]")
        mesh.until("enforced")
        assert called(mesh, *WEB_TO_CART)["verdict"] == "allow"
        assert called(mesh, *CART_TO_PAYMENTS)["verdict"] == "deny"


def started(folder: Path, more: str, *options: str) -> tuple[int, str]:
    """Start an invalid mesh; return the exit status and the output."""
    (folder / "more.yaml").write_text(more)
    command = [*EASTGATE, "up", "-f", str(SHOP), "-f", str(folder / "more.yaml"), "--name", "none", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stderr


def test_nothing_starts_with_errors_under_strict_or_with_unlocated_objects(tmp_path: Path) -> None:
    status, output = started(tmp_path, BAD, "--strict")
    assert (status, "EG2013" in output) == (2, True)
    status, output = started(tmp_path, KYVERNO)
    assert (status, "error[EG0121]" in output) == (2, True)
    status, output = started(tmp_path, UNREAD, "--unread", "error")
    assert (status, "error[EG0121]" in output) == (2, True)
