"""The origin: an Envoy that adds mTLS to plain connections. Each of its sockets is one caller of one port, so
that Python does no TLS. It is also the application, for a port that needs one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from eastgate.control.identity import Svid
from eastgate.envoy.config.typed import Plain, filter_, typed

__all__ = ["ClientSocket", "answered_by_envoy", "answering", "origin"]

_ANSWER = "ok\n"
_NETWORK = "envoy.extensions.filters.network"


@dataclass(frozen=True, slots=True)
class ClientSocket:
    """A unix socket, the port to which it leads, and the SVID that the port sees."""

    socket: Path
    address: str
    port: int
    svid: Svid


def origin(clients: Iterable[ClientSocket], app: Path) -> Plain:
    """Return the whole configuration of the origin."""
    whole = typed("envoy.extensions.filters.http.buffer.v3.Buffer", max_request_bytes=1 << 16)  # or Envoy closes
    listeners = [_listener("app", app, answered_by_envoy([filter_("buffer", whole)]))]
    clusters = []
    for number, client in enumerate(clients):
        proxy = typed(f"{_NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix="client", cluster=f"client-{number}")
        listeners.append(_listener(f"client-{number}", client.socket, proxy))
        clusters.append(_cluster(f"client-{number}", client))
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


def _listener(name: str, socket: Path, config: Plain) -> Plain:
    chain = {"filters": [filter_("all", config)]}
    return {"name": name, "address": {"pipe": {"path": str(socket)}}, "filter_chains": [chain]}


def answering(name: str) -> Plain:
    """Return a RouteConfiguration that makes Envoy answer itself."""
    return {"name": name, "virtual_hosts": [_host()]}


def _host() -> Plain:
    reply = {"status": 200, "body": {"inline_string": _ANSWER}}
    return {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "direct_response": reply}]}


def answered_by_envoy(filters: Iterable[Plain] = (), **options: object) -> Plain:
    """Return an HTTP connection manager with these filters that answers every request itself."""
    return typed(
        f"{_NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="app",
        generate_request_id=False,
        server_header_transformation="PASS_THROUGH",
        route_config={"name": "app", "virtual_hosts": [_host()]},
        http_filters=[*filters, filter_("router", typed("envoy.extensions.filters.http.router.v3.Router"))],
        **options,
    )


def _cluster(name: str, client: ClientSocket) -> Plain:
    address = {"socket_address": {"address": client.address, "port_value": client.port}}
    certificate = {
        "certificate_chain": {"inline_string": client.svid.chain},
        "private_key": {"inline_string": client.svid.private_key},
    }
    context = typed(
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        max_session_keys=0,
        common_tls_context={"tls_certificates": [certificate]},
    )
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "10s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
        "transport_socket": filter_("tls", context),
        "circuit_breakers": {"thresholds": [{"max_connections": 10_000, "max_pending_requests": 10_000}]},
    }
