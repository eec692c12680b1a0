"""Policies of an application, translated to policies of the gateway before it. Some stay at the sidecar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.differential.world import Manifest

__all__ = ["at_gateway"]


def at_gateway(policies: Iterable[Manifest], gateway: str) -> Iterator[Manifest]:
    """Yield policies that do at a gateway in namespace `a` what the given ones do at pods.

    Policies on hosts, headers and queries are Linkerd's, which has no gateways. They stay at the sidecar and decide the
    requests that the gateway passes on.
    """
    for number, policy in enumerate(policies):
        is_about_pods = policy["kind"] == "AuthorizationPolicy" and "targetRefs" in policy["spec"]
        yield _translated(policy, gateway, number) if is_about_pods else policy


def _translated(policy: Manifest, gateway: str, number: int) -> Manifest:
    spec = policy["spec"]
    rules = [rule for each in spec["rules"] for rule in _rules(each)]
    return {
        "apiVersion": "agentic.networking.x-k8s.io/v1alpha1",
        "kind": "XAccessPolicy",
        "metadata": {"name": f"p{number}", "namespace": "a"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway}],
            "action": spec["action"].title(),
            "rules": [{"name": f"r{index}", **rule} for index, rule in enumerate(rules)],
        },
    }


def _rules(rule: Manifest) -> Iterator[Manifest]:
    """Yield rules with the same meaning, each with one source."""
    paths = [path for path in rule.get("applicationAttributes", {}).get("paths", []) if path != "*"]
    matched = {"authorization": {"type": "Inline", "paths": [_path(path) for path in paths]}} if paths else {}
    accounts = rule.get("authorizationSource", {}).get("serviceAccounts")
    if accounts is None:
        yield matched
        return
    for account in accounts:
        yield {"source": {"type": "ServiceAccount", "serviceAccount": {"name": account}}, **matched}


def _path(path: str) -> Manifest:
    if path.endswith("/*"):
        return {"type": "PathPrefix", "value": path.removesuffix("*")}
    if path.startswith("*"):
        return {"type": "RegularExpression", "value": f".*{re.escape(path[1:])}"}
    return {"type": "Exact", "value": path}
