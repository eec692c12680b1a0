"""The policies that attacks try to bypass. They are small, so that their meaning is obvious."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.differential.world import Manifest

__all__ = [
    *("ALL_BUT_SECRET", "LINKERD", "ONLY_API", "all_but", "all_but_accounts"),
    *("linkerd_route", "linkerd_server", "only", "only_accounts", "resource"),
]

LINKERD = "policy.linkerd.io"


def _policy(action: str, level: str, rule: Manifest) -> Manifest:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": action.lower(), "namespace": "a"},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "server"}}}],
            "action": action,
            "enforcementLevel": level,
            "rules": [rule],
        },
    }


def _paths(action: str, paths: Sequence[str]) -> Manifest:
    return _policy(action, "APPLICATION", {"applicationAttributes": {"paths": list(paths)}})


def only_accounts(*accounts: str, level: str = "APPLICATION") -> list[Manifest]:
    """Return policies that allow every request of these accounts, and no other request."""
    return [_policy("ALLOW", level, {"authorizationSource": {"serviceAccounts": list(accounts)}})]


def all_but_accounts(*accounts: str) -> list[Manifest]:
    """Return policies that let every caller except these accounts connect."""
    return [
        _policy("ALLOW", "NETWORK", {}),
        _policy("DENY", "NETWORK", {"authorizationSource": {"serviceAccounts": list(accounts)}}),
    ]


def only(*paths: str) -> list[Manifest]:
    """Return policies that allow these paths to every caller, and no other path."""
    return [_paths("ALLOW", paths)]


def all_but(*paths: str) -> list[Manifest]:
    """Return policies that allow every path except these to every caller."""
    return [_paths("ALLOW", ["*"]), _paths("DENY", paths)]


ONLY_API = only("/api/*")
ALL_BUT_SECRET = all_but("/secret", "/secret/*")


def resource(kind: str, name: str, version: str, **spec: Any) -> Manifest:
    """Return a resource of Linkerd in the attacked namespace."""
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": f"{LINKERD}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def linkerd_server() -> list[Manifest]:
    """Return a Server for the attacked port, and an authentication that every client has."""
    selector = {"matchLabels": {"app": "server"}}
    networks = [{"cidr": "0.0.0.0/0"}]
    return [
        resource("Server", "server", "v1beta3", podSelector=selector, port=80, proxyProtocol="HTTP/1"),
        resource("NetworkAuthentication", "everybody", "v1alpha1", networks=networks),
        resource("MeshTLSAuthentication", "nobody", "v1alpha1", identities=["nobody.example"]),
    ]


def linkerd_route(name: str, *matches: Manifest, hostnames: Sequence[str] = (), allowed: bool) -> list[Manifest]:
    """Return a route that allows all callers, or none."""
    parent = {"group": LINKERD, "kind": "Server", "name": "server"}
    target = {"group": LINKERD, "kind": "HTTPRoute", "name": name}
    kind, who = ("NetworkAuthentication", "everybody") if allowed else ("MeshTLSAuthentication", "nobody")
    needed = [{"group": LINKERD, "kind": kind, "name": who}]
    rules = [{"matches": list(matches[start : start + 8])} for start in range(0, len(matches), 8)]
    spec: Manifest = {"parentRefs": [parent], "rules": rules}
    if hostnames:
        spec["hostnames"] = list(hostnames)
    return [
        resource("HTTPRoute", name, "v1beta3", **spec),
        resource("AuthorizationPolicy", name, "v1alpha1", targetRef=target, requiredAuthenticationRefs=needed),
    ]
