"""The control plane of Envoy: delta ADS over gRPC, with a record of the resources that each proxy runs."""

from __future__ import annotations

from eastgate.envoy.server.access_logs import OnRecord
from eastgate.envoy.server.events import Acked, Connected, Disconnected, Metrics, ResourceRejected, ServerEvent, Settled
from eastgate.envoy.server.limits import Limits
from eastgate.envoy.server.resources import (
    CLUSTER,
    ENDPOINTS,
    EXTENSION,
    LISTENER,
    ROUTE,
    SECRET,
    ResourceKey,
    XdsResource,
)
from eastgate.envoy.server.server import AdsServer
from eastgate.envoy.server.session import (
    AuthenticatedProxy,
    AuthenticationError,
    Authenticator,
    ProxyCredentials,
    UnavailableError,
)
from eastgate.envoy.server.status import ProxyStatus, ResourceRejection, ResourceState, ResourceStatus
from eastgate.envoy.server.store import Store, StoreChange
from eastgate.envoy.server.tokens import Tokens

__all__ = [
    "CLUSTER",
    "ENDPOINTS",
    "EXTENSION",
    "LISTENER",
    "ROUTE",
    "SECRET",
    "Acked",
    "AdsServer",
    "AuthenticatedProxy",
    "AuthenticationError",
    "Authenticator",
    "Connected",
    "Disconnected",
    "Limits",
    "Metrics",
    "OnRecord",
    "ProxyCredentials",
    "ProxyStatus",
    "ResourceKey",
    "ResourceRejected",
    "ResourceRejection",
    "ResourceState",
    "ResourceStatus",
    "ServerEvent",
    "Settled",
    "Store",
    "StoreChange",
    "Tokens",
    "UnavailableError",
    "XdsResource",
]
