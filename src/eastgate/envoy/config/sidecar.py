"""The resources of the proxy beside one workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envoy.config.listener.v3 import listener_pb2

from eastgate.basics.records import dataclass
from eastgate.envoy.config.capture import capture_resource
from eastgate.envoy.config.clusters import (
    SocketAddress,
    Upstream,
    app_resources,
    internal_cluster,
    original_app_resources,
    upstream_resources,
)
from eastgate.envoy.config.inbound_port import ANY_PORT, TIMEOUTS, InboundPort
from eastgate.envoy.config.listeners import port_listeners
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.rbac import connection_filters, request_filters
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.config.typed import ADS, filter_, message, typed
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.server.resources import LISTENER, XdsResource

OUTBOUND_PORT = 15001


@dataclass(frozen=True, slots=True)
class Outbound:
    """The outbound listener of a workload: an HTTP proxy for its own application.

    `source` is the address to call from, which identifies the workload; None: any of its addresses.
    """

    address: str
    source: str | None
    port: int = OUTBOUND_PORT


def shared_resources(
    plan: PortPlan, tokens: TokenIdentity | None = None, name: str | None = None
) -> tuple[XdsResource, ...]:
    """Return the resources that all workloads with this plan share. `name` is the name of the port."""
    name = name or str(plan.port)
    return (*connection_filters(plan, name), *request_filters(plan, name, tokens))


def inbound_resources(
    inbound: InboundPort, plan: PortPlan, app: SocketAddress, shared: Iterable[XdsResource]
) -> Iterator[XdsResource]:
    """Yield the resources of one port: its listeners, its decisions, and the application behind it."""
    yield internal_cluster(f"connections/{inbound.name}")
    if inbound.capture is not None and inbound.port == ANY_PORT:
        yield internal_cluster(f"inbound/{ANY_PORT}")
        yield from original_app_resources()
        yield capture_resource(inbound)
    else:
        yield from app_resources(inbound.name, app)
    yield from port_listeners(inbound, plan)
    yield from shared
    if plan.reads_http:
        yield internal_cluster(f"requests/{inbound.name}")


def outbound_resources(out: Outbound, upstreams: Iterable[Upstream]) -> Iterator[XdsResource]:
    """Yield the resources of the HTTP proxy of an application: it routes by host to a Service, over mTLS."""
    manager = typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="outbound",
        generate_request_id=False,
        **TIMEOUTS,
        rds={"config_source": ADS, "route_config_name": "outbound"},
        http_filters=[filter_("router", typed("envoy.extensions.filters.http.router.v3.Router"))],
    )
    plain = {
        "name": "outbound",
        "address": {"socket_address": {"address": out.address, "port_value": out.port}},
        "filter_chains": [{"name": "outbound", "filters": [filter_("http", manager)]}],
    }
    yield XdsResource(LISTENER, "outbound", serialize(message(listener_pb2.Listener, plain)))
    yield from upstream_resources(upstreams, out.source)
