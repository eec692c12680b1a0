"""The meaning of a checked document: the targets of the policy, and its rules as they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import moment
from eastgate.cluster.resources import is_audit
from eastgate.dialects.base import Read, reader
from eastgate.dialects.istio import authentication_shapes, shapes
from eastgate.dialects.istio.attributes import attributes_of_field, attributes_of_key
from eastgate.dialects.istio.model import (
    DRY_RUN,
    Action,
    HeaderLocation,
    IstioAuthorizationPolicy,
    IstioPolicy,
    JwtRule,
    MtlsMode,
    MtlsPort,
    PeerAuthentication,
    RequestAuthentication,
)
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.targets import read_refs, read_selector, targets_of
from eastgate.dialects.istio.validation import action_of, is_true
from eastgate.dialects.istio.written import (
    OPERATION_FIELDS,
    SOURCE_FIELDS,
    Fields,
    IstioRule,
    Values,
    When,
    WrittenValue,
    negated,
)
from eastgate.ir import Origin, PolicyRef
from eastgate.ir.attributes import Attribute
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings


def authorization_policy(document: Document, root: Node, settings: Settings) -> IstioAuthorizationPolicy:
    """Return an AuthorizationPolicy. A policy without a spec allows nothing."""
    namespace, spec = document.home, root.get("spec")
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    selector, refs, in_root = read_selector(spec), read_refs(spec), is_in_root(namespace, settings)
    nodes = spec.get("rules") if spec is not None else None
    provider = spec.get("provider") if spec is not None else None
    name = provider.get("name") if provider is not None else None
    dry_run = _is_dry_run(root)
    return IstioAuthorizationPolicy(
        ref=ref,
        span=document.span,
        targets=targets_of(namespace, selector, refs, in_root=in_root),
        audit=dry_run or is_audit(root),
        selector=selector,
        has_selector=spec is not None and "selector" in spec,
        refs=refs,
        in_root=in_root,
        created=created_at(root),
        action=Action(action_of(spec) if spec is not None else "ALLOW"),
        rules=tuple(_rule(ref, index, node) for index, node in enumerate(nodes or ())),
        provider=WrittenValue(name.text, name.span) if name is not None else None,
        dry_run=dry_run,
    )


def is_in_root(namespace: str, settings: Settings) -> bool:
    """Return whether a namespace is the root namespace, whose policies apply in all namespaces."""
    return namespace == settings.section(IstioSettings).root_namespace


def created_at(root: Node) -> str | None:
    """Return the creation time of an object, as a text that sorts by age."""
    created = root["metadata"].get("creationTimestamp")
    return moment(created.value) if created is not None else None


def _is_dry_run(root: Node) -> bool:
    annotations = root["metadata"].get("annotations")
    annotation = annotations.get(DRY_RUN) if annotations is not None else None
    return annotation is not None and is_true(annotation.text)


# Rules


def _rule(ref: PolicyRef, index: int, node: Node) -> IstioRule:
    sources, operations = _entries(node, "from", "source"), _entries(node, "to", "operation")
    conditions = tuple(_condition(entry) for entry in node.get("when") or ())
    parts = [
        *_parts(sources or (), SOURCE_FIELDS),
        *_parts(operations or (), OPERATION_FIELDS),
        *((attribute, entry.span) for entry in conditions for attribute in attributes_of_key(entry.key)),
    ]
    first = dict(reversed(parts))
    origin = Origin(ref, index, node.span, tuple(first.items()))
    return IstioRule(origin, sources, operations, conditions)


def _entries(rule: Node, name: str, part: str) -> tuple[Fields, ...] | None:
    if name not in rule:
        return None
    fields = SOURCE_FIELDS if part == "source" else OPERATION_FIELDS
    return tuple(dict(_fields(entry[part], fields)) for entry in rule[name])


def _fields(record: Node, fields: Iterable[str]) -> Iterator[tuple[str, Values]]:
    for field in fields:
        values = _values(record, field, negated(field))
        if values is not None:
            yield field, values


def _values(record: Node, positive: str, negative: str) -> Values | None:
    values, not_values = _texts(record.get(positive)), _texts(record.get(negative))
    if not values and not not_values:
        return None
    return Values(values, not_values, record[positive if values else negative].span)


def _texts(node: Node | None) -> tuple[WrittenValue, ...]:
    return tuple(WrittenValue(entry.text, entry.span) for entry in node or ())


def _condition(entry: Node) -> When:
    values = _values(entry, "values", "notValues")
    assert values is not None  # noqa: S101 - a condition without values has been reported
    return When(entry["key"].text, values, entry["key"].span)


def _parts(entries: Iterable[Fields], fields: Iterable[str]) -> Iterator[tuple[Attribute, Span]]:
    for entry in entries:
        for field in fields:
            if field in entry:
                yield from ((attribute, entry[field].span) for attribute in attributes_of_field(field))


# Meaning of RequestAuthentications and PeerAuthentications


def peer_authentication(document: Document, root: Node, settings: Settings) -> PeerAuthentication:
    """Return a PeerAuthentication. In the root namespace, Istio ignores a selector, so it selects nothing."""
    namespace, spec = document.home, root.get("spec")
    selector, in_root = read_selector(spec), is_in_root(namespace, settings)
    mtls = spec.get("mtls") if spec is not None else None
    ports = spec.get("portLevelMtls") if spec is not None else None
    ignored = in_root and bool(selector.match_labels)
    return PeerAuthentication(
        ref=PolicyRef(document.kind, namespace, document.name, document.group),
        span=document.span,
        targets=() if ignored else targets_of(namespace, selector, in_root=in_root, gateways=False),
        audit=is_audit(root),
        selector=selector,
        has_selector=spec is not None and "selector" in spec,
        in_root=in_root,
        created=created_at(root),
        mode=_mode(mtls),
        mode_span=mtls.span if mtls is not None else document.span,
        ports=tuple(MtlsPort(int(port), _mode(node), node.span) for port, node in ports.items()) if ports else (),
    )


def _mode(mtls: Node | None) -> MtlsMode:
    mode = mtls.get("mode") if mtls is not None else None
    return MtlsMode(mode.text) if mode is not None else MtlsMode.UNSET


def request_authentication(document: Document, root: Node, settings: Settings) -> RequestAuthentication:
    """Return a RequestAuthentication. Without rules it accepts no token, and refuses none."""
    namespace, spec = document.home, root.get("spec")
    selector, refs, in_root = read_selector(spec), read_refs(spec), is_in_root(namespace, settings)
    rules = spec.get("jwtRules") if spec is not None else None
    return RequestAuthentication(
        ref=PolicyRef(document.kind, namespace, document.name, document.group),
        span=document.span,
        targets=targets_of(namespace, selector, refs, in_root=in_root),
        audit=is_audit(root),
        selector=selector,
        has_selector=spec is not None and "selector" in spec,
        refs=refs,
        in_root=in_root,
        created=created_at(root),
        rules=tuple(_jwt_rule(node) for node in rules or ()),
    )


def _jwt_rule(node: Node) -> JwtRule:
    return JwtRule(
        span=node.span,
        issuer=_text(node, "issuer"),
        audiences=frozenset(_strings(node, "audiences")),
        jwks=_text(node, "jwks"),
        jwks_uri=_text(node, "jwksUri") or _text(node, "jwks_uri"),
        headers=tuple(
            HeaderLocation(each["name"].text.lower(), _text(each, "prefix") or "")
            for each in node.get("fromHeaders") or ()
        ),
        params=_strings(node, "fromParams"),
        cookies=_strings(node, "fromCookies"),
        space_delimited=frozenset(_strings(node, "spaceDelimitedClaims")),
        forwards="forwardOriginalToken" in node and node["forwardOriginalToken"].value is True,
    )


def _text(node: Node, name: str) -> str | None:
    value = node.get(name)
    return value.text or None if value is not None else None


def _strings(node: Node, name: str) -> tuple[str, ...]:
    return tuple(each.text for each in node.get(name) or ())


# Reading: the check of a document against its shape, and its meaning


_FORMS: dict[str, tuple[Record[Settings], Callable[[Document, Node, Settings], IstioPolicy]]] = {
    "AuthorizationPolicy": (shapes.AUTHORIZATION_POLICY, authorization_policy),
    "PeerAuthentication": (authentication_shapes.PEER_AUTHENTICATION, peer_authentication),
    "RequestAuthentication": (
        authentication_shapes.REQUEST_AUTHENTICATION,
        request_authentication,
    ),
}


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> IstioPolicy | None:
    """Return the policy of a document without errors."""
    return _reader(document.kind)(document, root, settings, reporter)


def shape_of(kind: str) -> Record[Settings]:
    """Return the shape of a kind."""
    return _FORMS[kind][0]


@cache
def _reader(kind: str) -> Read[IstioPolicy]:
    return reader(*_FORMS[kind])
