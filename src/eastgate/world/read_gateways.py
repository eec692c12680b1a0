"""Gateways, routes and grants out of Kubernetes data."""

from __future__ import annotations

import re

from eastgate.diagnostics import did_you_mean
from eastgate.places import Span
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.gateways import (
    GATEWAY_GROUP,
    AllowedRoutes,
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ParentRef,
    ReferenceGrant,
    Route,
    RoutesFrom,
)
from eastgate.world.labels import Operator, Requirement, Selector
from eastgate.world.objects import moment
from eastgate.world.read_routes import read_grpc_rules, read_rules

__all__ = ["read_gateway", "read_grant", "read_route"]

_HOSTNAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_HOSTNAME = 253
_SELECTOR_FIELDS = ("matchLabels", "matchExpressions")


def read_gateway(root: Section, namespace: str, name: str, span: Span | None) -> Gateway:
    """A Gateway."""
    spec = root.section("spec")
    listeners = tuple(
        Listener(
            name=listener.required_text("name"),
            port=listener.required_port("port"),
            protocol=listener.required_text("protocol"),
            hostname=_listener_hostname(listener),
            allowed_routes=_allowed_routes(listener.section("allowedRoutes")),
        )
        for listener in spec.sections("listeners")
    )
    labels = root.section("metadata").strings("labels")
    return Gateway(namespace, name, listeners, spec.text("gatewayClassName") or "", labels, span)


def _allowed_routes(allowed: Section) -> AllowedRoutes:
    namespaces = allowed.section("namespaces")
    origin = RoutesFrom(namespaces.choice("from", list(RoutesFrom)) or RoutesFrom.SAME)
    selector = None
    if origin is RoutesFrom.SELECTOR:  # elsewhere it is ignored
        if not namespaces.has("selector"):
            namespaces.missing("selector")
        selector = _selector(namespaces.section("selector"))
    kinds = []
    for one in allowed.sections("kinds"):
        group = one.text("group")
        kinds.append((GATEWAY_GROUP if group is None else group, one.required_text("kind")))
    return AllowedRoutes(origin, selector, tuple(kinds))


def _selector(selector: Section) -> Selector:
    for key in selector.data:
        if key not in _SELECTOR_FIELDS:
            meant = did_you_mean(key, _SELECTOR_FIELDS)
            way_out = f"write {meant}" if meant else f"write it under {' or '.join(_SELECTOR_FIELDS)}"
            selector.complain(codes.BAD_SELECTOR, f"a label selector has no field `{key}`", key, help=way_out)
    expressions = [_requirement(one) for one in selector.sections("matchExpressions")]
    return Selector.of(selector.strings("matchLabels"), expressions)


def _requirement(one: Section) -> Requirement:
    key = one.required_text("key")
    if not one.has("operator"):
        one.missing("operator")
    operator, values = one.choice("operator", list(Operator)), frozenset(one.texts("values"))
    lists = operator in (Operator.IN, Operator.NOT_IN)
    if operator is not None and lists != bool(one.data.get("values")):
        said = f"`{operator}` needs values" if lists else f"`{operator}` has no values"
        way_out = "list at least one value" if lists else "remove the values"
        one.complain(codes.BAD_SELECTOR, said, help=way_out)
    return Requirement(key, Operator(operator or Operator.IN), values)


def read_route(kind: str, root: Section, namespace: str, name: str, span: Span | None) -> Route:
    """A route of any kind."""
    spec = root.section("spec")
    return Route(
        kind=kind,
        namespace=namespace,
        name=name,
        hostnames=_route_hostnames(spec),
        parents=tuple(_parent(parent, namespace) for parent in spec.sections("parentRefs")),
        rules=read_rules(spec, namespace) if kind == "HTTPRoute" else (),
        grpc_rules=read_grpc_rules(spec) if kind == "GRPCRoute" else (),
        raw_rules=tuple(rule.data for rule in spec.sections("rules")) if kind in ("TCPRoute", "TLSRoute") else (),
        created=moment(root.section("metadata").text("creationTimestamp")),
        span=span,
    )


def _listener_hostname(listener: Section) -> str | None:
    hostname = listener.text("hostname")
    if hostname:
        _check_hostname(listener, hostname, "hostname")
    return hostname or None


def _route_hostnames(spec: Section) -> tuple[str, ...]:
    hostnames = spec.texts("hostnames")
    written = spec.data.get("hostnames")
    for position, hostname in enumerate(written if isinstance(written, list) else ()):
        if isinstance(hostname, str):
            _check_hostname(spec, hostname, "hostnames", position)
    return hostnames


def _check_hostname(section: Section, hostname: str, *below: str | int) -> None:
    if _HOSTNAME.fullmatch(hostname) and len(hostname) <= _LONGEST_HOSTNAME:
        return
    if hostname == "*":
        way_out = "leave the hostname out: none means any"
    elif _HOSTNAME.fullmatch(hostname.lower()):
        way_out = f"write {hostname.lower()}"
    else:
        way_out = "write a name such as www.example.com or *.example.com, without scheme, port and path"
    section.complain(codes.BAD_HOSTNAME, f"`{hostname}` is not a hostname", *below, help=way_out)


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
