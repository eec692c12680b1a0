"""The configuration with which an Envoy starts, to get everything else from the control plane."""

from __future__ import annotations

from eastgate.envoy.config.typed import Plain, filter_, typed

__all__ = ["bootstrap"]

_MOST_CONNECTIONS = 50_000
# With it, the end of a connection between two listeners of a proxy is taken for a reset, and what was written last is
# thrown away: the answer to a request with `Connection: close`.
_RESETS = "envoy.reloadable_features.enable_send_rst_on_user_space_socket"
_LARGEST_PATTERN = 20_000  # of RE2; patterns are checked before they get here


def bootstrap(node: str, control_plane: str, token: str, admin: str | None = None) -> Plain:
    """Return the bootstrap of a proxy. Both addresses are paths of sockets that only we can open."""
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    keepalive = {"connection_keepalive": {"interval": "5s", "timeout": "5s"}}
    address = {"endpoint": {"address": {"pipe": {"path": control_plane}}}}
    plain: Plain = {
        "node": {"id": node, "cluster": "eastgate"},
        "bootstrap_extensions": [
            filter_("inside", typed("envoy.extensions.bootstrap.internal_listener.v3.InternalListener"))
        ],
        "dynamic_resources": {
            "lds_config": {"ads": {}, "resource_api_version": "V3"},
            "cds_config": {"ads": {}, "resource_api_version": "V3"},
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [
                    {
                        "envoy_grpc": {
                            "cluster_name": "control-plane",
                            "retry_policy": {"retry_back_off": {"base_interval": "0.05s", "max_interval": "2s"}},
                        },
                        "initial_metadata": [{"key": "authorization", "value": f"Bearer {token}"}],
                    }
                ],
            },
        },
        "static_resources": {
            "clusters": [
                {
                    "name": "control-plane",
                    "type": "STATIC",
                    "connect_timeout": "1s",
                    "typed_extension_protocol_options": {
                        options: typed(options, explicit_http_config={"http2_protocol_options": keepalive})
                    },
                    "load_assignment": {
                        "cluster_name": "control-plane",
                        "endpoints": [{"lb_endpoints": [address]}],
                    },
                }
            ]
        },
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
