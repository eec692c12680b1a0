"""Policies of an attacker, which take long to judge."""

from __future__ import annotations

from tests.controller.admission.semantic.world import Manifest, istio, policy

_SANDBOX = "cluster.local/ns/sandbox/sa/toy"


def closed() -> Manifest:
    """Return a policy that allows one account to reach payments."""
    return istio("p", "cluster.local/ns/shop/sa/web")


def many_rules(name: str, number: int, *principals: str) -> Manifest:
    """Return a policy for payments whose rules all differ. The last rule allows the named account, or sandbox."""
    rules: list[Manifest] = [
        {
            "from": [{"source": {"namespaces": [f"n{each}"]}}],
            "to": [{"operation": {"paths": [f"/p{each}*"], "hosts": [f"h{each}*"], "ports": [str(each + 1)]}}],
        }
        for each in range(number - 1)
    ]
    rules.append({"from": [{"source": {"principals": list(principals or (_SANDBOX,))}}]})
    spec = {"selector": {"matchLabels": {"app": "payments"}}, "action": "ALLOW", "rules": rules}
    return policy("security.istio.io/v1", "AuthorizationPolicy", name, spec)
