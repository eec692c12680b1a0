"""The listener for kubelets: whether the proxy is ready, and the application's answers to its own probes.

A probe comes in clear text from the node, and policies would deny it. So the proxy itself probes the application
periodically, at the pod's own address, and gives the kubelet the last result. No request to this listener reaches the
application.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from eastgate.basics.records import dataclass
from eastgate.envoy.config.inbound_port import HTTP, NETWORK, TIMEOUTS, UNSHARED
from eastgate.envoy.config.typed import Plain, filter_, typed

PROBE_PORT = 15021
READY_PATH = "/healthz/ready"


class ProbeKind(Enum):
    """The protocol of a probe."""

    HTTP = "HTTP"
    HTTPS = "HTTPS"
    TCP = "TCP"
    GRPC = "GRPC"


@dataclass(frozen=True, slots=True)
class AppProbe:
    """A probe of an application. `path` is the kubelet's request, and `target` the probe of the application.

    `target` is a path for HTTP, the name of a service for gRPC, and empty for TCP.
    """

    path: str
    kind: ProbeKind
    port: int
    target: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    period: int = 10
    timeout: int = 1


def probe_listener(probes: Iterable[AppProbe], address: str) -> Plain:
    """Return the listener that answers kubelets, at the address of the pod."""
    filters = [_answer(READY_PATH), *(_answer(probe.path, probe) for probe in probes)]
    nothing = {"name": "nothing", "domains": ["*"], "routes": [_not_found()]}
    manager = typed(
        f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="probes",
        generate_request_id=False,
        **TIMEOUTS,
        request_headers_timeout="5s",
        http_filters=[*filters, filter_("router", typed(f"{HTTP}.router.v3.Router"))],
        route_config={"name": "probes", "virtual_hosts": [nothing]},
    )
    return {
        "name": "probes",
        "address": {"socket_address": {"address": address, "port_value": PROBE_PORT}},
        **UNSHARED,
        "filter_chains": [{"name": "probes", "filters": [filter_("http", manager)]}],
    }


def _not_found() -> Plain:
    return {"match": {"prefix": "/"}, "direct_response": {"status": 404}}


def _answer(path: str, probe: AppProbe | None = None) -> Plain:
    """Answer one path: for the proxy, once it serves, or for the application."""
    needed: Plain = {"cluster_min_healthy_percentages": {probe.path: {"value": 100}}} if probe else {}
    asked = [{"name": ":path", "string_match": {"exact": path}}]
    return filter_(
        "probe", typed(f"{HTTP}.health_check.v3.HealthCheck", pass_through_mode=False, headers=asked, **needed)
    )


def probe_clusters(probes: Iterable[AppProbe], address: str) -> list[Plain]:
    """Return the clusters that probe the application, at the address of its pod."""
    return [_cluster(probe, address) for probe in probes]


def _cluster(probe: AppProbe, address: str) -> Plain:
    endpoint = {"endpoint": {"address": {"socket_address": {"address": address, "port_value": probe.port}}}}
    return {
        "name": probe.path,
        "type": "STATIC",
        "connect_timeout": f"{probe.timeout}s",
        "health_checks": [
            {
                "timeout": f"{probe.timeout}s",
                **dict.fromkeys(
                    ("interval", "no_traffic_interval", "unhealthy_interval", "unhealthy_edge_interval"),
                    f"{probe.period}s",
                ),
                **dict.fromkeys(("healthy_edge_interval", "no_traffic_healthy_interval"), f"{probe.period}s"),
                "unhealthy_threshold": 1,  # kubelets count failures themselves
                "healthy_threshold": 1,
                "reuse_connection": False,
                **_check(probe, address),
            }
        ],
        "load_assignment": {"cluster_name": probe.path, "endpoints": [{"lb_endpoints": [endpoint]}]},
        **_transport(probe),
    }


def _check(probe: AppProbe, address: str) -> Plain:
    match probe.kind:
        case ProbeKind.TCP:
            return {"tcp_health_check": {}}
        case ProbeKind.GRPC:
            return {"grpc_health_check": {"service_name": probe.target}}
        case _:
            return {"http_health_check": _http_check(probe, address)}


def _http_check(probe: AppProbe, address: str) -> Plain:
    host = next((value for name, value in probe.headers if name.lower() == "host"), f"{address}:{probe.port}")
    headers = [
        {"header": {"key": name, "value": value.replace("%", "%%")}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for name, value in (("user-agent", "kube-probe/eastgate"), *probe.headers)
        if name.lower() != "host"
    ]
    return {
        "host": host,
        "path": probe.target,
        "request_headers_to_add": headers,
        "expected_statuses": [{"start": 200, "end": 400}],
        "retriable_statuses": [{"start": 100, "end": 200}, {"start": 400, "end": 600}],
    }


def _transport(probe: AppProbe) -> Plain:
    if probe.kind is ProbeKind.HTTPS:  # as kubelets do, without verifying the identity
        context = typed("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext")
        return {"transport_socket": filter_("tls", context)}
    if probe.kind is ProbeKind.GRPC:
        options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        explicit: Plain = {"http2_protocol_options": {}}
        return {"typed_extension_protocol_options": {options: typed(options, explicit_http_config=explicit)}}
    return {}
