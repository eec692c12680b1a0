"""Routes of a Linkerd Server, each open to one account."""

from __future__ import annotations

from tests.faults.worlds import HTTP, Manifest, world

__all__ = ["only_for_bob", "resource", "route_for"]

_LINKERD = "policy.linkerd.io"


def resource(kind: str, name: str, version: str, **spec: object) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"{_LINKERD}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def route_for(name: str, account: str, *matches: Manifest) -> list[Manifest]:
    """A way in that is open to one account."""
    parent = {"group": _LINKERD, "kind": "Server", "name": "server"}
    route = {"group": _LINKERD, "kind": "HTTPRoute", "name": name}
    who = {"group": _LINKERD, "kind": "MeshTLSAuthentication", "name": account}
    identities = [{"kind": "ServiceAccount", "name": account}]
    return [
        resource("HTTPRoute", name, "v1beta3", parentRefs=[parent], rules=[{"matches": [match]} for match in matches]),
        resource("AuthorizationPolicy", name, "v1alpha1", targetRef=route, requiredAuthenticationRefs=[who]),
        resource("MeshTLSAuthentication", account, "v1alpha1", identityRefs=identities),
    ]


def only_for_bob(*matches: Manifest) -> list[Manifest]:
    """Whoever sends a request that matches must be bob; alice may send all others."""
    selector = {"matchLabels": {"app": "server"}}
    return [
        *world(),
        resource("Server", "server", "v1beta3", podSelector=selector, port=HTTP, proxyProtocol="HTTP/1"),
        *route_for("special", "bob", *matches),
        *route_for("rest", "alice", {"path": {"type": "PathPrefix", "value": "/"}}),
    ]
