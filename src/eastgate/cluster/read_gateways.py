"""Gateways, routes and grants out of Kubernetes data."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.regexes import regex
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, entries, mapping, number, strings, text, texts
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
    ReferenceGrant,
    Route,
    RoutesFrom,
    TlsMode,
    TlsReference,
)
from eastgate.cluster.objects import moment
from eastgate.cluster.read_routes import (
    GRPC_RULES,
    RULES,
    STREAM_RULES,
    read_grpc_rules,
    read_rules,
    read_stream_rules,
)
from eastgate.cluster.shapes import PORT, STRINGS, TEXT, TEXTS, AnyShape, Of, each, record
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Choice, Field, ListOf, Record, Text

_HOSTNAME = regex(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_HOSTNAME = 253
_SELECTOR_FIELDS = ("matchLabels", "matchExpressions")
_REQUIRED: Of = Field(TEXT, required=True)


# Shapes


def _hostname_problems(hostname: str) -> Iterator[Problem]:
    if _HOSTNAME.fullmatch(hostname) and len(hostname) <= _LONGEST_HOSTNAME:
        return
    if hostname == "*":
        way_out = "leave the hostname out: none means any"
    elif _HOSTNAME.fullmatch(hostname.lower()):
        way_out = f"write {hostname.lower()}"
    else:
        way_out = "write a name such as www.example.com or *.example.com, without scheme, port and path"
    yield Problem(codes.BAD_HOSTNAME, f"`{hostname}` is not a hostname", way_out)


def _listener_problems(hostname: str) -> Iterator[Problem]:
    """Yield what is wrong with a listener, to which the empty hostname is as good as absent."""
    return _hostname_problems(hostname) if hostname else iter(())


def _tls_problems(listener: Data) -> Iterator[Problem]:
    """Yield what is wrong with the TLS of a listener. One of HTTPS without any is never ready, but is no mistake."""
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


_REQUIREMENT = each(
    {"key": _REQUIRED, "operator": Field(Choice(tuple(Operator)), required=True), "values": TEXTS},
    Demand(_requirement_problems),
)
_SELECTOR = record({"matchExpressions": _REQUIREMENT, "matchLabels": STRINGS}, Demand(_selector_problems))
_NAMESPACES = record(
    {"from": Choice(tuple(RoutesFrom)), "selector": Field(_SELECTOR, required=True, when=_is_selected)}
)
_TLS_REFERENCES = each({"group": TEXT, "kind": TEXT, "namespace": TEXT, "name": _REQUIRED})
_TLS = record(
    {"mode": Choice(tuple(TlsMode)), "certificateRefs": _TLS_REFERENCES, "options": STRINGS},
    Demand(_certificate_problems),
)
_CLIENTS = record(
    {
        "validation": record(
            {
                "caCertificateRefs": Field(_TLS_REFERENCES, required=True),
                "mode": Choice(("AllowValidOnly", "AllowInsecureFallback")),
            }
        )
    }
)
_LISTENER = each(
    {
        "name": _REQUIRED,
        "port": Field(PORT, required=True),
        "protocol": _REQUIRED,
        "hostname": Text("a hostname", Demand(_listener_problems)),
        "allowedRoutes": record({"namespaces": _NAMESPACES, "kinds": each({"group": TEXT, "kind": _REQUIRED})}),
        "tls": _TLS,
    },
    Demand(_tls_problems),
)
_GATEWAY_TLS = record(
    {
        "frontend": record(
            {"default": _CLIENTS, "perPort": each({"port": Field(PORT, required=True), "tls": _CLIENTS})},
        )
    }
)
GATEWAY = record(
    {
        "spec": record({"listeners": _LISTENER, "gatewayClassName": TEXT, "tls": _GATEWAY_TLS}),
        "metadata": record({"labels": STRINGS}),
    }
)
_PARENTS = each({"group": TEXT, "namespace": TEXT, "name": _REQUIRED, "kind": TEXT, "sectionName": TEXT, "port": PORT})
_RULES: dict[str, ListOf[None]] = {"HTTPRoute": RULES, "GRPCRoute": GRPC_RULES}
GRANT = record(
    {
        "spec": record(
            {
                "from": each({"group": TEXT, "kind": _REQUIRED, "namespace": _REQUIRED}),
                "to": each({"group": TEXT, "kind": _REQUIRED, "name": TEXT}),
            }
        )
    }
)


def route_shape(kind: str) -> Record[None]:
    """Return the shape of a kind of route."""
    spec: dict[str, Of | AnyShape] = {
        "hostnames": ListOf(Text("a hostname", Demand(_hostname_problems))),
        "parentRefs": _PARENTS,
        "rules": _RULES.get(kind, STREAM_RULES),
    }
    return record({"spec": record(spec), "metadata": record({"creationTimestamp": TEXT})})


# Meaning


def read_gateway(root: Data, namespace: str, name: str, span: Span | None) -> Gateway:
    """Return a Gateway."""
    spec = mapping(root, "spec")
    listeners = tuple(
        Listener(
            name=text(listener, "name") or "",
            port=number(listener, "port") or 0,
            protocol=text(listener, "protocol") or "",
            hostname=text(listener, "hostname") or None,
            allowed_routes=_allowed_routes(mapping(listener, "allowedRoutes")),
            tls=_tls(listener, namespace, mapping(mapping(spec, "tls"), "frontend")),
        )
        for listener in entries(spec, "listeners")
    )
    labels = strings(mapping(root, "metadata"), "labels")
    return Gateway(namespace, name, listeners, text(spec, "gatewayClassName") or "", labels, span)


def _tls(listener: Data, namespace: str, frontend: Data) -> ListenerTls | None:
    if listener.get("tls") is None:
        return None
    tls = mapping(listener, "tls")
    return ListenerTls(
        mode=TlsMode(text(tls, "mode") or TlsMode.TERMINATE),
        certificates=_tls_references(tls, "certificateRefs", namespace),
        options=strings(tls, "options"),
        client_validation=_client_validation(frontend, number(listener, "port"), namespace),
    )


def _client_validation(frontend: Data, port: int | None, namespace: str) -> ClientValidation | None:
    """Return how the certificates of clients are looked at on a port. What is said of the port is all that counts."""
    of_port = [mapping(entry, "tls") for entry in entries(frontend, "perPort") if number(entry, "port") == port]
    clients = of_port[0] if of_port else mapping(frontend, "default")
    if clients.get("validation") is None:
        return None
    validation = mapping(clients, "validation")
    return ClientValidation(
        _tls_references(validation, "caCertificateRefs", namespace), validation.get("mode") == "AllowInsecureFallback"
    )


def _tls_references(data: Data, key: str, namespace: str) -> tuple[TlsReference, ...]:
    return tuple(
        TlsReference(
            namespace=text(reference, "namespace") or namespace,
            name=text(reference, "name") or "",
            group=text(reference, "group") or "",
            kind=text(reference, "kind") or "Secret",
        )
        for reference in entries(data, key)
    )


def _allowed_routes(allowed: Data) -> AllowedRoutes:
    namespaces = mapping(allowed, "namespaces")
    origin = RoutesFrom(text(namespaces, "from") or RoutesFrom.SAME)
    selector = _selector(mapping(namespaces, "selector")) if origin is RoutesFrom.SELECTOR else None
    kinds = tuple((_group(kind), text(kind, "kind") or "") for kind in entries(allowed, "kinds"))
    return AllowedRoutes(origin, selector, kinds)


def _selector(selector: Data) -> Selector:
    requirements = [
        Requirement(text(term, "key") or "", Operator(text(term, "operator") or ""), frozenset(texts(term, "values")))
        for term in entries(selector, "matchExpressions")
    ]
    return Selector.of(strings(selector, "matchLabels"), requirements)


def _group(reference: Data) -> str:
    """Return the group of a reference. The empty group is the core group; only an absent one means Gateway API."""
    group = text(reference, "group")
    return GATEWAY_GROUP if group is None else group


def read_route(kind: str, root: Data, namespace: str, name: str, span: Span | None) -> Route:
    """Return a route of any kind."""
    spec = mapping(root, "spec")
    return Route(
        kind=kind,
        namespace=namespace,
        name=name,
        hostnames=texts(spec, "hostnames"),
        parents=tuple(read_parent(parent, namespace) for parent in entries(spec, "parentRefs")),
        rules=read_rules(spec, namespace) if kind == "HTTPRoute" else (),
        grpc_rules=read_grpc_rules(spec, namespace) if kind == "GRPCRoute" else (),
        stream_rules=read_stream_rules(spec, namespace) if kind in ("TCPRoute", "TLSRoute") else (),
        created=moment(mapping(root, "metadata").get("creationTimestamp")),
        span=span,
    )


def read_parent(parent: Data, own_namespace: str) -> ParentRef:
    """Return the parent of a route."""
    return ParentRef(
        namespace=text(parent, "namespace") or own_namespace,
        name=text(parent, "name") or "",
        group=_group(parent),
        kind=text(parent, "kind") or "Gateway",
        section_name=text(parent, "sectionName") or None,
        port=number(parent, "port"),
    )


def read_grant(root: Data, namespace: str, name: str, span: Span | None) -> ReferenceGrant:
    """Return a ReferenceGrant."""
    spec = mapping(root, "spec")
    origins = tuple(
        GrantFrom(text(origin, "group") or "", text(origin, "kind") or "", text(origin, "namespace") or "")
        for origin in entries(spec, "from")
    )
    destinations = tuple(
        GrantTo(text(destination, "group") or "", text(destination, "kind") or "", text(destination, "name"))
        for destination in entries(spec, "to")
    )
    return ReferenceGrant(namespace, name, origins, destinations, span)
