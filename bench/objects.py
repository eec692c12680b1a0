"""Plans as Eastgate's own objects, built directly instead of read from manifests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from bench.plans import TRUST_DOMAIN, Ask, Plan, PolicyPlan, RulePlan
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import LiveWorld, PodsMatching, PodsOfService, Selector, Target, World, service_account_id
from eastgate.cluster.targets import GatewayNamed
from eastgate.dialects import Policy, accesspolicy, gep3779
from eastgate.dialects.accesspolicy import assemble as at_gateways
from eastgate.dialects.accesspolicy import attributes
from eastgate.dialects.accesspolicy.model import Action as Access
from eastgate.dialects.base import Scene
from eastgate.dialects.gep3779 import GROUP
from eastgate.dialects.gep3779 import assemble as at_workloads
from eastgate.dialects.gep3779.model import Action, Level
from eastgate.engine.engine import Engine
from eastgate.ir import (
    AccountsOf,
    And,
    Attachment,
    Is,
    Known,
    Layer,
    OneOf,
    Or,
    Origin,
    PolicyRef,
    Predicate,
    Prefix,
    Request,
    Rule,
    Stances,
    Suffix,
)
from eastgate.ir.attributes import BACKEND, IDENTITY, MCP_METHOD, MCP_TOOL, METHOD, PATH, PORT, SERVICE, Attribute
from eastgate.settings import Settings

__all__ = ["ACCESS_GROUP", "SPAN", "engine_of", "policy_of", "request_of", "world_of"]

ACCESS_GROUP = "agentic.networking.x-k8s.io"

_SETTINGS = Settings(trust_domain=TRUST_DOMAIN)
SPAN = Span(SourceText("generated.yaml", ""), 1, 1, 1, 1)


def world_of(plan: Plan) -> LiveWorld:
    """Return a world with the pods and Services of a plan."""
    return LiveWorld.of([*plan.pods, *plan.services])


def engine_of(world: World, policies: Iterable[Policy]) -> Engine[Policy]:
    """Return an engine that has not compiled any program."""
    return Engine(world, policies, _assemble)


def _assemble(attached: Sequence[Attachment[Policy]], _stances: Stances) -> list[Layer]:
    """Return the layers of a point. In these worlds a point has policies of one dialect only."""
    if attached and isinstance(attached[0].policy, accesspolicy.Policy):
        return at_gateways.layers(cast("Sequence[Attachment[accesspolicy.Policy]]", attached), _SETTINGS, _granted)
    scene = Scene(_SETTINGS, World.of([]))
    return at_workloads.layers(cast("Sequence[Attachment[gep3779.Policy]]", attached), scene)


def _granted(_: object) -> bool:
    return True


def policy_of(plan: PolicyPlan) -> Policy:
    """Return the policy of a plan."""
    return _workload_policy(plan) if plan.gateway is None else _gateway_policy(plan, plan.gateway)


def _workload_policy(plan: PolicyPlan) -> gep3779.Policy:
    ref = PolicyRef("AuthorizationPolicy", plan.namespace, plan.name, GROUP)
    target: Target = (
        PodsOfService(plan.namespace, plan.service)
        if plan.service is not None
        else PodsMatching(plan.namespace, Selector.of(plan.labels))
    )
    rules = tuple(Rule(_when(rule), Origin(ref, index, SPAN)) for index, rule in enumerate(plan.rules))
    level = Level.APPLICATION if any(rule.paths or rule.methods for rule in plan.rules) else Level.NETWORK
    return gep3779.Policy(ref, SPAN, (target,), plan.action, level, rules)


def _gateway_policy(plan: PolicyPlan, gateway: str) -> accesspolicy.Policy:
    ref = PolicyRef("XAccessPolicy", plan.namespace, plan.name, ACCESS_GROUP)
    targets = (GatewayNamed(plan.namespace, gateway),)
    rules = tuple(
        Rule(And((_who(rule), attributes.calls(list(rule.tools), gateway_in=plan.namespace))), Origin(ref, index, SPAN))
        for index, rule in enumerate(plan.rules)
    )
    if plan.action is Action.DENY:
        return accesspolicy.Policy(ref, SPAN, targets, Access.DENY, denies=rules)
    callers = tuple(map(_who, plan.rules))
    return accesspolicy.Policy(ref, SPAN, targets, Access.ALLOW, allows=rules, callers=callers)


def request_of(ask: Ask) -> Request:
    """Return a request without unknown attributes."""
    values: dict[Attribute, Known] = {IDENTITY: ask.identity, PORT: ask.port, SERVICE: None}
    if ask.method is not None:
        values |= {METHOD: ask.method, PATH: ask.path}
    if ask.tool is not None:
        namespace = ask.workload.removeprefix("Gateway ").partition("/")[0]
        values |= {MCP_METHOD: "tools/call", MCP_TOOL: ask.tool, BACKEND: f"{namespace}/{ask.backend}"}
    return Request(values)


def _when(rule: RulePlan) -> Predicate:
    parts: list[Predicate] = [] if rule.anyone else [_who(rule)]
    if rule.ports:
        parts.append(Is(PORT, OneOf(frozenset(rule.ports))))
    if rule.paths:
        parts.append(_any([_path(path) for path in rule.paths]))
    if rule.methods:
        parts.append(Is(METHOD, OneOf(frozenset(rule.methods))))
    return And(tuple(parts))


def _who(rule: RulePlan) -> Predicate:
    split = [account.split("/") for account in rule.accounts]
    exact = {service_account_id(TRUST_DOMAIN, namespace, name) for namespace, name in split if name != "*"}
    parts: list[Predicate] = [Is(IDENTITY, AccountsOf(TRUST_DOMAIN, ns)) for ns, name in split if name == "*"]
    if exact or rule.identities:
        parts.insert(0, Is(IDENTITY, OneOf(frozenset(exact.union(rule.identities)))))
    return _any(parts)


def _path(path: str) -> Predicate:
    if path.endswith("*"):
        return Is(PATH, Prefix(path[:-1]))
    return Is(PATH, Suffix(path[1:]) if path.startswith("*") else OneOf(frozenset({path})))


def _any(parts: Sequence[Predicate]) -> Predicate:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))
