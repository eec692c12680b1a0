"""Gateways, routes and grants out of Kubernetes data."""

from __future__ import annotations

from eastgate.places import Span
from eastgate.world.fields import Section
from eastgate.world.gateways import (
    GATEWAY_GROUP,
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ParentRef,
    ReferenceGrant,
    Route,
)

__all__ = ["read_gateway", "read_grant", "read_route"]


def read_gateway(root: Section, namespace: str, name: str, span: Span | None) -> Gateway:
    """A Gateway."""
    spec = root.section("spec")
    listeners = tuple(
        Listener(
            name=listener.required_text("name"),
            port=listener.required_port("port"),
            protocol=listener.required_text("protocol"),
            hostname=listener.text("hostname") or None,
        )
        for listener in spec.sections("listeners")
    )
    labels = root.section("metadata").strings("labels")
    return Gateway(namespace, name, listeners, spec.text("gatewayClassName") or "", labels, span)


def read_route(kind: str, root: Section, namespace: str, name: str, span: Span | None) -> Route:
    """A route of any kind."""
    spec = root.section("spec")
    return Route(
        kind=kind,
        namespace=namespace,
        name=name,
        hostnames=spec.texts("hostnames"),
        parents=tuple(_parent(parent, namespace) for parent in spec.sections("parentRefs")),
        rules=tuple(rule.data for rule in spec.sections("rules")),
        span=span,
    )


def _parent(parent: Section, own_namespace: str) -> ParentRef:
    group = parent.text("group")
    return ParentRef(
        namespace=parent.text("namespace") or own_namespace,
        name=parent.required_text("name"),
        # The empty group is the core group; only an absent one means Gateway API.
        group=GATEWAY_GROUP if group is None else group,
        kind=parent.text("kind") or "Gateway",
        section_name=parent.text("sectionName") or None,
        port=parent.port("port"),
    )


def read_grant(root: Section, namespace: str, name: str, span: Span | None) -> ReferenceGrant:
    """A ReferenceGrant."""
    spec = root.section("spec")
    origins = tuple(
        GrantFrom(origin.text("group") or "", origin.required_text("kind"), origin.required_text("namespace"))
        for origin in spec.sections("from")
    )
    destinations = tuple(
        GrantTo(destination.text("group") or "", destination.required_text("kind"), destination.text("name"))
        for destination in spec.sections("to")
    )
    return ReferenceGrant(namespace, name, origins, destinations, span)
