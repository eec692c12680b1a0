"""Policies of all dialects in the same words: what they do, what they target, what their rules ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eastgate.analysis.effective.words import rule_text
from eastgate.dialects import Policy, accesspolicy, gep3779, kuadrant, rejected
from eastgate.dialects.gep3779.model import Tier
from eastgate.dialects.kuadrant.model import HttpRule
from eastgate.dialects.linkerd import model as linkerd
from eastgate.places import Span
from eastgate.policy import Origin, PolicyRef
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node
from eastgate.world import Selector, Workload
from eastgate.world.targets import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    Target,
)

__all__ = [
    "RuleInWords",
    "TargetInWords",
    "action_of",
    "does_text",
    "level_of",
    "matched_terms",
    "rules_in_words",
    "targets_of",
    "tier_of",
]


@dataclass(frozen=True, slots=True)
class TargetInWords:
    """What a policy targets, as the draft's table prints it; `target` is what the world selects by."""

    kind: str
    expression: str
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class RuleInWords:
    """One rule: what it does, what it asks, and where it is written."""

    does: str
    asks: str
    origin: Origin | None
    span: Span | None


# What it does


def action_of(policy: Policy) -> str:
    """What a policy does with the requests that it matches."""
    match policy:
        case gep3779.Policy(action=action) | accesspolicy.Policy(action=action):
            return str(action)
        case kuadrant.Policy():
            return "ASK"
        case rejected.Policy():
            return "UNREADABLE"
        case linkerd.Server(access=access):
            return str(access)
        case linkerd.AuthorizationPolicy() | linkerd.ServerAuthorization():
            return "ALLOW"
        case _:
            return "-"


def level_of(policy: Policy) -> str:
    """Where it is enforced."""
    match policy:
        case gep3779.Policy(level=level):
            return str(level)
        case accesspolicy.Policy(targets=targets):
            return "gateway" if isinstance(targets[0], GatewayNamed) else "backend"
        case kuadrant.Policy(target=target):
            return "gateway" if isinstance(target, GatewayNamed) else "route"
        case rejected.Policy():
            return "all"
        case _:
            return "inbound"


# What it targets


def targets_of(policy: Policy, document: Document | None) -> list[TargetInWords]:
    """Its targets, with the terms of selectors in the order in which they are written."""
    order = _Order(document)
    match policy:
        case linkerd.AuthorizationPolicy(target=target):
            return [TargetInWords(target.kind, target.name, policy.targets[0] if policy.targets else None)]
        case linkerd.ServerAuthorization(server=server):
            return [TargetInWords("Server", server if isinstance(server, str) else f"Selector={order.text(server)}")]
        case linkerd.HttpRoute(route=route):
            return [TargetInWords(parent.kind, parent.name) for parent in route.parents]
        case _:
            return [_target(target, order) for target in policy.targets]


def _target(target: Target, order: _Order) -> TargetInWords:
    match target:
        case PodsMatching(_, selector):
            return TargetInWords("Pod", f"Selector={order.text(selector)}", target)
        case ExternalsMatching(_, selector):
            return TargetInWords("ExternalWorkload", f"Selector={order.text(selector)}", target)
        case PodsOfService(_, service):
            return TargetInWords("Service", service, target)
        case PodsAcross(namespaces, pods):
            spaces = f"NamespaceSelector={order.text(namespaces)} " if namespaces != Selector.of() else ""
            return TargetInWords("Pod", f"{spaces}Selector={order.text(pods)}", target)
        case PodsOwnedBy(_, kind, name):
            return TargetInWords(kind, name, target)
        case PodsOfAccount(_, account):
            return TargetInWords("ServiceAccount", account, target)
        case PodNamed(_, name):
            return TargetInWords("Pod", name, target)
        case Everything():
            return TargetInWords("Everything", str(target), target)
        case GatewayNamed(_, name):
            return TargetInWords("Gateway", name, target)
        case RouteNamed(_, name):
            return TargetInWords("HTTPRoute", name, target)
        case BackendNamed(_, name):
            return TargetInWords("Backend", name, target)


class _Order:
    """The order in which labels stand in a manifest; those that it does not have come last, by name."""

    def __init__(self, document: Document | None) -> None:
        self._places: dict[str, int] = {}
        if document is not None and document.node is not None:
            for key in _label_keys(document.node):
                self._places.setdefault(key, len(self._places))

    def text(self, selector: Selector) -> str:
        """The selector, as the draft prints one: `{foo: a, bar: 2}`."""
        terms = [(key, f"{key}: {value}") for key, value in selector.match_labels]
        terms += [(one.key, str(one)) for one in selector.expressions]
        return "{" + ", ".join(text for _, text in sorted(terms, key=self._place)) + "}"

    def _place(self, term: tuple[str, str]) -> tuple[int, str, str]:
        return self._places.get(term[0], len(self._places)), *term


def _label_keys(node: Node) -> Iterator[str]:
    if isinstance(node.value, dict):
        for key, value in node.items():
            if key == "matchLabels" and isinstance(value.value, dict):
                yield from value.value
            elif key == "key" and isinstance(value.value, str):
                yield value.value
            else:
                yield from _label_keys(value)
    elif isinstance(node.value, list):
        for one in node:
            yield from _label_keys(one)


def matched_terms(target: Target, workload: Workload, namespace_labels: Mapping[str, str]) -> list[str]:
    """The terms by which a target means a workload."""
    match target:
        case PodsMatching(_, selector) | ExternalsMatching(_, selector):
            return list(selector.matched_terms(workload.labels)) or ["every pod of the namespace"]
        case PodsAcross(namespaces, pods):
            spaces = [f"namespace {term}" for term in namespaces.matched_terms(namespace_labels)]
            return [*spaces, *pods.matched_terms(workload.labels)] or ["every pod"]
        case PodsOfService(_, service):
            return [f"it stands behind Service {service}"]
        case PodsOwnedBy(_, kind, name):
            return [f"it belongs to {kind} {name}"]
        case PodsOfAccount(_, account):
            return [f"it runs as {account}"]
        case Everything():
            return ["nobody can tell what it is about"]
        case _:
            return ["it has that name"]


# What its rules ask


def rules_in_words(policy: Policy, settings: Settings) -> list[RuleInWords]:
    """Its rules, in the order written."""
    match policy:
        case gep3779.Policy(rules=rules, action=action):
            return [_rule(str(action), rule_text(one.when, settings), one.origin) for one in rules]
        case accesspolicy.Policy():
            return _access_rules(policy, settings)
        case kuadrant.Policy():
            return _auth_rules(policy)
        case rejected.Policy(errors=errors):
            return [RuleInWords("CLOSE", f"it cannot be read: {one.message}", None, one.span) for one in errors]
        case _:
            return list(_linkerd_rules(policy, settings))


def _rule(does: str, asks: str, origin: Origin) -> RuleInWords:
    return RuleInWords(does, asks, origin, origin.span)


def _access_rules(policy: accesspolicy.Policy, settings: Settings) -> list[RuleInWords]:
    asks = [_rule(f"ASK {to}", rule_text(rule.when, settings), rule.origin) for rule, to in policy.asks]
    others = (*policy.denies, *policy.allows)
    return asks + [_rule(str(policy.action), rule_text(one.when, settings), one.origin) for one in others]


def _auth_rules(policy: kuadrant.Policy) -> list[RuleInWords]:
    asked = [RuleInWords("SELECT", _selected(rule), None, rule.span) for rule in policy.rules]
    asked = asked or [RuleInWords("SELECT", "all traffic of the target", None, policy.span)]
    for origin, scheme in zip(policy.origins, policy.schemes, strict=True):
        names = ", ".join(f"{one.name} ({type(one.method).__name__})" for one in scheme.identities)
        agreed = "".join(f"; then {one.name}" for one in scheme.authorizations)
        asked.append(_rule("AUTH", f"hosts {', '.join(scheme.hosts)}: identity {names or 'none'}{agreed}", origin))
    return asked


def _selected(rule: HttpRule) -> str:
    parts = {"hosts": rule.hosts, "methods": rule.methods, "paths": rule.paths}
    return "; ".join(f"{name} {', '.join(found)}" for name, found in parts.items() if found is not None) or "anything"


def _linkerd_rules(policy: linkerd.Resource, settings: Settings) -> Iterator[RuleInWords]:
    match policy:
        case linkerd.Server(port=port, protocol=protocol, access=access):
            asks = f"port {port}, protocol {protocol}: what nothing authorizes is decided by accessPolicy {access}"
            yield RuleInWords("OWN", asks, None, policy.access_span)
        case linkerd.AuthorizationPolicy(requirements=requirements):
            said = [
                str(one.when) if isinstance(one.when, PolicyRef) else rule_text(one.when, settings)
                for one in requirements
            ]
            yield _rule("ALLOW", " and ".join(said) or "anyone", policy.origin)
        case linkerd.ServerAuthorization(rule=rule):
            yield _rule("ALLOW", rule_text(rule.when, settings), rule.origin)
        case linkerd.MeshTLSAuthentication(who=who, who_span=span):
            yield RuleInWords("NAME", rule_text(who, settings), None, span)
        case linkerd.NetworkAuthentication(where=where, where_span=span):
            yield RuleInWords("NAME", rule_text(where, settings), None, span)
        case linkerd.HttpRoute(route=route):
            yield RuleInWords("ROUTE", f"{len(route.rules)} rules", None, policy.span)


def tier_of(policy: Policy) -> tuple[str, int] | None:
    """Tier and priority of a cluster-wide policy."""
    if isinstance(policy, gep3779.Policy) and policy.tier is not Tier.NAMESPACED:
        return str(policy.tier), policy.priority
    return None


def does_text(policy: Policy) -> str:
    """What a policy does, where, and in which tier, on one line."""
    tier = tier_of(policy)
    parts = [action_of(policy), level_of(policy)]
    if tier is not None:
        parts.append(f"tier {tier[0]}, priority {tier[1]}")
    if policy.audit:
        parts.append("audit: it decides nothing")
    return ", ".join(part for part in parts if part != "-")
