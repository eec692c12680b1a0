"""The standing of each listener of a Gateway: whether it is served, its references, and its routes.

This module decides nothing. The code that makes the configuration of proxies decides which listeners they open, with
which routes and certificates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_GROUP, Gateway, Listener, Route, World
from eastgate.cluster.routing.attachment import (
    attached_routes,
    distinct_listeners,
    is_http,
    is_tls,
    kinds_of,
    share_hostname,
)
from eastgate.cluster.routing.certificates import CertificateProblem, client_authorities, listener_certificates
from eastgate.control.gateway_nodes import ports_of_gateway
from eastgate.controller.conditions import StatusCondition
from eastgate.controller.gateways.pods import RESERVED_PORTS
from eastgate.controller.gateways.unsupported import unsupported_parts

LISTENER_CONDITIONS: Final = ("Accepted", "Programmed", "ResolvedRefs", "Conflicted")

_CERTIFICATE_REASONS: Final = {CertificateProblem.NOT_GRANTED: "RefNotPermitted"}
_AUTHORITY_REASONS: Final = {
    CertificateProblem.NOT_GRANTED: "RefNotPermitted",
    CertificateProblem.OTHER_KIND: "InvalidCACertificateKind",
}
_WORDS: Final = {
    CertificateProblem.OTHER_KIND: "is not a Secret",
    CertificateProblem.NOT_GRANTED: "is in another namespace, and no ReferenceGrant lets this Gateway refer to it",
    CertificateProblem.NOT_DECLARED: "does not exist",
    CertificateProblem.WRONG_TYPE: "is not of the type kubernetes.io/tls",
    CertificateProblem.NO_CERTIFICATE: "has no certificate",
    CertificateProblem.MALFORMED: "has no certificate with its key in PEM",
}


@dataclass(frozen=True, slots=True)
class ListenerStanding:
    """The standing of a listener. `routes` are the keys of its routes; `accepted_routes` is the number of supported
    ones.

    `is_open`: a port of the proxies belongs to the listener, so it can take routes. `is_usable`: it also accepts
    connections.
    """

    listener: Listener
    accepted: StatusCondition
    conflicted: StatusCondition
    resolved: StatusCondition
    routes: frozenset[str]
    accepted_routes: int
    is_open: bool
    is_usable: bool


def listener_standings(world: World, gateway: Gateway) -> tuple[ListenerStanding, ...]:
    """Return the standing of each listener of a Gateway, in order."""
    distinct = {listener.name for listener in distinct_listeners(gateway)}
    groups = ports_of_gateway(world, gateway).values()
    served = {listener.name for group in groups for listener in group.listeners}
    return tuple(_standing(world, gateway, listener, distinct, served) for listener in gateway.listeners)


def _standing(
    world: World, gateway: Gateway, listener: Listener, distinct: set[str], served: set[str]
) -> ListenerStanding:
    fault = _fault(listener, distinct, served)
    authority = next(_authority_faults(world, gateway, listener), None)
    broken = next(_certificate_faults(world, gateway, listener), None) or authority
    unresolved = broken or _unsupported_kinds(listener)
    if fault is None and authority is not None:
        accepted = StatusCondition.false("Accepted", "NoValidCACertificate", authority[1])
    elif fault is not None:
        accepted = StatusCondition.false("Accepted", *fault)
    else:
        accepted = StatusCondition.true("Accepted", "Accepted", _remark(listener))
    routes = _routes(world, gateway, listener) if fault is None else []
    conflicts = fault is not None and fault[0] in ("HostnameConflict", "ProtocolConflict")
    return ListenerStanding(
        listener,
        accepted,
        StatusCondition.true("Conflicted", *fault)
        if fault is not None and conflicts
        else StatusCondition.false("Conflicted", "NoConflicts"),
        StatusCondition.false("ResolvedRefs", *unresolved)
        if unresolved is not None
        else StatusCondition.true("ResolvedRefs", "ResolvedRefs"),
        frozenset(route.key for route in routes),
        sum(not unsupported_parts(route, world).is_whole for route in routes),
        is_open=fault is None,
        is_usable=fault is None and broken is None,
    )


def _routes(world: World, gateway: Gateway, listener: Listener) -> list[Route]:
    return [route for route in attached_routes(world, gateway, listener) if share_hostname(route, listener)]


_Fault = tuple[str, str]  # a reason and a message


def _fault(listener: Listener, distinct: set[str], served: set[str]) -> _Fault | None:
    """Return why no port of a proxy belongs to this listener, or None."""
    if not is_http(listener) and not is_tls(listener):
        return "UnsupportedProtocol", f"{listener.protocol} is not supported: only HTTP, HTTPS and TLS are"
    if listener.port in RESERVED_PORTS:
        return "PortUnavailable", f"port {listener.port} is reserved for the proxy itself"
    if listener.name not in distinct:
        return "HostnameConflict", f"another listener of port {listener.port} has the same hostname"
    if listener.name not in served:
        return "ProtocolConflict", f"an earlier listener of port {listener.port} has another protocol"
    if not is_http(listener) and not listener.passes_tls_through:
        return "UnsupportedValue", "TLS that is not HTTPS can only be passed through"
    return None


def _remark(listener: Listener) -> str:
    """Return the settings of a served listener that have no effect. The result is always stricter than the settings."""
    validation = listener.tls.client_validation if listener.tls is not None else None
    remarks = []
    if validation is not None and validation.insecure_fallback:
        remarks.append("AllowInsecureFallback is not supported: clients need a valid certificate")
    if validation is not None and len(validation.ca_certificates) > 1:
        remarks.append("only the first of caCertificateRefs is used")
    return "; ".join(remarks)


def _certificate_faults(world: World, gateway: Gateway, listener: Listener) -> Iterator[_Fault]:
    if listener.protocol.upper() == "HTTPS" and listener.tls is None:
        yield "InvalidCertificateRef", "HTTPS needs tls.certificateRefs"
    for named in listener_certificates(world, gateway, listener):
        if named.problem is not None:
            reason = _CERTIFICATE_REASONS.get(named.problem, "InvalidCertificateRef")
            reference = named.reference
            yield reason, f"{reference.kind} {reference.namespace}/{reference.name} {_WORDS[named.problem]}"


def _authority_faults(world: World, gateway: Gateway, listener: Listener) -> Iterator[_Fault]:
    for named in client_authorities(world, gateway, listener):
        if named.problem is not None:
            reason = _AUTHORITY_REASONS.get(named.problem, "InvalidCACertificateRef")
            reference = named.reference
            yield reason, f"{reference.kind} {reference.namespace}/{reference.name} {_WORDS[named.problem]}"


def _unsupported_kinds(listener: Listener) -> _Fault | None:
    taken = {(GATEWAY_GROUP, kind) for kind in kinds_of(listener)}
    others = [f"{kind}.{group}" for group, kind in listener.allowed_routes.kinds if (group, kind) not in taken]
    if not others:
        return None
    return "InvalidRouteKinds", f"a listener of {listener.protocol} takes no {', '.join(others)}"


def listener_conditions(standing: ListenerStanding, pending: str | None) -> tuple[StatusCondition, ...]:
    """Return the conditions of a listener. `pending` is why the proxies do not serve it yet, or None."""
    if not standing.is_usable:
        reason = standing.accepted if not standing.is_open else standing.resolved
        programmed = StatusCondition.false("Programmed", "Invalid", reason.message)
    elif pending is not None:
        programmed = StatusCondition.false("Programmed", "Pending", pending)
    else:
        programmed = StatusCondition.true("Programmed", "Programmed")
    return standing.accepted, programmed, standing.resolved, standing.conflicted


def listener_status(standing: ListenerStanding, conditions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the status of a listener with these conditions."""
    return {
        "name": standing.listener.name,
        "supportedKinds": [{"group": GATEWAY_GROUP, "kind": kind} for kind in kinds_of(standing.listener)],
        "attachedRoutes": standing.accepted_routes,
        "conditions": conditions,
    }
