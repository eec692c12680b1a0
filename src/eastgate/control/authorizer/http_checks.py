"""Reads checks over HTTP: the proxy sends the request again, with or without its body, and waits for the answer.

A proxy sends everything as headers, together with those of the client. So Eastgate trusts only the headers that,
according to the operator, the proxy sets itself (`HttpOptions`). Without these the caller is unknown. A header that did
not arrive is unknown too, since most proxies forward only some.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self

from eastgate.basics.records import dataclass
from eastgate.cluster.ends import ANONYMOUS, UNKNOWN_CALLER, Source, SpiffeId
from eastgate.control.authorizer.checks import Body, ProxyAnswer, ProxyCheck, ProxyOptions
from eastgate.control.authorizer.forwarded import identity_in
from eastgate.control.authorizer.http_server import (
    Handler,
    HttpLimits,
    HttpServer,
    Screen,
    ServedRequest,
    ServedResponse,
)
from eastgate.ir.spiffe import spiffe_problem

# An HTTP listener that `async with` opens and drains.


class HttpListener(ABC):
    """A listener whose port `listen` opens, and whose requests a handler answers.

    At its end it still answers open requests for `grace` seconds.
    """

    def __init__(
        self, handler: Handler, limits: HttpLimits | None = None, grace: float = 1.0, screen: Screen | None = None
    ) -> None:
        self.http = HttpServer(handler, limits, screen)
        self._grace = grace
        self._server: asyncio.Server | None = None

    @abstractmethod
    async def listen(self) -> asyncio.Server:
        """Open the port, for connections of `http.protocol`. Raises OSError."""

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._server is not None  # noqa: S101 - it was started
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self._server = await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self.http.drain(self._grace)


_FORWARDED_CERTIFICATE: Final = "x-forwarded-client-cert"
_PARTIAL: Final = "x-envoy-auth-partial-body"
_REMOVED: Final = "x-envoy-auth-headers-to-remove"
_HOP_HEADERS: Final = frozenset(  # also if the client sent headers of these names
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding"}
    | {_PARTIAL, "x-envoy-expected-rq-timeout-ms", "x-envoy-internal"}
)
_NO_CERTIFICATE: Final = ("", "-")  # the missing value of nginx and of Envoy


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Properties of the proxy that the operator configures. The proxy sets the headers named here, and a client cannot.

    `prefix` precedes the path. `identity` holds the SPIFFE ID of the caller, or is the header x-forwarded-client-cert.
    `to` holds the destination, and `address` the source address. `original`: the request is in X-Original-Method and
    X-Original-URI, as nginx sends it. `all_headers`: the proxy sends every header.
    """

    prefix: str = ""
    identity: str | None = None
    to: str | None = None
    address: str | None = None
    original: bool = False
    all_headers: bool = False

    @property
    def own(self) -> frozenset[str]:
        """Return the names of the headers that the proxy sets."""
        named = {name for name in (self.identity, self.to, self.address) if name is not None}
        return frozenset(named | ({"x-original-uri", "x-original-method"} if self.original else set()))


def check_of_http(request: ServedRequest, options: HttpOptions, proxy: ProxyOptions) -> ProxyCheck | None:
    """Return the check of a proxy, or None if the request that it is about is ambiguous."""
    method, path = request.method, request.target
    if options.original:
        methods, targets = request.values("x-original-method"), request.values("x-original-uri")
        if len(methods) != 1 or len(targets) != 1:
            return None
        method, path = methods[0], targets[0]
    elif not path.startswith(options.prefix):
        return None
    else:
        path = path[len(options.prefix) :] or "/"
    hosts = request.values("host")
    if len(hosts) > 1 or (options.to is not None and len(request.values(options.to)) > 1):
        return None
    headers: dict[str, list[str]] = {}
    hop_headers = _HOP_HEADERS | {"upgrade"} if options.original else _HOP_HEADERS  # nginx does not forward it
    others = hop_headers | options.own
    for name, value in request.headers:
        if name not in others:
            headers.setdefault(name, []).append(value)
    return ProxyCheck(
        source=_source(request, options),
        method=method,
        path=path,
        host=hosts[0] if hosts else None,
        headers=headers,
        shown_headers=None if options.all_headers else proxy.shown_headers,
        unclear_headers=others.union(name for name, values in headers.items() if "," in "".join(values)),
        address=_single(request, options.address),
        body=Body(request.body, complete=_is_complete(request, proxy)) if request.body else None,
        shows_bodies=proxy.whole_bodies,
        to=_single(request, options.to),
    )


def _single(request: ServedRequest, name: str | None) -> str | None:
    values = request.values(name) if name is not None else []
    return values[0] if len(values) == 1 else None


def _source(request: ServedRequest, options: HttpOptions) -> Source:
    if options.identity is None:
        return UNKNOWN_CALLER
    values = request.values(options.identity)
    if not values:
        return ANONYMOUS
    if len(values) > 1:  # at least one does not come from the proxy
        return UNKNOWN_CALLER
    is_forwarded = options.identity == _FORWARDED_CERTIFICATE
    identity = identity_in(values[0]) if is_forwarded else values[0]
    if identity is not None and spiffe_problem(identity) is None:
        return SpiffeId(identity)
    return ANONYMOUS if identity in _NO_CERTIFICATE else UNKNOWN_CALLER


def _is_complete(request: ServedRequest, proxy: ProxyOptions) -> bool:
    """Return whether the check has the whole body: the proxy never cuts bodies, and marks this one as complete.

    The `content-length` of a check is that of the check itself, not of the request.
    """
    return proxy.whole_bodies and request.values(_PARTIAL) == ["false"]


def response_of(answer: ProxyAnswer) -> ServedResponse:
    """Return an answer in the form that a proxy gets: 200 with headers for the application, or the response for the
    client.
    """
    if answer.allowed:
        removed = ((_REMOVED, ",".join(answer.upstream_removed)),) if answer.upstream_removed else ()
        return ServedResponse(200, (*answer.upstream_headers, *removed))
    return ServedResponse(answer.status, answer.client_headers, answer.body)
