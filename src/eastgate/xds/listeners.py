"""The three listeners of a port, one behind the other.

inbound/PORT      where callers connect: ends TLS, and notes who is calling
connections/PORT  decides who may connect
requests/PORT     decides HTTP requests one by one
app/PORT          the application
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from eastgate.targets.envoy import PortPlan
from eastgate.xds.connections import closed_connections, connections
from eastgate.xds.doors import Door
from eastgate.xds.inbound import inbound
from eastgate.xds.packing import serialized
from eastgate.xds.requests import requests
from eastgate.xds.server.resources import LISTENER, Resource

__all__ = ["closing_listener", "port_listeners"]


def port_listeners(door: Door, plan: PortPlan) -> Iterator[Resource]:
    """The listeners of a port."""
    before, behind = _fixed(door)
    yield before
    yield Resource(LISTENER, f"connections/{door.port}", serialized(connections(door, plan)), plan.policies)
    if plan.reads_http:
        yield behind


@lru_cache(maxsize=4096)
def closing_listener(door: Door) -> Resource:
    """Return what closes a port, in place of the listener that decides who may connect."""
    return Resource(LISTENER, f"connections/{door.port}", serialized(closed_connections(door)))


@lru_cache(maxsize=4096)
def _fixed(door: Door) -> tuple[Resource, Resource]:
    """The listeners of a port that no policy changes."""
    return (
        Resource(LISTENER, f"inbound/{door.port}", serialized(inbound(door))),
        Resource(LISTENER, f"requests/{door.port}", serialized(requests(door))),
    )
