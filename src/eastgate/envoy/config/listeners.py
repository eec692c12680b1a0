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

__all__ = ["closing_listener", "port_listeners"]


def port_listeners(inbound: InboundPort, plan: PortPlan) -> Iterator[XdsResource]:
    """Yield the listeners of a port."""
    before, behind = _policy_independent(inbound)
    yield before
    yield XdsResource(
        LISTENER, f"connections/{inbound.port}", serialize(connection_listener(inbound, plan)), plan.policies
    )
    if plan.reads_http:
        yield behind


@lru_cache(maxsize=4096)
def closing_listener(inbound: InboundPort) -> XdsResource:
    """Return the listener that closes a port, in place of the one that decides who may connect."""
    return XdsResource(LISTENER, f"connections/{inbound.port}", serialize(closing_connection_listener(inbound)))


@lru_cache(maxsize=4096)
def _policy_independent(inbound: InboundPort) -> tuple[XdsResource, XdsResource]:
    """Return the listeners of a port that no policy changes."""
    return (
        XdsResource(LISTENER, f"inbound/{inbound.port}", serialize(inbound_listener(inbound))),
        XdsResource(LISTENER, f"requests/{inbound.port}", serialize(request_listener(inbound))),
    )
