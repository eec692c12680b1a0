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

__all__ = ["NODE", "resources_without_rules", "tool_rule_resources"]

NODE = f"gateway:{'/'.join(GATEWAY)}"
_SESSION_KEY = "0" * 64


def tool_rule_resources(address: str, port: int, server: Path, shape: str, rules: int) -> list[XdsResource]:
    """Return the resources that Eastgate makes from tool rules. Without rules, no policy reads messages."""
    authority = authority_of(port, shape, rules)
    site = GatewaySite(GatewayNamed(*GATEWAY), address, {port: port})
    group = ports_of_gateway(authority.world, authority.world.gateways["/".join(GATEWAY)])[port]
    plan = plan_gateway(authority, site, group, frozenset())
    inbound = InboundPort(NODE, address, port, port)
    resources = gateway_port_resources(inbound, plan, (), gateway_resources(plan, _SESSION_KEY))
    return _with(list(resources), *app_resources(port, SocketAddress(str(server))))


def resources_without_rules(address: str, port: int, server: Path, shape: str) -> list[XdsResource]:
    """Return the resources of a gateway that reads and notes all messages, as with rules, but has no rules."""
    name = filter_name(port, REQUESTS)
    empty = extension_pb2.TypedExtensionConfig(name=name, typed_config=pack(rbac_pb2.RBAC()))
    return _with(tool_rule_resources(address, port, server, shape, 10), XdsResource(EXTENSION, name, serialize(empty)))


def _with(resources: list[XdsResource], *others: XdsResource) -> list[XdsResource]:
    """Return the resources, with those of the same key replaced."""
    return list({each.key: each for each in (*resources, *others)}.values())
