"""The control plane that Envoy listens to: delta ADS over gRPC, with an account of what each proxy runs."""

from __future__ import annotations

from eastgate.xds.server.events import Acked, Connected, Disconnected, Event, Rejected
from eastgate.xds.server.limits import Limits
from eastgate.xds.server.metrics import Metrics
from eastgate.xds.server.resources import CLUSTER, ENDPOINTS, EXTENSION, LISTENER, ROUTE, SECRET, Key, Resource
from eastgate.xds.server.server import AdsServer
from eastgate.xds.server.status import ProxyStatus, Rejection, ResourceState, ResourceStatus
from eastgate.xds.server.store import Change, Store
from eastgate.xds.server.tokens import Tokens

__all__ = [
    "CLUSTER",
    "ENDPOINTS",
    "EXTENSION",
    "LISTENER",
    "ROUTE",
    "SECRET",
    "Acked",
    "AdsServer",
    "Change",
    "Connected",
    "Disconnected",
    "Event",
    "Key",
    "Limits",
    "Metrics",
    "ProxyStatus",
    "Rejected",
    "Rejection",
    "Resource",
    "ResourceState",
    "ResourceStatus",
    "Store",
    "Tokens",
]
