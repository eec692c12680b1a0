"""The inbound port of a workload, and the common settings of its listeners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.envoy.config.tokens import TokenIdentity

# Time for detecting TLS or HTTP; after it, the connection counts as another protocol. If the server speaks first, its
# client is silent for that time. So the time is short at the usual ports of such servers: Linkerd's default ports for
# databases and mail.
_DETECTION_TIMEOUT, _SHORT_DETECTION_TIMEOUT = "10s", "1s"
_SERVER_FIRST = frozenset({25, 587, 3306, 4444, 5432, 6379, 9300, 11211})
# For listeners that read HTTP. A request, or a connection that is not HTTP, ends after an hour without a byte in either
# direction. A refusal with `Connection: close` keeps the connection open for five seconds, or until the client closes
# it; then the rest of the answer is dropped.
TIMEOUTS = {"stream_idle_timeout": "3600s", "delayed_close_timeout": "5s"}
HEADERS = "30s"  # from the first byte of a request to the last of its headers
NETWORK = "envoy.extensions.filters.network"
HTTP = "envoy.extensions.filters.http"
SVID = "svid"  # the secret of a proxy with one identity
ANY_PORT = 0  # all ports of a pod that have no listener of their own
# For listeners that get redirected connections, or that are not redirected. With SO_REUSEPORT, any process of the
# proxy's user could listen there too, and clients would reach it past all policies.
UNSHARED = {"enable_reuse_port": False}


@dataclass(frozen=True, slots=True)
class Handshake:
    """The treatment of connections with a server name in their TLS handshake, at a gateway's port; None: with any name.

    - `certificates` are the names of secrets; without any, the gateway's own is used.
    - `clients` is the secret with the CAs of client certificates. Only such clients are allowed, without an identity.
    - `clusters`, with their weights: TLS is passed through to one of them.
    - `closed`: these connections are closed.
    """

    hostname: str | None
    certificates: tuple[str, ...] = ()
    clients: str | None = None
    clusters: tuple[tuple[str, int], ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """The redirection of all connections of a pod to its proxy.

    `addresses` are all of the pod's. `known`, for `ANY_PORT`: the ports that have listeners of their own.
    """

    addresses: tuple[str, ...]
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class InboundPort:
    """The inbound port of a workload, and the ways to identify callers without a certificate.

    - A certificate comes first. `by_address` maps source addresses to identities, for callers without TLS. `tokens` is
      the accepted issuer for callers with neither certificate nor known address.
    - `logs_open_requests`: the proxy also logs requests while they are open.
    - `ended` counts, by a caller's name, how often its requests were ended. It is part of the name of the caller's
      filter chain.
    - `handshakes`, at a gateway: only TLS is accepted, as these describe. A client certificate is optional there, and
      may only name an identity of `trust_domain`.
    - `capture`: in a pod, where the proxy does not bind the port.
    - `sends_logs`: the proxy also sends its logged decisions to the control plane.
    - `shared`: the proxy serves several workloads, so that names of resources contain the name of the workload.
    - `at_waypoint`: the connection goes on to another proxy, with a statement of the caller.
    - `waypoint`: the identity of the only peer whose tunnels lead to the port, if it has one.
    """

    workload: str
    address: str
    port: int
    bound: int
    by_address: tuple[tuple[str, str], ...] = ()
    tokens: TokenIdentity | None = None
    logs_open_requests: bool = False
    handshakes: tuple[Handshake, ...] = ()
    ended: Mapping[str, int] = field(default_factory=dict, compare=False)
    trust_domain: str | None = None
    capture: Capture | None = None
    sends_logs: bool = False
    shared: bool = False
    at_waypoint: bool = False
    waypoint: str | None = None

    @property
    def name(self) -> str:
        """Return the part of the names of its resources that tells the port from others of its proxy."""
        return f"{self.workload}/{self.port}" if self.shared else str(self.port)

    @property
    def secret(self) -> str:
        """Return the name of the secret with the SVID of the workload."""
        return f"svid/{self.workload}" if self.shared else SVID

    @property
    def detection(self) -> str:
        """Return the time for detecting TLS or HTTP."""
        return _SHORT_DETECTION_TIMEOUT if self.port in _SERVER_FIRST else _DETECTION_TIMEOUT
