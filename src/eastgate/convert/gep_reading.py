"""GEP-3779 policies of all forms in one model: callers, ports, paths and methods.

The model is read from the manifest and not from the IR. In the IR a service account is already a SPIFFE ID, and the
converted policy should use the words of its author.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Selector
from eastgate.cluster.resources import selector_of
from eastgate.convert import codes
from eastgate.convert.model import Item, Job
from eastgate.dialects.gep3779.model import Action, Level, Policy, Tier
from eastgate.ir.paths import encoded_path
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node


@dataclass(frozen=True, slots=True)
class SpiffeIdentity:
    """A SPIFFE ID."""

    spiffe: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Account:
    """A service account of the target's trust domain."""

    namespace: str
    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WholeNamespace:
    """Every service account of a namespace, in the target's trust domain."""

    namespace: str
    span: Span | None = field(default=None, compare=False)


NamedCaller: TypeAlias = SpiffeIdentity | Account | WholeNamespace


@dataclass(frozen=True, slots=True)
class GepRule:
    """A rule that matches if ALL of its fields match, each by ANY entry.

    A field None matches everything, an empty list nothing.
    """

    callers: tuple[NamedCaller, ...] | None
    ports: tuple[int, ...] | None
    paths: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    span: Span | None = field(default=None, compare=False)
    paths_span: Span | None = field(default=None, compare=False)

    @property
    def never(self) -> bool:
        """Return whether the rule matches nothing."""
        return any(part is not None and not part for part in (self.callers, self.ports, self.paths, self.methods))

    @property
    def is_http(self) -> bool:
        """Return whether the rule reads attributes of HTTP."""
        return self.paths is not None or self.methods is not None


@dataclass(frozen=True, slots=True)
class PodsTarget:
    """Pods by their labels."""

    selector: Selector
    span: Span


@dataclass(frozen=True, slots=True)
class TargetedService:
    """A Service by its name."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Gep:
    """A policy of any form."""

    policy: Policy
    document: Document
    targets: tuple[PodsTarget | TargetedService, ...]
    rules: tuple[GepRule, ...]
    level_written: bool

    @property
    def namespace(self) -> str:
        """Return the namespace of the policy and of its targets."""
        return self.policy.ref.namespace or "default"

    @property
    def written_namespace(self) -> str | None:
        """Return the namespace to write, or None if the manifest has none."""
        return self.namespace if self.document.namespace is not None else None

    @property
    def name(self) -> str:
        return self.policy.ref.name

    @property
    def denies(self) -> bool:
        """Return whether the policy has the action DENY."""
        return self.policy.action is Action.DENY

    @property
    def is_application(self) -> bool:
        """Return whether the policy is enforced at L7."""
        return self.policy.level is Level.APPLICATION

    @property
    def node(self) -> Node:
        assert self.document.node is not None  # noqa: S101 - policies are read with positions
        return self.document.node

    def span(self, *path: str | int) -> Span:
        """Return the span of a field of the policy."""
        return self.document.locate("spec", *path)


def from_gep(items: Iterable[Item], job: Job, write: Callable[[Gep, Job], None]) -> None:
    """Write namespaced policies in another form.

    Keep the policies of cluster-wide tiers, which no other form can express.
    """
    for item in items:
        gep = read(item)
        if gep is not None:
            write(gep, job)
            continue
        message = f"{item.policy.ref} is in a cluster-wide tier: it is not converted"
        span = item.document.locate("spec", "tier")
        job.keep(item.document, codes.TIER, message, span, help="write its rules into policies of the namespaces")


def read(item: Item) -> Gep | None:
    """Return a namespaced policy, or None for a policy of a cluster-wide tier."""
    policy, document = item.policy, item.document
    assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
    if policy.tier is not Tier.NAMESPACED:
        return None
    assert document.node is not None  # noqa: S101 - policies are read with positions
    spec, namespace = document.node["spec"], policy.ref.namespace or "default"
    refs = spec["targetRefs"]
    return Gep(
        policy=policy,
        document=document,
        targets=tuple(_target(ref) for ref in (refs if isinstance(refs.value, list) else [refs])),
        rules=tuple(_rules(document, spec, namespace)),
        level_written="enforcementLevel" in spec,
    )


def _target(ref: Node) -> PodsTarget | TargetedService:
    if ref["kind"].text == "Pod":
        return PodsTarget(selector_of(ref["selector"]), ref["selector"].span)
    return TargetedService(ref["name"].text, ref["name"].span)


def _rules(document: Document, spec: Node, namespace: str) -> Iterable[GepRule]:
    if document.kind == "XAuthorizationPolicy":
        return (_x_rule(rule, namespace) for rule in spec.get("rules") or ())
    if document.version == "v1alpha1":
        return (_old_rule(rule) for rule in spec.get("tcpRules") or ())
    return (_rule(rule, namespace) for rule in spec.get("rules") or ())


def _rule(rule: Node, namespace: str) -> GepRule:
    source, application = rule.get("authorizationSource"), rule.get("applicationAttributes")
    callers: tuple[NamedCaller, ...] | None = None
    if source is not None:
        identities = (SpiffeIdentity(node.text, node.span) for node in source.get("identities") or ())
        accounts = (_account(node, namespace) for node in source.get("serviceAccounts") or ())
        callers = (*identities, *accounts)
    paths, methods = (application.get("paths"), application.get("methods")) if application is not None else (None, None)
    return GepRule(
        callers=callers,
        ports=_ports(rule.get("networkAttributes")),
        paths=tuple(map(encoded_path, _texts(paths) or ())) if paths is not None else None,
        methods=_texts(methods),
        span=rule.span,
        paths_span=paths.span if paths is not None else None,
    )


def _old_rule(rule: Node) -> GepRule:
    sources, attributes = rule.get("sources"), rule.get("attributes")
    callers: list[NamedCaller] | None = None
    if sources is not None:
        callers = []
        for source in sources:
            callers += [SpiffeIdentity(node.text, node.span) for node in source.get("identities") or ()]
            callers += [_account(node, "") for node in source.get("serviceAccounts") or ()]
            callers += [WholeNamespace(node.text, node.span) for node in source.get("namespaces") or ()]
    ports = None
    if attributes is not None and all(
        "ports" in attribute for attribute in attributes
    ):  # a rule without ports matches any port
        ports = tuple(dict.fromkeys(port.number for attribute in attributes for port in attribute["ports"]))
    return GepRule(tuple(callers) if callers is not None else None, ports, span=rule.span)


def _x_rule(rule: Node, namespace: str) -> GepRule:
    sources = rule.get("sources")
    callers = tuple(_x_caller(source, namespace) for source in sources) if sources is not None else None
    return GepRule(callers, _ports(rule.get("networkAttributes")), span=rule.span)


def _x_caller(source: Node, own_namespace: str) -> NamedCaller:
    account = source.get("serviceAccount")
    if account is None:
        return SpiffeIdentity(source["spiffe"].text, source["spiffe"].span)
    where = account.get("namespace")
    namespace = where.text if where is not None else own_namespace
    name = account["name"].text
    return WholeNamespace(namespace, account.span) if name == "*" else Account(namespace, name, account.span)


def _account(node: Node, own_namespace: str) -> NamedCaller:
    namespace, slash, name = node.text.rpartition("/")
    if name == "*":
        return WholeNamespace(namespace, node.span)
    return Account(namespace if slash else own_namespace, name, node.span)


def _ports(attributes: Node | None) -> tuple[int, ...] | None:
    ports = attributes.get("ports") if attributes is not None else None
    return tuple(dict.fromkeys(port.number for port in ports)) if ports is not None else None


def _texts(node: Node | None) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys(item.text for item in node)) if node is not None else None
