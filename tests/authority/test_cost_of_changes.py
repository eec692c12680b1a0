"""The cost of a change depends on the objects that it touches. It is counted in calls, the same on every machine."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from eastgate import Authority, Settings
from eastgate.authority.authority import programs_of
from eastgate.authority.reading import Manifests, read_plain

Object: TypeAlias = dict[str, Any]
SMALL, LARGE = 20, 400
NAMESPACES = 10


def _object(api_version: str, kind: str, name: str, namespace: str | None = None, **content: object) -> Object:
    metadata: Object = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata |= {key: content.pop(key) for key in ("labels", "annotations") if key in content}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _home(number: int) -> str:
    return f"ns{number % NAMESPACES}"


def _namespace(name: str, **labels: str) -> Object:
    return _object("v1", "Namespace", name, labels={"istio-injection": "enabled", **labels})


def _pod(number: int, **labels: str) -> Object:
    ports = [{"containerPort": 80}]
    spec = {"containers": [{"name": "app", "ports": ports}], "serviceAccountName": f"account-{number}"}
    return _object("v1", "Pod", f"pod-{number}", _home(number), labels={"app": f"app-{number}", **labels}, spec=spec)


def _service(number: int, port: int = 80) -> Object:
    spec = {"selector": {"app": f"app-{number}"}, "ports": [{"port": port}]}
    return _object("v1", "Service", f"service-{number}", _home(number), spec=spec)


def _istio(number: int, caller: str) -> Object:
    rules = [{"from": [{"source": {"principals": [f"cluster.local/ns/a/sa/{caller}"]}}]}]
    spec = {"selector": {"matchLabels": {"app": f"app-{number}"}}, "rules": rules}
    return _object("security.istio.io/v1", "AuthorizationPolicy", f"policy-{number}", _home(number), spec=spec)


def _gep_3779(number: int, caller: str) -> Object:
    target = {"group": "", "kind": "Pod", "selector": {"matchLabels": {"app": f"app-{number}"}}}
    rules = [{"authorizationSource": {"serviceAccounts": [f"a/{caller}"]}}]
    spec = {"targetRefs": [target], "action": "ALLOW", "rules": rules}
    version = "gateway.networking.x-k8s.io/v1alpha2"
    return _object(version, "AuthorizationPolicy", f"policy-{number}", _home(number), spec=spec)


def _network(number: int, caller: str) -> Object:
    rules = [{"from": [{"podSelector": {"matchLabels": {"app": caller}}}]}]
    spec = {"podSelector": {"matchLabels": {"app": f"app-{number}"}}, "policyTypes": ["Ingress"], "ingress": rules}
    return _object("networking.k8s.io/v1", "NetworkPolicy", f"policy-{number}", _home(number), spec=spec)


POLICIES = {"Istio": _istio, "GEP-3779": _gep_3779, "NetworkPolicy": _network}
CHANGES: Mapping[str, Callable[[Callable[[int, str], Object]], Object]] = {
    "a pod": lambda _policy: _pod(7, version="2"),
    "a policy": lambda policy: policy(7, "another"),
    "a Service": lambda _policy: _service(7, 8080),
    "an account": lambda _policy: _object("v1", "ServiceAccount", "new", "ns7"),
    "a namespace that tells nothing of a mesh": lambda _policy: _namespace("elsewhere"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("dialect", POLICIES)
def test_the_cost_of_a_change_does_not_grow_with_the_cluster(dialect: str, change: str) -> None:
    policy = POLICIES[dialect]
    small, large = (_calls_of_change(policy, CHANGES[change](policy), size) for size in (SMALL, LARGE))
    assert large < 1.5 * small + 50, (small, large)


def _calls_of_change(policy: Callable[[int, str], Object], changed: Object, size: int) -> int:
    """Return the number of calls for the second of two equal changes: the first may fill caches."""
    objects = [_namespace(f"ns{number}") for number in range(NAMESPACES)]
    for number in range(size):
        objects += [_pod(number), _service(number), policy(number, "caller")]
    authority = Authority(_read(*objects))
    programs_of(authority).compile_all()
    original = next((each for each in objects if _name(each) == _name(changed)), None)
    news, back = _read(changed), _read(*([original] if original is not None else []))
    for _ in range(2):
        authority.update(back, [] if original is not None else [_name(changed)])
        programs_of(authority).compile_all()
        profile = cProfile.Profile()
        profile.enable()
        authority.update(news)
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


def _read(*objects: Object) -> Manifests:
    return read_plain(objects, Settings())


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (obj["kind"], metadata.get("namespace"), metadata["name"])))
