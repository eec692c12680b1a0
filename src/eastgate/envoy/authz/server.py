"""Serves `envoy.service.auth.v3.Authorization/Check` and the health service of gRPC, on threads.

The messages of Envoy are read and written here; what they mean, and the answer, is for whoever is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any, Final
from urllib.parse import unquote

import grpc
from envoy.config.core.v3.base_pb2 import HeaderValue, HeaderValueOption
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse
from envoy.type.v3.http_status_pb2 import HttpStatus
from google.protobuf.struct_pb2 import Struct
from google.rpc.status_pb2 import Status

from eastgate.envoy.authz.health import HEALTH_SERVICE, health_handlers
from eastgate.records import dataclass

__all__ = ["SERVICE", "CheckReply", "CheckServer", "ReceivedCheck", "read_check", "write_reply"]

SERVICE: Final = "envoy.service.auth.v3.Authorization"
_MCP: Final = "envoy.filters.http.mcp"
_PARTIAL: Final = "x-envoy-auth-partial-body"
_OVERWRITE: Final = HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD
_PERMISSION_DENIED: Final = 7
_GRACE_OF_HANDLERS: Final = 5.0

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ReceivedCheck:
    """What an Envoy says of a request. An empty text, and 0 for a port, stand for what it does not say.

    `headers` has names in lower case and no pseudo-headers. `exact_headers`: each value is there by itself; else those
    of one name are joined by commas. `mcp` is what Envoy's own filter read in the body.
    """

    principal: str
    certificate: str = field(repr=False)
    address: str
    port: int
    destination: str
    destination_port: int
    id: str
    method: str
    path: str
    host: str
    scheme: str
    protocol: str
    sni: str
    headers: Mapping[str, list[str]] = field(repr=False)
    exact_headers: bool
    body: bytes = field(repr=False)
    complete: bool
    extensions: Mapping[str, str]
    mcp: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CheckReply:
    """The answer for an Envoy: see the fields of `OkHttpResponse` and `DeniedHttpResponse`.

    `decision` is for the log of the Envoy.
    """

    allowed: bool
    status: int = 403
    upstream_headers: Pairs = ()
    upstream_removed: tuple[str, ...] = ()
    client_headers: Pairs = ()
    body: bytes = b""
    decision: str = ""


def read_check(message: CheckRequest) -> ReceivedCheck:
    """Read what an Envoy asks."""
    attributes = message.attributes
    request = attributes.request.http
    source, destination = attributes.source, attributes.destination
    headers: dict[str, list[str]] = {}
    exact = bool(request.header_map.headers)
    if exact:
        for header in request.header_map.headers:
            value = header.raw_value.decode("utf-8", "replace") if header.raw_value else header.value
            headers.setdefault(header.key.lower(), []).append(value)
    else:
        headers = {name.lower(): [value] for name, value in request.headers.items()}
    partial = headers.pop(_PARTIAL, None)
    body = request.raw_body or request.body.encode()
    metadata = attributes.metadata_context.filter_metadata
    return ReceivedCheck(
        principal=source.principal,
        certificate=unquote(source.certificate),
        address=source.address.socket_address.address,
        port=source.address.socket_address.port_value,
        destination=destination.address.socket_address.address,
        destination_port=destination.address.socket_address.port_value,
        id=request.id,
        method=request.method,
        path=request.path,
        host=request.host,
        scheme=request.scheme,
        protocol=request.protocol,
        sni=attributes.tls_session.sni,
        headers={name: values for name, values in headers.items() if not name.startswith(":")},
        exact_headers=exact,
        body=body,
        complete=partial == ["false"] and request.size in (-1, len(body)),
        extensions=dict(attributes.context_extensions),
        mcp=_plain(metadata[_MCP]) if _MCP in metadata else {},
    )


def _plain(struct: Any) -> dict[str, object]:
    """Return a Struct as plain data, as far as texts and objects go."""
    plain: dict[str, object] = {}
    for name, value in struct.fields.items():
        if value.HasField("string_value"):
            plain[name] = value.string_value
        elif value.HasField("struct_value"):
            plain[name] = _plain(value.struct_value)
    return plain


def write_reply(reply: CheckReply) -> CheckResponse:
    """Write the answer. What it sets replaces what the client sent."""
    noted = Struct()
    if reply.decision:
        noted["decision"] = reply.decision
    if reply.allowed:
        allowed = OkHttpResponse(
            headers=[_option(*header) for header in reply.upstream_headers],
            headers_to_remove=reply.upstream_removed,
        )
        return CheckResponse(status=Status(code=0), ok_response=allowed, dynamic_metadata=noted)
    denied = DeniedHttpResponse(
        status=HttpStatus(code=reply.status),
        headers=[_option(*header) for header in reply.client_headers],
        body=reply.body.decode("utf-8", "replace"),
    )
    return CheckResponse(status=Status(code=_PERMISSION_DENIED), denied_response=denied, dynamic_metadata=noted)


def _option(name: str, value: str) -> HeaderValueOption:
    return HeaderValueOption(header=HeaderValue(key=name, value=value), append_action=_OVERWRITE)


class CheckServer:
    """Answers Envoys. `threads` decide at a time, `waiting` more wait for a thread, and all others are refused.

    `shared`: other processes listen on the same ports.
    """

    def __init__(
        self, answer: Callable[[ReceivedCheck], CheckReply], *, threads: int, waiting: int, max_bytes: int, shared: bool
    ) -> None:
        self._answer = answer
        self._pool = ThreadPoolExecutor(threads, "check")
        self._draining = threading.Event()
        self._is_ready: Callable[[], bool] = lambda: True
        self._server = grpc.server(
            self._pool,
            options=[
                ("grpc.so_reuseport", int(shared)),  # or an old process could answer by old policies
                ("grpc.max_receive_message_length", max_bytes),
                ("grpc.max_metadata_size", 64 * 1024),
                ("grpc.max_concurrent_streams", threads + waiting),
                ("grpc.http2.min_ping_interval_without_data_ms", 5000),
            ],
            maximum_concurrent_rpcs=threads + waiting,
        )
        handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(
            self._check,
            request_deserializer=CheckRequest.FromString,
            response_serializer=CheckResponse.SerializeToString,
        )
        handlers = (
            grpc.method_handlers_generic_handler(SERVICE, {"Check": handler}),
            grpc.method_handlers_generic_handler(
                HEALTH_SERVICE, health_handlers(self._health, {"", SERVICE}, threads // 4)
            ),
        )
        self._server.add_generic_rpc_handlers(handlers)

    def listen(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listen on `HOST:PORT` or `unix:PATH`; return the port. Raises RuntimeError where that is not possible."""
        if credentials is None:
            return self._server.add_insecure_port(address)
        return self._server.add_secure_port(address, credentials)

    def start(self, is_ready: Callable[[], bool] = lambda: True) -> None:
        """Begin to answer. The health service answers what `is_ready` returns."""
        self._is_ready = is_ready
        self._server.start()

    def drain(self) -> None:
        """Have the health service say that nobody is served, so that no more come."""
        self._draining.set()

    def stop(self, grace: float) -> None:
        """Stop listening, and wait for what is open, at most so many seconds."""
        self.drain()
        self._server.stop(grace).wait(grace + _GRACE_OF_HANDLERS)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _check(self, message: CheckRequest, _context: grpc.ServicerContext) -> CheckResponse:
        return write_reply(self._answer(read_check(message)))

    def _health(self) -> bool:
        return not self._draining.is_set() and self._is_ready()
