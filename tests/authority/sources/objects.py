"""Objects that tests give to an API server."""

from __future__ import annotations

from typing import Any

from eastgate.reading.kubernetes import Resource

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
GROUP = "gateway.networking.x-k8s.io"

CART: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "cart", "labels": {"app": "cart"}},
    "spec": {"containers": [{"name": "cart", "image": "cart", "ports": [{"containerPort": 8080}]}]},
}

GUARDED: dict[str, Any] = {
    **CART,
    "spec": {"containers": [*CART["spec"]["containers"], {"name": "eastgate-proxy", "image": "envoy"}]},
}
"""The same with a proxy."""


def service_account(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def policy(namespace: str, name: str, accounts: list[str], app: str = "cart") -> dict[str, Any]:
    """An ALLOW on the pods of an app, for some accounts."""
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": app}}}],
            "action": "ALLOW",
            "rules": [{"authorizationSource": {"serviceAccounts": accounts}}],
        },
    }
