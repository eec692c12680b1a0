"""The smallest Envoy that answers and logs, and helpers that list processes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eastgate.local.machine import procfs

_TYPE = "type.googleapis.com/envoy.extensions"
SECRET = "c2VjcmV0LWtleS1vZi10aGlzLXRlc3Q"  # noqa: S105 - nobody's


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as trial:
        trial.bind((address, 0))
        return int(trial.getsockname()[1])


def bootstrap(port: int, *, upstream: str | None = None, pem: Path | None = None) -> dict[str, Any]:
    """Answers 200 by itself, or forwards everything to a unix socket; with mutual TLS if a certificate is given."""
    action: dict[str, Any] = {"direct_response": {"status": 200, "body": {"inline_string": "ok"}}}
    clusters = []
    if upstream is not None:
        action = {"route": {"cluster": "app"}}
        endpoint = {"endpoint": {"address": {"pipe": {"path": upstream}}}}
        load = {"cluster_name": "app", "endpoints": [{"lb_endpoints": [endpoint]}]}
        clusters = [{"name": "app", "type": "STATIC", "load_assignment": load}]
    log = {
        "name": "stdout",
        "typed_config": {
            "@type": f"{_TYPE}.access_loggers.stream.v3.StdoutAccessLog",
            "log_format": {"json_format": {"path": "%REQ(:PATH)%", "status": "%RESPONSE_CODE%"}},
        },
    }
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": SECRET,
        "access_log": [log],
        "route_config": {
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, **action}]}]
        },
        "http_filters": [{"name": "router", "typed_config": {"@type": f"{_TYPE}.filters.http.router.v3.Router"}}],
    }
    listener = {
        "name": "in",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}], **_tls(pem)}],
    }
    return {"node": {"id": "n", "cluster": "c"}, "static_resources": {"listeners": [listener], "clusters": clusters}}


def _tls(pem: Path | None) -> dict[str, Any]:
    if pem is None:
        return {}
    text = {"inline_string": pem.read_text()}
    common = {
        "tls_certificates": [{"certificate_chain": text, "private_key": text}],
        "validation_context": {"trusted_ca": text},
    }
    context = {
        "@type": f"{_TYPE}.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": True,
        "common_tls_context": common,
    }
    return {"transport_socket": {"name": "tls", "typed_config": context}}


def alive(pid: int) -> bool:
    return procfs.start_time(pid) is not None


def within(seconds: float, true: Callable[[], bool]) -> bool:
    """Return whether it becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return true()


def files_holding(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
