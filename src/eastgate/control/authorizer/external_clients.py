"""Clients of external authorizers: they write questions and read answers in HTTP and in Envoy's gRPC protocol."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, Protocol

from eastgate.basics.records import dataclass
from eastgate.cluster.ends import Source, SpiffeId
from eastgate.control.authorizer.external_http import HttpConnections, HttpReply, ServiceAddress, connect
from eastgate.envoy.authz.client import AuthorizationClient, CheckedRequest
from eastgate.ir import ExternalAuthorizer, ExternalProtocol, Refusal, Ruling
from eastgate.ir.attributes import Headers, header_values, steers_proxy

# Carries gRPC over TLS with a context of Python's `ssl`.
#
# gRPC's own TLS takes keys from files and compares host names; the identities of a mesh have neither. So gRPC sends
# plain text to a unix socket that only this user can open, and the tunnel forwards it over TLS.


_CHUNK_BYTES: Final = 64 * 1024
_ACCEPT_RETRY_SECONDS: Final = 0.1


class TlsTunnel:
    """A unix socket that forwards to an address. `seconds` limits the time to open each connection."""

    def __init__(self, address: ServiceAddress, seconds: float) -> None:
        self._address = address
        self._seconds = seconds
        self._folder = tempfile.TemporaryDirectory(prefix="eastgate-")  # readable only by this user
        path = Path(self._folder.name) / "tunnel"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self.target = f"unix:{path}"
        self._closed = threading.Event()
        threading.Thread(target=self._accept, name="tunnel", daemon=True).start()

    def close(self) -> None:
        """Stop accepting. Open tunnels end with their connections."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:  # the listener is closed, or too many files are open for now
                self._closed.wait(_ACCEPT_RETRY_SECONDS)
                continue
            try:
                threading.Thread(target=self._carry, args=(near,), name="tunnel", daemon=True).start()
            except RuntimeError:  # too many threads
                near.close()

    def _carry(self, near: socket.socket) -> None:
        try:
            far = connect(self._address, time.monotonic() + self._seconds)
        except OSError:
            near.close()
            return
        with near, far, contextlib.suppress(OSError):
            near.setblocking(False)
            far.setblocking(False)
            while _carried(near, far, select.select([near, far], [], [])[0]):
                pass


def _carried(near: socket.socket, far: socket.socket, readable: list[socket.socket]) -> bool:
    """Forward the data that is ready. Return False if an end has closed. Only one thread may use a TLS connection."""
    for source, sink in ((near, far), (far, near)):
        while source in readable:
            try:
                piece = source.recv(_CHUNK_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            if not piece:
                return False
            _send(sink, piece)
    return True


def _send(sink: socket.socket, data: bytes) -> None:
    while data:
        try:
            data = data[sink.send(data) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            select.select([], [sink], [])


_TOO_LARGE: Final = 413
_OWN_PREFIX: Final = "x-eastgate-"  # internal to the proxies of Eastgate, except for the caller
_SOURCE: Final = f"{_OWN_PREFIX}source"
_TRANSPORT_HEADERS: Final = frozenset({"content-encoding", "content-type", "date", "expect", "server"})
_CLIENT_HEADERS: Final = frozenset({"content-type", "location", "retry-after", "set-cookie", "www-authenticate"})


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits for one authorizer: the time of a call, the size of an answer, and calls at a time."""

    seconds: float
    max_bytes: int
    in_flight: int


class RequestBody(Protocol):
    """The body of a request, or its beginning."""

    @property
    def content(self) -> bytes: ...
    @property
    def complete(self) -> bool: ...


class AuthorizerRequest(Protocol):
    """The request that an authorizer gets. None means unknown."""

    @property
    def source(self) -> Source: ...
    @property
    def method(self) -> str | None: ...
    @property
    def path(self) -> str | None: ...
    @property
    def host(self) -> str | None: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def http_protocol(self) -> str | None: ...
    @property
    def scheme(self) -> str | None: ...
    @property
    def sni(self) -> str | None: ...
    @property
    def address(self) -> str | None: ...
    @property
    def body(self) -> RequestBody | None: ...
    @property
    def is_without_body(self) -> bool: ...
    def knows_headers(self, names: Collection[str] | None) -> bool: ...


class CallDenied(Exception):  # noqa: N818 - it carries an answer
    """Ends a call with a denial, which it carries as the answer."""

    def __init__(self, text: str, status: int = Refusal.FORBIDDEN) -> None:
        super().__init__(text)
        self.ruling = Ruling(False, status, text)


def client_of(external: ExternalAuthorizer, address: ServiceAddress, limits: CallLimits) -> ServiceClient:
    """Return a client of an authorizer, by its protocol."""
    make = _GrpcClient if external.protocol is ExternalProtocol.GRPC else _HttpClient
    return make(external, address, limits)


class ServiceClient:
    """A client of one authorizer at one address. It closes once it is retired and has no open call."""

    def __init__(self, external: ExternalAuthorizer, address: ServiceAddress, limits: CallLimits) -> None:
        self.address = address
        self._external = external
        self._slots = threading.BoundedSemaphore(limits.in_flight)
        self._lock = threading.Lock()
        self._users = 0
        self._retired = False

    def enter(self) -> None:
        """Count a user of the client."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Stop counting a user. Closes a retired client without users."""
        with self._lock:
            self._users -= 1
            ended = self._retired and self._users == 0
        if ended:
            self.close()

    def retire(self) -> None:
        """Close the client after its last user left."""
        with self._lock:
            self._retired = True
            ended = self._users == 0
        if ended:
            self.close()

    def ask(self, check: AuthorizerRequest, deadline: float) -> Ruling:
        """Ask once a slot is free. Raises `CallDenied`, ExchangeFailed, CheckFailed."""
        method, path, host = check.method, check.path, check.host
        if method is None or path is None or host is None:
            raise CallDenied("the method, path or host of the request is unknown")
        if not check.knows_headers(self._shown_headers()):
            raise CallDenied("headers that it needs are unknown")
        body = self._body(check)
        if not self._slots.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise CallDenied("too many calls to it are open")
        try:
            return self.exchange(check, method, path, host, body, deadline)
        finally:
            self._slots.release()

    def _shown_headers(self) -> frozenset[str] | None:
        """Return the names of the headers that the authorizer sees; None if it sees all."""
        allowed = frozenset(name for name in self._external.allowed_headers if name != "host" and name[:1] != ":")
        if self._external.protocol is ExternalProtocol.HTTP:
            return allowed | {"authorization"}
        return allowed or None

    def _body(self, check: AuthorizerRequest) -> bytes | None:
        """Return the body to send to the authorizer, or None to send none."""
        if self._external.max_body == 0:
            return None
        body = check.body
        if check.is_without_body:
            return b""
        if body is None:
            raise CallDenied("it needs the body, which is unknown")
        if not body.complete or len(body.content) > self._external.max_body:
            raise CallDenied("the body is longer than its limit", _TOO_LARGE)
        return body.content

    def exchange(
        self, check: AuthorizerRequest, method: str, path: str, host: str, body: bytes | None, deadline: float
    ) -> Ruling:
        """Send the request and return the answer."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections."""
        raise NotImplementedError


class _HttpClient(ServiceClient):
    def __init__(self, external: ExternalAuthorizer, address: ServiceAddress, limits: CallLimits) -> None:
        super().__init__(external, address, limits)
        self._connections = HttpConnections(address, max_bytes=limits.max_bytes)

    def exchange(
        self, check: AuthorizerRequest, method: str, path: str, host: str, body: bytes | None, deadline: float
    ) -> Ruling:
        if method == "CONNECT" or not path.startswith("/"):
            raise CallDenied("it cannot decide a request without a path")
        headers = [("host", host), ("content-length", str(len(body or b"")))]
        allowed = self._external.allowed_headers | {"authorization"}
        for name, values in header_values(check.headers).items():
            if name in allowed and name != "expect" and not steers_proxy(name):
                headers += ((name, value) for value in values)
        if _principal(check):
            headers.append((_SOURCE, _principal(check)))
        target = self._external.path.rstrip("/") + path
        reply = self._connections.exchange(method, target, headers, body or b"", deadline)
        return self._allowed(reply) if reply.status == 200 else _denied(reply)

    def _allowed(self, reply: HttpReply) -> Ruling:
        """Return the consent with its headers. Headers that only the authorizer sets are removed from the request of
        the client.
        """
        wanted = self._external.response_headers
        headers: dict[str, str] = {}
        for name, value in reply.headers:
            if (not wanted or name in wanted) and _may_be_set(name):
                headers[name] = f"{headers[name]},{value}" if name in headers else value
        removed = tuple(sorted(name for name in wanted - headers.keys() if _may_be_set(name)))
        return Ruling(True, 200, "it answers 200", headers=tuple(headers.items()), removed=removed)

    def close(self) -> None:
        self._connections.close()


def _principal(check: AuthorizerRequest) -> str:
    """Return the verified identity of the caller, by certificate, address or token; empty if it has none."""
    return check.source.value if isinstance(check.source, SpiffeId) else ""


def _denied(reply: HttpReply) -> Ruling:
    """Return the denial with the response of the authorizer for the client."""
    if not 300 <= reply.status < 500:
        return Ruling(False, Refusal.FORBIDDEN, f"it answers {reply.status}")
    headers = [(name, value) for name, value in reply.headers if name in _CLIENT_HEADERS]
    encoded = any(name == "content-encoding" for name, _ in reply.headers)
    body = _text(reply.body) if not encoded else ""
    return _refused(reply.status, headers, body)


def _refused(status: int, headers: Iterable[tuple[str, str]], body: str) -> Ruling:
    kept = tuple((name, value) for name, value in headers if body or name != "content-type")
    return Ruling(False, status, f"it answers {status}", headers=kept, body=body)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return ""


def _may_be_set(name: str) -> bool:
    return name not in _TRANSPORT_HEADERS and not steers_proxy(name)


class _GrpcClient(ServiceClient):
    def __init__(self, external: ExternalAuthorizer, address: ServiceAddress, limits: CallLimits) -> None:
        super().__init__(external, address, limits)
        self._tunnel = TlsTunnel(address, limits.seconds) if address.tls is not None else None
        target = self._tunnel.target if self._tunnel is not None else _target(address)
        authority = address.server_name or f"{external.service}.{external.namespace}"
        self._grpc = AuthorizationClient(target, authority, max_bytes=limits.max_bytes)

    def exchange(
        self, check: AuthorizerRequest, method: str, path: str, host: str, body: bytes | None, deadline: float
    ) -> Ruling:
        scheme = check.scheme or "http"
        sent = {
            name: ",".join(values)
            for name, values in header_values(check.headers).items()
            if name != "host" and not name.startswith(_OWN_PREFIX)
        }
        length = sent.get("content-length", "")
        sent |= {":authority": host, ":method": method, ":path": path, ":scheme": scheme}
        allowed = self._external.allowed_headers
        request = CheckedRequest(
            method=method,
            path=path,
            host=host,
            scheme=scheme,
            protocol=check.http_protocol or "HTTP/1.1",
            headers={name: value for name, value in sent.items() if name in allowed} if allowed else sent,
            size=int(length) if length.isascii() and length.isdigit() else -1,
            body=body,
            principal=_principal(check),
            address=check.address or "",
            sni=check.sni or "",
        )
        answer = self._grpc.check(request, max(deadline - time.monotonic(), 0.001))
        if not answer.allowed:
            status = answer.status if 300 <= answer.status < 600 else Refusal.FORBIDDEN.value
            return _refused(status, [header for header in answer.headers if _is_for_client(*header)], answer.body)
        if not all(_may_be_set(name) for name, _ in answer.headers) or not all(map(_may_be_set, answer.removed)):
            raise CallDenied("it sets or removes a header that it may not change")
        return Ruling(True, 200, "it answers OK", headers=answer.headers, removed=answer.removed)

    def close(self) -> None:
        self._grpc.close()
        if self._tunnel is not None:
            self._tunnel.close()


def _is_for_client(name: str, _value: str) -> bool:
    return name in ("content-type", "date") or _may_be_set(name)


def _target(address: ServiceAddress) -> str:
    """Return an address as gRPC writes it. gRPC resolves names."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"dns:///{host}:{address.port}"
