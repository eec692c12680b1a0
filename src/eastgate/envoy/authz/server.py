"""Serves `envoy.service.auth.v3.Authorization/Check` and the health service of gRPC.

This module reads and writes Envoy's messages. A callback interprets them and decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Set
from concurrent.futures import CancelledError, Executor
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote

from envoy.config.core.v3.base_pb2 import HeaderValueOption
from envoy.service.auth.v3.attribute_context_pb2 import AttributeContext
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from google.protobuf.message import DecodeError

from eastgate.basics.records import dataclass
from eastgate.envoy.grpc.calls import CallError, GrpcStatus, Method
from eastgate.envoy.grpc.server import GrpcLimits, GrpcServer

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer


# The health service of gRPC, `grpc.health.v1.Health`. Its messages have one field each, so they are encoded by hand.


HEALTH_SERVICE: Final = "grpc.health.v1.Health"
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"
_SERVICE_UNKNOWN: Final = b"\x08\x03"
_SERVICE_FIELD: Final = 0x0A
_POLL_SECONDS: Final = 0.2  # seconds


def health_methods(is_serving: Callable[[], bool], services: Set[str], most_watchers: int) -> dict[str, Method]:
    """Return the methods of the health service, by their paths.

    `services` share one health; empty: the whole server.
    """
    watchers: set[object] = set()

    def status() -> bytes:
        return SERVING if is_serving() else NOT_SERVING

    def check(request: bytes) -> bytes:
        if _service(request) not in services:
            raise CallError(GrpcStatus.NOT_FOUND, "there is no such service")
        return status()

    async def watch(request: bytes) -> AsyncIterator[bytes]:
        if _service(request) not in services:
            yield _SERVICE_UNKNOWN
            return
        if len(watchers) >= most_watchers:
            raise CallError(GrpcStatus.RESOURCE_EXHAUSTED, "too many watch")
        watchers.add(watcher := object())
        try:
            last = b""
            while True:
                now = status()
                if now != last:
                    yield now
                    last = now
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            watchers.discard(watcher)

    return {f"/{HEALTH_SERVICE}/Check": check, f"/{HEALTH_SERVICE}/Watch": watch}


def _service(request: bytes) -> str | None:
    """Return the service that a request names; None for an invalid request."""
    if not request:
        return ""
    if request[0] != _SERVICE_FIELD or len(request) < 2 or request[1] >= 0x80 or len(request) != 2 + request[1]:
        return None
    return request[2:].decode("utf-8", "replace")


# Answers checks on threads. A check whose caller has gone does not wait for a thread.


_Check = TypeVar("_Check")
_Reply = TypeVar("_Reply")


def answer_on_thread(threads: Executor, answer: Callable[[_Check], _Reply], check: _Check) -> asyncio.Future[_Reply]:
    """Return a future with the answer to a check. If it is cancelled, the check is removed at once."""
    waiting = [check]

    def run() -> _Reply:
        for taken in tuple(waiting):
            return answer(taken)
        raise CancelledError

    coming = asyncio.get_running_loop().run_in_executor(threads, run)
    coming.add_done_callback(lambda _: waiting.clear())
    return coming


SERVICE: Final = "envoy.service.auth.v3.Authorization"
_REPLACEMENT: Final = "!"  # Envoy's replacement for a byte that is not UTF-8
_MCP: Final = "envoy.filters.http.mcp"
_PARTIAL: Final = "x-envoy-auth-partial-body"
_OVERWRITE: Final = HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD
_PERMISSION_DENIED: Final = 7
_MAX_WATCHERS: Final = 64

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ReceivedCheck:
    """The request in a check of an Envoy. A text that the check does not have is empty, and a port is 0.

    - `headers` has names in lower case and no pseudo-headers.
    - `exact_headers`: each value is separate. Otherwise Envoy joins the values of one name by commas.
    - `complete`: the body is complete and unchanged, as Envoy reports.
    - `mcp` is the output of Envoy's own filter for the body.
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
    removed_parameters: tuple[str, ...] = ()
    client_headers: Pairs = ()
    body: bytes = b""
    decision: str = ""


def read_check(message: CheckRequest) -> ReceivedCheck:
    """Parse a check of an Envoy."""
    attributes = message.attributes
    request = attributes.request.http
    source, peer = attributes.source, attributes.source.address.socket_address
    destination = attributes.destination.address.socket_address
    headers, exact = _headers(request)
    partial = headers.pop(_PARTIAL, None)
    body = request.raw_body or request.body.encode()
    metadata = attributes.metadata_context.filter_metadata
    certificate = source.certificate
    return ReceivedCheck(
        source.principal,
        unquote(certificate) if certificate else "",
        peer.address,
        peer.port_value,
        destination.address,
        destination.port_value,
        request.id,
        request.method,
        request.path,
        request.host,
        request.scheme,
        request.protocol,
        attributes.tls_session.sni,
        headers,
        exact,
        body,
        partial == ["false"] and request.size in (-1, len(body)) and _REPLACEMENT not in request.body,
        dict(attributes.context_extensions),
        _plain(metadata[_MCP]) if _MCP in metadata else {},
    )


def _headers(request: AttributeContext.HttpRequest) -> tuple[dict[str, list[str]], bool]:
    """Return the headers without pseudo-headers, and whether each value is separate."""
    listed = request.header_map.headers
    if not listed:
        joined = request.headers
        return {name.lower(): [joined[name]] for name in joined if not name.startswith(":")}, False
    headers: dict[str, list[str]] = {}
    for header in listed:
        if not header.key.startswith(":"):
            value = header.raw_value.decode("utf-8", "replace") if header.raw_value else header.value
            headers.setdefault(header.key.lower(), []).append(value)
    return headers, True


def _plain(struct: Any) -> dict[str, object]:
    """Return a Struct as plain data, with only its texts and objects."""
    plain: dict[str, object] = {}
    for name, value in struct.fields.items():
        if value.HasField("string_value"):
            plain[name] = value.string_value
        elif value.HasField("struct_value"):
            plain[name] = _plain(value.struct_value)
    return plain


def write_reply(reply: CheckReply) -> CheckResponse:
    """Write the answer. Its headers replace those of the client."""
    response = CheckResponse()
    if reply.allowed:
        response.status.code = 0
        allowed = response.ok_response
        allowed.SetInParent()
        _add_headers(allowed.headers, reply.upstream_headers)
        allowed.headers_to_remove.extend(reply.upstream_removed)
        allowed.query_parameters_to_remove.extend(reply.removed_parameters)
    else:
        response.status.code = _PERMISSION_DENIED
        denied = response.denied_response
        denied.status.code = reply.status
        _add_headers(denied.headers, reply.client_headers)
        denied.body = reply.body.decode("utf-8", "replace")
    if reply.decision:
        response.dynamic_metadata["decision"] = reply.decision
    return response


def _add_headers(options: RepeatedCompositeFieldContainer[HeaderValueOption], headers: Pairs) -> None:
    for name, value in headers:
        option = options.add()
        option.append_action = _OVERWRITE
        option.header.key = name
        option.header.value = value


class CheckServer:
    """Answers Envoys, on an event loop. Each connection may have this number of open `calls`, of at most `max_bytes`
    each.

    `answer` returns a reply or a future.
    """

    def __init__(
        self,
        answer: Callable[[ReceivedCheck], CheckReply | Awaitable[CheckReply]],
        *,
        calls: int,
        max_bytes: int,
        is_ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._answer = answer
        self._is_ready = is_ready
        health = health_methods(self._health, {"", SERVICE}, _MAX_WATCHERS)
        limits = GrpcLimits(message=max_bytes, streams=calls)
        self._server = GrpcServer({f"/{SERVICE}/Check": self._check, **health}, limits)

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return self._server.protocol()

    async def drain(self, grace: float) -> None:
        """Answer open calls and close, after at most this number of seconds."""
        await self._server.drain(grace)

    def _check(self, message: bytes) -> bytes | Awaitable[bytes]:
        try:
            request = CheckRequest.FromString(message)
        except DecodeError:
            raise CallError(GrpcStatus.INTERNAL, "the message cannot be read") from None
        reply = self._answer(read_check(request))
        if isinstance(reply, CheckReply):
            return _written(reply)
        return self._check_later(reply)

    async def _check_later(self, coming: Awaitable[CheckReply]) -> bytes:
        return _written(await coming)

    def _health(self) -> bool:
        return not self._server.draining and self._is_ready()


def _written(reply: CheckReply) -> bytes:
    written: bytes = write_reply(reply).SerializeToString()
    return written
