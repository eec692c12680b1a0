"""All resources of one port of a gateway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from eastgate.envoy.config.clusters import internal_cluster
from eastgate.envoy.config.gateway_filters import OWN_HEADERS, gateway_filters, json_rpc_reply
from eastgate.envoy.config.gateway_routes import Leg, gateway_routes
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.listeners import outer_listeners
from eastgate.envoy.config.logs import GATEWAY_FIELDS
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.request_listener import build_request_listener
from eastgate.envoy.plan.gateway import GatewayPlan
from eastgate.envoy.server.resources import LISTENER, XdsResource


def gateway_port_resources(
    inbound: InboundPort,
    plan: GatewayPlan,
    legs: Iterable[Leg],
    filters: Iterable[XdsResource],
    answers_messages: bool = True,
) -> Iterator[XdsResource]:
    """Yield the resources of a port: its listeners, its decisions, and its routes.

    `answers_messages`: a denied message gets a JSON-RPC error, not a plain status.
    """
    yield internal_cluster(f"connections/{inbound.name}")
    yield internal_cluster(f"requests/{inbound.name}")
    yield from outer_listeners(inbound, plan.port)
    yield _request_listener(inbound, answers_messages and plan.reads_messages)
    yield from filters
    yield gateway_routes(inbound.port, _scheme(inbound), legs)


@lru_cache(maxsize=1024)
def _request_listener(inbound: InboundPort, answers_messages: bool) -> XdsResource:
    filters = gateway_filters(inbound)
    replies = [json_rpc_reply()] if answers_messages else []
    listener = build_request_listener(inbound, filters, replies, (OWN_HEADERS,), GATEWAY_FIELDS, _scheme(inbound))
    return XdsResource(LISTENER, f"requests/{inbound.name}", serialize(listener))


def _scheme(inbound: InboundPort) -> str:
    return "https" if inbound.handshakes else "http"
