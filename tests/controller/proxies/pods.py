"""Pods, Gateways and their tokens as plain data, for tests of the control plane."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from eastgate.authority.authority import Authority, Touched
from eastgate.authority.changes import Changes
from eastgate.authority.faults import ref_of_id
from eastgate.authority.reading import read_plain
from eastgate.settings import Settings

Plain = dict[str, Any]


def pod(
    name: str,
    *,
    namespace: str = "shop",
    account: str = "default",
    uid: str | None = None,
    ip: str = "",
    labels: dict[str, str] | None = None,
    ports: tuple[int, ...] = (),
    owner: tuple[str, str, str] | None = None,
    ready: bool = True,
) -> Plain:
    """Return a pod with a sidecar, unless its labels say otherwise. An owner is apiVersion, kind and name."""
    metadata: Plain = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "labels": {"eastgate.dev/proxy": "sidecar"} if labels is None else labels,
    }
    if owner is not None:
        api_version, kind, owner_name = owner
        reference = {"apiVersion": api_version, "kind": kind, "name": owner_name, "uid": "0", "controller": True}
        metadata["ownerReferences"] = [reference]
    container = {"name": "app", "ports": [{"containerPort": port} for port in ports]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"serviceAccountName": account, "containers": [container]},
        "status": {
            **({"podIP": ip} if ip else {}),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def service(name: str, port: int = 80, *, namespace: str = "shop", selector: dict[str, str] | None = None) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": selector or {"app": name},
            "ports": [{"port": port, "targetPort": port}],
            "clusterIP": f"10.96.0.{sum(name.encode()) % 250 + 1}",
        },
    }


def gateway(name: str = "gw", *, namespace: str = "shop", port: int = 80, class_name: str = "eastgate") -> Plain:
    listener = {"name": "http", "port": port, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gatewayClassName": class_name, "listeners": [listener]},
    }


def gateway_deployment(name: str = "gw", *, namespace: str = "shop", owner: str = "gw") -> Plain:
    reference = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "name": owner,
        "uid": "0",
        "controller": True,
    }
    labels = {"eastgate.dev/gateway": name}
    template = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": name, "containers": [{"name": "envoy"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{name}-eastgate", "namespace": namespace, "ownerReferences": [reference]},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def gateway_pod(name: str, *, of: str = "gw", account: str = "gw", ip: str = "", ready: bool = True) -> Plain:
    labels = {"eastgate.dev/gateway": of, "pod-template-hash": "55"}
    owner = ("apps/v1", "ReplicaSet", f"{of}-eastgate-55")
    return pod(name, account=account, ip=ip, labels=labels, owner=owner, ready=ready)


def route(name: str, service_name: str, *, namespace: str = "shop", parent: str = "gw", port: int = 80) -> Plain:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "parentRefs": [{"name": parent, "namespace": "shop"}],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": f"/{name}"}}],
                    "backendRefs": [{"name": service_name, "port": port}],
                }
            ],
        },
    }


def authority(*objects: Plain) -> Authority:
    return Authority(read_plain(list(objects), Settings().enforced()), strict=False)


def change(authority: Authority, put: Iterable[Plain] = (), remove: Iterable[str] = ()) -> Touched:
    """Change an authority; removed objects are named in text."""
    refs = (*(policy.ref for policy in authority.policies), *map(ref_of_id, authority.world.objects))
    named = frozenset(ref for ref in refs if str(ref) in {*remove})
    return authority.apply(Changes(read_plain(list(put), authority.settings), named))


def token(
    name: str,
    *,
    namespace: str = "shop",
    account: str = "default",
    uid: str | None = None,
    bound: Plain | None = None,
    **claims: Any,
) -> str:
    """Return a token with the claims of a pod, without a valid signature."""
    of_pod = {"name": name, "uid": uid or f"uid-{name}"}
    default = {"namespace": namespace, "pod": of_pod, "serviceaccount": {"name": account, "uid": "0"}}
    body = {"aud": ["eastgate"], "exp": 2000.0, "kubernetes.io": bound or default, **claims}
    encoded = base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")
    return f"e30.{encoded}.c2ln"


def reviewed(
    name: str,
    *,
    namespace: str = "shop",
    account: str = "default",
    uid: str | None = None,
    audiences: tuple[str, ...] = ("eastgate",),
    bound: bool = True,
) -> Plain:
    """Return the answer of the API server for a token that it accepts."""
    extra = {
        "authentication.kubernetes.io/pod-name": [name],
        "authentication.kubernetes.io/pod-uid": [uid or f"uid-{name}"],
    }
    user = {"username": f"system:serviceaccount:{namespace}:{account}", **({"extra": extra} if bound else {})}
    return {"status": {"authenticated": True, "audiences": list(audiences), "user": user}}
