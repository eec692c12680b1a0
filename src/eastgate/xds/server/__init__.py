"""The control plane of Envoy: delta ADS over gRPC, with an account of what each proxy runs."""

from __future__ import annotations

from eastgate.xds.server.events import Acked, Connected, Disconnected, ResourceRejected, ServerEvent
from eastgate.xds.server.limits import Limits
from eastgate.xds.server.metrics import Metrics
from eastgate.xds.server.resources import CLUSTER, ENDPOINTS, EXTENSION, LISTENER, ROUTE, SECRET, Resource, ResourceKey
from eastgate.xds.server.server import AdsServer
from eastgate.xds.server.status import ProxyStatus, Rejection, ResourceState, ResourceStatus
from eastgate.xds.server.store import Store, StoreChange
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
    "Connected",
    "Disconnected",
    "Limits",
    "Metrics",
    "ProxyStatus",
    "Rejection",
    "Resource",
    "ResourceKey",
    "ResourceRejected",
    "ResourceState",
    "ResourceStatus",
    "ServerEvent",
    "Store",
    "StoreChange",
    "Tokens",
]
