"""The configuration with which an Envoy starts, to get everything else from the control plane."""

from __future__ import annotations

from eastgate.envoy.config.typed import Plain, filter_, typed

CONTROL_PLANE = "control-plane"
_MOST_CONNECTIONS = 50_000
# With it, the end of a connection between two listeners of a proxy is taken for a reset, and what was written last is
# thrown away: the answer to a request with `Connection: close`.
_RESETS = "envoy.reloadable_features.enable_send_rst_on_user_space_socket"
_LARGEST_PATTERN = 20_000  # of RE2; patterns are checked before they get here


def bootstrap(node: str, control_plane: str, token: str, admin: str | None = None) -> Plain:
    """Return the bootstrap of a proxy. Both addresses are paths of sockets that only we can open."""
    metadata = [{"key": "authorization", "value": f"Bearer {token}"}]
    cluster = {
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": http2_options(),
        "load_assignment": {
            "cluster_name": CONTROL_PLANE,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": control_plane}}}}]}],
        },
    }
    return assemble(node, cluster, metadata, admin)


def http2_options(**more: object) -> Plain:
    """Return what the cluster of the control plane says of HTTP."""
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    keepalive = {"connection_keepalive": {"interval": "5s", "timeout": "5s"}}
    return {options: typed(options, explicit_http_config={"http2_protocol_options": keepalive}, **more)}


def assemble(
    node: str | None,
    cluster: Plain,
    metadata: list[Plain] | None = None,
    admin: str | None = None,
    *,
    patient: bool = False,
) -> Plain:
    """Return a bootstrap with the cluster of a control plane.

    `node`: None where the command line names it. `patient`: without a control plane it never starts to serve.
    """
    source: Plain = {"ads": {}, "resource_api_version": "V3", **({"initial_fetch_timeout": "0s"} if patient else {})}
    service: Plain = {
        "envoy_grpc": {
            "cluster_name": CONTROL_PLANE,
            "retry_policy": {"retry_back_off": {"base_interval": "0.05s", "max_interval": "2s"}},
        }
    }
    plain: Plain = {
        **({"node": {"id": node, "cluster": "eastgate"}} if node is not None else {}),
        "bootstrap_extensions": [
            filter_("inside", typed("envoy.extensions.bootstrap.internal_listener.v3.InternalListener"))
        ],
        "dynamic_resources": {
            "lds_config": source,
            "cds_config": source,
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [service | ({"initial_metadata": metadata} if metadata else {})],
            },
        },
        "static_resources": {"clusters": [{"name": CONTROL_PLANE, **cluster}]},
        "layered_runtime": {
            "layers": [
                {
                    "name": "eastgate",
                    "static_layer": {
                        _RESETS: False,
                        "re2.max_program_size.error_level": _LARGEST_PATTERN,
                        "re2.max_program_size.warn_level": _LARGEST_PATTERN,
                    },
                }
            ]
        },
        "overload_manager": {
            "resource_monitors": [
                filter_(
                    "envoy.resource_monitors.global_downstream_max_connections",
                    typed(
                        "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                        max_active_downstream_connections=_MOST_CONNECTIONS,
                    ),
                )
            ]
        },
    }
    if admin is not None:
        plain["admin"] = {"address": {"pipe": {"path": admin, "mode": 0o600}}}
    return plain
