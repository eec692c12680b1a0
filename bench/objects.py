"""Plans as Eastgate's own objects, built directly: what the dialect would have read from manifests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.plans import TRUST_DOMAIN, Ask, Plan, PolicyPlan, RulePlan
from eastgate.dialects.gep3779 import GROUP, Policy
from eastgate.dialects.gep3779.assemble import layers
from eastgate.dialects.gep3779.model import Level
from eastgate.engine.engine import Engine
from eastgate.places import SourceText, Span
from eastgate.policy import AccountsOf, And, Is, OneOf, Or, Origin, PolicyRef, Predicate, Prefix, Request, Rule, Suffix
from eastgate.policy.attributes import IDENTITY, METHOD, PATH, PORT, SERVICE
from eastgate.settings import Settings
from eastgate.world import PodsMatching, PodsOfService, Selector, Target, World, service_account_id

__all__ = ["engine_of", "policy_of", "request_of", "world_of"]

_SETTINGS = Settings(trust_domain=TRUST_DOMAIN)
_SPAN = Span(SourceText("generated.yaml", ""), 1, 1, 1, 1)


def world_of(plan: Plan) -> World:
    """The pods and Services of a plan."""
    return World.of([*plan.pods, *plan.services])


def engine_of(world: World, policies: Iterable[Policy]) -> Engine[Policy]:
    """An engine that has compiled nothing yet."""
    return Engine(world, policies, lambda attached, _stances: layers(attached, _SETTINGS))


def policy_of(plan: PolicyPlan) -> Policy:
    """A policy."""
    ref = PolicyRef("AuthorizationPolicy", plan.namespace, plan.name, GROUP)
    target: Target = (
        PodsOfService(plan.namespace, plan.service)
        if plan.service is not None
        else PodsMatching(plan.namespace, Selector.of(plan.labels))
    )
    rules = tuple(Rule(_when(rule), Origin(ref, index, _SPAN)) for index, rule in enumerate(plan.rules))
    level = Level.APPLICATION if any(rule.paths or rule.methods for rule in plan.rules) else Level.NETWORK
    return Policy(ref, _SPAN, (target,), plan.action, level, rules)


def request_of(ask: Ask) -> Request:
    """A request in which everything is known."""
    values = {IDENTITY: ask.identity, PORT: ask.port, SERVICE: None}
    if ask.method is not None:
        values |= {METHOD: ask.method, PATH: ask.path}
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
