"""A policy with errors keeps its last version in force, or closes its targets, for any order of saves."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Cli
from tests.local.running import Event, Up, up

_TO_CART = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")
_TO_WEB = ("--from", "sa:shop/cart", "--to", "pod:shop/web", "--port", "8080")
_TO_PROMETHEUS = ("--from", "sa:shop/cart", "--to", "pod:monitoring/prometheus", "--port", "9090")
_ALL = {"cart": _TO_CART, "web": _TO_WEB, "prometheus": _TO_PROMETHEUS}


def _policy(
    action: str = "DENY", app: str = "cart", source: str = "web", name: str = "p", namespace: str = "shop"
) -> str:
    return f"""\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: {app}}}}}}}]

  action: {action}
  rules:
  - authorizationSource: {{serviceAccounts: ["{source}"]}}
"""


_CLUSTER = """\
apiVersion: eastgate.dev/v1alpha1
kind: ClusterAuthorizationPolicy
metadata: {name: p}
spec:
  tier: Admin
  priority: 10
  subject: {}

  action: DENY
  rules:
  - authorizationSource: {serviceAccounts: [shop/cart]}
"""
_SERVER = """\
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: s, namespace: shop}
spec:
  podSelector: {matchLabels: {app: cart}}

  port: 8080
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: s, namespace: shop}
spec:
  targetRef: {group: policy.linkerd.io, kind: Server, name: s}
  requiredAuthenticationRefs: [{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: m}]
---
apiVersion: policy.linkerd.io/v1alpha1
kind: MeshTLSAuthentication
metadata: {name: m, namespace: shop}
spec:
  identities: ["nobody.shop.serviceaccount.identity.linkerd.cluster.local"]
"""
_BAD = _policy("REFUSE")
_BAD_TARGET = _policy().replace("selector:", "selektor:")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("broken"), name="broken", without=("cluster.yaml", "policies.yaml")) as running:
        yield running


def _denied(cli: Cli) -> set[str]:
    return {name for name, words in _ALL.items() if cli("call", "--name", "broken", *words).exit_code != 0}


# Each save, and the denied requests after it.
_SEQUENCES: dict[str, list[tuple[str | None, set[str]]]] = {
    "good, bad, good other": [
        (_policy(), {"cart"}),
        (_BAD, {"cart"}),
        (_policy(app="web", source="cart"), {"web"}),
    ],
    "bad first": [(_BAD, {"cart"}), (_policy("ALLOW", source="other"), {"cart"}), (_policy("ALLOW"), set())],
    "bad first, then gone": [(_BAD, {"cart"}), (None, set())],
    "good, bad, gone": [(_policy(), {"cart"}), (_BAD, {"cart"}), (None, set())],
    "the target of a bad one is changed": [
        (_BAD, {"cart"}),
        (_policy("REFUSE", app="web"), {"web"}),
        (_BAD_TARGET, {"cart", "web"}),
    ],
    "the target of a good one goes bad": [(_policy(), {"cart"}), (_BAD_TARGET, {"cart"})],
    "the kind is misspelt": [
        (_policy(), {"cart"}),
        (_policy().replace("kind: Auth", "kind: Aut"), {"cart", "web"}),
    ],
    "the namespace is misspelt": [(_policy(), {"cart"}), (_policy(namespace="Shop"), set(_ALL))],
    "the name is misspelt": [(_policy(), {"cart"}), (_policy(name="'a b'"), {"cart"})],
    "no YAML": [(_policy(), {"cart"}), (_policy() + "  x: [", {"cart"}), (None, set())],
    "cluster-wide": [
        (_CLUSTER, {"web", "prometheus"}),
        (_CLUSTER.replace("DENY", "REFUSE"), {"web", "prometheus"}),
        (_CLUSTER.replace("priority: 10", "priority: x"), {"web", "prometheus"}),
    ],
    "cluster-wide, bad first": [(_CLUSTER.replace("DENY", "REFUSE"), set(_ALL)), (None, set())],
    "Linkerd, a bad Server": [(_SERVER, {"cart"}), (_SERVER.replace("port: 8080", "port: [1]"), {"cart"})],
    "Linkerd, bad Server first": [(_SERVER.replace("port: 8080", "port: [1]"), {"cart"})],
    "Linkerd, a bad authentication": [(_SERVER, {"cart"}), (_SERVER.replace("identities: [", "identity: ["), {"cart"})],
    # the Server that the policy refers to may be any in the namespace
    "Linkerd, bad authentication first": [(_SERVER.replace("identities: [", "identity: ["), {"cart", "web"})],
    "twice the same name": [(_policy(), {"cart"}), (_policy() + "---\n" + _policy("ALLOW"), {"cart"})],
    "a pod with errors": [
        (_policy(), {"cart"}),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: shop, labels: {a: 1}}\n", {"cart"}),
    ],
    "a namespace with errors": [
        (_policy(), {"cart"}),
        (_policy() + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: y, labels: {a: 1}}\n", {"cart"}),
    ],
}


@pytest.mark.parametrize("name", _SEQUENCES)
def test_saves_in_order(cli: Cli, mesh: Up, name: str) -> None:
    path = mesh.manifests / "p.yaml"
    try:
        for text, denied in _SEQUENCES[name]:
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
            if _next(mesh)["event"] == "broken":
                mesh.settle()
            assert _denied(cli) == denied, text
    finally:
        if path.exists():
            path.unlink()
            _next(mesh)  # a call in between may wait for a connection that is being closed
        for _ in range(60):
            if not _denied(cli):
                break
        mesh.settle()


def _next(mesh: Up) -> Event:
    while True:
        found: Event = json.loads(mesh.line())
        if found["event"] in ("broken", "enforced", "partlyEnforced"):
            return found
