"""HBONE, the tunnel of ambient meshes: a connection inside HTTP/2 CONNECT inside mTLS.

A node proxy takes tunnels for each of its pods, and a waypoint for all pods that it serves. The authority of a request
is the address that was called. A waypoint states the caller in headers, as its own certificate is that of the waypoint:
nobody but a waypoint of the pod may do so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envoy.config.listener.v3 import listener_pb2

from eastgate.basics.records import dataclass
from eastgate.envoy.config.client_certificates import CERTIFICATE
from eastgate.envoy.config.clusters import (
    SocketAddress,
    app_resources,
    cluster_resource,
    internal_cluster,
    mutual_tls,
    options,
    tunnelled_app_resources,
)
from eastgate.envoy.config.inbound_listener import note, tls_socket
from eastgate.envoy.config.inbound_port import HTTP, NETWORK, TIMEOUTS, UNSHARED, InboundPort
from eastgate.envoy.config.listeners import accepting_listener, inner_listeners
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.predicates import ADDRESS_KEY, CERTIFICATE_KEY, PEER_KEY, SOURCE_KEY
from eastgate.envoy.config.typed import Plain, filter_, message, struct, typed
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.server.resources import LISTENER, XdsResource
from eastgate.ir.spiffe import SPIFFE_ID

PORT = 15008
CALLER_HEADER, SOURCE_HEADER = "x-eastgate-caller", "x-eastgate-source"
# A peer that reads nothing must not fill the memory of the proxy.
_WINDOWS = {"initial_stream_window_size": 1 << 20, "initial_connection_window_size": 16 << 20}
_STATED = f"{SPIFFE_ID}|none"


@dataclass(frozen=True, slots=True)
class Tunnelled:
    """A port that tunnels lead to: the authorities by which it is called, and the cluster behind them."""

    authorities: tuple[str, ...]
    cluster: str


@dataclass(frozen=True, slots=True)
class TunnelPort:
    """Where tunnels arrive: the address, the secret with the identity that answers, and the ports behind it.

    `waypoints` are the only peers that may come, and state a caller; without any, every peer is its own caller.
    """

    name: str
    address: SocketAddress
    secret: str
    ports: tuple[Tunnelled, ...]
    waypoints: frozenset[str] = frozenset()


def tunnel_listener(tunnel: TunnelPort) -> XdsResource:
    """Return the listener where tunnels arrive."""
    manager = typed(
        f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=tunnel.name,
        codec_type="HTTP2",
        generate_request_id=False,
        **TIMEOUTS | {"stream_idle_timeout": "0s"},
        http2_protocol_options={"allow_connect": True, **_WINDOWS},
        upgrade_configs=[{"upgrade_type": "CONNECT"}],
        http_filters=[
            filter_("claims", _claims(tunnel.waypoints)),
            filter_("caller", _notes(tunnel.waypoints)),
            filter_("router", typed(f"{HTTP}.router.v3.Router", suppress_envoy_headers=True)),
        ],
        route_config={"name": tunnel.name, "virtual_hosts": [_virtual_host(each) for each in tunnel.ports]},
    )
    plain = {
        "name": tunnel.name,
        "address": tunnel.address.to_plain(),
        **UNSHARED,
        "filter_chains": [
            {
                "name": "tunnels",
                "transport_socket": tls_socket((tunnel.secret,), "trust", required=True, alpn=("h2",)),
                "transport_socket_connect_timeout": "15s",
                "filters": [filter_("http", manager)],
            }
        ],
    }
    return XdsResource(LISTENER, tunnel.name, serialize(message(listener_pb2.Listener, plain)))


def _virtual_host(tunnelled: Tunnelled) -> Plain:
    connect = {"upgrade_type": "CONNECT", "connect_config": {}}
    return {
        "name": tunnelled.cluster,
        "domains": list(tunnelled.authorities),
        "routes": [
            {
                "match": {"connect_matcher": {}},
                "route": {"cluster": tunnelled.cluster, "upgrade_configs": [connect], "timeout": "0s"},
            }
        ],
    }


def _claims(waypoints: frozenset[str]) -> Plain:
    """Return the filter that refuses peers who may not come, or may not state a caller."""
    headers = [{"header": {"name": name, "present_match": True}} for name in (CALLER_HEADER, SOURCE_HEADER)]
    if not waypoints:
        policy = {"permissions": [{"not_rule": {"or_rules": {"rules": headers}}}], "principals": [{"any": True}]}
    else:
        stated = {"name": CALLER_HEADER, "string_match": {"safe_regex": {"regex": _STATED}}}
        peers = [{"authenticated": {"principal_name": {"exact": f"{name}"}}} for name in sorted(waypoints)]
        permission = {"and_rules": {"rules": [{"header": stated}, headers[1]]}}
        policy = {"permissions": [permission], "principals": [{"or_ids": {"ids": peers}}]}
    return typed(f"{HTTP}.rbac.v3.RBAC", rules={"action": "ALLOW", "policies": {"claims": policy}})


def _notes(waypoints: frozenset[str]) -> Plain:
    """Return the filter that notes the caller: the peer, or the one that the waypoint states."""
    caller = f"%REQ({CALLER_HEADER})%" if waypoints else "%DOWNSTREAM_PEER_URI_SAN%"
    address = f"%REQ({SOURCE_HEADER})%" if waypoints else "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"
    source = f"%REQ({SOURCE_HEADER})%" if waypoints else "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"
    notes = [note(PEER_KEY, caller), note(ADDRESS_KEY, address), note(SOURCE_KEY, source)]
    if not waypoints:
        notes.append(note(CERTIFICATE_KEY, CERTIFICATE))
    return struct(f"{HTTP}.set_filter_state.v3.Config", on_request_headers=notes)


@dataclass(frozen=True, slots=True)
class TunnelEnd:
    """Where a tunnel leads: the address `called`, the `address` of its node proxy, and the `identity` of the pod."""

    called: str
    address: SocketAddress
    identity: str


def tunnel_resources(name: str, to: TunnelEnd, secret: str) -> Iterator[XdsResource]:
    """Yield what leads connections to the internal listener `name` through a tunnel, with a statement of the caller.

    `secret` has the identity of the waypoint.
    """
    headers = [(CALLER_HEADER, PEER_KEY), (SOURCE_HEADER, ADDRESS_KEY)]
    proxy = typed(
        f"{NETWORK}.tcp_proxy.v3.TcpProxy",
        stat_prefix=name,
        cluster=f"hbone/{name}",
        idle_timeout="0s",
        tunneling_config={
            "hostname": to.called,
            "headers_to_add": [
                {
                    "header": {"key": header, "value": f"%FILTER_STATE({key}:PLAIN)%"},
                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                }
                for header, key in headers
            ],
        },
    )
    plain = {
        "name": name,
        "internal_listener": {},
        "filter_chains": [{"name": "tunnel", "filters": [filter_("proxy", proxy)]}],
    }
    yield XdsResource(LISTENER, name, serialize(message(listener_pb2.Listener, plain)))
    endpoint = {"endpoint": {"address": to.address.to_plain()}}
    yield cluster_resource(
        f"hbone/{name}",
        {
            "type": "STATIC",
            "load_assignment": {"cluster_name": f"hbone/{name}", "endpoints": [{"lb_endpoints": [endpoint]}]},
            "transport_socket": filter_("tls", mutual_tls([to.identity], secret)),
            **options({"http2_protocol_options": _WINDOWS}),
        },
    )


def pod_port_resources(
    inbound: InboundPort, plan: PortPlan, app: SocketAddress, shared: Iterable[XdsResource], *, behind_waypoint: bool
) -> Iterator[XdsResource]:
    """Yield the resources of a pod's port at its node proxy. Behind a waypoint, only tunnels lead there."""
    name = inbound.name
    yield internal_cluster(f"connections/{name}")
    yield internal_cluster(f"tunnelled/{name}")
    yield from app_resources(name, app)
    yield from inner_listeners(inbound, plan)
    if not behind_waypoint:
        yield accepting_listener(inbound)
    yield from shared
    if plan.reads_http:
        yield internal_cluster(f"requests/{name}")


def waypoint_port_resources(
    inbound: InboundPort, plan: PortPlan, pod: TunnelEnd, secret: str, shared: Iterable[XdsResource]
) -> Iterator[XdsResource]:
    """Yield the resources of a pod's port at its waypoint, behind which a tunnel leads to the pod."""
    name = inbound.name
    yield internal_cluster(f"connections/{name}")
    yield internal_cluster(f"tunnelled/{name}")
    yield from tunnelled_app_resources(name, f"tunnel/{name}")
    yield from tunnel_resources(f"tunnel/{name}", pod, secret)
    yield from inner_listeners(inbound, plan)
    yield from shared
    if plan.reads_http:
        yield internal_cluster(f"requests/{name}")


def every_authority(addresses: Iterable[str], port: int) -> tuple[str, ...]:
    """Return how the port of these addresses is written in a tunnel."""
    return tuple(f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address in addresses)
