"""Builds Envoy's messages from plain data, the form of all configuration here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from eastgate.envoy.config.packing import serialize

M = TypeVar("M", bound=Message)
Plain = dict[str, Any]

_NAMED = (  # plain data may name their types
    "envoy.extensions.access_loggers.filters.cel.v3.cel_pb2",
    "envoy.extensions.access_loggers.grpc.v3.als_pb2",
    "envoy.extensions.access_loggers.stream.v3.stream_pb2",
    "envoy.extensions.filters.http.ext_authz.v3.ext_authz_pb2",
    "envoy.extensions.filters.http.jwt_authn.v3.config_pb2",
    "envoy.extensions.filters.http.lua.v3.lua_pb2",
    "envoy.extensions.filters.http.router.v3.router_pb2",
    "envoy.extensions.filters.http.health_check.v3.health_check_pb2",
    "envoy.extensions.filters.listener.http_inspector.v3.http_inspector_pb2",
    "envoy.extensions.filters.listener.original_dst.v3.original_dst_pb2",
    "envoy.extensions.filters.listener.tls_inspector.v3.tls_inspector_pb2",
    "envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2",
    "envoy.extensions.filters.network.tcp_proxy.v3.tcp_proxy_pb2",
    "envoy.extensions.transport_sockets.internal_upstream.v3.internal_upstream_pb2",
    "envoy.extensions.transport_sockets.raw_buffer.v3.raw_buffer_pb2",
    "envoy.extensions.transport_sockets.tls.v3.tls_pb2",
    "envoy.extensions.transport_sockets.tls.v3.tls_spiffe_validator_config_pb2",
    "envoy.extensions.upstreams.http.v3.http_protocol_options_pb2",
    "xds.type.v3.typed_struct_pb2",
)
for _module in _NAMED:
    import_module(_module)

_TYPES = "type.googleapis.com/"
ADS: Plain = {"ads": {}, "resource_api_version": "V3"}


def message(kind: type[M], plain: Plain) -> M:
    """Parse plain data as a message. Raises for an unknown field."""
    parsed = ParseDict(plain, kind())
    _repack(parsed)
    return parsed


def _repack(parent: Message) -> None:
    """Pack extensions again: the order of their maps is arbitrary, and would differ after a restart."""
    for field, value in parent.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            parts = [entry for entry in value.values() if isinstance(entry, Message)]
        else:
            parts = [value] if isinstance(value, Message) else list(value)
        for part in parts:
            if isinstance(part, AnyMessage):
                descriptor = descriptor_pool.Default().FindMessageTypeByName(part.TypeName())
                inner = message_factory.GetMessageClass(descriptor)()
                inner.ParseFromString(part.value)
                _repack(inner)
                part.value = serialize(inner)
            else:
                _repack(part)


def typed(type_name: str, **fields: Any) -> Plain:
    """Return the configuration of an extension."""
    return {"@type": _TYPES + type_name, **fields}


def struct(type_name: str, **fields: Any) -> Plain:
    """Return the configuration of an extension with a message that Envoy knows, and the generated code does not."""
    return {"@type": _TYPES + "xds.type.v3.TypedStruct", "type_url": _TYPES + type_name, "value": fields}


def filter_(name: str, config: Plain) -> Plain:
    """Return a named extension."""
    return {"name": name, "typed_config": config}


def discovered(name: str, type_name: str) -> Plain:
    """Return an extension whose configuration is a resource of its own. Until Envoy has it, no request passes."""
    return {"name": name, "config_discovery": {"config_source": ADS, "type_urls": [_TYPES + type_name]}}
