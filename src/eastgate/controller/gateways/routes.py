"""The status of routes, for each parent that is a Gateway of Eastgate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_GROUP, Gateway, ParentRef, Route, RouteBackend, World
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.read_gateways import read_parent
from eastgate.cluster.routing.attachment import Detachment, why_detached
from eastgate.cluster.routing.model import rules_of
from eastgate.controller.conditions import StatusCondition, merge_conditions
from eastgate.controller.gateways.listeners import ListenerStanding
from eastgate.controller.gateways.pods import CONTROLLER_NAME
from eastgate.controller.gateways.unsupported import unsupported_parts

_OWN_TYPES: Final = ("Accepted", "ResolvedRefs", "PartiallyInvalid")
_MAX_PARENTS: Final = 32
_UNSUPPORTED_PROTOCOLS: Final = {
    "HTTPRoute": ("kubernetes.io/h2c", "kubernetes.io/wss"),
    "GRPCRoute": ("kubernetes.io/wss",),
}
"""The backend protocols that a gateway does not support, by the kind of the route."""
_REASONS: Final = (
    (Detachment.HOSTNAME_TAKEN, "HostnameConflict", "an older route of another kind has some of its hostnames"),
    (Detachment.OTHER_HOSTNAME, "NoMatchingListenerHostname", "no listener has a hostname of this route"),
    (Detachment.OTHER_NAMESPACE, "NotAllowedByListeners", "no listener takes routes of this namespace"),
    (Detachment.OTHER_KIND, "NotAllowedByListeners", "no listener takes routes of this kind"),
)
"""The reasons for a route without a listener: the first one that applies to a listener counts."""


@dataclass(frozen=True, slots=True)
class GatewayStanding:
    """A Gateway of Eastgate with its listeners. Without `gateway`, it cannot be read, and takes no routes."""

    gateway: Gateway | None
    listeners: tuple[ListenerStanding, ...] = ()


def route_parents(
    route: Mapping[str, Any],
    gateways: Mapping[str, GatewayStanding],
    world: World,
    now: str,
    unreadable: str | None = None,
) -> list[dict[str, Any]]:
    """Return the `parents` of a route's status; the entries of other controllers stay as they are.

    `gateways` are those of Eastgate, by `namespace/name`. `unreadable` is why Eastgate cannot read the route, or None.
    """
    metadata, status = route["metadata"], route.get("status") or {}
    existing: Sequence[Mapping[str, Any]] = status.get("parents") or []
    before = [entry for entry in existing if entry.get("controllerName") == CONTROLLER_NAME]
    wanted = []
    for reference in (route.get("spec") or {}).get("parentRefs") or []:
        parent = read_parent(reference, metadata["namespace"])
        standing = gateways.get(f"{parent.namespace}/{parent.name}")
        if standing is None or (parent.group, parent.kind) != (GATEWAY_GROUP, "Gateway"):
            continue
        declared = world.routes.get(f"{route['kind']}/{metadata['namespace']}/{metadata['name']}")
        conditions = route_conditions(declared, parent, standing, world, unreadable, str(route["kind"]))
        previous = next((entry.get("conditions") for entry in before if entry.get("parentRef") == reference), None)
        generation = int(metadata.get("generation") or 0)
        wanted.append(
            {
                "parentRef": dict(reference),
                "controllerName": CONTROLLER_NAME,
                "conditions": merge_conditions(previous, conditions, generation, now, ours=_OWN_TYPES),
            }
        )
    return _merged(existing, wanted)


def _merged(existing: Sequence[Mapping[str, Any]], wanted: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all entries, each in its old place, up to the maximum number."""
    rest = list(wanted)
    merged: list[dict[str, Any]] = []
    for entry in existing:
        if entry.get("controllerName") != CONTROLLER_NAME:
            merged.append(dict(entry))
            continue
        same = next((own for own in rest if own["parentRef"] == entry.get("parentRef")), None)
        if same is not None:
            rest.remove(same)
            merged.append(same)
    return (merged + rest)[: max(_MAX_PARENTS, len(merged))]


def route_conditions(
    route: Route | None,
    parent: ParentRef,
    standing: GatewayStanding,
    world: World,
    unreadable: str | None = None,
    kind: str = "route",
) -> tuple[StatusCondition, ...]:
    """Return the conditions of a route at one of its parents."""
    if route is None:
        words = unreadable or f"Eastgate does not support {kind}"
        accepted = StatusCondition.false("Accepted", "UnsupportedValue", words)
        return accepted, StatusCondition.unknown("ResolvedRefs", "Pending", words)
    resolved = reference_condition(route, world)
    refusal = _refusal(route, parent, standing, world)
    if refusal is not None:
        return StatusCondition.false("Accepted", *refusal), resolved
    unsupported = unsupported_parts(route, world)
    accepted = StatusCondition.true("Accepted", "Accepted", _remark(route))
    if not unsupported.rules:
        return accepted, resolved
    if unsupported.is_whole:
        message = f"the gateway answers all requests with an error, since it does not support {unsupported}"
        return StatusCondition.false("Accepted", "UnsupportedValue", message), resolved
    message = f"Dropped Rules: the gateway answers with an error where it does not support {unsupported}"
    partially = StatusCondition.true("PartiallyInvalid", "UnsupportedValue", message)
    return accepted, resolved, partially


def _remark(route: Route) -> str:
    """Return the settings of a served route that have no effect at a gateway."""
    retried = [str(number) for number, rule in enumerate(rules_of(route)) if rule.retry is not None]
    return f"requests are not tried again: retry is not supported (rule {', '.join(retried)})" if retried else ""


def _refusal(route: Route, parent: ParentRef, standing: GatewayStanding, world: World) -> tuple[str, str] | None:
    """Return why no listener of a Gateway takes a route: a reason and a message."""
    if standing.gateway is None:
        return "Pending", "the Gateway cannot be read"
    reasons: set[Detachment] = set()
    closed: list[str] = []  # messages of listeners that would take the route
    others: list[str] = []
    for of_listener in standing.listeners:
        why = why_detached(world, standing.gateway, of_listener.listener, route, parent)
        if why is Detachment.OTHER_PARENT:
            continue
        if not of_listener.is_open:
            words = f"listener {of_listener.listener.name}: {of_listener.accepted.message}"
            (closed if why is None else others).append(words)
        elif why is None and route.key in of_listener.routes:
            return None
        else:
            reasons.add(why or Detachment.HOSTNAME_TAKEN)
    if closed and Detachment.HOSTNAME_TAKEN not in reasons:
        return "NotAllowedByListeners", "; ".join(closed)
    for detachment, reason, words in _REASONS:
        if detachment in reasons:
            return reason, words
    if others:
        return "NotAllowedByListeners", "; ".join(others)
    return "NoMatchingParent", "the Gateway has no listener of this name and port"


# References


def reference_condition(route: Route, world: World) -> StatusCondition:
    """Return the condition for the references of a route: whether they exist, are granted and are supported."""
    problems = [
        problem
        for rule in rules_of(route)
        for backend in rule.backends
        if (problem := _reference_problem(route, backend, world)) is not None
    ]
    if not problems:
        return StatusCondition.true("ResolvedRefs", "ResolvedRefs")
    words = "; ".join(dict.fromkeys(message for _, message in problems))
    return StatusCondition.false("ResolvedRefs", problems[0][0], words)


def _reference_problem(route: Route, ref: RouteBackend, world: World) -> tuple[str, str] | None:
    name = f"{ref.kind} {ref.namespace}/{ref.name}"
    is_service = (ref.group, ref.kind) == ("", "Service")
    if not is_service and ref.kind not in BACKEND_KINDS:
        return "InvalidKind", f"{ref.kind}.{ref.group} is not a kind of backend"
    if not world.granted(GATEWAY_GROUP, route.kind, route.namespace, ref.group, ref.kind, ref.namespace, ref.name):
        return "RefNotPermitted", f"no ReferenceGrant lets {route.kind}s of {route.namespace} refer to {name}"
    if not is_service:
        is_there = f"{ref.namespace}/{ref.name}" in world.backends
        return None if is_there else ("BackendNotFound", f"{name} does not exist")
    service = world.services.get(f"{ref.namespace}/{ref.name}")
    if service is None:
        return "BackendNotFound", f"{name} does not exist"
    if service.type == "ExternalName":
        return "BackendNotFound", f"{name} is an ExternalName, and leads to no pods"
    port = next((port for port in service.ports if port.port == ref.port), None)
    if port is None:
        return "BackendNotFound", f"{name} has no port {ref.port}"
    if port.app_protocol in _UNSUPPORTED_PROTOCOLS.get(route.kind, ()):
        return "UnsupportedProtocol", f"port {ref.port} of {name} speaks {port.app_protocol}"
    return None
