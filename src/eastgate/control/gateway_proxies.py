"""The resources of gateways: the decisions at their ports, and the paths to their backends."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.control.closures import TRUST, closing_of, describe_gateway_closure
from eastgate.control.fleet import Fleet
from eastgate.control.gateways import handshakes_of, legs_of, secrets_of
from eastgate.envoy.config.client_certificates import OPTIONAL_TRUST
from eastgate.envoy.config.clusters import Upstream
from eastgate.envoy.config.gateway_filters import gateway_resources
from eastgate.envoy.config.gateway_port import gateway_port_resources
from eastgate.envoy.config.gateway_routes import (
    AuthorizerAddress,
    Leg,
    authorizer_resources,
    authorizer_service_resources,
    leg_resources,
)
from eastgate.envoy.config.hbone import tunnels_of
from eastgate.envoy.server.resources import SECRET, XdsResource
from eastgate.settings import McpDenials


def resources_of_gateway(fleet: Fleet, node: str) -> Iterator[XdsResource]:
    """Yield the resources of a gateway, and record which of its ports, routes and backends are closed."""
    site, authority, closures = fleet.gateways[node], fleet.authority, fleet.closures
    world, settings = authority.world, authority.settings
    trust = fleet.secrets_of(node, TRUST, (SECRET, OPTIONAL_TRUST))
    yield from _authorizer_resources(fleet)
    legs: list[Leg] = []
    closures.keep(node, site.ports)
    gateway, groups = world.gateways[site.key], fleet.plans.listeners(node)
    for port, bound in sorted(site.ports.items()):
        plan = fleet.plans.of_gateway(node, port)
        of_port = list(legs_of(plan, world, fleet.sites, settings))
        by_destination = {leg.destination: leg for leg in of_port}
        handshakes = handshakes_of(gateway, groups[port], plan.streams, by_destination, world, whole=site.in_pod)
        inbound = fleet.inbound(
            node, site, port, bound, handshakes=tuple(handshakes), trust_domain=settings.trust_domain
        )
        decisive = [
            *gateway_resources(plan, fleet.session_key, fleet.tokens),
            *secrets_of(gateway, groups[port], world),
        ]
        answers_messages = settings.mcp_denials is McpDenials.JSON_RPC
        resources = list(gateway_port_resources(inbound, plan, of_port, decisive, answers_messages))
        yield from closures.guard(node, port, resources, trust, closing_of(inbound))
        closure = describe_gateway_closure(authority, node, plan, groups[port], whole=site.in_pod)
        if closure is not None and ((node, port) not in closures.closed or not closure.parts):
            closures.closed[node, port] = closure
        legs += of_port
    yield from leg_resources(legs, site.source)
    yield from tunnels_of((leg.to for leg in legs if isinstance(leg.to, Upstream)), site.source)


def _authorizer_resources(fleet: Fleet) -> Iterator[XdsResource]:
    if isinstance(fleet.authorizer, AuthorizerAddress):
        yield from authorizer_service_resources(fleet.authorizer)
    elif fleet.authorizer is not None:
        yield from authorizer_resources(*fleet.authorizer)
