"""Listeners of the Envoy under test that differ in their rules only. Envoy itself answers the requests."""

from __future__ import annotations

from pathlib import Path

from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from envoy.extensions.filters.http.set_filter_state.v3 import set_filter_state_pb2
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from bench.enforcement.origin import answered_by_envoy, answering
from bench.enforcement.rules import SETTINGS, authority_of, classic_rules
from eastgate.authority.authority import programs_of
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_listener import inbound_listener
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.logs import request_log
from eastgate.envoy.config.packing import pack, serialize
from eastgate.envoy.config.predicates import PEER_KEY
from eastgate.envoy.config.rbac import ATTRIBUTES, REQUESTS, filter_name
from eastgate.envoy.config.sidecar import inbound_resources, shared_resources
from eastgate.envoy.config.typed import filter_, message, typed
from eastgate.envoy.plan import ByCaller, Node, PortPlan, ProxyVerdict, Requests, plan_port
from eastgate.envoy.server.resources import EXTENSION, LISTENER, ROUTE, XdsResource
from eastgate.ir.symbolic.caller_cells import CallerCells

__all__ = [
    "NODE",
    "connection_resources",
    "eastgate_resources",
    "list_resources",
    "resources_without_rules",
    "single_listener_resources",
]

NODE = "shop/server-0"
_RBAC = "envoy.extensions.filters.http.rbac.v3.RBAC"


def eastgate_resources(address: str, port: int, rules: int, *, anything: bool = False) -> list[XdsResource]:
    """Return the resources that Eastgate makes from request policies."""
    program = programs_of(authority_of(rules, http=True, anything=anything)).program(NODE)
    return _chain(address, port, plan_port(program.layers, port, SETTINGS))


def resources_without_rules(address: str, port: int) -> list[XdsResource]:
    """Return the same listeners without rules. (Without an HTTP policy, Eastgate would not read HTTP.)"""
    cells = CallerCells(SETTINGS).cells(())
    open_to_all: Node = ProxyVerdict(True, 200, "open")
    anyone = ByCaller.of(cells, dict.fromkeys(cells, open_to_all))
    requests = Requests(anyone, None, None, None)
    return _with(
        _chain(address, port, PortPlan(port, anyone, anyone, requests, None, frozenset())),
        _extension(filter_name(port, ATTRIBUTES), set_filter_state_pb2.Config()),
        _extension(filter_name(port, REQUESTS), http_rbac_pb2.RBAC()),
    )


def list_resources(address: str, port: int, rules: int, *, anything: bool = False) -> list[XdsResource]:
    """Return the same listeners with a list of rules, and without the attributes that only our trees read."""
    made = classic_rules(rules, "filter_state", {"key": PEER_KEY}, "string_match", anything=anything)
    config = http_rbac_pb2.RBAC(rules=made)
    return _with(resources_without_rules(address, port), _extension(filter_name(port, REQUESTS), config))


def single_listener_resources(address: str, port: int, rules: int, *, anything: bool = False) -> list[XdsResource]:
    """Return one listener with TLS, HTTP and a list of rules on the certificate, as an Istio sidecar has it.

    TLS and the access log are the same as in our listeners.
    """
    made = classic_rules(rules, "authenticated", {}, "principal_name", anything=anything)
    ruled = {"rules": MessageToDict(made)} if rules else {}
    manager = answered_by_envoy(
        [filter_("rbac", typed(_RBAC, **ruled))], normalize_path=True, access_log=request_log(NODE, port)
    )
    outer: listener_pb2.Listener = inbound_listener(InboundPort(NODE, address, port, port))
    plain = MessageToDict(outer, preserving_proto_field_name=True)
    [tls] = [chain for chain in plain["filter_chains"] if chain["name"] == "tls"]
    tls["filters"] = [filter_("http", manager)]
    plain["filter_chains"] = [tls]
    del plain["default_filter_chain"]
    return [XdsResource(LISTENER, f"inbound/{port}", serialize(message(listener_pb2.Listener, plain)))]


def connection_resources(address: str, port: int, rules: int, app: Path) -> list[XdsResource]:
    """Return the resources that Eastgate makes from connection policies. Requests pass to an application, unread."""
    program = programs_of(authority_of(rules, http=False)).program(NODE)
    inbound = InboundPort(NODE, address, port, port)
    plan = plan_port(program.layers, port, SETTINGS)
    return list(inbound_resources(inbound, plan, SocketAddress(str(app)), shared_resources(plan)))


def _chain(address: str, port: int, plan: PortPlan) -> list[XdsResource]:
    """Return Eastgate's listeners, with routes that Envoy answers itself."""
    resources = list(
        inbound_resources(
            InboundPort(NODE, address, port, port), plan, SocketAddress("/nowhere"), shared_resources(plan)
        )
    )
    name = f"requests/{port}"
    return _with(resources, XdsResource(ROUTE, name, serialize(message(route_pb2.RouteConfiguration, answering(name)))))


def _with(resources: list[XdsResource], *others: XdsResource) -> list[XdsResource]:
    """Return the resources, with those of the same key replaced."""
    return list({one.key: one for one in (*resources, *others)}.values())


def _extension(name: str, config: Message) -> XdsResource:
    made = extension_pb2.TypedExtensionConfig(name=name, typed_config=pack(config))
    return XdsResource(EXTENSION, name, serialize(made))
