"""Everything that the proxy beside one workload is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from envoy.config.listener.v3 import listener_pb2

from eastgate.targets.envoy import PortPlan
from eastgate.xds.clusters import Address, Upstream, app_resources, inside, upstream_resources
from eastgate.xds.doors import PATIENCE, Door
from eastgate.xds.listeners import port_listeners
from eastgate.xds.packing import serialized
from eastgate.xds.rbac import connection_filters, request_filters
from eastgate.xds.server.resources import LISTENER, Resource
from eastgate.xds.tokens import TokenIdentity
from eastgate.xds.typed import ADS, filter_, message, typed

__all__ = ["OUTBOUND_PORT", "Outbound", "deciding", "inbound_resources", "outbound_resources"]

OUTBOUND_PORT = 15001


@dataclass(frozen=True, slots=True)
class Outbound:
    """The way out of a workload: a proxy on its own address, for its own application."""

    workload: str
    address: str
    port: int = OUTBOUND_PORT


def deciding(plan: PortPlan, tokens: TokenIdentity | None = None) -> tuple[Resource, ...]:
    """What all workloads with this plan have in common."""
    return (*connection_filters(plan), *request_filters(plan, tokens))


def inbound_resources(door: Door, plan: PortPlan, app: Address, decided: Iterable[Resource]) -> Iterator[Resource]:
    """One port: its listeners, what decides there, and the application behind it."""
    yield inside(f"connections/{door.port}")
    yield from app_resources(door.port, app)
    yield from port_listeners(door, plan)
    yield from decided
    if plan.reads_http:
        yield inside(f"requests/{door.port}")


def outbound_resources(out: Outbound, upstreams: Iterable[Upstream]) -> Iterator[Resource]:
    """What an application uses as its HTTP proxy: it finds the Service by the host, and speaks mTLS with it."""
    manager = typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="outbound",
        generate_request_id=False,
        **PATIENCE,
        rds={"config_source": ADS, "route_config_name": "outbound"},
        http_filters=[filter_("router", typed("envoy.extensions.filters.http.router.v3.Router"))],
    )
    plain = {
        "name": "outbound",
        "address": {"socket_address": {"address": out.address, "port_value": out.port}},
        "filter_chains": [{"name": "outbound", "filters": [filter_("http", manager)]}],
    }
    yield Resource(LISTENER, "outbound", serialized(message(listener_pb2.Listener, plain)))
    yield from upstream_resources(upstreams, out.address)
