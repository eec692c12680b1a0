"""The listener where callers connect: ends TLS, and notes who is calling."""

from __future__ import annotations

from typing import Any

from envoy.config.listener.v3 import listener_pb2

from eastgate.xds.client_certificates import CERTIFICATE
from eastgate.xds.doors import NETWORK, Door
from eastgate.xds.logs import connection_log, handshake_log
from eastgate.xds.matching import ADDRESS_KEY, CERTIFICATE_KEY, NOBODY, PEER_KEY, SOURCE_KEY
from eastgate.xds.rbac import AUDIT, CONNECTIONS, filter_name
from eastgate.xds.typed import ADS, Plain, discovered, filter_, message, struct, typed

__all__ = ["inbound"]

_HANDSHAKE = "15s"  # for all of it, once it is known to be one
_SECRETS = ("svid", "trust")


def inbound(door: Door) -> Any:
    """Ends TLS and notes who is calling. What a client sends in a header is never who it is."""
    socket = {"socket_address": {"address": door.address, "port_value": door.bound}}
    secrets = [{"name": name, "sds_config": ADS} for name in _SECRETS]
    tls = typed(
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        require_client_certificate=True,
        disable_stateless_session_resumption=True,
        disable_stateful_session_resumption=True,
        common_tls_context={
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificate_sds_secret_configs": secrets[:1],
            "validation_context_sds_secret_config": secrets[1],
        },
    )
    known = [
        {
            "name": f"address/{address}",
            "filter_chain_match": {"transport_protocol": "raw_buffer", "source_prefix_ranges": [_host(address)]},
            "filters": _outer(door, identity, tls=False),
        }
        for address, identity in door.by_address
    ]
    plain = {
        "name": f"inbound/{door.port}",
        "address": socket,
        "listener_filters": [filter_("tls", typed("envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"))],
        "listener_filters_timeout": door.detection,
        "continue_on_listener_filters_timeout": True,
        "access_log": handshake_log(door.workload, door.port),
        "filter_chains": [
            {
                "name": "tls",
                "filter_chain_match": {"transport_protocol": "tls"},
                "transport_socket": filter_("tls", tls),
                "transport_socket_connect_timeout": _HANDSHAKE,
                "filters": _outer(door, "%DOWNSTREAM_PEER_URI_SAN%", tls=True),
            },
            *known,
            {
                "name": "plain",
                "filter_chain_match": {"transport_protocol": "raw_buffer"},
                "filters": _outer(door, NOBODY, tls=False),
            },
        ],
        "default_filter_chain": {"name": "silent", "filters": _outer(door, NOBODY, tls=False)},
    }
    return message(listener_pb2.Listener, plain)


def _host(address: str) -> Plain:
    return {"address_prefix": address, "prefix_len": 128 if ":" in address else 32}


def _outer(door: Door, identity: str, *, tls: bool) -> list[Plain]:
    when = "on_downstream_tls_handshake" if tls else "on_new_connection"
    note = [
        _note(PEER_KEY, identity),
        _note(ADDRESS_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"),
        _note(SOURCE_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"),
    ]
    if tls:
        note.append(_note(CERTIFICATE_KEY, CERTIFICATE) | {"shared_with_upstream": "ONCE"})
    late: Plain = {"upstream_connect_mode": "ON_DOWNSTREAM_TLS_HANDSHAKE", "max_early_data_bytes": 8192} if tls else {}
    return [
        filter_("caller", struct(f"{NETWORK}.set_filter_state.v3.Config", **{when: note})),
        *(discovered(filter_name(door.port, one), f"{NETWORK}.rbac.v3.RBAC") for one in (CONNECTIONS, AUDIT)),
        filter_(
            "proxy",
            typed(
                f"{NETWORK}.tcp_proxy.v3.TcpProxy",
                stat_prefix=f"inbound/{door.port}",
                cluster=f"connections/{door.port}",
                access_log=connection_log(door.workload, door.port),
                **late,
            ),
        ),
    ]


def _note(key: str, text: str) -> Plain:
    """A hashable text, or Envoy would share connections behind this listener among callers."""
    return {
        "object_key": key,
        "factory_key": "envoy.hashable_string",
        "shared_with_upstream": "TRANSITIVE",
        "format_string": {"text_format_source": {"inline_string": text}},
    }
