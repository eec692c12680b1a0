"""The same connectivity for two tools: as AuthorizationPolicies for Eastgate, and as NetworkPolicies for np-guard.

Every application is a Deployment with a service account of its own. A policy lets some accounts, or all of a namespace,
reach an application at some ports. A NetworkPolicy selects the same callers by a label with the name of the account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from eastgate.dialects.gep3779 import GROUP

__all__ = ["PORTS", "Connectivity", "generate", "write"]

PORTS = (80, 443, 8080, 8443, 9000, 9090)
_APPS_PER_NAMESPACE = 10
_ACCOUNT = "account"
_NAMESPACE = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Grant:
    """One policy: these callers, `namespace/account` or `namespace/*`, reach an application at these ports."""

    namespace: str
    name: str
    app: str
    callers: tuple[str, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Connectivity:
    """Applications, as `namespace/name`, and the policies on them."""

    apps: tuple[str, ...]
    grants: tuple[Grant, ...]

    def expected(self) -> dict[tuple[str, str], frozenset[int]]:
        """Return the ports that each application reaches of each other. Without a policy these are all ports."""
        guarded = {f"{grant.namespace}/{grant.app}" for grant in self.grants}
        reached: dict[tuple[str, str], frozenset[int]] = {}
        for to in self.apps:
            for caller in self.apps:
                if caller != to and to not in guarded:
                    reached[caller, to] = frozenset(PORTS)
        for grant in self.grants:
            to = f"{grant.namespace}/{grant.app}"
            for caller in self.apps:
                if caller != to and (caller in grant.callers or f"{caller.split('/')[0]}/*" in grant.callers):
                    reached[caller, to] = reached.get((caller, to), frozenset()) | frozenset(grant.ports)
        return reached


def generate(apps: int, seed: int = 1) -> Connectivity:
    """Return this many applications, ten in a namespace, with zero to three policies for each."""
    random = Random(f"{seed}/{apps}")
    namespaces = [f"team-{number}" for number in range(-(-apps // _APPS_PER_NAMESPACE))]
    every = [
        f"{namespaces[number // _APPS_PER_NAMESPACE]}/app-{number % _APPS_PER_NAMESPACE}" for number in range(apps)
    ]
    grants = []
    for number, app in enumerate(every):
        namespace, name = app.split("/")
        for turn in range(random.choice((0, 1, 2, 3))):
            callers = tuple(random.choice(every) for _ in range(random.randint(1, 4)))
            if random.random() < 0.2:
                callers = (f"{random.choice(namespaces)}/*",)
            ports = tuple(sorted(random.sample(PORTS, random.randint(1, 2))))
            grants.append(Grant(namespace, f"p{number}-{turn}", name, callers, ports))
    return Connectivity(tuple(every), tuple(grants))


def write(connectivity: Connectivity, ours: Path, theirs: Path) -> None:
    """Write the manifests for both tools."""
    common = list(_apps(connectivity))
    _write(ours, [*common, *map(_authorization_policy, connectivity.grants)])
    _write(theirs, [*common, *map(_network_policy, connectivity.grants)])


def _write(folder: Path, items: list[dict[str, object]]) -> None:
    folder.mkdir()
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    (folder / "all.json").write_text(json.dumps(listed), encoding="utf-8")


def _apps(connectivity: Connectivity) -> Iterator[dict[str, object]]:
    for namespace in dict.fromkeys(app.split("/")[0] for app in connectivity.apps):
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {_NAMESPACE: namespace}},
        }
    for app in connectivity.apps:
        namespace, name = app.split("/")
        labels = {"app": name, _ACCOUNT: name}
        container = {"name": "main", "image": "example/main", "ports": [{"containerPort": port} for port in PORTS]}
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"serviceAccountName": name, "containers": [container]},
                },
            },
        }


def _authorization_policy(grant: Grant) -> dict[str, object]:
    rule = {
        "authorizationSource": {"serviceAccounts": list(grant.callers)},
        "networkAttributes": {"ports": list(grant.ports)},
    }
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": grant.name, "namespace": grant.namespace},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": grant.app}}}],
            "action": "ALLOW",
            "rules": [rule],
        },
    }


def _network_policy(grant: Grant) -> dict[str, object]:
    peers = []
    for caller in grant.callers:
        namespace, account = caller.split("/")
        peer: dict[str, object] = {"namespaceSelector": {"matchLabels": {_NAMESPACE: namespace}}}
        if account != "*":
            peer["podSelector"] = {"matchLabels": {_ACCOUNT: account}}
        peers.append(peer)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": grant.name, "namespace": grant.namespace},
        "spec": {
            "podSelector": {"matchLabels": {"app": grant.app}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": peers, "ports": [{"protocol": "TCP", "port": port} for port in grant.ports]}],
        },
    }
