"""The inbound port of a workload, and what its listeners have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.envoy.config.tokens import TokenIdentity

# How long a client may take until TLS, or HTTP, is recognized; then it is taken to speak something else. A client of a
# server that speaks first says nothing for as long, so that the wait is short where such servers usually listen: at the
# ports that Linkerd takes for those of databases and mail unless it is told otherwise.
_DETECTION, _SHORT_DETECTION = "10s", "1s"
_SERVER_FIRST = frozenset({25, 587, 3306, 4444, 5432, 6379, 9300, 11211})
# Of whatever reads HTTP. Without one byte in either direction a request is ended, as are connections that are not HTTP.
# And without reading on, until the rest of an answer is thrown away whose connection ends with it; a refusal with
# `Connection: close` keeps the connection open for as long, or until the client closes it.
TIMEOUTS = {"stream_idle_timeout": "3600s", "delayed_close_timeout": "5s"}
HEADERS = "30s"  # from the first byte of a request to the last of its headers
NETWORK = "envoy.extensions.filters.network"
HTTP = "envoy.extensions.filters.http"
SVID = "svid"  # the secret of a proxy that has one identity
ANY_PORT = 0  # stands for all ports of a pod that have no listener of their own
# Of listeners that connections of a pod are led to, or that are not redirected: with SO_REUSEPORT any process of the
# proxy's user could listen there as well, and would be reached past all policies.
UNSHARED = {"enable_reuse_port": False}


@dataclass(frozen=True, slots=True)
class Handshake:
    """What becomes of connections with a name in their TLS handshake, at the port of a gateway; None: with any.

    `certificates` are the names of secrets; without any it is that of the gateway. `clients`: the secret with the CAs
    of the only clients that are let in, of whom nothing else is known. `clusters`, with their weights: TLS is passed
    through to one of them; `closed`: it is not.
    """

    hostname: str | None
    certificates: tuple[str, ...] = ()
    clients: str | None = None
    clusters: tuple[tuple[str, int], ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """How connections get to a port whose pod redirects all of them to its proxy.

    `addresses` are all of the pod's. `known`, for `ANY_PORT`: the ports that have listeners of their own.
    """

    addresses: tuple[str, ...]
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class InboundPort:
    """The inbound port of a workload, and how callers without a certificate are identified.

    A certificate comes first. `by_address` maps source addresses to identities, for callers without TLS; `tokens` is
    the JWT issuer that is accepted from callers with neither certificate nor known address. `logs_open_requests`: the
    proxy also logs requests while they are open. `ended`: how often the requests of a caller were ended, by its name;
    it is part of the name of the caller's filter chain. `handshakes`, at a gateway: only TLS is spoken, and these say
    how; there, a client need not show a certificate, and one that it shows may only name somebody of `trust_domain`.
    `capture`: in a pod, where nothing is bound for the port. `sends_logs`: the proxy also sends what it logs of
    decisions to the control plane. `shared`: the proxy serves several workloads, so that names of resources contain
    that of the workload. `at_waypoint`: behind the port is another proxy, which is told who is calling. `waypoint`: the
    identity of the only peer whose tunnels lead to the port, if it has one.
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
        """Return the time for a client until TLS, or HTTP, is recognized."""
        return _SHORT_DETECTION if self.port in _SERVER_FIRST else _DETECTION
