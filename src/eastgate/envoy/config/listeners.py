"""The three listeners of a port, one behind the other.

inbound/PORT      where callers connect: terminates TLS, and notes the peer
connections/PORT  decides who may connect
requests/PORT     decides HTTP requests one by one
app/PORT          the application
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from eastgate.envoy.config.connection_listener import closing_connection_listener, connection_listener
from eastgate.envoy.config.inbound_listener import inbound_listener
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.request_listener import request_listener
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.server.resources import LISTENER, XdsResource


def port_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    """Yield the listeners of a port."""
    yield from outer_listeners(inbound, plan)
    if plan.reads_http:
        yield _decide_requests(inbound)


def outer_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    """Yield the listeners before the one that reads HTTP."""
    yield _accept_connections(inbound)
    yield XdsResource(
        LISTENER, f"connections/{inbound.port}", serialize(connection_listener(inbound, plan)), plan.policies
    )


@lru_cache(maxsize=4096)
def closing_listener(inbound: InboundPort) -> XdsResource:
    """Return the listener that closes a port, in place of the one that decides who may connect."""
    return XdsResource(LISTENER, f"connections/{inbound.port}", serialize(closing_connection_listener(inbound)))


@lru_cache(maxsize=4096)
def _accept_connections(inbound: InboundPort) -> XdsResource:
    return XdsResource(LISTENER, f"inbound/{inbound.port}", serialize(inbound_listener(inbound)))


@lru_cache(maxsize=4096)
def _decide_requests(inbound: InboundPort) -> XdsResource:
    return XdsResource(LISTENER, f"requests/{inbound.port}", serialize(request_listener(inbound)))
