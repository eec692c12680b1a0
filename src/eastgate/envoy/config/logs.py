"""The access log of a proxy: one line of JSON on its standard output for each decision.

Decisions are also sent to the control plane, if `InboundPort.sends_logs`. Envoy opens a stream for each configuration
of such a log, and keeps it until it ends. So there are only two configurations, which never change. They read the port
and the verdict from the metadata of listeners and filter chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from eastgate.envoy.config.bootstrap import CONTROL_PLANE
from eastgate.envoy.config.inbound_port import ANY_PORT
from eastgate.envoy.config.predicates import (
    DESTINATION_KEY,
    MCP_METHOD_KEY,
    MCP_NAME_KEY,
    MESSAGE_KEY,
    PATH_KEY,
    PEER_KEY,
    SOURCE_KEY,
    TOKEN_KEY,
    TUNNEL_KEY,
    WAITING_KEY,
)
from eastgate.envoy.config.rbac import AUDIT, CONNECTIONS
from eastgate.envoy.config.typed import Plain, filter_, typed
from eastgate.envoy.config.values import ALL_KEY

ORIGINAL_KEY = "envoy.network.transport_socket.original_dst_address"  # a name of Envoy's own
_DECIDED = "%DYNAMIC_METADATA(envoy.filters.http.rbac:{}_effective_policy_id)%"
_PEER_FIELDS = {
    "time": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "peer": f"%FILTER_STATE({PEER_KEY}:PLAIN)%",
    "source": f"%FILTER_STATE({SOURCE_KEY}:PLAIN)%",
}
_IDENTITY = {"identity": f"%FILTER_STATE({TOKEN_KEY}:PLAIN)%"}  # by a token, if `peer` is `none`
_ORIGINAL = {  # before filters of routes, which rewrite host and path
    "originalHost": "%FILTER_STATE(eastgate.authority:PLAIN)%",
    "originalPath": f"%FILTER_STATE({PATH_KEY}:PLAIN)%",
}
GATEWAY_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        **_ORIGINAL,
        "destination": f"%FILTER_STATE({DESTINATION_KEY}:PLAIN)%",
        "mcpMethod": f"%FILTER_STATE({MCP_METHOD_KEY}:PLAIN)%",
        "tool": f"%FILTER_STATE({MCP_NAME_KEY}:PLAIN)%",
        "authorizer": "%DYNAMIC_METADATA(envoy.filters.http.ext_authz:decision)%",
    }
)
"""The additional fields for requests at gateways. `authorizer`: its decision, as the name of a verdict."""
_REQUEST_FIELDS = {
    **_IDENTITY,
    "method": "%REQ(:METHOD)%",
    "host": "%REQ(:AUTHORITY)%",
    "path": "%PATH(NQ:PATH)%",  # the compared form; a query may hold secrets
    "status": "%RESPONSE_CODE%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "flags": "%RESPONSE_FLAGS%",
    "milliseconds": "%DURATION%",
    "decision": _DECIDED.format("enforced"),
    "audit": _DECIDED.format("shadow"),
}
_DECIDED_CONNECTION = "%DYNAMIC_METADATA(envoy.filters.network.rbac:{}.shadow_effective_policy_id)%"
_CONNECTION_FIELDS = {"decision": _DECIDED_CONNECTION.format(CONNECTIONS), "audit": _DECIDED_CONNECTION.format(AUDIT)}
_DIRECT = {"source": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"}
_NO_FIELDS: Mapping[str, str] = MappingProxyType({})


def _stdout(record: str, workload: str, port: int, fields: dict[str, str]) -> list[Plain]:
    called = {} if port != ANY_PORT else {"originalDestination": f"%FILTER_STATE({ORIGINAL_KEY}:PLAIN)%"}
    logged = {"eastgate": record, "workload": workload, "port": port, **_PEER_FIELDS, **fields, **called}
    stream = "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"
    return [filter_("stdout", typed(stream, log_format={"json_format": logged}))]


def _filter_by_type(log: list[Plain], kind: str) -> list[Plain]:
    return [{**logger, "filter": {"log_type_filter": {"types": [kind]}}} for logger in log]


def open_request_log(workload: str, port: int) -> list[Plain]:
    """Log each open HTTP request periodically, with all fields that are needed to decide it again."""
    fields = {
        "began": "%START_TIME(%s.%3f)%",
        **_IDENTITY,
        "method": "%REQ(:METHOD)%",
        "host": "%REQ(:AUTHORITY)%",
        "path": "%PATH(NQ:PATH)%",
        "decision": _DECIDED.format("enforced"),
        "asked": f"%FILTER_STATE({ALL_KEY}:PLAIN)%",
        **_ORIGINAL,  # of a gateway, as are the fields below
        "destination": f"%FILTER_STATE({DESTINATION_KEY}:PLAIN)%",
        "waiting": f"%FILTER_STATE({WAITING_KEY}:PLAIN)%",
        "message": f"%FILTER_STATE({MESSAGE_KEY}:PLAIN)%",
        "mcpMethod": f"%FILTER_STATE({MCP_METHOD_KEY}:PLAIN)%",
        "mcpName": f"%FILTER_STATE({MCP_NAME_KEY}:PLAIN)%",
    }
    return _filter_by_type(_stdout("open", workload, port, fields), "DownstreamPeriodic")


def request_log(workload: str, port: int, more: Mapping[str, str] = _NO_FIELDS) -> list[Plain]:
    """Log each HTTP request, when it ends, with `more` fields."""
    return _filter_by_type(_stdout("request", workload, port, {**_REQUEST_FIELDS, **more}), "DownstreamEnd")


def connection_log(workload: str, port: int) -> list[Plain]:
    """Log each allowed connection, when it ends."""
    fields = {
        **_CONNECTION_FIELDS,
        "sent": "%BYTES_SENT%",
        "received": "%BYTES_RECEIVED%",
        "milliseconds": "%DURATION%",
    }
    return _stdout("connection", workload, port, fields)


def denial_log(workload: str, port: int, decision: str) -> list[Plain]:
    """Log each refused connection."""
    return _stdout("denial", workload, port, {"decision": decision})


def beside_log(workload: str, port: int, decision: str) -> list[Plain]:
    """Log each connection that is refused because it did not come through the waypoint of its workload."""
    return _stdout("denial", workload, port, {"decision": decision, **_DIRECT})


def refused_tunnel_log(workload: str, port: int, decision: str) -> list[Plain]:
    """Log each refused tunnel, with its peer, not the stated caller."""
    peer = f"%FILTER_STATE({TUNNEL_KEY}:PLAIN)%"
    [log] = _stdout("denial", workload, port, {"decision": decision, **_DIRECT, "peer": peer})
    refusals = [
        {"status_code_filter": {"comparison": {"op": op, "value": {"default_value": code, "runtime_key": "none"}}}}
        for op, code in (("GE", 403), ("LE", 404))
    ]
    return [{**log, "filter": {"and_filter": {"filters": refusals}}}]


def unreachable_log(workload: str, port: int) -> list[Plain]:
    """Log each allowed connection that the application did not accept.

    The caller cannot distinguish it from a denial, and it may end before the allowing rule is known.
    """
    [log] = _stdout("unreachable", workload, port, {"flags": "%RESPONSE_FLAGS%"})
    return [{**log, "filter": {"response_flag_filter": {"flags": ["UF", "UH", "UO"]}}}]


def capture_log(workload: str, decision: str) -> list[Plain]:
    """Log each connection that the capturing listener refuses, when the caller is still unknown."""
    fields = {
        "decision": decision,
        "source": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
        "originalDestination": "%DOWNSTREAM_LOCAL_ADDRESS%",
    }
    [log] = _stdout("denial", workload, ANY_PORT, {})
    log["typed_config"]["log_format"]["json_format"] |= fields
    return [log]


def handshake_log(workload: str, port: int) -> list[Plain]:
    """Log each failed handshake, at the outer listener: the connection gets no further."""
    fields = {
        "reason": "%DOWNSTREAM_TRANSPORT_FAILURE_REASON%",
        "source": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
        "flags": "%RESPONSE_FLAGS%",
    }
    failed = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
    [log] = _stdout("handshake", workload, port, fields)
    expression = "has(connection.transport_failure_reason) && connection.transport_failure_reason != ''"
    return [{**log, "filter": {"extension_filter": filter_("failed", typed(failed, expression=expression))}}]


# Logs for the control plane

_METADATA: Final = "eastgate"
_SENT_FIELDS: Final = {
    **_PEER_FIELDS,
    "address": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",  # for connections that are refused before they have a source
    "originalDestination": f"%FILTER_STATE({ORIGINAL_KEY}:PLAIN)%",
    "port": f"%METADATA(LISTENER:{_METADATA}:port)%",
}


def log_metadata(**values: str) -> Plain:
    """Return the metadata of a listener or a filter chain for logs to the control plane: its port, or its verdict."""
    return {"filter_metadata": {_METADATA: values}}


def sent_request_log() -> list[Plain]:
    """Send a record of each HTTP request, when it ends."""
    fields = {**_SENT_FIELDS, **_REQUEST_FIELDS, **GATEWAY_FIELDS}
    return _filter_by_type(_sent("HttpGrpcAccessLogConfig", "request", fields), "DownstreamEnd")


def sent_connection_log() -> list[Plain]:
    """Send a record of each connection: allowed, when it ends, or denied."""
    denied = f"%METADATA(LISTENER_FILTER_CHAIN:{_METADATA}:decision)%"
    return _sent("TcpGrpcAccessLogConfig", "connection", {**_SENT_FIELDS, **_CONNECTION_FIELDS, "denied": denied})


def _sent(kind: str, record: str, fields: Mapping[str, str]) -> list[Plain]:
    """Send fields as tags. Envoy drops records that it cannot send, and never waits."""
    common = {
        "log_name": "eastgate",
        "transport_api_version": "V3",
        "grpc_service": {"envoy_grpc": {"cluster_name": CONTROL_PLANE}},
        "buffer_flush_interval": "1s",
        "buffer_size_bytes": 65536,
        "custom_tags": [
            {"tag": "eastgate", "literal": {"value": record}},
            *({"tag": name, "value": text} for name, text in fields.items()),
        ],
    }
    return [filter_("control-plane", typed(f"envoy.extensions.access_loggers.grpc.v3.{kind}", common_config=common))]
