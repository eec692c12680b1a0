"""Cedar (cedarpy), by its fastest public path: a parsed PolicySet and parsed Entities, requests as plain dicts.

Each call is given the policies of the asked workload only, which is the work of Eastgate's index, for free. One rule
is one Cedar policy; identities and ports are compared with `==` and the namespace of a caller is a parent of its
entity: of the ways to write it, the one that was measured to be fastest. Entity ids as {type, id} are not parsed, as
ids in Cedar's own syntax would be, and the context is given as JSON text, as cedarpy passes it on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import metadata

import cedarpy

from bench.plans import TRUST_DOMAIN, Ask, PolicyPlan, RulePlan
from eastgate.dialects.gep3779.model import Action
from eastgate.world import service_account_id

__all__ = ["allowed", "entities_of", "policy_set", "request_of", "version"]


def version() -> str:
    """Which Cedar this is."""
    return f"cedarpy {metadata.version('cedarpy')}"


def policy_set(policies: Iterable[PolicyPlan]) -> cedarpy.PolicySet:
    """The policies of one workload, parsed."""
    return cedarpy.PolicySet.from_str("\n".join(_policy(plan.action, rule) for plan in policies for rule in plan.rules))


def entities_of(asks: Sequence[Ask]) -> cedarpy.Entities:
    """Every caller, with the namespace that it belongs to as its parent."""
    callers = sorted({ask.identity for ask in asks if ask.identity is not None})
    spaces = sorted({_namespace(caller) for caller in callers})
    entities: list[dict[str, object]] = [_entity("Namespace", space, []) for space in spaces]
    entities += [_entity("Caller", caller, [{"type": "Namespace", "id": _namespace(caller)}]) for caller in callers]
    return cedarpy.Entities.from_json_str(json.dumps(entities))


def request_of(ask: Ask) -> dict[str, object]:
    """A request, ready to be handed over."""
    return {
        "principal": {"type": "Caller", "id": ask.identity or "anonymous"},
        "action": {"type": "Action", "id": "connect"},
        "resource": {"type": "Workload", "id": ask.workload},
        "context": json.dumps({"port": ask.port} | ({"method": ask.method, "path": ask.path} if ask.method else {})),
    }


def allowed(request: dict[str, object], policies: cedarpy.PolicySet, entities: cedarpy.Entities) -> bool:
    """Cedar's answer. An error in a policy is none of ours: it would make the comparison worthless."""
    result = cedarpy.is_authorized(request, policies, entities)
    if result.diagnostics.errors:
        raise AssertionError(result.diagnostics.errors)
    return bool(result.allowed)


def _entity(kind: str, name: str, parents: list[dict[str, str]]) -> dict[str, object]:
    return {"uid": {"type": kind, "id": name}, "attrs": {}, "parents": parents}


def _policy(action: Action, rule: RulePlan) -> str:
    effect = "forbid" if action is Action.DENY else "permit"
    conditions = [] if rule.anyone else [_any(_callers(rule))]
    if rule.ports:
        conditions.append(_any([f"context.port == {port}" for port in rule.ports]))
    if rule.paths:
        conditions.append(_any([_path(path) for path in rule.paths]))
    if rule.methods:
        conditions.append(_any([f"context.method == {json.dumps(method)}" for method in rule.methods]))
    when = f" when {{ {' && '.join(conditions)} }}" if conditions else ""
    return f"{effect}(principal, action, resource){when};"


def _callers(rule: RulePlan) -> list[str]:
    accounts = [account.split("/") for account in rule.accounts]
    exact = [service_account_id(TRUST_DOMAIN, namespace, name) for namespace, name in accounts if name != "*"]
    spaces = [f"spiffe://{TRUST_DOMAIN}/ns/{namespace}" for namespace, name in accounts if name == "*"]
    return [f"principal == Caller::{json.dumps(caller)}" for caller in [*exact, *rule.identities]] + [
        f"principal in Namespace::{json.dumps(space)}" for space in spaces
    ]


def _path(path: str) -> str:
    return f"context.path {'like' if '*' in path else '=='} {json.dumps(path)}"


def _any(conditions: list[str]) -> str:
    return f"({' || '.join(conditions)})"


def _namespace(caller: str) -> str:
    """`spiffe://domain/ns/name`, of a caller in that namespace."""
    return caller.rpartition("/sa/")[0]
