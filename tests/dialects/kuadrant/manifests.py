"""Manifests of a Gateway, a route, and AuthPolicies of today on them."""

from __future__ import annotations

from tests.differential.world import Manifest

API = "gateway.networking.k8s.io"
GATEWAY: Manifest = {
    "apiVersion": f"{API}/v1",
    "kind": "Gateway",
    "metadata": {"name": "gw", "namespace": "n"},
    "spec": {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
ROUTE: Manifest = {
    "apiVersion": f"{API}/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "toys", "namespace": "n"},
    "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [{"name": "toys", "port": 80}]}]},
}


def policy_named(name: str, **metadata: str) -> Manifest:
    """Return an AuthPolicy on the route that allows every caller."""
    return {
        "apiVersion": "kuadrant.io/v1",
        "kind": "AuthPolicy",
        "metadata": {"name": name, "namespace": "n", **metadata},
        "spec": {
            "targetRef": {"group": API, "kind": "HTTPRoute", "name": "toys"},
            "rules": {"authentication": {"anybody": {"anonymous": {}}}},
        },
    }


def policy_on(
    kind: str, name: str, block: dict[str, object], section: str | None = None, target: str | None = None
) -> Manifest:
    ref = {"group": API, "kind": kind, "name": target or ("gw" if kind == "Gateway" else "toys")}
    manifest = policy_named(name, creationTimestamp="2026-01-01T00:00:00Z")
    manifest["spec"] = {"targetRef": ref | ({"sectionName": section} if section else {}), **block}
    return manifest


def rules(*names: str) -> dict[str, object]:
    """Authentication entries of these names."""
    return {"rules": {"authentication": {name: {"anonymous": {}} for name in names}}}


def merged(block: str, *names: str) -> dict[str, object]:
    """Return a block with the strategy `merge`, and authentication entries of these names."""
    return {block: {"strategy": "merge", **rules(*names)}}
