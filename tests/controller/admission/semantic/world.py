"""A small cluster: namespaces sandbox and shop, and policies of one dialect in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eastgate import Authority, Settings
from eastgate.authority.reading import read_plain
from eastgate.cluster.unread import Handling
from eastgate.controller.admission.semantic import ChangeJudgement, ObjectChange
from eastgate.controller.admission.semantic.bench import JudgingCopies
from eastgate.controller.admission.semantic.concerning import Concerns
from eastgate.reports.invariants.objects import InvariantObject

Manifest = dict[str, Any]


def pod(namespace: str, app: str, port: int = 8443, address: str | None = None) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{app}-0", "namespace": namespace, "labels": {"app": app}},
        "spec": {
            "serviceAccountName": app,
            "containers": [{"name": "main", "image": "main", "ports": [{"containerPort": port}]}],
        },
        "status": {} if address is None else {"podIP": address, "podIPs": [{"ip": address}]},
    }


def service(namespace: str, app: str, port: int = 8443) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"selector": {"app": app}, "ports": [{"port": port}]},
    }


def namespace(name: str) -> Manifest:
    labels = {"istio-injection": "enabled"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


CLUSTER = [
    namespace("sandbox"),
    namespace("shop"),
    pod("sandbox", "toy", 80, "10.0.0.1"),
    pod("shop", "web", 80, "10.0.0.2"),
    pod("shop", "payments", 8443, "10.0.0.3"),
    service("shop", "payments"),
]


def authority(*manifests: Manifest, settings: Settings | None = None) -> Authority:
    read = read_plain([*CLUSTER, *manifests], settings or Settings())
    return Authority(read, strict=False, unread=Handling.BY_KIND)


def policy(api_version: str, kind: str, name: str, spec: Manifest, home: str | None = "shop") -> Manifest:
    metadata = {"name": name, **({"namespace": home} if home is not None else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def gep(name: str, *accounts: str, action: str = "ALLOW", ports: tuple[int, ...] = (8443,)) -> Manifest:
    rule: Manifest = {
        "authorizationSource": {"serviceAccounts": list(accounts)},
        "networkAttributes": {"ports": list(ports)},
    }
    target = {"kind": "Pod", "selector": {"matchLabels": {"app": "payments"}}}
    spec = {"targetRefs": [target], "action": action, "rules": [rule]}
    return policy("gateway.networking.x-k8s.io/v1alpha2", "AuthorizationPolicy", name, spec)


def istio(name: str, *principals: str) -> Manifest:
    rule = {"from": [{"source": {"principals": list(principals)}}], "to": [{"operation": {"ports": ["8443"]}}]}
    spec = {"selector": {"matchLabels": {"app": "payments"}}, "action": "ALLOW", "rules": [rule]}
    return policy("security.istio.io/v1", "AuthorizationPolicy", name, spec)


def network(name: str, *peers: Manifest) -> Manifest:
    spec = {
        "podSelector": {"matchLabels": {"app": "payments"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": list(peers), "ports": [{"port": 8443}]}],
    }
    return policy("networking.k8s.io/v1", "NetworkPolicy", name, spec)


def linkerd(*clients: str) -> list[Manifest]:
    server = {"podSelector": {"matchLabels": {"app": "payments"}}, "port": 8443, "proxyProtocol": "HTTP/1"}
    authentication = {"identities": list(clients)}
    authorization = {
        "targetRef": {"group": "policy.linkerd.io", "kind": "Server", "name": "payments"},
        "requiredAuthenticationRefs": [
            {"group": "policy.linkerd.io", "kind": "MeshTLSAuthentication", "name": "clients"}
        ],
    }
    return [
        policy("policy.linkerd.io/v1beta3", "Server", "payments", server),
        policy("policy.linkerd.io/v1alpha1", "AuthorizationPolicy", "payments", authorization),
        policy("policy.linkerd.io/v1alpha1", "MeshTLSAuthentication", "clients", authentication),
    ]


GATEWAY = [
    policy(
        "gateway.networking.k8s.io/v1",
        "Gateway",
        "web",
        {"gatewayClassName": "x", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    ),
    policy(
        "gateway.networking.k8s.io/v1",
        "HTTPRoute",
        "payments",
        {"parentRefs": [{"name": "web"}], "rules": [{"backendRefs": [{"name": "payments", "port": 8443}]}]},
    ),
]


def auth_policy(*, denies: bool) -> Manifest:
    rules: Manifest = {"authorization": {"nobody": {"patternMatching": {"patterns": [{"predicate": "false"}]}}}}
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "payments"}
    open_rules: Manifest = {"authentication": {"anyone": {"anonymous": {}}}}
    return policy(
        "kuadrant.io/v1",
        "AuthPolicy",
        "payments",
        {"targetRef": target, "rules": {**open_rules, **(rules if denies else {})}},
    )


def invariant(
    name: str, *, home: str | None = "shop", mode: str = "never", unproven: str | None = None, **more: Any
) -> Manifest:
    statement = {"from": {"serviceAccounts": ["sandbox/*"]}, "to": {"pods": {"matchLabels": {"app": "payments"}}}}
    spec = {mode: statement, **more, **({"onNotProven": unproven} if unproven else {})}
    kind = "Invariant" if home is not None else "ClusterInvariant"
    return policy("eastgate.dev/v1alpha1", kind, name, spec, home)


def judge(
    authority: Authority,
    change: ObjectChange,
    invariants: Iterable[InvariantObject] = (),
    *,
    budget: float | None = None,
) -> ChangeJudgement:
    """Judge one change of an authority, which is not modified."""
    invariants = list(invariants)
    return JudgingCopies(authority, invariants, budget, Concerns(authority, invariants)).judge(change)
