"""HBONE, the tunnel of ambient meshes: a connection inside HTTP/2 CONNECT inside mTLS.

A node proxy takes tunnels for each of its pods, and a waypoint for all pods that it serves. The authority of a request
is the address that was called. The caller is the peer, unless headers state another one. Two proxies may state it:

- the waypoint of a pod, at the node proxy of that pod: any caller;
- the node proxy of a pod, at the waypoint of that pod: for connections without mTLS no caller, or the one that has the
  address they come from, where addresses prove who calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2

from eastgate.basics.records import dataclass
from eastgate.envoy.config.client_certificates import CERTIFICATE
from eastgate.envoy.config.clusters import (
    SocketAddress,
    TunnelEnd,
    Upstream,
    app_resources,
    cluster_resource,
    internal_cluster,
    mutual_tls,
    options,
    tunnelled_app_resources,
)
from eastgate.envoy.config.inbound_listener import host_range, note, tls_socket
from eastgate.envoy.config.inbound_port import HEADERS, HTTP, NETWORK, SVID, TIMEOUTS, UNSHARED, InboundPort
from eastgate.envoy.config.listeners import accepting_listener, inner_listeners
from eastgate.envoy.config.logs import beside_log, refused_tunnel_log
from eastgate.envoy.config.matching import BESIDE
from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.predicates import ADDRESS_KEY, CERTIFICATE_KEY, PEER_KEY, SOURCE_KEY, TUNNEL_KEY
from eastgate.envoy.config.rbac import extension_resource, filter_name
from eastgate.envoy.config.typed import ADS, Plain, discovered, filter_, message, struct, typed
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.plan.decisions import NOBODY
from eastgate.envoy.server.resources import LISTENER, ROUTE, XdsResource
from eastgate.ir.spiffe import SPIFFE_ID

PORT = 15008
_CALLER, _ADDRESS, _SOURCE = "x-eastgate-caller", "x-eastgate-address", "x-eastgate-source"
_HEADERS = (_CALLER, _ADDRESS, _SOURCE)
# A peer that reads nothing must not fill the memory of the proxy.
_STREAM, _MOST_STREAMS = 1 << 20, 16
_WINDOWS = {"initial_stream_window_size": _STREAM, "initial_connection_window_size": _MOST_STREAMS * _STREAM}
# Callers may share a connection between proxies. However many of them read nothing, the others must get their share of
# its window.
_SHARED = {**_WINDOWS, "max_concurrent_streams": _MOST_STREAMS}
# Of one pod. A tunnel takes no socket from its caller but one from the node proxy, which ends when it has no more.
_MOST_CONNECTIONS = 10_000
_CLUSTER, _STATEMENTS = "hbone", "statements"
_ANY = ".+"
_REFUSED = "0:refused-tunnel"


@dataclass(frozen=True, slots=True)
class Tunnelled:
    """A port that tunnels lead to: the authorities by which it is called, and the cluster behind them."""

    authorities: tuple[str, ...]
    cluster: str


@dataclass(frozen=True, slots=True)
class CallerStatement:
    """A peer that may state the caller: its identity, and its address where that counts.

    `authorities` are the ports that it may do so for; None: all. `of_anyone`: it may state any caller, not only that
    there is none.
    """

    identity: str
    address: str | None = None
    authorities: tuple[str, ...] | None = None
    of_anyone: bool = False


@dataclass(frozen=True, slots=True)
class TunnelPort:
    """The entrance of tunnels: its address, the secret with its identity, and the ports behind it.

    `owner`: the workload or waypoint that they lead to. `takes_peers`: peers may come without a statement, as callers.
    """

    owner: str
    address: SocketAddress
    secret: str
    ports: tuple[Tunnelled, ...]
    statements: tuple[CallerStatement, ...] = ()
    takes_peers: bool = True

    @property
    def name(self) -> str:
        """Return the name of the listener and its routes."""
        return f"hbone/{self.owner}"


def tunnel_port_resources(tunnel: TunnelPort) -> Iterator[XdsResource]:
    """Yield the listener where tunnels arrive, its routes, and its rules. Only these change with the policies."""
    yield _tunnel_listener(tunnel.name, tunnel.address, tunnel.secret, tunnel.owner)
    hosts = [_virtual_host(each) for each in tunnel.ports]
    routes = {"name": tunnel.name, "virtual_hosts": hosts, "validate_clusters": False}
    yield XdsResource(ROUTE, tunnel.name, serialize(message(route_pb2.RouteConfiguration, routes)))
    yield extension_resource(filter_name(tunnel.name, _STATEMENTS), message(rbac_pb2.RBAC, _statements(tunnel)))


@lru_cache(maxsize=4096)
def _tunnel_listener(name: str, address: SocketAddress, secret: str, owner: str) -> XdsResource:
    manager = typed(
        f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=name,
        codec_type="HTTP2",
        generate_request_id=False,
        request_headers_timeout=HEADERS,
        **TIMEOUTS | {"stream_idle_timeout": "0s"},
        http2_protocol_options={"allow_connect": True, **_WINDOWS},
        upgrade_configs=[{"upgrade_type": "CONNECT"}],
        http_filters=[
            filter_("caller", _notes()),
            discovered(filter_name(name, _STATEMENTS), f"{HTTP}.rbac.v3.RBAC"),
            filter_("router", typed(f"{HTTP}.router.v3.Router", suppress_envoy_headers=True)),
        ],
        rds={"config_source": ADS, "route_config_name": name},
        access_log=refused_tunnel_log(owner, address.port, _REFUSED),
    )
    plain = {
        "name": name,
        "address": address.to_plain(),
        **UNSHARED,
        "filter_chains": [
            {
                "name": "tunnels",
                "transport_socket": tls_socket((secret,), "trust", required=True, alpn=("h2",)),
                "transport_socket_connect_timeout": "15s",
                "filters": [filter_("http", manager)],
            }
        ],
    }
    return XdsResource(LISTENER, name, serialize(message(listener_pb2.Listener, plain)))


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


def _statements(tunnel: TunnelPort) -> Plain:
    """Return the rules that refuse peers who may not come, or may not state what they do."""
    rules: dict[str, Plain] = {}
    if tunnel.takes_peers:
        stated = [{"header": {"name": name, "present_match": True}} for name in _HEADERS]
        none_stated = {"not_rule": {"or_rules": {"rules": stated}}}
        rules["peers"] = {"permissions": [none_stated], "principals": [{"any": True}]}
    for number, statement in enumerate(tunnel.statements):
        rules[f"statement/{number}"] = {"permissions": [_permission(statement)], "principals": [_principal(statement)]}
    return {"rules": {"action": "ALLOW", "policies": rules}}


def _permission(statement: CallerStatement) -> Plain:
    rules = [_header(name, _ANY) for name in _HEADERS]
    if statement.authorities is not None:
        rules.append(_header(":authority", "|".join(map(re.escape, statement.authorities))))
    return {"and_rules": {"rules": rules}}


def _principal(statement: CallerStatement) -> Plain:
    """Match the peer and the caller as they were noted. Of several names of the peer, and of several headers, one might
    be matched and another noted.
    """
    peer = {"filter_state": {"key": TUNNEL_KEY, "string_match": {"exact": statement.identity}}}
    callers = f"{SPIFFE_ID}|{NOBODY}" if statement.of_anyone else NOBODY
    stated = {"filter_state": {"key": PEER_KEY, "string_match": {"safe_regex": {"regex": callers}}}}
    ids: list[Plain] = [peer, stated]
    if statement.address is not None:
        ids.append({"direct_remote_ip": host_range(statement.address)})
    return {"and_ids": {"ids": ids}}


def _header(name: str, pattern: str) -> Plain:
    return {"header": {"name": name, "string_match": {"safe_regex": {"regex": pattern}}}}


def _notes() -> Plain:
    """Return the filter that notes the caller: the peer, or the one that is stated."""
    by_peer = [
        note(PEER_KEY, "%DOWNSTREAM_PEER_URI_SAN%"),
        note(TUNNEL_KEY, "%DOWNSTREAM_PEER_URI_SAN%"),
        note(ADDRESS_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"),
        note(SOURCE_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"),
        note(CERTIFICATE_KEY, CERTIFICATE),
    ]
    stated = []
    for key, name in zip((PEER_KEY, ADDRESS_KEY, SOURCE_KEY), _HEADERS, strict=True):
        value = note(key, f"%REQ({name})%")
        value["format_string"]["omit_empty_values"] = True
        stated.append({**value, "skip_if_empty": True})
    return struct(f"{HTTP}.set_filter_state.v3.Config", on_request_headers=[*by_peer, *stated])


def tunnels_of(upstreams: Iterable[Upstream], source: str | None) -> Iterator[XdsResource]:
    """Yield the tunnels to the endpoints of Services, for a proxy that is the caller itself."""
    for end in dict.fromkeys(end for upstream in upstreams for end in upstream.tunnels):
        yield from tunnel_resources(end.name, end, SVID, states=False, source=source)


def tunnel_resources(
    name: str, to: TunnelEnd, secret: str, *, states: bool, source: str | None = None
) -> Iterator[XdsResource]:
    """Yield what leads connections to the internal listener `name` through a tunnel.

    `secret` has the identity of the proxy, which `states` the caller, or is the caller; `source` is its address.
    """
    stated = [f"%FILTER_STATE({key}:PLAIN)%" for key in (PEER_KEY, ADDRESS_KEY, ADDRESS_KEY)]
    plain = {
        "name": name,
        "internal_listener": {},
        "filter_chains": [{"name": "tunnel", "filters": [_tunnelling(name, to.called, stated if states else [])]}],
    }
    yield XdsResource(LISTENER, name, serialize(message(listener_pb2.Listener, plain)))
    yield _tunnel_cluster(name, to, secret, source)


def _tunnelling(name: str, called: str, stated: list[str]) -> Plain:
    """Return the filter that leads a connection through a tunnel of the cluster of that name."""
    headers = [
        {"header": {"key": header, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for header, value in zip(_HEADERS, stated, strict=False)
    ]
    kind = f"{NETWORK}.tcp_proxy.v3.TcpProxy"
    config = {"hostname": called, "headers_to_add": headers}
    cluster = f"{_CLUSTER}/{name}"
    return filter_("proxy", typed(kind, stat_prefix=name, cluster=cluster, idle_timeout="0s", tunneling_config=config))


def _tunnel_cluster(name: str, to: TunnelEnd, secret: str, source: str | None = None) -> XdsResource:
    cluster = f"{_CLUSTER}/{name}"
    endpoint = {"endpoint": {"address": to.address.to_plain()}}
    return cluster_resource(
        cluster,
        {
            "type": "STATIC",
            "load_assignment": {"cluster_name": cluster, "endpoints": [{"lb_endpoints": [endpoint]}]},
            "transport_socket": filter_("tls", mutual_tls([to.identity], secret)),
            **({"upstream_bind_config": {"source_address": {"address": source, "port_value": 0}}} if source else {}),
            **options({"http2_protocol_options": _SHARED}),
        },
    )


def led_to_waypoint(inbound: InboundPort, waypoint: TunnelEnd) -> Iterator[XdsResource]:
    """Yield what leads connections without mTLS, made to a pod, to the waypoint of the pod. Others are refused."""
    name = f"inbound/{inbound.name}"
    source = ["%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%", "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"]
    chains_by_address = [
        {
            "name": f"address/{address}",
            "filter_chain_match": {"transport_protocol": "raw_buffer", "source_prefix_ranges": [host_range(address)]},
            "filters": [_tunnelling(name, waypoint.called, [identity, *source])],
        }
        for address, identity in inbound.by_address
    ]
    refusing = typed(
        f"{NETWORK}.tcp_proxy.v3.TcpProxy",
        stat_prefix=f"denied/{name}",
        cluster="nowhere",
        access_log=beside_log(inbound.workload, inbound.port, BESIDE.name),
    )
    plain = {
        "name": name,
        "address": {"socket_address": {"address": inbound.address, "port_value": inbound.bound}},
        "listener_filters": [filter_("tls", typed("envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"))],
        "listener_filters_timeout": inbound.detection,
        "continue_on_listener_filters_timeout": True,
        "filter_chains": [
            {
                "name": "tls",
                "filter_chain_match": {"transport_protocol": "tls"},
                "filters": [filter_("proxy", refusing)],
            },
            *chains_by_address,
        ],
        "default_filter_chain": {"name": "plain", "filters": [_tunnelling(name, waypoint.called, [NOBODY, *source])]},
    }
    yield XdsResource(LISTENER, name, serialize(message(listener_pb2.Listener, plain)))
    yield _tunnel_cluster(name, waypoint, inbound.secret, inbound.address)


def pod_port_resources(
    inbound: InboundPort,
    plan: PortPlan,
    app: SocketAddress,
    shared: Iterable[XdsResource],
    waypoint: TunnelEnd | None = None,
) -> Iterator[XdsResource]:
    """Yield the resources of a pod's port at its node proxy. Behind a waypoint, only its tunnels lead there."""
    name = inbound.name
    yield internal_cluster(f"connections/{name}")
    yield internal_cluster(f"tunnelled/{name}")
    yield from app_resources(name, app, _MOST_CONNECTIONS)
    yield from inner_listeners(inbound, plan)
    if waypoint is None:
        yield accepting_listener(inbound)
    else:
        yield from led_to_waypoint(inbound, waypoint)
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
    yield from tunnel_resources(f"tunnel/{name}", pod, secret, states=True)
    yield from inner_listeners(inbound, plan)
    yield from shared
    if plan.reads_http:
        yield internal_cluster(f"requests/{name}")
