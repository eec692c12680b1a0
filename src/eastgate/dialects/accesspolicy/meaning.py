"""Converts checked documents to policies: targets in the cluster, and rules in the IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Backend
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.resources import is_audit
from eastgate.cluster.targets import BackendNamed, GatewayNamed, Target
from eastgate.dialects.accesspolicy import attributes, shapes
from eastgate.dialects.accesspolicy.model import NETWORKING_GROUP, PROTOTYPE_GROUP, Action, AuthorizerReference, Policy
from eastgate.dialects.accesspolicy.validation import inside
from eastgate.dialects.base import reader
from eastgate.ir import ALWAYS, And, ExternalAuthorizer, ExternalProtocol, Is, OneOf, Origin, PolicyRef, Predicate, Rule
from eastgate.ir.attributes import IDENTITY, MCP_TOOL, Attribute
from eastgate.ir.spiffe import service_account_id
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings

Part = tuple[Attribute, Node, Predicate]


@dataclass(frozen=True, slots=True)
class _Context:
    """The context of the rules of one document."""

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    settings: Settings
    action: Action
    audit: bool

    @property
    def namespace(self) -> str:
        return self.ref.namespace or "default"

    @property
    def gateway_in(self) -> str | None:
        """Return the namespace of the targeted Gateways; None if Backends are targeted."""
        return self.namespace if isinstance(self.targets[0], GatewayNamed) else None

    @property
    def deny(self) -> bool:
        return self.action is Action.DENY

    @property
    def on_error(self) -> bool:
        """Return whether an erring condition counts as true.

        It must neither allow a request, nor prevent a denial or a question to an authorizer.
        """
        return self.action is not Action.ALLOW


def _context(document: Document, root: Node, settings: Settings) -> _Context:
    namespace = document.home
    targets: tuple[Target, ...] = tuple(
        BackendNamed(namespace, target["name"].text)
        if target["kind"].text in BACKEND_KINDS
        else GatewayNamed(namespace, target["name"].text)
        for target in root["spec"]["targetRefs"]
    )
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    return _Context(ref, document.span, targets, settings, _action(root["spec"]), is_audit(root))


def _action(spec: Node) -> Action:
    """Return the action of the policy. In the proposal's form it follows from its rules, which all ask or none does."""
    action = spec.get("action")
    if action is not None and action.text != "Allow":
        return Action.DENY if action.text == "Deny" else Action.ASK
    asks = any(inside(rule, "authorization", "externalAuth") is not None for rule in spec.get("rules") or ())
    return Action.ASK if asks else Action.ALLOW


def v0alpha0(document: Document, root: Node, settings: Settings) -> Policy:
    """Read the proposal's form: a rule matches by its source, and its tools are the calls that it allows or denies."""
    context = _context(document, root, settings)
    nodes = list(root["spec"]["rules"])
    lowered = tuple(_rule(context, index, rule, list(_old_parts(rule, context))) for index, rule in enumerate(nodes))
    callers = tuple(_source(rule["source"], context)[2] for rule in nodes)
    authorizers = [inside(rule, "authorization", "externalAuth") for rule in nodes]
    return _policy(context, lowered, callers, authorizers)


def v1alpha1(document: Document, root: Node, settings: Settings) -> Policy:
    """Read today's form: the policy has the action. A missing list matches everything, an empty list nothing."""
    context = _context(document, root, settings)
    spec = root["spec"]
    nodes = spec.get("rules")
    if nodes is None:
        lowered: tuple[Rule, ...] = (Rule(ALWAYS, Origin(context.ref, 0, spec["action"].span)),)
        callers: tuple[Predicate, ...] = (ALWAYS,)
    else:
        lowered = tuple(_rule(context, index, rule, list(_parts(rule, context))) for index, rule in enumerate(nodes))
        callers = tuple(_source(source, context)[2] if (source := rule.get("source")) else ALWAYS for rule in nodes)
    return _policy(context, lowered, callers, [spec.get("externalAuth")] * len(lowered))


def _policy(
    context: _Context, rules: tuple[Rule, ...], callers: tuple[Predicate, ...], authorizers: Sequence[Node | None]
) -> Policy:
    make = partial(Policy, context.ref, context.span, context.targets, context.action, audit=context.audit)
    match context.action:
        case Action.ASK:
            pairs = zip(rules, authorizers, strict=True)
            return make(asks=tuple((rule, _authorizer(node, context)) for rule, node in pairs if node is not None))
        case Action.DENY:
            return make(denies=rules)
        case Action.ALLOW:
            return make(allows=rules, callers=callers)


def _rule(context: _Context, index: int, node: Node, parts: list[Part]) -> Rule:
    spans: tuple[tuple[Attribute, Span], ...] = tuple((attribute, part.span) for attribute, part, _ in parts)
    return Rule(And(tuple(predicate for _, _, predicate in parts)), Origin(context.ref, index, node.span, spans))


def _source(node: Node, context: _Context) -> Part:
    if node["type"].text == "SPIFFE":
        identity = node["spiffe"].text
    else:
        account = node["serviceAccount"]
        own = account.get("namespace")
        namespace = own.text if own is not None else context.namespace
        identity = service_account_id(context.settings.trust_domain, namespace, account["name"].text)
    return IDENTITY, node, Is(IDENTITY, OneOf(frozenset({identity})))


def _old_parts(rule: Node, context: _Context) -> Iterable[Part]:
    yield _source(rule["source"], context)
    authorization = rule.get("authorization")
    if context.action is Action.ASK:
        return  # the authorizer is asked about every request of the source
    if authorization is None:
        if not context.deny:  # a rule without authorization allows no tool, and denies everything
            yield MCP_TOOL, rule["name"], attributes.base_protocol()
        return
    if authorization["type"].text == "CEL":
        expression = authorization["cel"]["expression"]
        allowed: Predicate = attributes.expression(expression.text, on_error=context.on_error)
        yield MCP_TOOL, expression, allowed if context.deny else attributes.or_base_protocol(allowed)
        return
    tools = authorization["tools"]
    called = attributes.calls([tool.text for tool in tools], gateway_in=context.gateway_in)
    yield MCP_TOOL, tools, called if context.deny else attributes.or_base_protocol(called)


_PARTS: dict[str, Callable[[Node], tuple[Attribute, Predicate]]] = {
    "methods": attributes.methods,
    "paths": attributes.paths,
    "hosts": attributes.hosts,
    "ports": attributes.ports,
}


def _parts(rule: Node, context: _Context) -> Iterable[Part]:
    source = rule.get("source")
    if source is not None:
        yield _source(source, context)
    authorization = rule.get("authorization")
    if authorization is None:
        return
    if authorization["type"].text == "CEL":
        expression = authorization["cel"]["expression"]
        yield MCP_TOOL, expression, attributes.expression(expression.text, on_error=context.on_error)
        return
    for name, lower in _PARTS.items():
        node = authorization.get(name)
        if node is not None:
            attribute, predicate = lower(node)
            yield attribute, node, predicate
    headers = authorization.get("headers")
    for header in headers or ():
        attribute, predicate = attributes.header_match(header)
        yield attribute, header, predicate
    if headers is not None and not list(headers):
        yield attributes.NO_HEADER, headers, attributes.nothing()
    mcp = authorization.get("mcp")
    messages = attributes.mcp(mcp, gateway_in=context.gateway_in) if mcp is not None else ALWAYS
    if mcp is not None and messages != ALWAYS:
        yield MCP_TOOL, mcp, messages


def _authorizer(node: Node, context: _Context) -> AuthorizerReference:
    backend_ref = node["backendRef"]
    namespace, protocol = backend_ref.get("namespace"), ExternalProtocol(node["protocol"].text)
    path, size = inside(node, "http", "path"), inside(node, "forwardBody", "maxSize")
    external = ExternalAuthorizer(
        namespace.text if namespace is not None else context.namespace,
        backend_ref["name"].text,
        backend_ref["port"].number,
        protocol,
        path.text if path is not None else "",
        _names(inside(node, protocol.lower(), "allowedHeaders")),
        _names(inside(node, protocol.lower(), "allowedResponseHeaders")),
        size.number if size is not None else 0,
    )
    return AuthorizerReference(external, (context.ref.group, context.ref.kind, context.namespace))


def _names(headers: Node | None) -> frozenset[str]:
    return frozenset(header.text.lower() for header in headers or ())


def backend(document: Document, root: Node, settings: Settings) -> Backend:  # noqa: ARG001 - as all meanings
    """Read a Backend, which is an object of the cluster and no policy."""
    mcp = root["spec"]["mcp"]
    service, host, path = mcp.get("serviceName"), mcp.get("hostname"), mcp.get("path")
    return Backend(
        namespace=document.home,
        name=document.name,
        service_name=service.text if service is not None else None,
        hostname=host.text if host is not None else None,
        port=mcp["port"].number,
        path=path.text if path is not None else "/mcp",
        group=document.group,
        kind=document.kind,
        span=document.span,
    )


# Reads AccessPolicies and Backends: checks each against its shape, and builds its model.


BACKEND_SHAPE = shapes.BACKEND
POLICY_SHAPES = {
    (PROTOTYPE_GROUP, "v0alpha0"): shapes.V0ALPHA0,
    (NETWORKING_GROUP, "v0alpha0"): shapes.V0ALPHA0_CEL,
    (NETWORKING_GROUP, "v1alpha1"): shapes.V1ALPHA1,
}
_MEANINGS = {"v0alpha0": v0alpha0, "v1alpha1": v1alpha1}
_READERS = {(group, version): reader(shape, _MEANINGS[version]) for (group, version), shape in POLICY_SHAPES.items()}

read_backend = reader(BACKEND_SHAPE, backend)


def read_policy(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    """Return the policy in a document, if the document has no errors."""
    return _READERS[document.group, document.version](document, root, settings, reporter)
