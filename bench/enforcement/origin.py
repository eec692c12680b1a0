"""The Envoy on the other side: it makes mTLS of plain connections, each of its sockets as one caller to one door, so
that Python has no handshakes and no ciphers to do. It also is the application, where one is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from eastgate.control.identity import Svid
from eastgate.envoy.config.typed import Plain, filter_, typed

__all__ = ["Way", "answered_by_envoy", "answering", "origin"]

_ANSWER = "ok\n"
_NETWORK = "envoy.extensions.filters.network"


@dataclass(frozen=True, slots=True)
class Way:
    """A socket, and where it leads, as whom."""

    socket: Path
    address: str
    port: int
    svid: Svid


def origin(ways: Iterable[Way], app: Path) -> Plain:
    """The whole configuration."""
    whole = typed("envoy.extensions.filters.http.buffer.v3.Buffer", max_request_bytes=1 << 16)  # or Envoy hangs up
    listeners = [_listener("app", app, answered_by_envoy([filter_("buffer", whole)]))]
    clusters = []
    for number, way in enumerate(ways):
        proxy = typed(f"{_NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix="way", cluster=f"way-{number}")
        listeners.append(_listener(f"way-{number}", way.socket, proxy))
        clusters.append(_cluster(f"way-{number}", way))
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


def _listener(name: str, socket: Path, config: Plain) -> Plain:
    chain = {"filters": [filter_("all", config)]}
    return {"name": name, "address": {"pipe": {"path": str(socket)}}, "filter_chains": [chain]}


def answering(name: str) -> Plain:
    """Routes that lead nowhere: Envoy answers itself."""
    return {"name": name, "virtual_hosts": [_host()]}


def _host() -> Plain:
    reply = {"status": 200, "body": {"inline_string": _ANSWER}}
    return {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "direct_response": reply}]}


def answered_by_envoy(filters: Iterable[Plain] = (), **options: object) -> Plain:
    """HTTP, with these filters."""
    return typed(
        f"{_NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="app",
        generate_request_id=False,
        server_header_transformation="PASS_THROUGH",
        route_config={"name": "app", "virtual_hosts": [_host()]},
        http_filters=[*filters, filter_("router", typed("envoy.extensions.filters.http.router.v3.Router"))],
        **options,
    )


def _cluster(name: str, way: Way) -> Plain:
    address = {"socket_address": {"address": way.address, "port_value": way.port}}
    certificate = {
        "certificate_chain": {"inline_string": way.svid.chain},
        "private_key": {"inline_string": way.svid.private_key},
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
