"""Linkerd resources for the server of the small world: one Server, and as many rules on it as a test wants."""

from __future__ import annotations

from tests.faults.worlds import HTTP, Manifest

__all__ = ["from_networks", "header_routes", "server"]

_GROUP = "policy.linkerd.io"
_SERVER = {"group": _GROUP, "kind": "Server", "name": "server"}


def _resource(kind: str, name: str, spec: Manifest, version: str = "v1alpha1") -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"{_GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def server(protocol: str = "unknown", access: str = "deny", port: int = HTTP) -> Manifest:
    """A Server on the port of the workload `server`."""
    selector = {"matchLabels": {"app": "server"}}
    spec = {"podSelector": selector, "port": port, "proxyProtocol": protocol, "accessPolicy": access}
    return _resource("Server", "server", spec, "v1beta3")


def from_networks(*networks: str, target: Manifest | None = None) -> list[Manifest]:
    """A NetworkAuthentication for each network, and an AuthorizationPolicy that lets it in."""
    found: list[Manifest] = []
    for number, network in enumerate(networks):
        reference = {"group": _GROUP, "kind": "NetworkAuthentication", "name": f"n{number}"}
        spec = {"targetRef": target or _SERVER, "requiredAuthenticationRefs": [reference]}
        found.append(_resource("NetworkAuthentication", f"n{number}", {"networks": [{"cidr": network}]}))
        found.append(_resource("AuthorizationPolicy", f"n{number}", spec))
    return found


def header_routes(*values: str, header: str = "x-team", catch_all: bool = True) -> list[Manifest]:
    """Routes that look at a header, a match for each value, and one for everything else where that is wanted."""
    matches: list[Manifest] = [{"headers": [{"name": header, "value": value}]} for value in values]
    if catch_all:
        matches.append({"path": {"type": "PathPrefix", "value": "/"}})
    specs = {
        f"r{place}": {"parentRefs": [_SERVER], "rules": [{"matches": matches[place : place + 8]}]}
        for place in range(0, len(matches), 8)
    }
    return [_resource("HTTPRoute", name, spec, "v1beta3") for name, spec in specs.items()]
