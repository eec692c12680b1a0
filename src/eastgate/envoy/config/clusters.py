"""The clusters of a proxy: from listener to listener inside of it, to the application, and to other workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.route.v3 import route_pb2

from eastgate.basics.records import dataclass
from eastgate.envoy.config.inbound_port import ANY_PORT, SVID
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.typed import ADS, Plain, filter_, message, typed
from eastgate.envoy.server.resources import CLUSTER, ENDPOINTS, ROUTE, XdsResource

ORIGINAL: Plain = {"type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED"}
_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
HTTP2: Plain = {"http2_protocol_options": {}}
_MAX_CONNECTIONS = 100_000  # Envoy's default of 1,024 connections would refuse allowed callers
_LIMITS = {
    "max_connections": _MAX_CONNECTIONS,
    "max_pending_requests": _MAX_CONNECTIONS,
    "max_requests": _MAX_CONNECTIONS,
}
_CONNECT_TIMEOUT = "15s"  # including the handshake, for a busy proxy
_IDLE_TIMEOUT = (
    "5s"  # only callers of one identity share connections to the application: most idle ones are never used again
)


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """The address of an application: a host and a port, or the path of a socket."""

    host: str
    port: int = 0

    def to_plain(self) -> Plain:
        """Return the address in Envoy's configuration."""
        if self.host.startswith(("/", "@")):
            return {"pipe": {"path": self.host}}
        return {"socket_address": {"address": self.host, "port_value": self.port}}


@dataclass(frozen=True, slots=True)
class TunnelEnd:
    """The end of a tunnel: the authority `called`, the `address` of the proxy there, and the `identity` of that."""

    called: str
    address: SocketAddress
    identity: str

    @property
    def name(self) -> str:
        """Return the name of the listener that leads through the tunnel."""
        return f"tunnel/{self.called}"

    def to_plain(self) -> Plain:
        """Return the address in Envoy's configuration."""
        return {"envoy_internal_address": {"server_listener_name": self.name}}


def every_authority(addresses: Iterable[str], port: int) -> tuple[str, ...]:
    """Return how the port of these addresses is written in a tunnel."""
    return tuple(f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address in addresses)


@dataclass(frozen=True, slots=True)
class Upstream:
    """A port of a Service for its callers: the proxies behind it, and their identities.

    The endpoints are sidecars, or all are ends of tunnels.
    """

    name: str
    hosts: tuple[str, ...]
    endpoints: tuple[SocketAddress | TunnelEnd, ...]

    @property
    def tunnels(self) -> tuple[TunnelEnd, ...]:
        """Return the tunnels to the endpoints."""
        return tuple(each for each in self.endpoints if isinstance(each, TunnelEnd))

    identities: frozenset[str]


def cluster_resource(name: str, plain: Plain) -> XdsResource:
    """Return a cluster with the common limits."""
    limits = {"thresholds": [_LIMITS]}
    config: Plain = {"name": name, "connect_timeout": _CONNECT_TIMEOUT, "circuit_breakers": limits, **plain}
    return XdsResource(CLUSTER, name, serialize(message(cluster_pb2.Cluster, config)))


def _endpoints(name: str, addresses: Iterable[SocketAddress | TunnelEnd]) -> XdsResource:
    plain = {
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": [_endpoint(address.to_plain()) for address in addresses]}],
    }
    return XdsResource(ENDPOINTS, name, serialize(message(endpoint_pb2.ClusterLoadAssignment, plain)))


def _endpoint(address: Plain) -> Plain:
    return {"endpoint": {"address": address}}


def _route(name: str, hosts: list[Plain]) -> XdsResource:
    plain = {"name": name, "virtual_hosts": hosts, "validate_clusters": False}
    return XdsResource(ROUTE, name, serialize(message(route_pb2.RouteConfiguration, plain)))


def _virtual_host(name: str, domains: list[str], cluster: str) -> Plain:
    route = {"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}
    return {"name": name, "domains": domains, "routes": [route]}


@lru_cache(maxsize=4096)
def internal_cluster(listener: str) -> XdsResource:
    """Return the cluster of a listener of the same proxy. Notes about the caller are passed along."""
    return cluster_resource(listener, internal(listener, listener))


def inside() -> Plain:
    """Return the transport to internal listeners."""
    raw = filter_("raw", typed("envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"))
    kind = "envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport"
    return filter_("inside", typed(kind, transport_socket=raw))


def internal(name: str, listener: str) -> Plain:
    """Return the configuration of a cluster that leads to an internal listener."""
    address = {"envoy_internal_address": {"server_listener_name": listener}}
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [_endpoint(address)]}]}
    return {"type": "STATIC", "load_assignment": assignment, "transport_socket": inside()}


@lru_cache(maxsize=4096)
def app_resources(port: str | int, app: SocketAddress, most: int | None = None) -> tuple[XdsResource, ...]:
    """Return the cluster of the application behind a port, and its routes. It uses the callers' version of HTTP.

    `most`: the maximum number of connections to it.
    """
    config: Plain = {"type": "EDS", "eds_cluster_config": {"eds_config": ADS}}
    if most is not None:
        config["circuit_breakers"] = {"thresholds": [_LIMITS | {"max_connections": most}]}
    cluster, routes = _app(port, config)
    return cluster, _endpoints(cluster.name, [app]), routes


@lru_cache(maxsize=4096)
def tunnelled_app_resources(port: str, listener: str) -> tuple[XdsResource, ...]:
    """Return the cluster of an application that an internal listener leads to, and its routes."""
    return _app(port, internal(f"app/{port}", listener))


@lru_cache(maxsize=1)
def original_app_resources() -> tuple[XdsResource, ...]:
    """Return the cluster of the application at the originally called port, and its routes."""
    return _app(ANY_PORT, ORIGINAL)


def _app(port: str | int, config: Plain) -> tuple[XdsResource, XdsResource]:
    name = f"app/{port}"
    both: Plain = {"http_protocol_options": {}, "http2_protocol_options": {}}
    idle = {"idle_timeout": _IDLE_TIMEOUT}
    options = {_OPTIONS: typed(_OPTIONS, use_downstream_protocol_config=both, common_http_protocol_options=idle)}
    cluster = cluster_resource(name, {**config, "typed_extension_protocol_options": options})
    return cluster, _route(f"requests/{port}", [_virtual_host("app", ["*"], name)])


def upstream_resources(upstreams: Iterable[Upstream], source: str | None) -> Iterator[XdsResource]:
    """Yield the clusters of other workloads, and the routes to them by host. `source`: the address to call from."""
    hosts = []
    for upstream in upstreams:
        yield from service_resources(upstream.name, upstream, source)
        hosts.append(_virtual_host(upstream.name, list(upstream.hosts), upstream.name))
    yield _route("outbound", hosts)


@lru_cache(maxsize=16384)
def service_resources(
    name: str, upstream: Upstream, source: str | None, *, http2: bool = False
) -> tuple[XdsResource, ...]:
    """Return the cluster of a Service's port, over mTLS. Each sidecar must prove its expected account.

    `source` is the address to call from, which identifies the workload to the sidecars; None: any.
    """
    bound = {"upstream_bind_config": {"source_address": {"address": source, "port_value": 0}}} if source else {}
    transport = inside() if upstream.tunnels else filter_("tls", mutual_tls(upstream.identities))
    cluster = cluster_resource(
        name,
        {
            "type": "EDS",
            "eds_cluster_config": {"eds_config": ADS},
            "transport_socket": transport,
            **({} if upstream.tunnels else bound),
            **(options(HTTP2) if http2 else {}),
        },
    )
    return cluster, _endpoints(name, upstream.endpoints)


def mutual_tls(identities: Iterable[str], secret: str = SVID) -> Plain:
    """Return TLS with the SVID of a secret, to a peer that proves one of these identities."""
    names = [{"san_type": "URI", "matcher": {"exact": identity}} for identity in sorted(identities)]
    return typed(
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        common_tls_context={
            "tls_params": {"tls_maximum_protocol_version": "TLSv1_3"},
            "tls_certificate_sds_secret_configs": [{"name": secret, "sds_config": ADS}],
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": names},
                "validation_context_sds_secret_config": {"name": "trust", "sds_config": ADS},
            },
        },
    )


def options(protocol: Plain) -> Plain:
    """Return the options of a cluster for its version of HTTP."""
    return {"typed_extension_protocol_options": {_OPTIONS: typed(_OPTIONS, explicit_http_config=protocol)}}
