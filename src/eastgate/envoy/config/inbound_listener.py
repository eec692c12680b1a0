"""The listener for callers: terminates TLS, and notes the identity of the peer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from envoy.config.listener.v3 import listener_pb2

from eastgate.envoy.config.client_certificates import CERTIFICATE, OPTIONAL_TRUST
from eastgate.envoy.config.inbound_port import ANY_PORT, NETWORK, Handshake, InboundPort
from eastgate.envoy.config.logs import connection_log, handshake_log, log_metadata, sent_connection_log
from eastgate.envoy.config.predicates import ADDRESS_KEY, CERTIFICATE_KEY, PEER_KEY, SNI_KEY, SOURCE_KEY, TUNNEL_KEY
from eastgate.envoy.config.rbac import AUDIT, CONNECTIONS, filter_name
from eastgate.envoy.config.typed import ADS, Plain, discovered, filter_, message, struct, typed
from eastgate.envoy.plan.decisions import NOBODY

_HANDSHAKE_TIMEOUT = "15s"  # for the whole handshake, after its detection
_TRUST = "trust"  # the name of a secret
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_PEER = "%DOWNSTREAM_PEER_URI_SAN%"


def inbound_listener(inbound: InboundPort) -> Any:
    """Build the listener that terminates TLS and notes the peer. A client's header never counts as its identity."""
    plain = {
        "name": f"inbound/{inbound.name}",
        **_address(inbound),
        "listener_filters": [filter_("tls", typed("envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"))],
        "listener_filters_timeout": inbound.detection,
        "continue_on_listener_filters_timeout": True,
        "access_log": handshake_log(inbound.workload, inbound.port),
        **({"metadata": log_metadata(port=str(inbound.port))} if inbound.sends_logs else {}),
        **(_of_gateway(inbound) if inbound.handshakes else _of_workload(inbound)),
    }
    return message(listener_pb2.Listener, plain)


def tunnelled_listener(inbound: InboundPort) -> Any:
    """Build the listener for connections that came through a tunnel, which has noted the caller."""
    keys = (PEER_KEY, TUNNEL_KEY, ADDRESS_KEY, SOURCE_KEY, CERTIFICATE_KEY)
    notes = [note(key, f"%FILTER_STATE({key}:PLAIN)%") for key in keys]
    plain = {
        "name": f"tunnelled/{inbound.name}",
        "internal_listener": {},
        **({"metadata": log_metadata(port=str(inbound.port))} if inbound.sends_logs else {}),
        "filter_chains": [
            {"name": "tunnelled", "filters": _noting_and_deciding(inbound, {"on_new_connection": notes})}
        ],
    }
    return message(listener_pb2.Listener, plain)


def _address(inbound: InboundPort) -> Plain:
    """Return the address of a port. In a pod, another listener forwards redirected connections to it."""
    if inbound.capture is None:
        return {"address": {"socket_address": {"address": inbound.address, "port_value": inbound.bound}}}
    if inbound.port == ANY_PORT:
        return {"internal_listener": {}}
    first, *others = (
        {"address": {"socket_address": {"address": address, "port_value": inbound.port}}}
        for address in inbound.capture.addresses
    )
    return {**first, "bind_to_port": False, **({"additional_addresses": others} if others else {})}


def _of_workload(inbound: InboundPort) -> Plain:
    """Return the chains of a port for TLS with a certificate of the mesh, and for clear text."""
    chains_by_address = [
        {
            "name": f"address/{address}",
            "filter_chain_match": {"transport_protocol": "raw_buffer", "source_prefix_ranges": [host_range(address)]},
            "filters": _outer(inbound, identity, tls=False),
        }
        for address, identity in inbound.by_address
    ]
    return {
        "filter_chains": [
            {
                "name": "tls",
                "filter_chain_match": {"transport_protocol": "tls"},
                "transport_socket": tls_socket((inbound.secret,), _TRUST, required=True),
                "transport_socket_connect_timeout": _HANDSHAKE_TIMEOUT,
                "filters": _outer(inbound, _PEER, tls=True),
            },
            *chains_by_address,
            {
                "name": "plain",
                "filter_chain_match": {"transport_protocol": "raw_buffer"},
                "filters": _outer(inbound, NOBODY, tls=False),
            },
        ],
        "default_filter_chain": {"name": "silent", "filters": _outer(inbound, NOBODY, tls=False)},
    }


def _of_gateway(inbound: InboundPort) -> Plain:
    """Return the chains of a port for TLS only, each with the certificate for its name."""
    return {"filter_chains": [_handshake_chain(inbound, handshake) for handshake in inbound.handshakes]}


def _handshake_chain(inbound: InboundPort, handshake: Handshake) -> Plain:
    chosen: Plain = {"transport_protocol": "tls"}
    if handshake.hostname is not None:
        chosen["server_names"] = [handshake.hostname]
    chain: Plain = {"name": f"tls/{handshake.hostname or '*'}", "filter_chain_match": chosen}
    if handshake.clusters or handshake.closed:
        return chain | {"filters": [_passing_through(inbound, handshake)]}
    peer = _PEER if handshake.clients is None else NOBODY
    trust = handshake.clients or OPTIONAL_TRUST
    socket = tls_socket(handshake.certificates or (inbound.secret,), trust, required=bool(handshake.clients))
    filters = _outer(inbound, peer, tls=True)
    return chain | {
        "transport_socket": socket,
        "transport_socket_connect_timeout": _HANDSHAKE_TIMEOUT,
        "filters": filters,
    }


def _passing_through(inbound: InboundPort, handshake: Handshake) -> Plain:
    prefix = f"stream/{inbound.name}"
    if handshake.closed:
        return filter_("proxy", typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=prefix, cluster="nowhere"))
    weighted = {"clusters": [{"name": name, "weight": weight} for name, weight in handshake.clusters]}
    return filter_("proxy", typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=prefix, weighted_clusters=weighted))


def tls_socket(
    certificates: tuple[str, ...], trust: str, *, required: bool, alpn: tuple[str, ...] = ("h2", "http/1.1")
) -> Plain:
    """Return TLS with these secrets. A certificate of a client must be valid, even if none is required."""
    context = typed(
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        require_client_certificate=required,
        disable_stateless_session_resumption=True,
        disable_stateful_session_resumption=True,
        common_tls_context={
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "alpn_protocols": list(alpn),
            "tls_certificate_sds_secret_configs": [_secret(name) for name in certificates],
            "validation_context_sds_secret_config": _secret(trust),
        },
    )
    return filter_("tls", context)


def _secret(name: str) -> Plain:
    return {"name": name, "sds_config": ADS}


def host_range(address: str) -> Plain:
    """Return the range with this address alone."""
    return {"address_prefix": address, "prefix_len": 128 if ":" in address else 32}


def _outer(inbound: InboundPort, identity: str, *, tls: bool) -> list[Plain]:
    when = "on_downstream_tls_handshake" if tls else "on_new_connection"
    notes = [note(PEER_KEY, identity), *_source_notes(inbound)]
    if inbound.handshakes:
        notes.append(note(SNI_KEY, "%REQUESTED_SERVER_NAME%"))
    if tls:
        notes.append(note(CERTIFICATE_KEY, CERTIFICATE))
    late: Plain = {"upstream_connect_mode": "ON_DOWNSTREAM_TLS_HANDSHAKE", "max_early_data_bytes": 8192} if tls else {}
    return _noting_and_deciding(inbound, {when: notes}, late)


def _noting_and_deciding(inbound: InboundPort, notes: Plain, late: Mapping[str, Any] = _NOTHING) -> list[Plain]:
    return [
        filter_("caller", struct(f"{NETWORK}.set_filter_state.v3.Config", **notes)),
        *(discovered(filter_name(inbound.name, which), f"{NETWORK}.rbac.v3.RBAC") for which in (CONNECTIONS, AUDIT)),
        filter_(
            "proxy",
            typed(
                f"{NETWORK}.tcp_proxy.v3.TcpProxy",
                stat_prefix=f"inbound/{inbound.name}",
                cluster=f"connections/{inbound.name}",
                access_log=_connection_logs(inbound),
                **late,
            ),
        ),
    ]


def _connection_logs(inbound: InboundPort) -> list[Plain]:
    sent = sent_connection_log() if inbound.sends_logs else []
    return [*connection_log(inbound.workload, inbound.port), *sent]


def _source_notes(inbound: InboundPort) -> list[Plain]:
    if inbound.capture is not None and inbound.port == ANY_PORT:  # the first listener of the connection noted them
        return [note(key, f"%FILTER_STATE({key}:PLAIN)%") for key in (ADDRESS_KEY, SOURCE_KEY)]
    return source_notes()


def source_notes() -> list[Plain]:
    """Return the notes about the source of a connection."""
    return [
        note(ADDRESS_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"),
        note(SOURCE_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"),
    ]


def note(key: str, text: str) -> Plain:
    """Return a note of a text in filter state, for the next listener.

    The text is hashable: otherwise callers with different notes would share connections to that listener.
    """
    return {
        "object_key": key,
        "factory_key": "envoy.hashable_string",
        "shared_with_upstream": "ONCE",
        "format_string": {"text_format_source": {"inline_string": text}},
    }
