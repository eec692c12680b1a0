"""AuthPolicies at the attacked gateway, and the routes that they guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.attacks.placements import HOST
from tests.attacks.tokens import AUDIENCE, ISSUER, JWKS
from tests.differential.world import Manifest

__all__ = [
    "NO_CALLER",
    "api_keys",
    "auth_policy",
    "gateway_route",
    "passing_on",
    "request_authentication",
    "secret",
]

_API = "gateway.networking.k8s.io"
_LABEL = "attacks"
NO_CALLER: Manifest = {"name": "nobody", "apiKey": {"labelSelectors": {_LABEL: "of-nobody"}}}
"""An identity that no caller has."""


def auth_policy(
    target: str, schemes: Mapping[str, Manifest], rules: Sequence[Manifest] = (), name: str = "auth"
) -> Manifest:
    """Return a policy on a Gateway or a route, `Kind:name`, with a scheme for each host."""
    kind, _, named = target.partition(":")
    spec: Manifest = {"targetRef": {"group": _API, "kind": kind, "name": named}}
    spec["authSchemes"] = [{"hosts": [host], **scheme} for host, scheme in schemes.items()]
    if rules:
        spec["rules"] = list(rules)
    return {
        "apiVersion": "apim.kuadrant.io/v1alpha1",
        "kind": "AuthPolicy",
        "metadata": {"name": name, "namespace": "a"},
        "spec": spec,
    }


def gateway_route(name: str, *matches: Manifest, hostnames: Sequence[str] = ()) -> Manifest:
    """Return a route of the gateway to the application, in addition to the route for all requests."""
    rule: Manifest = {"backendRefs": [{"name": HOST, "port": 80}]}
    if matches:
        rule["matches"] = list(matches)
    spec: Manifest = {"parentRefs": [{"name": "gw"}], "rules": [rule]}
    if hostnames:
        spec["hostnames"] = list(hostnames)
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": f"{_API}/v1", "kind": "HTTPRoute", "metadata": metadata, "spec": spec}


def api_keys(**credentials: str) -> Manifest:
    """Return an identity with an API key of a Secret that `secret` returns."""
    identity: Manifest = {"name": "keys", "apiKey": {"labelSelectors": {_LABEL: "good"}}}
    return identity | ({"credentials": credentials} if credentials else {})


def passing_on(header: str) -> Manifest:
    """Return a response that has a header as the client sent it."""
    value = {"valueFrom": {"authJSON": f"request.headers.{header}"}}
    return {"name": header, "wrapper": "httpHeader", "wrapperKey": header, "plain": value}


def request_authentication(**rule: object) -> Manifest:
    """Return an Istio RequestAuthentication on the gateway, with one rule."""
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "RequestAuthentication",
        "metadata": {"name": "tokens", "namespace": "a"},
        "spec": {
            "targetRefs": [{"group": _API, "kind": "Gateway", "name": "gw"}],
            "jwtRules": [{"issuer": ISSUER, "audiences": [AUDIENCE], "jwks": JWKS, **rule}],
        },
    }


def secret(name: str, key: str, *, namespace: str = "a", label: str | None = "good", **more: Any) -> Manifest:
    """Return a Secret with an API key."""
    metadata: Manifest = {"name": name, "namespace": namespace}
    if label is not None:
        metadata["labels"] = {_LABEL: label}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"api_key": key}, **more}
