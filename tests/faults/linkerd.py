"""Linkerd resources for the server of the small world: a Server, routes that allow one account, and any number of
rules.
"""

from __future__ import annotations

from tests.faults.worlds import HTTP, Manifest, world

__all__ = ["from_networks", "header_routes", "only_for_bob", "resource", "route_for", "server"]

_LINKERD = "policy.linkerd.io"
_SERVER = {"group": _LINKERD, "kind": "Server", "name": "server"}


def resource(kind: str, name: str, version: str, **spec: object) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"{_LINKERD}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def server(protocol: str = "unknown", access: str = "deny") -> Manifest:
    """Return a Server on the port of the workload `server`."""
    selector = {"matchLabels": {"app": "server"}}
    return resource(
        "Server", "server", "v1beta3", podSelector=selector, port=HTTP, proxyProtocol=protocol, accessPolicy=access
    )


# Routes that allow one account


def route_for(name: str, account: str, *matches: Manifest) -> list[Manifest]:
    """Return a route that allows one account."""
    route = {"group": _LINKERD, "kind": "HTTPRoute", "name": name}
    who = {"group": _LINKERD, "kind": "MeshTLSAuthentication", "name": account}
    identities = [{"kind": "ServiceAccount", "name": account}]
    return [
        resource("HTTPRoute", name, "v1beta3", parentRefs=[_SERVER], rules=[{"matches": [match]} for match in matches]),
        resource("AuthorizationPolicy", name, "v1alpha1", targetRef=route, requiredAuthenticationRefs=[who]),
        resource("MeshTLSAuthentication", account, "v1alpha1", identityRefs=identities),
    ]


def only_for_bob(*matches: Manifest) -> list[Manifest]:
    """Return routes that allow matching requests only from bob, and all others from alice."""
    return [
        *world(),
        server("HTTP/1"),
        *route_for("special", "bob", *matches),
        *route_for("rest", "alice", {"path": {"type": "PathPrefix", "value": "/"}}),
    ]


# Many rules


def from_networks(*networks: str, target: Manifest | None = None) -> list[Manifest]:
    """Return a NetworkAuthentication for each network, and an AuthorizationPolicy that allows it."""
    found: list[Manifest] = []
    for number, network in enumerate(networks):
        name = f"n{number}"
        needed = [{"group": _LINKERD, "kind": "NetworkAuthentication", "name": name}]
        found.append(resource("NetworkAuthentication", name, "v1alpha1", networks=[{"cidr": network}]))
        found.append(
            resource(
                "AuthorizationPolicy",
                name,
                "v1alpha1",
                targetRef=target or _SERVER,
                requiredAuthenticationRefs=needed,
            )
        )
    return found


def header_routes(*values: str, header: str = "x-team") -> list[Manifest]:
    """Return routes with a match for each value of a header, and one for all other requests."""
    matches: list[Manifest] = [{"headers": [{"name": header, "value": value}]} for value in values]
    matches.append({"path": {"type": "PathPrefix", "value": "/"}})
    rules = {f"r{place}": [{"matches": matches[place : place + 8]}] for place in range(0, len(matches), 8)}
    return [resource("HTTPRoute", name, "v1beta3", parentRefs=[_SERVER], rules=rule) for name, rule in rules.items()]
