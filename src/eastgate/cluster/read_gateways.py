"""Gateways, routes and grants, from Kubernetes data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.regexes import regex
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, mapping, text
from eastgate.cluster.gateways import (
    GATEWAY_GROUP,
    AllowedRoutes,
    ClientValidation,
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ListenerTls,
    ParentRef,
    Route,
    RoutesFrom,
    TlsMode,
    TlsReference,
)
from eastgate.cluster.objects import moment
from eastgate.cluster.read_routes import GRPC_RULES, RULES, STREAM_RULES
from eastgate.cluster.routes import RouteRule
from eastgate.cluster.shapes import HOME, PORT, STRINGS, TEXT, TEXTS, Fields, Of, each, given, record
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.reading.manifests.placeholders import variable_in
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.reading import reader
from eastgate.reading.manifests.shapes.shape import Choice, Field, ListOf, Record, Text

_HOSTNAME = regex(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_HOSTNAME_CHARS = 253
_SELECTOR_FIELDS = ("matchLabels", "matchExpressions")
_REQUIRED: Of = Field(TEXT, required=True)


# Shapes


def _hostname_problems(hostname: str) -> Iterator[Problem]:
    """Yield the problems of a hostname. A hostname with a variable is unknown, which is no problem of the object."""
    if _HOSTNAME.fullmatch(hostname) and len(hostname) <= _MAX_HOSTNAME_CHARS:
        return
    if variable_in(hostname) is not None:
        return
    if hostname == "*":
        way_out = "leave the hostname out: none means any"
    elif _HOSTNAME.fullmatch(hostname.lower()):
        way_out = f"write {hostname.lower()}"
    else:
        way_out = "write a name such as www.example.com or *.example.com, without scheme, port and path"
    yield Problem(codes.BAD_HOSTNAME, f"`{hostname}` is not a hostname", way_out)


def _listener_problems(hostname: str) -> Iterator[Problem]:
    """Yield the problems of a listener. An empty hostname counts as absent."""
    return _hostname_problems(hostname) if hostname else iter(())


def _tls_problems(listener: Data) -> Iterator[Problem]:
    """Yield the problems of the TLS of a listener. HTTPS without certificates is never ready, but is no mistake."""
    protocol, tls = text(listener, "protocol"), listener.get("tls")
    if protocol in ("HTTP", "TCP", "UDP") and tls is not None:
        yield Problem(codes.BAD_VALUE, f"{protocol} has no TLS", "remove `tls`, or write HTTPS or TLS", ("tls",))
    elif protocol == "TLS" and tls is None:
        yield Problem(codes.MISSING, "a listener of TLS needs `tls`", "write `tls: {mode: Passthrough}`")
    elif protocol == "HTTPS" and mapping(listener, "tls").get("mode") == TlsMode.PASSTHROUGH:
        message = "HTTPS ends at the gateway"
        yield Problem(codes.BAD_VALUE, message, "write `mode: Terminate`, or `protocol: TLS`", ("tls", "mode"))
    if protocol in ("TCP", "UDP") and text(listener, "hostname"):
        yield Problem(codes.BAD_VALUE, f"{protocol} has no hostname", "remove the hostname", ("hostname",))


def _certificate_problems(tls: Data) -> Iterator[Problem]:
    ends_here = (text(tls, "mode") or TlsMode.TERMINATE) == TlsMode.TERMINATE
    if ends_here and not tls.get("certificateRefs") and not tls.get("options"):
        message = "TLS that ends at the gateway needs a certificate"
        yield Problem(codes.MISSING, message, "write `certificateRefs`, or `mode: Passthrough`")


def _selector_problems(selector: Data) -> Iterator[Problem]:
    for key in selector:
        if key not in _SELECTOR_FIELDS:
            meant = did_you_mean(key, _SELECTOR_FIELDS)
            way_out = f"write {meant}" if meant else f"write it under {' or '.join(_SELECTOR_FIELDS)}"
            yield Problem(codes.BAD_SELECTOR, f"a label selector has no field `{key}`", way_out, (key,))


def _requirement_problems(requirement: Data) -> Iterator[Problem]:
    operator = requirement.get("operator")
    lists = operator in (Operator.IN, Operator.NOT_IN)
    if operator in tuple(Operator) and lists != bool(requirement.get("values")):
        message = f"`{operator}` needs values" if lists else f"`{operator}` has no values"
        yield Problem(codes.BAD_SELECTOR, message, "list at least one value" if lists else "remove the values")


def _is_selected(namespaces: Data) -> bool:
    """Return whether namespaces are selected: otherwise a selector is ignored."""
    return namespaces.get("from") == RoutesFrom.SELECTOR


def _requirement(*, key: str, operator: Operator, values: tuple[str, ...] = ()) -> Requirement:
    return Requirement(key, operator, frozenset(values))


def _selector(
    *, match_labels: Mapping[str, str] | None = None, match_expressions: tuple[Requirement, ...] = ()
) -> Selector:
    return Selector.of(match_labels, match_expressions)


_REQUIREMENT = each(
    {"key": _REQUIRED, "operator": Field(Choice(tuple(Operator)), required=True), "values": TEXTS},
    Demand(_requirement_problems),
    make=_requirement,
)
_SELECTOR = record(
    {"matchExpressions": _REQUIREMENT, "matchLabels": STRINGS}, Demand(_selector_problems), make=_selector
)
_NAMESPACES = record(
    {
        "from": Field(Choice(tuple(RoutesFrom)), into="namespaces"),
        "selector": Field(_SELECTOR, required=True, when=_is_selected),
    }
)
# The empty group is the core group; only an absent group means Gateway API.
_KINDS = each({"group": TEXT, "kind": _REQUIRED}, make=lambda kind, group=GATEWAY_GROUP: (group, kind))
_TLS_REFERENCES = each({"group": TEXT, "kind": given(TEXT), "namespace": HOME, "name": _REQUIRED}, make=TlsReference)
_TLS = record(
    {
        "mode": Choice(tuple(TlsMode)),
        "certificateRefs": Field(_TLS_REFERENCES, into="certificates"),
        "options": STRINGS,
    },
    Demand(_certificate_problems),
    make=ListenerTls,
)


def _client_validation(*, ca_certificate_refs: tuple[TlsReference, ...], mode: str = "") -> ClientValidation:
    return ClientValidation(ca_certificate_refs, mode == "AllowInsecureFallback")


_VALIDATION = record(
    {
        "caCertificateRefs": Field(_TLS_REFERENCES, required=True),
        "mode": Choice(("AllowValidOnly", "AllowInsecureFallback")),
    },
    make=_client_validation,
)
_CLIENTS = record({"validation": _VALIDATION}, make=lambda validation=None: validation)
_LISTENER = each(
    {
        "name": _REQUIRED,
        "port": Field(PORT, required=True),
        "protocol": _REQUIRED,
        "hostname": given(Text("a hostname", Demand(_listener_problems))),
        "allowedRoutes": record({"namespaces": _NAMESPACES, "kinds": _KINDS}, make=AllowedRoutes),
        "tls": _TLS,
    },
    Demand(_tls_problems),
    make=Listener,
)
_PER_PORT = each({"port": Field(PORT, required=True), "tls": _CLIENTS}, make=lambda port, tls=None: (port, tls))
_GATEWAY_TLS = record({"frontend": record({"default": _CLIENTS, "perPort": _PER_PORT})})
GATEWAY = record(
    {
        "spec": record(
            {"listeners": _LISTENER, "gatewayClassName": Field(TEXT, into="gateway_class"), "tls": _GATEWAY_TLS}
        ),
        "metadata": record({"labels": STRINGS}),
    }
)
PARENTS = each(
    {
        "group": TEXT,
        "namespace": HOME,
        "name": _REQUIRED,
        "kind": given(TEXT),
        "sectionName": given(TEXT),
        "port": PORT,
    },
    make=ParentRef,
)
_ORIGINS = each({"group": TEXT, "kind": _REQUIRED, "namespace": _REQUIRED}, make=partial(GrantFrom, group=""))
_DESTINATIONS = each({"group": TEXT, "kind": _REQUIRED, "name": TEXT}, make=partial(GrantTo, group=""))
GRANT = record(
    {"spec": record({"from": Field(_ORIGINS, into="origins"), "to": Field(_DESTINATIONS, into="destinations")})}
)


def make_gateway(
    *,
    listeners: tuple[Listener, ...] = (),
    default: ClientValidation | None = None,
    per_port: tuple[tuple[int, ClientValidation | None], ...] = (),
    **fields: Any,
) -> Gateway:
    """Return a Gateway. Client validation of a port replaces the default. Only the first entry of a port counts."""
    validations = dict(reversed(per_port))
    return Gateway(
        listeners=tuple(
            replace(of, tls=replace(of.tls, client_validation=validations.get(of.port, default))) if of.tls else of
            for of in listeners
        ),
        **fields,
    )


def _route(kind: str, of_rules: ListOf[None], into: str, **defaults: Any) -> tuple[Record[None], Callable[..., Route]]:
    spec: Fields = {
        "hostnames": ListOf(Text("a hostname", Demand(_hostname_problems))),
        "parentRefs": Field(PARENTS, into="parents"),
        "rules": Field(of_rules, into=into),
    }
    created: Of = Field(Text(make=moment), into="created")
    shape = record({"spec": record(spec), "metadata": record({"creationTimestamp": created})})
    return shape, partial(Route, kind=kind, **defaults)


ROUTES: Mapping[str, tuple[Record[None], Callable[..., Route]]] = {
    # The API server adds a rule for all requests, which leads nowhere.
    "HTTPRoute": _route("HTTPRoute", RULES, "rules", rules=(RouteRule(),)),
    "GRPCRoute": _route("GRPCRoute", GRPC_RULES, "grpc_rules"),
    **{kind: _route(kind, STREAM_RULES, "stream_rules") for kind in ("TCPRoute", "TLSRoute")},
}
"""The shapes of the kinds of routes, and the functions that make their objects."""

read_parent: Callable[[object, str], ParentRef] = reader(PARENTS.item, checked=False)
"""Returns the parent of a route of this namespace, with the API server's defaults."""
