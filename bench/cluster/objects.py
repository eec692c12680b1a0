"""The objects of a generated cluster: namespaces of 20 applications, each with an account, a Service, a policy and
five pods with sidecars.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "APPS_PER_NAMESPACE",
    "GROUP",
    "PODS_PER_APP",
    "App",
    "apps",
    "namespaces",
    "nodes",
    "objects_of_app",
    "pod_status",
    "policy",
]

GROUP = "gateway.networking.x-k8s.io"
APPS_PER_NAMESPACE = 20
PODS_PER_APP = 5
_PODS_PER_NODE = 100

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class App:
    """One application, by its number in the whole cluster. `home` is a namespace that all applications share."""

    number: int
    home: str | None = None

    @property
    def namespace(self) -> str:
        return self.home or f"team-{self.number // APPS_PER_NAMESPACE}"

    @property
    def name(self) -> str:
        return f"app-{self.number if self.home else self.number % APPS_PER_NAMESPACE}"

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(PODS_PER_APP)]

    def address(self, pod: int) -> str:
        number = self.number * PODS_PER_APP + pod
        return f"10.{number // 62_500 + 1}.{number // 250 % 250}.{number % 250 + 1}"


def apps(first: int, last: int, home: str | None = None) -> list[App]:
    """Return the applications of the pods from number `first` to number `last`."""
    return [App(number, home) for number in range(first // PODS_PER_APP, last // PODS_PER_APP)]


def namespaces(of: list[App]) -> Iterator[Object]:
    for name in sorted({app.namespace for app in of}):
        yield {"metadata": {"name": name, "labels": {"eastgate.dev/injection": "enabled"}}}


def nodes(of: list[App]) -> Iterator[Object]:
    for number in sorted({_node(app) for app in of}):
        yield {"metadata": {"name": f"node-{number}"}}


def _node(app: App) -> int:
    return app.number * PODS_PER_APP // _PODS_PER_NODE


def objects_of_app(app: App) -> Iterator[tuple[str, Object]]:
    """Yield the path of a collection and an object to create there."""
    core = f"/api/v1/namespaces/{app.namespace}"
    yield f"{core}/serviceaccounts", {"metadata": {"name": app.name}}
    yield f"{core}/services", {"metadata": {"name": app.name}, "spec": _service(app)}
    yield f"/apis/{GROUP}/v1alpha2/namespaces/{app.namespace}/authorizationpolicies", policy(app)
    for name in app.pods:
        labels = {"app": app.name, "team": app.namespace, "eastgate.dev/proxy": "sidecar"}
        yield f"{core}/pods", {"metadata": {"name": name, "labels": labels}, "spec": _pod_spec(app)}


def _service(app: App) -> Object:
    return {"selector": {"app": app.name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}


def _pod_spec(app: App) -> Object:
    container = {
        "name": "app",
        "image": f"example.com/{app.name}:1.0",
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "env": [{"name": "TEAM", "value": app.namespace}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    return {"serviceAccountName": app.name, "nodeName": f"node-{_node(app)}", "containers": [container]}


def pod_status(address: str) -> Object:
    """Return the status that a kubelet writes for a running pod."""
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    return {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}}


def policy(app: App, also: str = "anybody") -> Object:
    """Return the policy of an application. Three others of its namespace and the account `also` may call it."""
    draw = random.Random(app.number)
    callers = [f"{app.namespace}/app-{number}" for number in sorted(draw.sample(range(APPS_PER_NAMESPACE), 3))]
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": app.name},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": app.name}}}],
            "action": "ALLOW",
            "rules": [{"authorizationSource": {"serviceAccounts": [*callers, f"{app.namespace}/{also}"]}}],
        },
    }
