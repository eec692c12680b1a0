"""Ports of the gateway under test that differ in their tool rules only. All lead to one server, on a unix socket."""

from __future__ import annotations

from pathlib import Path

from envoy.config.core.v3 import extension_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2

from bench.gateway.tool_rules import GATEWAY, authority_of
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.gateway_nodes import ports_of_gateway
from eastgate.control.gateways import GatewaySite, plan_gateway
from eastgate.envoy.config.clusters import SocketAddress, app_resources
from eastgate.envoy.config.gateway_filters import gateway_resources
from eastgate.envoy.config.gateway_port import gateway_port_resources
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.packing import pack, serialize
from eastgate.envoy.config.rbac import REQUESTS, filter_name
from eastgate.envoy.server.resources import EXTENSION, XdsResource

__all__ = ["NODE", "ruled", "unruled"]

NODE = f"gateway:{'/'.join(GATEWAY)}"
_SESSION_KEY = "0" * 64


def ruled(address: str, port: int, server: Path, shape: str, rules: int) -> list[XdsResource]:
    """Return what Eastgate makes of tool rules; without any, of a gateway at which no policy looks at messages."""
    authority = authority_of(port, shape, rules)
    site = GatewaySite(GatewayNamed(*GATEWAY), address, {port: port})
    group = ports_of_gateway(authority.world, authority.world.gateways["/".join(GATEWAY)])[port]
    plan = plan_gateway(authority, site, group, frozenset())
    inbound = InboundPort(NODE, address, port, port)
    resources = gateway_port_resources(inbound, plan, (), gateway_resources(plan, _SESSION_KEY))
    return _with(list(resources), *app_resources(port, SocketAddress(str(server))))


def unruled(address: str, port: int, server: Path, shape: str) -> list[XdsResource]:
    """Return a gateway that reads messages and notes all of them, as with rules, and has nothing that decides."""
    name = filter_name(port, REQUESTS)
    empty = extension_pb2.TypedExtensionConfig(name=name, typed_config=pack(rbac_pb2.RBAC()))
    return _with(ruled(address, port, server, shape, 10), XdsResource(EXTENSION, name, serialize(empty)))


def _with(resources: list[XdsResource], *others: XdsResource) -> list[XdsResource]:
    """Return them, some of them replaced."""
    return list({each.key: each for each in (*resources, *others)}.values())
