"""The Envoy before the authorizers: a socket for each authorizer and protocol. It answers allowed requests itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.authorizers.engines import GRPC, Engine
from bench.enforcement.origin import answered_by_envoy
from eastgate.envoy.config.typed import Plain, filter_, typed

__all__ = ["NO_AUTHORIZER", "proxy", "socket_of"]

NO_AUTHORIZER = "unasked"  # the socket without an authorizer
_EXT_AUTHZ = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TIMEOUT = "10s"


def socket_of(folder: Path, engine: str, protocol: str) -> Path:
    """Return the socket of an authorizer and protocol."""
    return folder / f"{engine}-{protocol}"


def proxy(engines: Iterable[Engine], folder: Path) -> Plain:
    """Return the whole configuration of the Envoy."""
    listeners = [_listener(folder / NO_AUTHORIZER, [])]
    clusters = []
    for engine in engines:
        for protocol, port in engine.ports.items():
            name = f"{engine.name}-{protocol}"
            listeners.append(_listener(folder / name, [filter_("ask", _asking(name, protocol))]))
            clusters.append(_cluster(name, protocol, port))
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


def _listener(socket: Path, filters: list[Plain]) -> Plain:
    chain = {"filters": [filter_("http", answered_by_envoy(filters))]}
    return {"name": socket.name, "address": {"pipe": {"path": str(socket)}}, "filter_chains": [chain]}


def _asking(cluster: str, protocol: str) -> Plain:
    common: Mapping[str, object] = {"transport_api_version": "V3", "failure_mode_allow": False}
    if protocol == GRPC:
        service = {"envoy_grpc": {"cluster_name": cluster}, "timeout": _TIMEOUT}
        return typed(_EXT_AUTHZ, **common, grpc_service=service)
    upstream = {"uri": "http://authorizer", "cluster": cluster, "timeout": _TIMEOUT}
    every = {"patterns": [{"prefix": "x-"}]}
    return typed(
        _EXT_AUTHZ,
        **common,
        allowed_headers={"patterns": [{"safe_regex": {"regex": ".*"}}]},
        http_service={
            "server_uri": upstream,
            "authorization_response": {"allowed_upstream_headers": every},
        },
    )


def _cluster(name: str, protocol: str, port: int) -> Plain:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    cluster: Plain = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
    }
    if protocol == GRPC:
        http2 = typed(_HTTP_OPTIONS, explicit_http_config={"http2_protocol_options": {}})
        cluster["typed_extension_protocol_options"] = {_HTTP_OPTIONS: http2}
    return cluster
