"""The three listeners of a port, one behind the other.

inbound/PORT      accepts callers: terminates TLS, and notes the peer
connections/PORT  decides about connections
requests/PORT     decides HTTP requests one by one
app/PORT          the application
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from google.protobuf.message import DecodeError

from eastgate.envoy.config.connection_listener import closing_connection_listener, connection_listener
from eastgate.envoy.config.inbound_listener import inbound_listener, tunnelled_listener
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.request_listener import request_listener
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.server.resources import EXTENSION, LISTENER, XdsResource

# Envoy accepts resources up to these limits of size and depth. Larger ones are not sent.


LARGEST: Final = 64 * 1024 * 1024  # bytes
_RULES: Final = (http_rbac_pb2.RBAC, network_rbac_pb2.RBAC)


def find_obstacle(resource: XdsResource) -> str | None:
    """Return the reason why a proxy would not accept a resource, or None.

    Protobuf parses messages up to a depth of 100, here as in Envoy: a message that fails here would fail there.
    """
    if resource.size > LARGEST:
        return f"{resource.name} has {resource.size} bytes, more than {LARGEST}"
    try:
        if resource.type_url == LISTENER:
            listener_pb2.Listener.FromString(resource.body)
        elif resource.type_url == EXTENSION:
            packed = extension_pb2.TypedExtensionConfig.FromString(resource.body).typed_config
            for kind in _RULES:
                packed.Unpack(kind())
    except DecodeError as error:
        return f"{resource.name} is nested too deeply ({error})"
    return None


def port_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    """Yield the listeners of a port."""
    yield accepting_listener(inbound)
    yield from _deciding_listeners(inbound, plan)


def inner_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    """Yield the listeners of a port that is reached through tunnels."""
    yield XdsResource(LISTENER, f"tunnelled/{inbound.name}", serialize(tunnelled_listener(inbound)))
    yield from _deciding_listeners(inbound, plan)


def _deciding_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    yield _decide_connections(inbound, plan)
    if plan.reads_http:
        yield _decide_requests(inbound)


def outer_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    """Yield the listeners before the one that reads HTTP."""
    yield accepting_listener(inbound)
    yield _decide_connections(inbound, plan)


def _decide_connections(inbound: InboundPort, plan: PortPlan) -> XdsResource:
    listener = connection_listener(inbound, plan)
    return XdsResource(LISTENER, f"connections/{inbound.name}", serialize(listener), plan.policies)


@lru_cache(maxsize=4096)
def closing_listener(inbound: InboundPort) -> XdsResource:
    """Return the listener that closes a port, in place of the one that decides about connections."""
    return XdsResource(LISTENER, f"connections/{inbound.name}", serialize(closing_connection_listener(inbound)))


@lru_cache(maxsize=4096)
def accepting_listener(inbound: InboundPort) -> XdsResource:
    """Return the listener where callers connect."""
    return XdsResource(LISTENER, f"inbound/{inbound.name}", serialize(inbound_listener(inbound)))


@lru_cache(maxsize=4096)
def _decide_requests(inbound: InboundPort) -> XdsResource:
    return XdsResource(LISTENER, f"requests/{inbound.name}", serialize(request_listener(inbound)))
