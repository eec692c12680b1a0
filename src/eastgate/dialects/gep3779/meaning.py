"""Converts checked documents to policies: targets in the cluster, and rules in the IR."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.cluster.resources import is_audit, selector_of
from eastgate.cluster.targets import PodsAcross, PodsMatching, PodsOfService, Target
from eastgate.dialects.gep3779.model import Action, Level, Policy, Tier
from eastgate.dialects.gep3779.validation import level_of
from eastgate.ir import AccountsOf, And, Is, OneOf, Origin, PolicyRef, Predicate, Rule, any_of
from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT, Attribute
from eastgate.ir.paths import any_path
from eastgate.ir.spiffe import service_account_id
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings

Condition = tuple[Attribute, Node, Predicate]


def v1alpha2(document: Document, root: Node, settings: Settings) -> Policy:
    """Read a policy of the Implementable draft (v1alpha2)."""
    namespace = document.home
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    rules = (_conditions(rule, namespace, settings) for rule in root["spec"].get("rules") or ())
    return _policy(
        document, root, ref, _targets(root["spec"]["targetRefs"], namespace), rules, root["spec"].get("rules")
    )


def v1alpha1(document: Document, root: Node, settings: Settings) -> Policy:
    """Read a policy of the Provisional draft (v1alpha1): ANY of its sources and ANY of its attributes must match."""
    namespace = document.home
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    nodes = root["spec"].get("tcpRules")
    rules = (_old_conditions(rule, settings) for rule in nodes or ())
    return _policy(document, root, ref, _targets(root["spec"]["targetRefs"], namespace), rules, nodes)


def x_v1alpha1(document: Document, root: Node, settings: Settings) -> Policy:
    """Read a policy of the upstream form of GEP-3779."""
    namespace = document.home
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    nodes = root["spec"].get("rules")
    rules = (_x_conditions(rule, namespace, settings) for rule in nodes or ())
    return _policy(document, root, ref, _targets(root["spec"]["targetRefs"], namespace), rules, nodes)


def cluster_policy(document: Document, root: Node, settings: Settings) -> Policy:
    """Read a cluster-wide policy, in the Admin or the Baseline tier."""
    spec = root["spec"]
    subject = spec.get("subject")
    target = PodsAcross(
        selector_of(subject.get("namespaceSelector") if subject else None),
        selector_of(subject.get("podSelector") if subject else None),
    )
    ref = PolicyRef(document.kind, None, document.name, document.group)
    rules = (_conditions(rule, "", settings) for rule in spec.get("rules") or ())
    tier, priority = Tier(spec["tier"].text), spec["priority"].number
    return _policy(document, root, ref, (target,), rules, spec.get("rules"), tier=tier, priority=priority)


def _policy(
    document: Document,
    root: Node,
    ref: PolicyRef,
    targets: tuple[Target, ...],
    conditions: Iterable[list[Condition]],
    nodes: Node | None,
    *,
    tier: Tier = Tier.NAMESPACED,
    priority: int = 0,
) -> Policy:
    spec = root["spec"]
    rules = tuple(
        Rule(
            And(tuple(predicate for _, _, predicate in rule)),
            Origin(ref, index, node.span, tuple((attribute, part.span) for attribute, part, _ in rule)),
        )
        for index, (rule, node) in enumerate(zip(conditions, nodes or (), strict=True))
    )
    return Policy(
        ref=ref,
        span=document.span,
        targets=targets,
        action=Action(spec["action"].text),
        level=Level(level_of(spec)),
        rules=rules,
        tier=tier,
        priority=priority,
        audit=is_audit(root),
    )


def _targets(refs: Node, namespace: str) -> tuple[Target, ...]:
    """Return the targets. v1alpha1 may give one object instead of a list."""
    return tuple(
        PodsMatching(namespace, selector_of(ref["selector"]))
        if ref["kind"].text == "Pod"
        else PodsOfService(namespace, ref["name"].text)
        for ref in (refs if isinstance(refs.value, list) else [refs])
    )


# Rules: ALL conditions of a rule must hold


def _conditions(rule: Node, namespace: str, settings: Settings) -> list[Condition]:
    conditions: list[Condition] = []
    source = rule.get("authorizationSource")
    if source is not None:  # absent: any caller; present and empty: no caller
        identities = [identity.text for identity in source.get("identities") or ()]
        accounts = [_account(account.text, namespace) for account in source.get("serviceAccounts") or ()]
        conditions.append((IDENTITY, source, _callers(identities, accounts, settings)))
    return [*conditions, *_network(rule.get("networkAttributes")), *_application(rule.get("applicationAttributes"))]


def _old_conditions(rule: Node, settings: Settings) -> list[Condition]:
    conditions: list[Condition] = []
    sources = rule.get("sources")
    if sources is not None:
        identities = [i.text for source in sources for i in source.get("identities") or ()]
        accounts = [_account(a.text, "") for source in sources for a in source.get("serviceAccounts") or ()]
        accounts += [(n.text, "*") for source in sources for n in source.get("namespaces") or ()]
        conditions.append((IDENTITY, sources, _callers(identities, accounts, settings)))
    attributes = rule.get("attributes")
    if attributes is not None and all("ports" in entry for entry in attributes):  # no ports: any port
        ports = frozenset(port.number for entry in attributes for port in entry["ports"])
        conditions.append((PORT, attributes, Is(PORT, OneOf(ports))))
    return conditions


def _x_conditions(rule: Node, namespace: str, settings: Settings) -> list[Condition]:
    conditions: list[Condition] = []
    sources = rule.get("sources")
    if sources is not None:
        identities = [source["spiffe"].text for source in sources if "spiffe" in source]
        accounts = [
            (own.text if (own := account.get("namespace")) else namespace, account["name"].text)
            for source in sources
            if (account := source.get("serviceAccount"))
        ]
        conditions.append((IDENTITY, sources, _callers(identities, accounts, settings)))
    return [*conditions, *_network(rule.get("networkAttributes"))]


def _account(text: str, namespace: str) -> tuple[str, str]:
    """Return namespace and name of a service account. A name alone is in the policy's own namespace."""
    own_namespace, slash, name = text.rpartition("/")
    return (own_namespace if slash else namespace), name


def _callers(identities: list[str], accounts: list[tuple[str, str]], settings: Settings) -> Predicate:
    """Match ANY of the identities or service accounts. The accounts are in the target's trust domain."""
    domain = settings.trust_domain
    exact = frozenset(identities) | {service_account_id(domain, ns, name) for ns, name in accounts if name != "*"}
    parts: list[Predicate] = [Is(IDENTITY, OneOf(exact))] if exact else []
    parts += [Is(IDENTITY, AccountsOf(domain, ns)) for ns in sorted({ns for ns, name in accounts if name == "*"})]
    return any_of(parts)


def _network(attributes: Node | None) -> list[Condition]:
    ports = attributes.get("ports") if attributes is not None else None
    if ports is None:
        return []
    return [(PORT, ports, Is(PORT, OneOf(frozenset(port.number for port in ports))))]


def _application(attributes: Node | None) -> list[Condition]:
    conditions: list[Condition] = []
    if attributes is not None and (paths := attributes.get("paths")) is not None:
        conditions.append((PATH, paths, any_path(path.text for path in paths)))
    if attributes is not None and (methods := attributes.get("methods")) is not None:
        conditions.append((METHOD, methods, Is(METHOD, OneOf(frozenset(method.text for method in methods)))))
    return conditions
