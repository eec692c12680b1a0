"""Plans as the manifests that a user would write."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plans import Ask, Plan, PolicyPlan, RulePlan
from eastgate.dialects.gep3779 import GROUP
from eastgate.world import Pod, Service

__all__ = ["case_of", "manifests_of"]


def manifests_of(plan: Plan) -> Iterator[dict[str, object]]:
    """Everything in a plan."""
    yield from map(_pod, plan.pods)
    yield from map(_service, plan.services)
    yield from map(_policy, plan.policies)


def case_of(ask: Ask, expect: str) -> dict[str, object]:
    """A case of a DecisionTest."""
    http = {"http": {"method": ask.method, "path": ask.path}} if ask.method else {}
    return {
        "from": ask.identity or "anonymous",
        "to": f"pod:{ask.workload}",
        "port": ask.port,
        **http,
        "expect": expect,
    }


def _pod(pod: Pod) -> dict[str, object]:
    ports = [{"containerPort": port.number, "name": port.name} for port in pod.ports]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "labels": dict(pod.labels)},
        "spec": {
            "serviceAccountName": pod.service_account,
            "containers": [{"name": "main", "image": "registry.example/main:1.2.3", "ports": ports}],
        },
    }


def _service(service: Service) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service.name, "namespace": service.namespace},
        "spec": {
            "selector": dict(service.selector),
            "ports": [{"port": port.port, "targetPort": port.target} for port in service.ports],
        },
    }


def _policy(plan: PolicyPlan) -> dict[str, object]:
    application = any(rule.paths or rule.methods for rule in plan.rules)
    target: dict[str, object] = (
        {"kind": "Service", "name": plan.service}
        if plan.service is not None
        else {"kind": "Pod", "selector": {"matchLabels": dict(plan.labels)} if plan.labels else {}}
    )
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": plan.name, "namespace": plan.namespace},
        "spec": {
            **({"enforcementLevel": "APPLICATION"} if application else {}),
            "targetRefs": [target],
            "action": str(plan.action),
            "rules": [_rule(rule) for rule in plan.rules],
        },
    }


def _rule(rule: RulePlan) -> dict[str, object]:
    source = {"serviceAccounts": list(rule.accounts), "identities": list(rule.identities)}
    application = {"paths": list(rule.paths), "methods": list(rule.methods)}
    written: dict[str, object] = {}
    if not rule.anyone:
        written["authorizationSource"] = {name: values for name, values in source.items() if values}
    if rule.ports:
        written["networkAttributes"] = {"ports": list(rule.ports)}
    if any(application.values()):
        written["applicationAttributes"] = {name: values for name, values in application.items() if values}
    return written
