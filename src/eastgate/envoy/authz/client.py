"""Asks an authorization service about a request, as an Envoy does: `envoy.service.auth.v3.Authorization/Check`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

import grpc
from envoy.config.core.v3.base_pb2 import HeaderValueOption
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse

from eastgate.basics.records import dataclass

_CHECK: Final = "/envoy.service.auth.v3.Authorization/Check"
_ACTION = HeaderValueOption.HeaderAppendAction


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """A request to be checked. Names of headers are in lower case; those of HTTP/2 begin with a colon.

    `principal` and `address` are those of the peer; empty if the peer has none, or if it is unknown.
    """

    method: str
    path: str
    host: str
    scheme: str
    protocol: str
    headers: Mapping[str, str] = field(repr=False)
    size: int = -1
    body: bytes | None = field(default=None, repr=False)
    principal: str = ""
    address: str = ""
    port: int = 0
    sni: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The answer. If it allows, `headers` are for the application, otherwise for the client."""

    allowed: bool
    status: int
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    removed: tuple[str, ...] = ()
    body: str = field(default="", repr=False)


class CheckFailed(Exception):  # noqa: N818 - the name is an event
    """There is no valid answer. The message may be shown."""


class AuthorizationClient:
    """Asks one service, over one connection that is replaced when it is lost. Threads may share a client.

    `target` is an address in gRPC's form, `authority` the name of the service in requests.
    """

    def __init__(self, target: str, authority: str, *, max_bytes: int) -> None:
        options = (
            ("grpc.default_authority", authority),
            ("grpc.max_receive_message_length", max_bytes),
            ("grpc.absolute_max_metadata_size", max_bytes),
            ("grpc.enable_http_proxy", 0),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        )
        self._channel = grpc.insecure_channel(target, options)
        self._check = self._channel.unary_unary(_CHECK, CheckRequest.SerializeToString, CheckResponse.FromString)

    def check(self, request: CheckedRequest, seconds: float) -> CheckAnswer:
        """Return the answer. Raises CheckFailed."""
        try:
            response: CheckResponse = self._check(_message(request), timeout=seconds)
        except grpc.RpcError as error:
            code = getattr(error, "code", None)
            raise CheckFailed(f"the call fails: {code().name if code is not None else 'no connection'}") from None
        except ValueError:
            raise CheckFailed("the connection was closed") from None
        return _answer(response, request.headers)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def _message(request: CheckedRequest) -> CheckRequest:
    message = CheckRequest()
    attributes = message.attributes
    source = attributes.source
    if request.address:
        source.address.socket_address.address = request.address
        source.address.socket_address.port_value = request.port
    source.principal = request.principal
    now = time.time_ns()
    attributes.request.time.seconds, attributes.request.time.nanos = divmod(now, 1_000_000_000)
    http = attributes.request.http
    http.id, http.method, http.path, http.host = request.id, request.method, request.path, request.host
    http.scheme, http.protocol, http.size = request.scheme, request.protocol, request.size
    http.headers.update(request.headers)
    if request.body is not None:
        try:
            http.body = request.body.decode()
        except UnicodeDecodeError:
            http.raw_body = request.body
    if request.sni:
        attributes.tls_session.sni = request.sni
    return message


def _answer(response: CheckResponse, sent: Mapping[str, str]) -> CheckAnswer:
    """Parse the answer. It allows only if no part of it contradicts that."""
    which = response.WhichOneof("http_response")
    if response.status.code == 0:
        if which not in (None, "ok_response"):
            raise CheckFailed("the answer contradicts itself: its status is OK, and its response a denial")
        accepted = response.ok_response
        if accepted.query_parameters_to_set or accepted.query_parameters_to_remove:
            raise CheckFailed("the answer asks for a change of the query, which is not made")
        return CheckAnswer(
            True, 200, _changes(accepted.headers, sent), tuple(name.lower() for name in accepted.headers_to_remove)
        )
    if which != "denied_response":
        return CheckAnswer(False, 403)
    denied = response.denied_response
    return CheckAnswer(False, denied.status.code or 403, tuple(map(_header, denied.headers)), (), denied.body)


def _changes(options: Iterable[HeaderValueOption], sent: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers that differ from those of the request, after all changes of the answer."""
    changed: dict[str, str] = {}
    for option in options:
        name, value = _header(option)
        before = changed.get(name, sent.get(name))
        if option.append_action == _ACTION.ADD_IF_ABSENT and before is not None:
            continue
        if option.append_action == _ACTION.OVERWRITE_IF_EXISTS and before is None:
            continue
        changed[name] = f"{before},{value}" if option.append.value and before is not None else value
    return tuple(changed.items())


def _header(option: HeaderValueOption) -> tuple[str, str]:
    header = option.header
    return header.key.lower(), header.value or header.raw_value.decode("latin-1")
