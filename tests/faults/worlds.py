"""Small worlds as manifests: a namespace with accounts, one server, and the policies that a test needs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.settings import Settings

__all__ = ["DOMAIN", "HTTP", "RAW", "Manifest", "allow", "deny", "reading", "sa", "world"]

Manifest = dict[str, Any]

DOMAIN = "cluster.local"
HTTP, RAW, PUSH = 8080, 7000, 7001
_API = "gateway.networking.x-k8s.io/v1alpha2"


def sa(account: str, namespace: str = "shop") -> str:
    """Return the SPIFFE ID of an account."""
    return f"spiffe://{DOMAIN}/ns/{namespace}/sa/{account}"


def world(*ports: int, accounts: Sequence[str] = ("alice", "bob", "carol"), servers: int = 1) -> list[Manifest]:
    """Return servers with these ports, named `server`, `server1` and so on."""
    names = ["server", *(f"server{number}" for number in range(1, servers))]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": one, "namespace": "shop"}}
            for one in [*accounts, *names]
        ),
        *(_server(name, ports or (HTTP,)) for name in names),
    ]


def _server(name: str, ports: Sequence[int]) -> Manifest:
    container = {"name": "main", "image": name, "ports": [{"containerPort": port} for port in ports]}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": name, "containers": [container]},
            },
        },
    }


def allow(name: str, *accounts: str, **more: Any) -> Manifest:
    """Return a policy that allows these accounts: every request, or only `paths`, `methods`, `ports`."""
    return _policy("ALLOW", name, accounts, **more)


def deny(name: str, *accounts: str, **more: Any) -> Manifest:
    """Return a policy that denies these accounts."""
    return _policy("DENY", name, accounts, **more)


def _policy(
    action: str,
    name: str,
    accounts: Sequence[str],
    *,
    app: str = "server",
    paths: Sequence[str] = (),
    methods: Sequence[str] = (),
    ports: Sequence[int] = (),
    identities: Sequence[str] = (),
) -> Manifest:
    source = {"serviceAccounts": list(accounts), "identities": list(identities)}
    rule: Manifest = {key: {kind: named for kind, named in source.items() if named} for key in ("authorizationSource",)}
    asked = {"methods": list(methods), "paths": list(paths)}
    if paths or methods:
        rule["applicationAttributes"] = {kind: named for kind, named in asked.items() if named}
    if ports:
        rule["networkAttributes"] = {"ports": list(ports)}
    if not rule["authorizationSource"]:
        del rule["authorizationSource"]
    spec: Manifest = {
        "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": app}}}],
        "action": action,
        "rules": [rule],
    }
    if paths or methods:
        spec["enforcementLevel"] = "APPLICATION"
    return {"apiVersion": _API, "kind": "AuthorizationPolicy", "metadata": _named(name), "spec": spec}


def _named(name: str) -> Manifest:
    return {"name": name, "namespace": "shop"}


def reading(*manifests: Manifest) -> Callable[[Settings], Authority]:
    """Return a function that reads these manifests for a mesh."""
    text = "\n---\n".join(json.dumps(one) for one in manifests).encode()
    return lambda settings: Authority(read_manifests(["-"], settings, stdin=io.BytesIO(text)), settings)
