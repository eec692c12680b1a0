"""Plans as the manifests that a user would write."""

from __future__ import annotations

from collections.abc import Iterator

from bench.objects import ACCESS_GROUP
from bench.plans import Ask, Plan, PolicyPlan, RulePlan
from eastgate.cluster import Pod, Service
from eastgate.dialects.gep3779 import GROUP

__all__ = ["case_of", "manifests_of"]


def manifests_of(plan: Plan) -> Iterator[dict[str, object]]:
    """Yield the manifests of all objects and policies of a plan."""
    yield from map(_pod, plan.pods)
    yield from map(_service, plan.services)
    for namespace, name in plan.gateways:
        yield from _gateway(namespace, name, plan)
    for policy in plan.policies:
        yield _policy(policy) if policy.gateway is None else _access_policy(policy, policy.gateway)


def case_of(ask: Ask, expect: str) -> dict[str, object]:
    """Return a case of a DecisionTest."""
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


def _gateway(namespace: str, name: str, plan: Plan) -> Iterator[dict[str, object]]:
    """Yield a Gateway, and a route with its own path to each backend that a tool rule names."""
    tools = {tool for policy in plan.policies for rule in policy.rules for tool in rule.tools}
    yield {
        **_head("gateway.networking.k8s.io/v1", "Gateway", namespace, name),
        "spec": {"gatewayClassName": "agentic", "listeners": [{"name": "mcp", "port": 80, "protocol": "HTTP"}]},
    }
    for backend in sorted({tool.partition("/")[0] for tool in tools if "/" in tool}):
        yield {
            **_head("agentic.prototype.x-k8s.io/v0alpha0", "XBackend", namespace, backend),
            "spec": {"mcp": {"serviceName": backend, "port": 8080}},
        }
        to = {"group": "agentic.prototype.x-k8s.io", "kind": "XBackend", "name": backend}
        yield {
            **_head("gateway.networking.k8s.io/v1", "HTTPRoute", namespace, backend),
            "spec": {
                "parentRefs": [{"name": name}],
                "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": f"/{backend}"}}], "backendRefs": [to]}],
            },
        }


def _access_policy(plan: PolicyPlan, gateway: str) -> dict[str, object]:
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway}
    return {
        **_head(f"{ACCESS_GROUP}/v1alpha1", "XAccessPolicy", plan.namespace, plan.name),
        "spec": {
            "targetRefs": [target],
            "action": str(plan.action).capitalize(),
            "rules": [_access_rule(index, rule) for index, rule in enumerate(plan.rules)],
        },
    }


def _access_rule(index: int, rule: RulePlan) -> dict[str, object]:
    namespace, name = rule.accounts[0].split("/")
    return {
        "name": f"r{index}",
        "source": {"type": "ServiceAccount", "serviceAccount": {"name": name, "namespace": namespace}},
        "authorization": {"type": "Inline", "mcp": {"methods": [{"name": "tools/call", "params": list(rule.tools)}]}},
    }


def _head(version: str, kind: str, namespace: str, name: str) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
