"""Large policies, of different shapes, that select nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.authority.sources.objects import GROUP

__all__ = ["LARGE", "path_of"]

_NOBODY: Final = {"matchLabels": {"app": "nobody"}}
_ROUTE: Final = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "none"}


def _object(api_version: str, kind: str, namespace: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def _gep(namespace: str, name: str, rules: list[Any]) -> dict[str, Any]:
    spec = {"targetRefs": [{"kind": "Pod", "selector": _NOBODY}], "action": "ALLOW", "rules": rules}
    return _object(f"{GROUP}/v1alpha2", "AuthorizationPolicy", namespace, name, spec)


def accounts(namespace: str, name: str, size: int) -> dict[str, Any]:
    """One rule with thousands of accounts."""
    names = [f"web-{number:06}" for number in range(size // 13)]
    return _gep(namespace, name, [{"authorizationSource": {"serviceAccounts": names}}])


def rules(namespace: str, name: str, size: int) -> dict[str, Any]:
    """Thousands of rules."""
    one = [{"authorizationSource": {"serviceAccounts": [f"web-{number:06}"]}} for number in range(size // 62)]
    return _gep(namespace, name, one)


def empty_rules(namespace: str, name: str, size: int) -> dict[str, Any]:
    """As many rules as possible."""
    return _gep(namespace, name, [{} for _ in range(size // 3)])


def peers(namespace: str, name: str, size: int) -> dict[str, Any]:
    """A NetworkPolicy with thousands of addresses."""
    blocks = [{"ipBlock": {"cidr": f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}/32"}} for n in range(size // 40)]
    spec = {"podSelector": _NOBODY, "policyTypes": ["Ingress"], "ingress": [{"from": blocks}]}
    return _object("networking.k8s.io/v1", "NetworkPolicy", namespace, name, spec)


def principals(namespace: str, name: str, size: int) -> dict[str, Any]:
    """A policy of Istio with hundreds of rules."""
    names = [f"cluster.local/ns/a/sa/{number:04}" for number in range(size // 500 // 29)]
    spec = {"selector": _NOBODY, "rules": [{"from": [{"source": {"principals": names}}]} for _ in range(500)]}
    return _object("security.istio.io/v1", "AuthorizationPolicy", namespace, name, spec)


def expressions(namespace: str, name: str, size: int) -> dict[str, Any]:
    """An AuthPolicy with long expressions."""
    text = " || ".join(f"request.path == '/{number:04}'" for number in range(300))
    patterns = [{"predicate": f"{text} || request.path == '/x{number}'"} for number in range(size // len(text))]
    rule = {"authorization": {"paths": {"patternMatching": {"patterns": patterns}}}}
    return _object("kuadrant.io/v1", "AuthPolicy", namespace, name, {"targetRef": _ROUTE, "rules": rule})


def modules(namespace: str, name: str, size: int) -> dict[str, Any]:
    """An AuthPolicy with long Rego modules."""
    text = "".join(f'allow {{ input.context.request.http.path == "/{number:04}" }}\n' for number in range(500))
    rule = {f"module-{number}": {"opa": {"rego": f"{text}# {number}\n"}} for number in range(size // len(text))}
    return _object(
        "kuadrant.io/v1", "AuthPolicy", namespace, name, {"targetRef": _ROUTE, "rules": {"authorization": rule}}
    )


def tools(namespace: str, name: str, size: int) -> dict[str, Any]:
    """An XAccessPolicy with thousands of tools."""
    names = [f"tool-{number:06}" for number in range(size // 14)]
    source = {"type": "SPIFFE", "spiffe": "spiffe://cluster.local/ns/a/sa/b"}
    rule = {"name": "tools", "source": source, "authorization": {"type": "InlineTools", "tools": names}}
    target = {"group": "agentic.prototype.x-k8s.io", "kind": "XBackend", "name": "none"}
    spec = {"targetRefs": [target], "rules": [rule]}
    return _object("agentic.prototype.x-k8s.io/v0alpha0", "XAccessPolicy", namespace, name, spec)


LARGE: Final[Mapping[str, Callable[[str, str, int], dict[str, Any]]]] = {
    made.__name__: made for made in (accounts, rules, empty_rules, peers, principals, expressions, modules, tools)
}
"""Policies by their large part: each takes a namespace, a name and the wanted bytes of JSON."""


def path_of(obj: Mapping[str, Any]) -> str:
    """Return where an API server has the policies of a kind in a namespace."""
    plural = obj["kind"].lower().removesuffix("y") + "ies"
    return f"/apis/{obj['apiVersion']}/namespaces/{obj['metadata']['namespace']}/{plural}"
